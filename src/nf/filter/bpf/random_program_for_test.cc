// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/random_program_for_test.h"

#include <algorithm>
#include <iterator>

#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

constexpr std::uint16_t kCodes[] = {kLoadWordAbs,
                                    kLoadHalfAbs,
                                    kLoadByteAbs,
                                    kLoadWordInd,
                                    kLoadHalfInd,
                                    kLoadByteInd,
                                    kLoadImmediate,
                                    kLoadScratch,
                                    kLoadLength,
                                    kLoadXImmediate,
                                    kLoadXScratch,
                                    kLoadXLength,
                                    kLoadXHeaderLength,
                                    kStore,
                                    kStoreX,
                                    kAddK,
                                    kAddX,
                                    kSubtractK,
                                    kSubtractX,
                                    kMultiplyK,
                                    kMultiplyX,
                                    kDivideK,
                                    kDivideX,
                                    kModuloK,
                                    kModuloX,
                                    kOrK,
                                    kOrX,
                                    kAndK,
                                    kAndX,
                                    kXorK,
                                    kXorX,
                                    kShiftLeftK,
                                    kShiftLeftX,
                                    kShiftRightK,
                                    kShiftRightX,
                                    kNegate,
                                    kJump,
                                    kJumpEqualK,
                                    kJumpEqualX,
                                    kJumpGreaterK,
                                    kJumpGreaterX,
                                    kJumpGreaterEqualK,
                                    kJumpGreaterEqualX,
                                    kJumpSetK,
                                    kJumpSetX,
                                    kReturnK,
                                    kReturnA,
                                    kCopyAToX,
                                    kCopyXToA};

std::uint32_t below(std::mt19937& random, std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); }

/// Small numbers, numbers near powers of two, and any.
std::uint32_t random_constant(std::mt19937& random) {
  switch (below(random, 6)) {
    case 0: return (std::uint32_t{1} << below(random, 32)) + below(random, 5) - 2;
    case 1: return 0u - below(random, 5);
    case 2: return static_cast<std::uint32_t>(random());
    default: return below(random, 96);
  }
}

}  // namespace

std::vector<Instruction> random_program(std::mt19937& random) {
  const std::uint32_t length = 1 + below(random, 40);
  std::vector<Instruction> program;
  for (std::uint32_t i = 0; i + 1 < length; ++i) {
    Instruction at{kCodes[below(random, std::size(kCodes))], 0, 0, random_constant(random)};
    // Returns are rare, so that programs run for a while.
    if ((at.code & kClassMask) == kClassReturn && below(random, 4) != 0) at.code = kCopyXToA;
    const std::uint32_t left = length - 1 - i;
    const auto skip = [&] { return static_cast<std::uint8_t>(below(random, std::min(left, 6u))); };
    switch (at.code) {
      case kLoadScratch:
      case kLoadXScratch:
      case kStore:
      case kStoreX: at.k %= kScratchWords; break;
      case kDivideK:
      case kModuloK: at.k = std::max(at.k, 1u); break;
      case kJump: at.k = skip(); break;
      case kLoadWordAbs:
      case kLoadHalfAbs:
      case kLoadByteAbs:
        if (at.k >= 0xffe00000) at.k -= 0x200000;  // Linux's extensions
        break;
      default:
        if ((at.code & kClassMask) == kClassJump) {
          at.jump_true = skip();
          at.jump_false = skip();
        }
    }
    program.push_back(at);
  }
  program.push_back({below(random, 3) == 0 ? kReturnK : kReturnA, 0, 0, random_constant(random)});
  return program;
}

}  // namespace penstock::filter
