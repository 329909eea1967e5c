// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A program whose jumps name lines and not distances, so that lines can be inserted, copied and left out. Internal to
// the verifier.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

/// Jumps of conditional instructions go to `on_true` and `on_false`, and `ja` to `on_true`. Other lines but returns go
/// to `on_true`, the line after them.
struct AssemblyLine {
  Instruction instruction;
  std::size_t on_true = 0;
  std::size_t on_false = 0;
};
using Assembly = std::vector<AssemblyLine>;

[[nodiscard]] bool is_branch(std::uint16_t code) noexcept;  // a conditional jump
[[nodiscard]] bool is_return(std::uint16_t code) noexcept;

/// Jumps must be within the program. They may go backwards.
[[nodiscard]] Assembly to_assembly(std::span<const Instruction> instructions);

/// All jumps must go forwards. A branch over more than 255 instructions gets a `ja` of its own.
[[nodiscard]] std::vector<Instruction> assemble(const Assembly& lines);

/// Replaces each loop by copies of its body, so that all jumps go forwards. A program that would jump backwards more
/// than `rounds` times returns 0. Lines that are never reached are left out. Returns nothing if there would be more
/// than `most` lines.
[[nodiscard]] std::optional<Assembly> unrolled(const Assembly& lines, std::size_t rounds, std::size_t most);

}  // namespace penstock::filter
