// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What tracking reads of a TCP segment.

#pragma once

#include <cstdint>

#include "conntrack/connection.h"
#include "packet/transport.h"

namespace penstock::conntrack {

/// Sequence numbers wrap (RFC 9293 §3.4).
[[nodiscard]] constexpr bool before(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) < 0;
}
[[nodiscard]] constexpr bool after(std::uint32_t a, std::uint32_t b) noexcept { return before(b, a); }

struct TcpSegment {
  std::uint32_t sequence = 0;
  std::uint32_t end = 0;  // after its last byte; SYN and FIN count as one each
  std::uint32_t ack = 0;
  std::uint16_t window = 0;
  std::uint8_t flags = 0;
  TcpKind kind = TcpKind::none;
  Bytes options;
  // How far the acknowledgments of its sender are ahead, since what they acknowledge was made longer on its way.
  std::uint32_t ack_shift = 0;

  [[nodiscard]] bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
};

/// `header` is complete, with its options. `length`: of header and payload on the wire.
[[nodiscard]] TcpSegment read_segment(const TcpHeader& header, std::uint32_t length) noexcept;

/// Whether any TCP sends such a combination of flags. PSH, ECE and CWR go with all of them.
[[nodiscard]] bool are_tcp_flags_valid(std::uint8_t flags) noexcept;

/// Takes window scale and SACK permission from the options of a SYN. Without options, `side` stays as it is.
void read_syn_options(Bytes options, TcpSide& side) noexcept;

/// Calls `use(kind, value)` for each option, until one is malformed or `use` returns false.
template <typename Use>
void for_each_option(Bytes options, Use&& use) noexcept {
  constexpr std::uint8_t kEnd = 0, kNop = 1;
  while (!options.empty() && options[0] != kEnd) {
    if (options[0] == kNop) {
      options = options.subspan(1);
      continue;
    }
    if (options.size() < 2 || options[1] < 2 || options[1] > options.size()) return;
    if (!use(options[0], options.subspan(2, options[1] - 2U))) return;
    options = options.subspan(options[1]);
  }
}

/// The highest end of the blocks of a SACK option (RFC 2018) that is after `ack`; else `ack`.
[[nodiscard]] std::uint32_t highest_sack(Bytes options, std::uint32_t ack) noexcept;

}  // namespace penstock::conntrack
