// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-256's compression function (FIPS 180-4 §6.2).

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/block_core.h"

namespace penstock::ipsec {

struct Sha256 {
  static constexpr int kStateWords = 8;
  struct State {
    std::uint32_t w[kStateWords] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  };

  /// `message` is 64 bytes as big-endian words; it is overwritten.
  PENSTOCK_HOST_DEVICE static void compress(State& state, std::uint32_t (&message)[16]) noexcept {
    const auto turned = [](std::uint32_t x, int bits) { return rotate_left(x, 32 - bits); };
    std::uint32_t v[8];
    for (int i = 0; i < 8; ++i) v[i] = state.w[i];
    // The eight variables stay in place and change roles from step to step.
    unrolled<64>([&](auto t) {
      constexpr int kTurn = 64 - t;
      std::uint32_t& a = v[kTurn % 8];
      std::uint32_t& b = v[(kTurn + 1) % 8];
      std::uint32_t& c = v[(kTurn + 2) % 8];
      std::uint32_t& d = v[(kTurn + 3) % 8];
      std::uint32_t& e = v[(kTurn + 4) % 8];
      std::uint32_t& f = v[(kTurn + 5) % 8];
      std::uint32_t& g = v[(kTurn + 6) % 8];
      std::uint32_t& h = v[(kTurn + 7) % 8];
      std::uint32_t& w = message[t % 16];
      if constexpr (t >= 16) {
        const std::uint32_t before2 = message[(t + 14) % 16];
        const std::uint32_t before15 = message[(t + 1) % 16];
        w += (turned(before2, 17) ^ turned(before2, 19) ^ before2 >> 10) + message[(t + 9) % 16] +
             (turned(before15, 7) ^ turned(before15, 18) ^ before15 >> 3);
      }
      h += (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + constant<t>() + w;
      d += h;
      h += (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    });
    for (int i = 0; i < 8; ++i) state.w[i] += v[i];
  }

 private:
  /// An immediate value rather than a table entry, which a device would have to load.
  template <int t>
  PENSTOCK_HOST_DEVICE static constexpr std::uint32_t constant() noexcept {
    constexpr std::uint32_t kConstants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    constexpr std::uint32_t kConstant = kConstants[t];
    return kConstant;
  }
};

}  // namespace penstock::ipsec
