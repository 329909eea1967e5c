// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Splits a test packet into fragments:
//
//   [link][IP][0 .. cut 1 .. cut 2 .. end]
//     ─▶  [link][IP][0 .. cut 1] [link][IP][cut 1 .. cut 2] [link][IP][cut 2 .. end]

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packet/testing/packet_builder.h"

namespace penstock::testing {

/// Splits the IP packet at `ip_at`, which must extend to the end of the frame. `cuts` are offsets in its payload:
/// multiples of 8 in ascending order. For IPv6, `kept` bytes of extension headers stay before the fragment header.
inline std::vector<Bytes> fragments_of(const Bytes& frame, const std::vector<std::size_t>& cuts, std::uint32_t id,
                                       std::size_t ip_at = 14, std::size_t kept = 0) {
  const bool v4 = frame[ip_at] >> 4 == 4;
  const std::size_t header = v4 ? (frame[ip_at] & 15U) * 4 : 40 + kept;
  const Bytes payload(frame.begin() + static_cast<std::ptrdiff_t>(ip_at + header), frame.end());
  std::vector<Bytes> fragments;
  for (std::size_t i = 0; i <= cuts.size(); ++i) {
    const std::size_t from = i == 0 ? 0 : cuts[i - 1], to = i == cuts.size() ? payload.size() : cuts[i];
    const bool more = i < cuts.size();
    Bytes f(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(ip_at + header));
    const auto put16 = [&](std::size_t at, std::size_t value) {
      f[at] = static_cast<std::uint8_t>(value >> 8);
      f[at + 1] = static_cast<std::uint8_t>(value);
    };
    if (v4) {
      put16(ip_at + 2, header + to - from);
      put16(ip_at + 4, id);
      put16(ip_at + 6, from / 8 | (more ? 0x2000U : 0U));
      put16(ip_at + 10, 0);
      put16(ip_at + 10, slow_checksum(f, ip_at, ip_at + header));
    } else {
      std::size_t name_at = ip_at + 6;  // the next-header field that must name the fragment header
      for (std::size_t at = ip_at + 40; at < ip_at + header; at += 8 + f[at + 1] * std::size_t{8}) name_at = at;
      const std::uint8_t next = f[name_at];
      f[name_at] = ip_protocol::kFragment;
      put16(ip_at + 4, kept + 8 + to - from);
      const std::size_t at = f.size();
      f.resize(at + 8);
      f[at] = next;
      put16(at + 2, from | (more ? 1U : 0U));
      put16(at + 4, id >> 16);
      put16(at + 6, id & 0xffff);
    }
    f.insert(f.end(), payload.begin() + static_cast<std::ptrdiff_t>(from),
             payload.begin() + static_cast<std::ptrdiff_t>(to));
    fragments.push_back(std::move(f));
  }
  return fragments;
}

}  // namespace penstock::testing
