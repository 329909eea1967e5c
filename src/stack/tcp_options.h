// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parser for the TCP options that tracking needs.

#pragma once

#include <cstdint>

#include "stack/decoded_packet.h"

namespace penstock::stack {

struct TcpOptions {
  std::uint32_t timestamp = 0;    // TSval
  std::uint32_t echo = 0;         // TSecr
  std::uint8_t window_scale = 0;  // at most 14 (RFC 7323 §2.3)
  bool has_timestamp = false;
  bool has_window_scale = false;
  bool fast_open = false;  // RFC 7413, or its experimental form (RFC 6994, ExID 0xf989)
};

/// `options`: the header's bytes after the first 20. Stops at the first malformed option.
[[nodiscard]] inline TcpOptions read_tcp_options(Bytes options) noexcept {
  constexpr std::uint8_t kEnd = 0, kNop = 1, kWindowScale = 3, kTimestamp = 8, kFastOpen = 34, kExperiment = 254;
  const auto be32 = [](const std::uint8_t* p) noexcept {
    return static_cast<std::uint32_t>(p[0]) << 24 | static_cast<std::uint32_t>(p[1]) << 16 |
           static_cast<std::uint32_t>(p[2]) << 8 | p[3];
  };
  TcpOptions found;
  // Nearly all packets after the handshake: two NOPs and the timestamps.
  if (options.size() == 12 && options[0] == kNop && options[1] == kNop && options[2] == kTimestamp &&
      options[3] == 10) {
    found.timestamp = be32(options.data() + 4);
    found.echo = be32(options.data() + 8);
    found.has_timestamp = true;
    return found;
  }
  while (!options.empty()) {
    const std::uint8_t kind = options[0];
    if (kind == kEnd) break;
    if (kind == kNop) {
      options = options.subspan(1);
      continue;
    }
    if (options.size() < 2 || options[1] < 2 || options[1] > options.size()) break;
    const Bytes value = options.subspan(2, options[1] - 2U);
    if (kind == kWindowScale && value.size() == 1) {
      found.window_scale = value[0] > 14 ? std::uint8_t{14} : value[0];
      found.has_window_scale = true;
    } else if (kind == kTimestamp && value.size() == 8) {
      found.timestamp = be32(value.data());
      found.echo = be32(value.data() + 4);
      found.has_timestamp = true;
    } else if (kind == kFastOpen ||
               (kind == kExperiment && value.size() >= 2 && value[0] == 0xf9 && value[1] == 0x89)) {
      found.fast_open = true;
    }
    options = options.subspan(options[1]);
  }
  return found;
}

}  // namespace penstock::stack
