// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-1's compression function (FIPS 180-4 §6.1).

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/block_core.h"

namespace penstock::ipsec {

struct Sha1 {
  static constexpr int kStateWords = 5;
  struct State {
    std::uint32_t w[kStateWords] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  };

  /// `message` is 64 bytes as big-endian words; it is overwritten.
  PENSTOCK_HOST_DEVICE static void compress(State& state, std::uint32_t (&message)[16]) noexcept {
    std::uint32_t a = state.w[0];
    std::uint32_t b = state.w[1];
    std::uint32_t c = state.w[2];
    std::uint32_t d = state.w[3];
    std::uint32_t e = state.w[4];
    unrolled<80>([&](auto t) {
      std::uint32_t& w = message[t % 16];
      if constexpr (t >= 16) {
        w = rotate_left(message[(t + 13) % 16] ^ message[(t + 8) % 16] ^ message[(t + 2) % 16] ^ w, 1);
      }
      std::uint32_t f = 0;
      if constexpr (t < 20) {
        f = ((b & c) | (~b & d)) + 0x5a827999;
      } else if constexpr (t < 40) {
        f = (b ^ c ^ d) + 0x6ed9eba1;
      } else if constexpr (t < 60) {
        f = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
      } else {
        f = (b ^ c ^ d) + 0xca62c1d6;
      }
      const std::uint32_t next = rotate_left(a, 5) + f + e + w;
      e = d;
      d = c;
      c = rotate_left(b, 30);
      b = a;
      a = next;
    });
    state.w[0] += a;
    state.w[1] += b;
    state.w[2] += c;
    state.w[3] += d;
    state.w[4] += e;
  }
};

}  // namespace penstock::ipsec
