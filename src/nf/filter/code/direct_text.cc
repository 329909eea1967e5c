// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/direct_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/code/node_text.h"

namespace penstock::filter {
namespace {

/// The instructions to which others jump.
std::vector<bool> targets_of(std::span<const Instruction> program) {
  std::vector<bool> targets(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    const Instruction& instruction = program[i];
    if (instruction.code == kJump) {
      targets[i + 1 + instruction.k] = true;
    } else if ((instruction.code & kClassMask) == kClassJump) {
      targets[i + 1 + instruction.jump_true] = true;
      targets[i + 1 + instruction.jump_false] = true;
    }
  }
  return targets;
}

/// Ends the program if the packet's bytes before `end`, or X + `end`, are not all there.
std::string check(bool indirect, std::uint64_t end) {
  if (end > 0xffffffff) return "return 0u;\n";
  const std::string at = indirect ? "x" : "0u";
  const std::string limit = literal(static_cast<std::uint32_t>(end));
  return fmt::format(
      "if (!has(packet.available, {0}, {1})) {{ undecided = has(packet.length, {0}, {1}); return 0u; }}\n", at, limit);
}

std::string load(bool indirect, std::uint32_t k, std::uint32_t width) {
  return check(indirect, std::uint64_t{k} + width) +
         fmt::format("a = number_at(packet, {}{}, {}u);\n", indirect ? "x + " : "", literal(k), width);
}

std::string operation(std::uint16_t code, const std::string& operand) {
  switch (code & 0xf0) {
    case 0x00: return fmt::format("a += {};\n", operand);
    case 0x10: return fmt::format("a -= {};\n", operand);
    case 0x20: return fmt::format("a *= {};\n", operand);
    case 0x30: return fmt::format("if ({0} == 0u) return 0u;\na /= {0};\n", operand);
    case 0x40: return fmt::format("a |= {};\n", operand);
    case 0x50: return fmt::format("a &= {};\n", operand);
    case 0x60: return fmt::format("a = shift_left(a, {});\n", operand);
    case 0x70: return fmt::format("a = shift_right(a, {});\n", operand);
    case 0x90: return fmt::format("if ({0} == 0u) return 0u;\na %= {0};\n", operand);
    default: return fmt::format("a ^= {};\n", operand);
  }
}

std::string condition(std::uint16_t code, const std::string& operand) {
  switch (code & 0xf0) {
    case 0x10: return "a == " + operand;
    case 0x20: return "a > " + operand;
    case 0x30: return "a >= " + operand;
    default: return fmt::format("(a & {}) != 0u", operand);
  }
}

std::string statement(std::span<const Instruction> program, std::size_t number) {
  const Instruction& instruction = program[number];
  const std::uint32_t k = instruction.k;
  switch (instruction.code) {
    case kLoadWordAbs: return load(false, k, 4);
    case kLoadHalfAbs: return load(false, k, 2);
    case kLoadByteAbs: return load(false, k, 1);
    case kLoadWordInd: return load(true, k, 4);
    case kLoadHalfInd: return load(true, k, 2);
    case kLoadByteInd: return load(true, k, 1);
    case kLoadXHeaderLength:
      return check(false, std::uint64_t{k} + 1) +
             fmt::format("x = (number_at(packet, {}, 1u) & 0xfu) << 2;\n", literal(k));
    case kLoadImmediate: return fmt::format("a = {};\n", literal(k));
    case kLoadXImmediate: return fmt::format("x = {};\n", literal(k));
    case kLoadLength: return "a = packet.wire_length;\n";
    case kLoadXLength: return "x = packet.wire_length;\n";
    case kLoadScratch: return fmt::format("a = m{};\n", k);
    case kLoadXScratch: return fmt::format("x = m{};\n", k);
    case kStore: return fmt::format("m{} = a;\n", k);
    case kStoreX: return fmt::format("m{} = x;\n", k);
    case kNegate: return "a = 0u - a;\n";
    case kCopyAToX: return "x = a;\n";
    case kCopyXToA: return "a = x;\n";
    case kReturnK: return fmt::format("return {};\n", literal(k));
    case kReturnA: return "return a;\n";
    case kJump: return fmt::format("goto l{};\n", number + 1 + k);
    default: break;
  }
  const std::string operand = (instruction.code & 0x08) != 0 ? "x" : literal(k);
  if ((instruction.code & kClassMask) != kClassJump) return operation(instruction.code, operand);
  return fmt::format("if ({}) goto l{};\ngoto l{};\n", condition(instruction.code, operand),
                     number + 1 + instruction.jump_true, number + 1 + instruction.jump_false);
}

}  // namespace

std::string direct_text(std::span<const Instruction> program, std::string_view name) {
  std::string text = fmt::format("PENSTOCK_FUNCTION u32 {}(const PacketWindow packet, bool& undecided) {{\n", name);
  text += "u32 a = 0, x = 0";
  for (std::uint32_t i = 0; i < kScratchWords; ++i) text += fmt::format(", m{} = 0", i);
  text += ";\n";
  const std::vector<bool> targets = targets_of(program);
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (targets[i]) text += fmt::format("l{}:\n", i);
    text += statement(program, i);
  }
  return text + "}\n";
}

}  // namespace penstock::filter
