// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a BPF program on one packet. For verified programs only: the interpreter checks loads from the packet and
// divisors, and trusts all else.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/filter/bpf/opcodes.h"
#include "nf/filter/bpf/packet_bytes.h"
#include "nf/filter/bpf/program.h"

namespace penstock::filter {

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t packet_half(const std::uint8_t* at) noexcept {
  return static_cast<std::uint32_t>(at[0]) << 8 | at[1];
}

[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t packet_word(const std::uint8_t* at) noexcept {
  return static_cast<std::uint32_t>(at[0]) << 24 | static_cast<std::uint32_t>(at[1]) << 16 |
         static_cast<std::uint32_t>(at[2]) << 8 | at[3];
}

/// Loads are mostly followed by `jeq`. Taking it at once saves a CPU the jump of the switch, which is hard to predict.
template <bool kAtOnce, typename At>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline At take_equal_jumps(At at, std::uint32_t a) noexcept {
  if constexpr (kAtOnce) {
    while (at[1].code == kJumpEqualK) {  // the last instruction is no load and no jump
      ++at;
      at += a == at->k ? at->jump_true : at->jump_false;
    }
  }
  return at;
}

/// Runs the program that begins at `at`, an iterator, on a packet of which the first `available` bytes are there.
/// Returns outside(e) where it would load bytes before offset e that are not all there. `scratch` is the scratch
/// memory: kScratchWords words, which are 0 unless the program loads none. `kOnCpu` only affects the speed.
template <bool kOnCpu, typename At, typename Outside>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t interpret_with(At at, const std::uint8_t* data,
                                                                       std::uint64_t available,
                                                                       std::uint32_t wire_length,
                                                                       const Outside& outside,
                                                                       std::uint32_t* scratch) noexcept {
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  for (;; ++at) {
    auto&& instruction = *at;
    const std::uint32_t k = instruction.k;
    switch (instruction.code) {
      case kLoadWordAbs:
        if (std::uint64_t{k} + 4 > available) return outside(std::uint64_t{k} + 4);
        a = packet_word(data + k);
        at = take_equal_jumps<kOnCpu>(at, a);
        break;
      case kLoadHalfAbs:
        if (std::uint64_t{k} + 2 > available) return outside(std::uint64_t{k} + 2);
        a = packet_half(data + k);
        at = take_equal_jumps<kOnCpu>(at, a);
        break;
      case kLoadByteAbs:
        if (k >= available) return outside(std::uint64_t{k} + 1);
        a = data[k];
        at = take_equal_jumps<kOnCpu>(at, a);
        break;
      // X + K does not wrap: such a load is outside the packet.
      case kLoadWordInd:
        if (std::uint64_t{x} + k + 4 > available) return outside(std::uint64_t{x} + k + 4);
        a = packet_word(data + x + k);
        at = take_equal_jumps<kOnCpu>(at, a);
        break;
      case kLoadHalfInd:
        if (std::uint64_t{x} + k + 2 > available) return outside(std::uint64_t{x} + k + 2);
        a = packet_half(data + x + k);
        at = take_equal_jumps<kOnCpu>(at, a);
        break;
      case kLoadByteInd:
        if (std::uint64_t{x} + k >= available) return outside(std::uint64_t{x} + k + 1);
        a = data[x + k];
        at = take_equal_jumps<kOnCpu>(at, a);
        break;
      case kLoadImmediate: a = k; break;
      case kLoadScratch: a = scratch[k]; break;
      case kLoadLength: a = wire_length; break;
      case kLoadXImmediate: x = k; break;
      case kLoadXScratch: x = scratch[k]; break;
      case kLoadXLength: x = wire_length; break;
      case kLoadXHeaderLength:
        if (k >= available) return outside(std::uint64_t{k} + 1);
        x = (data[k] & 0x0fu) << 2;
        break;
      case kStore: scratch[k] = a; break;
      case kStoreX: scratch[k] = x; break;
      case kAddK: a += k; break;
      case kAddX: a += x; break;
      case kSubtractK: a -= k; break;
      case kSubtractX: a -= x; break;
      case kMultiplyK: a *= k; break;
      case kMultiplyX: a *= x; break;
      case kDivideK: a /= k; break;
      case kDivideX:
        if (x == 0) return 0;
        a /= x;
        break;
      case kModuloK: a %= k; break;
      case kModuloX:
        if (x == 0) return 0;
        a %= x;
        break;
      case kOrK: a |= k; break;
      case kOrX: a |= x; break;
      case kAndK:
        a &= k;
        at = take_equal_jumps<kOnCpu>(at, a);
        break;
      case kAndX: a &= x; break;
      case kXorK: a ^= k; break;
      case kXorX: a ^= x; break;
      case kShiftLeftK: a <<= k; break;
      case kShiftLeftX: a = x < 32 ? a << x : 0; break;
      case kShiftRightK: a >>= k; break;
      case kShiftRightX: a = x < 32 ? a >> x : 0; break;
      case kNegate: a = 0 - a; break;
      case kJump: at += k; break;
      case kJumpEqualK: at += a == k ? instruction.jump_true : instruction.jump_false; break;
      case kJumpEqualX: at += a == x ? instruction.jump_true : instruction.jump_false; break;
      case kJumpGreaterK: at += a > k ? instruction.jump_true : instruction.jump_false; break;
      case kJumpGreaterX: at += a > x ? instruction.jump_true : instruction.jump_false; break;
      case kJumpGreaterEqualK: at += a >= k ? instruction.jump_true : instruction.jump_false; break;
      case kJumpGreaterEqualX: at += a >= x ? instruction.jump_true : instruction.jump_false; break;
      case kJumpSetK: at += (a & k) != 0 ? instruction.jump_true : instruction.jump_false; break;
      case kJumpSetX: at += (a & x) != 0 ? instruction.jump_true : instruction.jump_false; break;
      case kReturnK: return k;
      case kReturnA: return a;
      case kCopyAToX: x = a; break;
      case kCopyXToA: a = x; break;
      default: return 0;  // not in a verified program
    }
  }
}

/// The same with scratch memory of its own.
template <typename At, typename Outside>
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t interpret_with(At at, const std::uint8_t* data,
                                                                       std::uint64_t available,
                                                                       std::uint32_t wire_length,
                                                                       const Outside& outside) noexcept {
  std::uint32_t scratch[kScratchWords] = {};
  return interpret_with<false>(at, data, available, wire_length, outside, scratch);
}

/// A load outside the packet returns 0.
struct OutsidePacket {
  PENSTOCK_HOST_DEVICE std::uint32_t operator()(std::uint64_t) const noexcept { return 0; }
};

/// The same, where not all of the packet's `length` bytes are there. Sets `undecided` if the bytes exist.
struct OutsidePart {
  std::uint32_t length;
  bool* undecided;
  PENSTOCK_HOST_DEVICE std::uint32_t operator()(std::uint64_t end) const noexcept {
    *undecided = end <= length;
    return 0;
  }
};

/// The program's return value. A load outside the packet and a division by X = 0 end the program with 0, as in libpcap.
/// `scratch` is as for `interpret_with`.
[[nodiscard]] inline std::uint32_t interpret(const Instruction* program, PacketBytes packet,
                                             std::uint32_t* scratch) noexcept {
  return interpret_with<true>(program, packet.data, packet.length, packet.wire_length, OutsidePacket{}, scratch);
}

/// The same with scratch memory of its own. Words that the program has not written read as 0.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t interpret(const Instruction* program,
                                                                  PacketBytes packet) noexcept {
  return interpret_with(program, packet.data, packet.length, packet.wire_length, OutsidePacket{});
}

}  // namespace penstock::filter
