// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/program.h"

#include <fmt/format.h>

#include <optional>

#include "nf/filter/bpf/ancillary.h"
#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/lower.h"
#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

struct Mistake {
  std::string message;
  std::string found;
  std::string expected;
};

Mistake beyond_end(std::uint64_t target, std::size_t length) {
  return {"jumps beyond the end of the program", fmt::format("a jump to instruction {}", target),
          fmt::format("at most {}", length - 1)};
}

std::optional<Mistake> check_jump(const Instruction& at, std::size_t number, std::size_t length) {
  if (at.code == kJump) {
    // As in libpcap: modulo 2^32, so that `ja` may go backwards.
    const std::uint32_t target = static_cast<std::uint32_t>(number) + 1 + at.k;
    if (target >= length) return beyond_end(target, length);
    return {};
  }
  for (const std::size_t skip : {at.jump_true, at.jump_false})
    if (number + 1 + skip >= length) return beyond_end(number + 1 + skip, length);
  return {};
}

std::optional<Mistake> check_absolute_load(std::uint32_t k, int link_type) {
  if (is_vlan_tag(k)) return {};
  const std::string found = fmt::format("offset {:#x}", k);
  if (k == kAncillaryProtocol) {
    if (!protocol_of_frame(link_type).empty()) return {};
    return Mistake{"'protocol' is not defined for this link type", fmt::format("link type {}", link_type),
                   "Ethernet, raw IP or Linux cooked capture"};
  }
  if (is_ancillary(k)) {
    const std::string_view name = ancillary_name(k);
    // Such loads are in libpcap's code for link types where a header lies before the frame: always outside of it.
    if (name.empty()) return {};
    return Mistake{fmt::format("'{}' is known only to the kernel that received the packet", name), found,
                   "protocol, vlan_tci, vlan_tpid or vlan_tag_present"};
  }
  if (k >= kNetworkHeader)
    return Mistake{"the offset is relative to the network header, which is known only to the kernel", found,
                   "an offset from the start of the frame"};
  return {};
}

std::optional<Mistake> check(const Instruction& at, std::size_t number, std::size_t length, int link_type) {
  switch (at.code) {
    case kLoadWordAbs:
    case kLoadHalfAbs:
    case kLoadByteAbs: return check_absolute_load(at.k, link_type);
    case kLoadScratch:
    case kLoadXScratch:
    case kStore:
    case kStoreX:
      if (at.k >= kScratchWords)
        return Mistake{"no such word of scratch memory", fmt::format("M[{}]", at.k), "M[0] to M[15]"};
      return {};
    case kDivideK:
    case kModuloK:
      if (at.k == 0) return Mistake{"divides by zero", {}, {}};
      return {};
    case kJump:
    case kJumpEqualK:
    case kJumpEqualX:
    case kJumpGreaterK:
    case kJumpGreaterX:
    case kJumpGreaterEqualK:
    case kJumpGreaterEqualX:
    case kJumpSetK:
    case kJumpSetX: return check_jump(at, number, length);
    default:
      if (!is_known(at.code))
        return Mistake{"unknown instruction", fmt::format("code {:#x}", at.code), "a code of the classic BPF machine"};
      return {};
  }
}

}  // namespace

Result<Program> Program::verify(std::vector<Instruction> instructions, const Place& place, bool one_per_line,
                                int link_type) {
  if (instructions.empty())
    return failure(Error{place, "a BPF program needs at least one instruction", "none", "an instruction"});
  if (instructions.size() > kMostInstructions)
    return failure(Error{place, "the BPF program is too long", fmt::format("{} instructions", instructions.size()),
                         fmt::format("at most {}", kMostInstructions)});
  const auto refuse = [&](std::size_t number, Mistake mistake) {
    Place at = place;
    if (one_per_line) at.line += static_cast<std::uint32_t>(number);
    return failure(
        Error{at, fmt::format("instruction {} ({}): {}", number, to_string(instructions[number]), mistake.message),
              std::move(mistake.found), std::move(mistake.expected)});
  };
  for (std::size_t i = 0; i < instructions.size(); ++i)
    if (auto mistake = check(instructions[i], i, instructions.size(), link_type)) return refuse(i, std::move(*mistake));
  if ((instructions.back().code & kClassMask) != kClassReturn)
    return refuse(instructions.size() - 1, {"the last instruction does not return", {}, "ret"});
  auto lowered = lower(instructions, link_type);
  if (!lowered)
    return failure(Error{place, "the BPF program is too long once its loops are unrolled",
                         fmt::format("{} instructions", instructions.size()),
                         fmt::format("at most {} with {} rounds of the loops", kMostLowered, kFewestRounds)});
  if (*lowered == instructions) instructions.clear();
  return Program(std::move(*lowered), std::move(instructions));
}

}  // namespace penstock::filter
