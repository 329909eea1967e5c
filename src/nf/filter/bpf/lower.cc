// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/lower.h"

#include <algorithm>

#include "nf/filter/bpf/ancillary.h"
#include "nf/filter/bpf/assembly.h"
#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

bool is_absolute_load(std::uint16_t code) noexcept {
  return code == kLoadWordAbs || code == kLoadHalfAbs || code == kLoadByteAbs;
}

bool loads_protocol(const Instruction& at) noexcept { return is_absolute_load(at.code) && at.k == kAncillaryProtocol; }

/// All but `protocol`, for which one instruction is not enough.
Instruction lowered(Instruction at) noexcept {
  if (is_absolute_load(at.code)) {
    // Frames carry their VLAN tags inline, as in captures: no tag was taken out of the frame.
    if (is_vlan_tag(at.k)) return {kLoadImmediate, 0, 0, 0};
    // The verifier has refused what only a kernel knows. Others are outside of every packet, which ends the program.
    if (is_ancillary(at.k)) return {kReturnK, 0, 0, 0};
    if (at.k >= kLinkHeader && at.k < kNetworkHeader) at.k -= kLinkHeader;
  }
  // libpcap shifts by K with the processor's instruction, which uses five bits of it.
  if (at.code == kShiftLeftK || at.code == kShiftRightK) at.k &= 31;
  return at;
}

Assembly with_protocol_loads(const Assembly& lines, int link_type) {
  const Assembly load = to_assembly(protocol_of_frame(link_type));
  std::vector<std::size_t> starts(lines.size() + 1);
  for (std::size_t i = 0; i < lines.size(); ++i)
    starts[i + 1] = starts[i] + (loads_protocol(lines[i].instruction) ? load.size() : 1);
  Assembly result;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const AssemblyLine& line = lines[i];
    if (!loads_protocol(line.instruction)) {
      result.push_back({lowered(line.instruction), starts[line.on_true], starts[line.on_false]});
      continue;
    }
    for (const AssemblyLine& part : load)
      result.push_back({part.instruction, starts[i] + part.on_true, starts[i] + part.on_false});
  }
  return result;
}

bool jumps_backwards(const Assembly& lines) noexcept {
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].instruction.code == kJump && lines[i].on_true <= i) return true;
  return false;
}

std::optional<std::vector<Instruction>> assemble_unrolled(const Assembly& lines) {
  for (std::size_t rounds = kMostRounds; rounds >= kFewestRounds; rounds -= 4) {
    const auto forwards = unrolled(lines, rounds, kMostLowered);
    if (!forwards) continue;
    auto instructions = assemble(*forwards);
    if (instructions.size() <= kMostLowered) return instructions;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<Instruction>> lower(std::span<const Instruction> instructions, int link_type) {
  const Assembly lines = with_protocol_loads(to_assembly(instructions), link_type);
  if (jumps_backwards(lines)) return assemble_unrolled(lines);
  auto result = assemble(lines);
  if (result.size() > kMostLowered) return std::nullopt;
  return result;
}

}  // namespace penstock::filter
