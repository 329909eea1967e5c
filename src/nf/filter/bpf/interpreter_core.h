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

/// Loads are mostly followed by `jeq`. Taking it at once saves the jump of the switch, which is hard to predict.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline const Instruction* take_equal_jumps(const Instruction* at,
                                                                              std::uint32_t a) noexcept {
  while (at[1].code == kJumpEqualK) {  // the last instruction is no load and no jump
    ++at;
    at += a == at->k ? at->jump_true : at->jump_false;
  }
  return at;
}

/// The program's return value. A load outside the packet and a division by X = 0 end the program with 0, as in libpcap.
/// `scratch` is the scratch memory: kScratchWords words, which are 0 unless the program loads none.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t interpret(const Instruction* program, PacketBytes packet,
                                                                  std::uint32_t* scratch) noexcept {
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  const std::uint64_t length = packet.length;
  for (const Instruction* at = program;; ++at) {
    const std::uint32_t k = at->k;
    switch (at->code) {
      case kLoadWordAbs:
        if (std::uint64_t{k} + 4 > length) return 0;
        a = packet_word(packet.data + k);
        at = take_equal_jumps(at, a);
        break;
      case kLoadHalfAbs:
        if (std::uint64_t{k} + 2 > length) return 0;
        a = packet_half(packet.data + k);
        at = take_equal_jumps(at, a);
        break;
      case kLoadByteAbs:
        if (k >= length) return 0;
        a = packet.data[k];
        at = take_equal_jumps(at, a);
        break;
      // X + K does not wrap: such a load is outside the packet.
      case kLoadWordInd:
        if (std::uint64_t{x} + k + 4 > length) return 0;
        a = packet_word(packet.data + x + k);
        at = take_equal_jumps(at, a);
        break;
      case kLoadHalfInd:
        if (std::uint64_t{x} + k + 2 > length) return 0;
        a = packet_half(packet.data + x + k);
        at = take_equal_jumps(at, a);
        break;
      case kLoadByteInd:
        if (std::uint64_t{x} + k >= length) return 0;
        a = packet.data[x + k];
        at = take_equal_jumps(at, a);
        break;
      case kLoadImmediate: a = k; break;
      case kLoadScratch: a = scratch[k]; break;
      case kLoadLength: a = packet.wire_length; break;
      case kLoadXImmediate: x = k; break;
      case kLoadXScratch: x = scratch[k]; break;
      case kLoadXLength: x = packet.wire_length; break;
      case kLoadXHeaderLength:
        if (k >= length) return 0;
        x = (packet.data[k] & 0x0fu) << 2;
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
        at = take_equal_jumps(at, a);
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
      case kJumpEqualK:
        if (a == k) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kJumpEqualX:
        if (a == x) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kJumpGreaterK:
        if (a > k) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kJumpGreaterX:
        if (a > x) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kJumpGreaterEqualK:
        if (a >= k) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kJumpGreaterEqualX:
        if (a >= x) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kJumpSetK:
        if ((a & k) != 0) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kJumpSetX:
        if ((a & x) != 0) {
          at += at->jump_true;
        } else {
          at += at->jump_false;
        }
        break;
      case kReturnK: return k;
      case kReturnA: return a;
      case kCopyAToX: x = a; break;
      case kCopyXToA: a = x; break;
      default: return 0;  // not in a verified program
    }
  }
}

/// The same with scratch memory of its own.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t interpret(const Instruction* program,
                                                                  PacketBytes packet) noexcept {
  std::uint32_t scratch[kScratchWords] = {};
  return interpret(program, packet, scratch);
}

}  // namespace penstock::filter
