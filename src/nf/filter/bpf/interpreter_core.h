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

/// The program's return value. Scratch memory that the program has not written reads as 0. A load outside the packet
/// and a division by X = 0 end the program with 0, as in libpcap.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline std::uint32_t interpret(const Instruction* program,
                                                                  PacketBytes packet) noexcept {
  std::uint32_t a = 0;
  std::uint32_t x = 0;
  std::uint32_t scratch[kScratchWords] = {};
  const std::uint64_t length = packet.length;
  for (const Instruction* at = program;; ++at) {
    const std::uint32_t k = at->k;
    switch (at->code) {
      case kLoadWordAbs:
        if (std::uint64_t{k} + 4 > length) return 0;
        a = packet_word(packet.data + k);
        break;
      case kLoadHalfAbs:
        if (std::uint64_t{k} + 2 > length) return 0;
        a = packet_half(packet.data + k);
        break;
      case kLoadByteAbs:
        if (k >= length) return 0;
        a = packet.data[k];
        break;
      // X + K does not wrap: such a load is outside the packet.
      case kLoadWordInd:
        if (std::uint64_t{x} + k + 4 > length) return 0;
        a = packet_word(packet.data + x + k);
        break;
      case kLoadHalfInd:
        if (std::uint64_t{x} + k + 2 > length) return 0;
        a = packet_half(packet.data + x + k);
        break;
      case kLoadByteInd:
        if (std::uint64_t{x} + k >= length) return 0;
        a = packet.data[x + k];
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
      case kAndK: a &= k; break;
      case kAndX: a &= x; break;
      case kXorK: a ^= k; break;
      case kXorX: a ^= x; break;
      case kShiftLeftK: a <<= k; break;
      case kShiftLeftX: a = x < 32 ? a << x : 0; break;
      case kShiftRightK: a >>= k; break;
      case kShiftRightX: a = x < 32 ? a >> x : 0; break;
      case kNegate: a = 0 - a; break;
      case kJump: at += k; break;
      case kJumpEqualK: at += a == k ? at->jump_true : at->jump_false; break;
      case kJumpEqualX: at += a == x ? at->jump_true : at->jump_false; break;
      case kJumpGreaterK: at += a > k ? at->jump_true : at->jump_false; break;
      case kJumpGreaterX: at += a > x ? at->jump_true : at->jump_false; break;
      case kJumpGreaterEqualK: at += a >= k ? at->jump_true : at->jump_false; break;
      case kJumpGreaterEqualX: at += a >= x ? at->jump_true : at->jump_false; break;
      case kJumpSetK: at += (a & k) != 0 ? at->jump_true : at->jump_false; break;
      case kJumpSetX: at += (a & x) != 0 ? at->jump_true : at->jump_false; break;
      case kReturnK: return k;
      case kReturnA: return a;
      case kCopyAToX: x = a; break;
      case kCopyXToA: a = x; break;
      default: return 0;  // not in a verified program
    }
  }
}

}  // namespace penstock::filter
