// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "nf/filter/bpf/ancillary.h"
#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

/// How K is shown: as libpcap's bpf_image() does.
enum class Operand : std::uint8_t { none, decimal, hex, x, scratch, packet, packet_x, header_length, length, target };

struct Form {
  std::uint16_t code;
  const char* mnemonic;
  Operand operand;
};

constexpr Form kForms[] = {
    {kLoadWordAbs, "ld", Operand::packet},
    {kLoadHalfAbs, "ldh", Operand::packet},
    {kLoadByteAbs, "ldb", Operand::packet},
    {kLoadWordInd, "ld", Operand::packet_x},
    {kLoadHalfInd, "ldh", Operand::packet_x},
    {kLoadByteInd, "ldb", Operand::packet_x},
    {kLoadImmediate, "ld", Operand::hex},
    {kLoadScratch, "ld", Operand::scratch},
    {kLoadLength, "ld", Operand::length},
    {kLoadXImmediate, "ldx", Operand::hex},
    {kLoadXScratch, "ldx", Operand::scratch},
    {kLoadXLength, "ldx", Operand::length},
    {kLoadXHeaderLength, "ldxb", Operand::header_length},
    {kStore, "st", Operand::scratch},
    {kStoreX, "stx", Operand::scratch},
    {kAddK, "add", Operand::decimal},
    {kAddX, "add", Operand::x},
    {kSubtractK, "sub", Operand::decimal},
    {kSubtractX, "sub", Operand::x},
    {kMultiplyK, "mul", Operand::decimal},
    {kMultiplyX, "mul", Operand::x},
    {kDivideK, "div", Operand::decimal},
    {kDivideX, "div", Operand::x},
    {kModuloK, "mod", Operand::decimal},
    {kModuloX, "mod", Operand::x},
    {kOrK, "or", Operand::hex},
    {kOrX, "or", Operand::x},
    {kAndK, "and", Operand::hex},
    {kAndX, "and", Operand::x},
    {kXorK, "xor", Operand::hex},
    {kXorX, "xor", Operand::x},
    {kShiftLeftK, "lsh", Operand::decimal},
    {kShiftLeftX, "lsh", Operand::x},
    {kShiftRightK, "rsh", Operand::decimal},
    {kShiftRightX, "rsh", Operand::x},
    {kNegate, "neg", Operand::none},
    {kJump, "ja", Operand::target},
    {kJumpEqualK, "jeq", Operand::hex},
    {kJumpEqualX, "jeq", Operand::x},
    {kJumpGreaterK, "jgt", Operand::hex},
    {kJumpGreaterX, "jgt", Operand::x},
    {kJumpGreaterEqualK, "jge", Operand::hex},
    {kJumpGreaterEqualX, "jge", Operand::x},
    {kJumpSetK, "jset", Operand::hex},
    {kJumpSetX, "jset", Operand::x},
    {kReturnK, "ret", Operand::decimal},
    {kReturnA, "ret", Operand::none},
    {kCopyAToX, "tax", Operand::none},
    {kCopyXToA, "txa", Operand::none},
};

const Form* form_of(std::uint16_t code) noexcept {
  const auto* form = std::ranges::find(kForms, code, &Form::code);
  return form != std::end(kForms) ? form : nullptr;
}

/// Linux's ancillary data by name, other offsets as signed numbers.
std::string offset_text(std::uint32_t k) {
  const std::string_view name = ancillary_abbreviation(k);
  return name.empty() ? fmt::format("{}", static_cast<std::int32_t>(k)) : std::string(name);
}

std::string operand_text(Operand operand, std::uint32_t k, std::size_t number) {
  switch (operand) {
    case Operand::none: return {};
    case Operand::decimal: return fmt::format("#{}", static_cast<std::int32_t>(k));
    case Operand::hex: return fmt::format("#{:#x}", k);
    case Operand::x: return "x";
    case Operand::scratch: return fmt::format("M[{}]", static_cast<std::int32_t>(k));
    case Operand::packet: return fmt::format("[{}]", offset_text(k));
    case Operand::packet_x: return fmt::format("[x + {}]", static_cast<std::int32_t>(k));
    case Operand::header_length: return fmt::format("4*([{}]&0xf)", static_cast<std::int32_t>(k));
    case Operand::length: return "#pktlen";
    case Operand::target:
      return fmt::format("{}", static_cast<std::int32_t>(static_cast<std::uint32_t>(number) + 1 + k));
  }
  return {};
}

}  // namespace

bool is_known(std::uint16_t code) noexcept { return form_of(code) != nullptr; }

std::string to_string(const Instruction& instruction) {
  const Form* form = form_of(instruction.code);
  if (form == nullptr) return fmt::format("unimp {:#x}", instruction.code);
  if (form->operand == Operand::none) return form->mnemonic;
  if (form->operand == Operand::packet && is_ancillary(instruction.k))
    return fmt::format("{} [{:#x}]", form->mnemonic, instruction.k);
  if (form->operand == Operand::target)
    return fmt::format("{} {:+}", form->mnemonic, static_cast<std::int32_t>(instruction.k));
  return fmt::format("{} {}", form->mnemonic, operand_text(form->operand, instruction.k, 0));
}

std::string listing_line(const Instruction& instruction, std::size_t number) {
  const Form* form = form_of(instruction.code);
  const std::string mnemonic = form != nullptr ? form->mnemonic : "unimp";
  const std::string operand =
      form != nullptr ? operand_text(form->operand, instruction.k, number) : fmt::format("{:#x}", instruction.code);
  // As libpcap: codes that are unknown may be branches, too.
  const bool branches = (instruction.code & kClassMask) == kClassJump && (instruction.code & 0xf0) != 0;
  if (!branches) return fmt::format("({:03}) {:<8} {}", number, mnemonic, operand);
  return fmt::format("({:03}) {:<8} {:<16} jt {}\tjf {}", number, mnemonic, operand, number + 1 + instruction.jump_true,
                     number + 1 + instruction.jump_false);
}

std::string dump(std::span<const Instruction> instructions, DumpForm form) {
  std::string text;
  if (form == DumpForm::decimal) text = fmt::format("{}\n", instructions.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& at = instructions[i];
    switch (form) {
      case DumpForm::listing: text += listing_line(at, i) + '\n'; break;
      case DumpForm::c:
        text += fmt::format("{{ {:#x}, {}, {}, 0x{:08x} }},\n", at.code, at.jump_true, at.jump_false, at.k);
        break;
      case DumpForm::decimal: text += fmt::format("{} {} {} {}\n", at.code, at.jump_true, at.jump_false, at.k); break;
    }
  }
  return text;
}

}  // namespace penstock::filter
