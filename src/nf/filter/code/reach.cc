// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One pass over the program, since jumps only go forward. For each register, it keeps the greatest value that the
// register can have at an instruction, whichever way the program took.

#include "nf/filter/code/reach.h"

#include <algorithm>
#include <array>
#include <vector>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {
namespace {

constexpr std::uint32_t kAny = 0xffffffff;

std::uint32_t saturated(std::uint64_t value) noexcept {
  return value > kAny ? kAny : static_cast<std::uint32_t>(value);
}

std::uint32_t filled(std::uint32_t value) noexcept {
  for (const unsigned shift : {1U, 2U, 4U, 8U, 16U}) value |= value >> shift;
  return value;
}

/// The greatest values at an instruction.
struct Bounds {
  bool reached = false;
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  std::array<std::uint32_t, kScratchWords> scratch{};

  void merge(const Bounds& other) noexcept {
    reached = true;
    a = std::max(a, other.a);
    x = std::max(x, other.x);
    for (std::size_t i = 0; i < scratch.size(); ++i) scratch[i] = std::max(scratch[i], other.scratch[i]);
  }
};

std::uint32_t bound_of_operation(std::uint16_t operation, std::uint32_t a, std::uint32_t operand,
                                 bool is_constant) noexcept {
  switch (operation) {
    case kAddK: return saturated(std::uint64_t{a} + operand);
    case kSubtractK: return is_constant && operand == 0 ? a : kAny;  // it may wrap
    case kMultiplyK: return saturated(std::uint64_t{a} * operand);
    case kDivideK: return is_constant && operand != 0 ? a / operand : a;
    case kModuloK: return operand == 0 ? 0 : std::min(a, operand - 1);
    case kAndK: return std::min(a, operand);
    case kOrK:
    case kXorK: return filled(a | operand);
    case kShiftLeftK: return !is_constant ? kAny : operand > 31 ? 0 : saturated(std::uint64_t{a} << operand);
    case kShiftRightK: return is_constant && operand <= 31 ? a >> operand : a;
    default: return kAny;
  }
}

}  // namespace

std::uint32_t reach(std::span<const Instruction> program) {
  std::vector<Bounds> at(program.size() + 1);
  at[0].reached = true;
  std::uint32_t furthest = 0;
  const auto load = [&](Bounds& now, std::uint64_t offset, std::uint32_t width) {
    // A load that would begin beyond any packet reads nothing. One that may begin there reads anything.
    furthest = std::max(furthest, saturated(offset + width));
    now.a = width == 4 ? kAny : (1U << (8 * width)) - 1;
  };
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (!at[i].reached) continue;
    Bounds now = at[i];
    const Instruction& instruction = program[i];
    const std::uint32_t k = instruction.k;
    switch (instruction.code) {
      case kLoadWordAbs: load(now, k, 4); break;
      case kLoadHalfAbs: load(now, k, 2); break;
      case kLoadByteAbs: load(now, k, 1); break;
      case kLoadWordInd: load(now, std::uint64_t{now.x} + k, 4); break;
      case kLoadHalfInd: load(now, std::uint64_t{now.x} + k, 2); break;
      case kLoadByteInd: load(now, std::uint64_t{now.x} + k, 1); break;
      case kLoadXHeaderLength:
        furthest = std::max(furthest, saturated(std::uint64_t{k} + 1));
        now.x = 60;
        break;
      case kLoadImmediate: now.a = k; break;
      case kLoadXImmediate: now.x = k; break;
      case kLoadLength: now.a = kAny; break;
      case kLoadXLength: now.x = kAny; break;
      case kLoadScratch: now.a = now.scratch[k]; break;
      case kLoadXScratch: now.x = now.scratch[k]; break;
      case kStore: now.scratch[k] = now.a; break;
      case kStoreX: now.scratch[k] = now.x; break;
      case kCopyAToX: now.x = now.a; break;
      case kCopyXToA: now.a = now.x; break;
      case kNegate: now.a = kAny; break;
      case kReturnK:
      case kReturnA: continue;
      case kJump: at[i + 1 + k].merge(now); continue;
      default:
        if ((instruction.code & kClassMask) == kClassJump) {
          at[i + 1 + instruction.jump_true].merge(now);
          at[i + 1 + instruction.jump_false].merge(now);
          continue;
        }
        now.a = bound_of_operation(static_cast<std::uint16_t>((instruction.code & 0xf0) | kAddK), now.a,
                                   (instruction.code & 0x08) != 0 ? now.x : k, (instruction.code & 0x08) == 0);
        break;
    }
    at[i + 1].merge(now);
  }
  return furthest;
}

std::uint32_t reach(std::span<const Program> programs) {
  std::uint32_t furthest = 0;
  for (const Program& program : programs) furthest = std::max(furthest, reach(program.instructions()));
  return furthest;
}

}  // namespace penstock::filter
