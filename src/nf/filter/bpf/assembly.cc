// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/assembly.h"

#include <algorithm>
#include <cstdint>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

constexpr std::size_t kFarthestSkip = 255;

/// Where a line's instructions begin, and which of its two jumps need a `ja`.
struct Position {
  std::size_t at = 0;
  bool far_true = false;
  bool far_false = false;
  [[nodiscard]] std::size_t size() const noexcept { return 1u + (far_true ? 1 : 0) + (far_false ? 1 : 0); }
};

/// Positions for which all skips of branches fit. A `ja` that is inserted may make other skips too long.
std::vector<Position> positions_of(const Assembly& lines) {
  std::vector<Position> positions(lines.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 1; i < lines.size(); ++i) positions[i].at = positions[i - 1].at + positions[i - 1].size();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!is_branch(lines[i].instruction.code)) continue;
      const auto is_far = [&](std::size_t target) {
        return positions[target].at - positions[i].at - 1 > kFarthestSkip;
      };
      if (!positions[i].far_true && is_far(lines[i].on_true)) positions[i].far_true = changed = true;
      if (!positions[i].far_false && is_far(lines[i].on_false)) positions[i].far_false = changed = true;
    }
  }
  return positions;
}

/// For each line, whether a jump backwards can follow.
std::vector<bool> lines_that_loop(const Assembly& lines) {
  std::vector<std::vector<std::size_t>> predecessors(lines.size());
  std::vector<bool> loops(lines.size());
  std::vector<std::size_t> found;
  const auto visit = [&](std::size_t line) {
    if (loops[line]) return;
    loops[line] = true;
    found.push_back(line);
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (is_return(lines[i].instruction.code)) continue;
    for (const std::size_t target : {lines[i].on_true, lines[i].on_false}) {
      predecessors[target].push_back(i);
      if (target <= i) visit(i);
    }
  }
  while (!found.empty()) {
    const std::size_t line = found.back();
    found.pop_back();
    for (const std::size_t before : predecessors[line]) visit(before);
  }
  return loops;
}

/// The copies of lines that a program of `rounds` + 1 rounds reaches: by round, those from which it may jump backwards,
/// and last those from which it does not. The line after one that is no jump is in the same round, so it stays next.
class Unrolling {
 public:
  Unrolling(const Assembly& lines, std::size_t rounds)
      : lines_(lines), loops_(lines_that_loop(lines)), rounds_(rounds), copies_(lines.size() * (rounds + 2), kNone) {
    reach(copy_of(0, 0));
    // Jumps go to later copies only, so one pass in order finds all.
    for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
      if (copies_[copy] == kNone) continue;
      const AssemblyLine& line = lines_[copy % lines_.size()];
      if (is_return(line.instruction.code)) continue;
      for (const std::size_t target : {line.on_true, line.on_false}) reach(successor(copy, target));
    }
    for (std::size_t& copy : copies_)
      if (copy != kNone) copy = count_++;
  }

  /// With the return for programs that jump backwards too often, which is the last line.
  [[nodiscard]] std::size_t size() const noexcept { return count_ + 1; }

  [[nodiscard]] Assembly lines() const {
    Assembly result;
    for (std::size_t copy = 0; copy < copies_.size(); ++copy) {
      if (copies_[copy] == kNone) continue;
      AssemblyLine line = lines_[copy % lines_.size()];
      if (!is_return(line.instruction.code)) {
        line.on_true = number_of(successor(copy, line.on_true));
        line.on_false = number_of(successor(copy, line.on_false));
      }
      result.push_back(line);
    }
    result.push_back({{kReturnK, 0, 0, 0}, 0, 0});
    return result;
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  [[nodiscard]] std::size_t copy_of(std::size_t line, std::size_t round) const noexcept {
    return (loops_[line] ? round : rounds_ + 1) * lines_.size() + line;
  }
  /// kNone after the last round.
  [[nodiscard]] std::size_t successor(std::size_t copy, std::size_t target) const noexcept {
    const std::size_t round = copy / lines_.size() + (target <= copy % lines_.size() ? 1 : 0);
    return loops_[target] && round > rounds_ ? kNone : copy_of(target, round);
  }
  void reach(std::size_t copy) noexcept {
    if (copy != kNone) copies_[copy] = 0;
  }
  [[nodiscard]] std::size_t number_of(std::size_t copy) const noexcept {
    return copy == kNone ? count_ : copies_[copy];
  }

  const Assembly& lines_;
  std::vector<bool> loops_;
  std::size_t rounds_;
  std::vector<std::size_t> copies_;  // the number of the copy's line
  std::size_t count_ = 0;
};

}  // namespace

bool is_branch(std::uint16_t code) noexcept { return (code & kClassMask) == kClassJump && code != kJump; }
bool is_return(std::uint16_t code) noexcept { return (code & kClassMask) == kClassReturn; }

Assembly to_assembly(std::span<const Instruction> instructions) {
  Assembly lines;
  lines.reserve(instructions.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& at = instructions[i];
    AssemblyLine line{at, i + 1, i + 1};
    if (at.code == kJump) line.on_true = line.on_false = static_cast<std::uint32_t>(i + 1) + at.k;
    if (is_branch(at.code)) line = {at, i + 1 + at.jump_true, i + 1 + at.jump_false};
    lines.push_back(line);
  }
  return lines;
}

std::vector<Instruction> assemble(const Assembly& lines) {
  const std::vector<Position> positions = positions_of(lines);
  std::vector<Instruction> instructions;
  const auto skip_to = [&](std::size_t target, std::size_t from) {
    return static_cast<std::uint32_t>(positions[target].at - from - 1);
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [instruction, on_true, on_false] = lines[i];
    const Position& position = positions[i];
    Instruction at = instruction;
    if (at.code == kJump) at.k = skip_to(on_true, position.at);
    if (is_branch(at.code)) {
      at.jump_true = position.far_true ? std::uint8_t{0} : static_cast<std::uint8_t>(skip_to(on_true, position.at));
      at.jump_false = position.far_false ? static_cast<std::uint8_t>(position.far_true ? 1 : 0)
                                         : static_cast<std::uint8_t>(skip_to(on_false, position.at));
    }
    instructions.push_back(at);
    if (position.far_true) instructions.push_back({kJump, 0, 0, skip_to(on_true, instructions.size())});
    if (position.far_false) instructions.push_back({kJump, 0, 0, skip_to(on_false, instructions.size())});
  }
  return instructions;
}

std::optional<Assembly> unrolled(const Assembly& lines, std::size_t rounds, std::size_t most) {
  const Unrolling unrolling(lines, rounds);
  if (unrolling.size() > most) return std::nullopt;
  return unrolling.lines();
}

}  // namespace penstock::filter
