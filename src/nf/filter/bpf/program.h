// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Programs of the classic BPF machine (McCanne & Jacobson, USENIX 1993): accumulator A, index register X, 16 words of
// scratch memory, and jumps. A `Program` has been verified: it ends, and reads nothing outside the packet and the
// scratch memory. It owns its instructions and is immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"

namespace penstock::filter {

/// As in `struct bpf_insn` of libpcap and `struct sock_filter` of Linux, with the same layout.
struct Instruction {
  std::uint16_t code = 0;
  std::uint8_t jump_true = 0;   // instructions to skip if the condition holds
  std::uint8_t jump_false = 0;  // … if it does not
  std::uint32_t k = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};
static_assert(sizeof(Instruction) == 8);

/// The number of words of scratch memory, M[].
inline constexpr std::uint32_t kScratchWords = 16;
/// The longest program: BPF_MAXINSNS of Linux.
inline constexpr std::size_t kMostInstructions = 4096;
/// The longest program in the terms of engines, with loops unrolled.
inline constexpr std::size_t kMostUnrolled = 8192;

class Program {
 public:
  /// Verifies instructions: those that libpcap's bpf_validate() accepts and its bpf_filter() can run, unless they load
  /// what only a kernel knows. Reports the first wrong one with its number, from 0, and the reason. `place` is where
  /// the program comes from; if instruction i is in line `place.line` + i of a file, `one_per_line` says so.
  /// `link_type` (DLT_ or LINKTYPE_) is that of the packets; it matters to programs that load Linux's `protocol`.
  static Result<Program> verify(std::vector<Instruction> instructions, const Place& place, bool one_per_line = false,
                                int link_type = 1);

  /// What engines run. All jumps go forwards, no load has an offset of Linux's extensions, and shifts by K are by 0 to
  /// 31 (lower.h).
  [[nodiscard]] std::span<const Instruction> instructions() const noexcept { return instructions_; }
  /// The instructions as they were given, for `tcpdump -d`.
  [[nodiscard]] std::span<const Instruction> source() const noexcept {
    return source_.empty() ? instructions_ : source_;
  }

 private:
  Program(std::vector<Instruction> instructions, std::vector<Instruction> source) noexcept
      : instructions_(std::move(instructions)), source_(std::move(source)) {}

  std::vector<Instruction> instructions_;
  std::vector<Instruction> source_;  // empty if they are the same
};

}  // namespace penstock::filter
