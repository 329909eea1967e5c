// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Copies instructions from and to libpcap's type.

#pragma once

#include <pcap/pcap.h>

#include <span>
#include <vector>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

[[nodiscard]] inline std::vector<Instruction> from_libpcap(std::span<const bpf_insn> instructions) {
  std::vector<Instruction> ours;
  ours.reserve(instructions.size());
  for (const bpf_insn& at : instructions) ours.push_back({at.code, at.jt, at.jf, at.k});
  return ours;
}

[[nodiscard]] inline std::vector<bpf_insn> to_libpcap(std::span<const Instruction> instructions) {
  std::vector<bpf_insn> theirs;
  theirs.reserve(instructions.size());
  for (const Instruction& at : instructions) theirs.push_back({at.code, at.jump_true, at.jump_false, at.k});
  return theirs;
}

}  // namespace penstock::filter
