// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the headers are that differ between the segments of a frame: those of IP, and of the UDP or GRE of a tunnel.
// How a tunnel's own header is built need not be known: the NIC is told where the innermost transport header is, so
// the IP header before it is found from there.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace penstock::port {

struct SegmentHeaders {
  enum class Kind : std::uint8_t { ipv4, ipv6, tunnel_udp, tunnel_gre };
  struct Layer {
    Kind kind = Kind::ipv4;
    std::size_t at = 0;
    std::size_t destination = 0;  // IP: the final destination's address, which a routing header may hold
  };
  static constexpr std::size_t kMostLayers = 6;

  std::array<Layer, kMostLayers> layers;  // from the outermost; the last one is the IP header of the transport header
  std::size_t count = 0;
  // A hop-by-hop header with a jumbo payload option (RFC 2675), which segments do not need; 0: there is none. Other
  // offsets are those after it has been removed.
  std::size_t jumbo_at = 0;
  static constexpr std::size_t kJumboBytes = 8;
};

/// Empty if the headers do not lead to a header of `protocol` at `transport`.
[[nodiscard]] std::optional<SegmentHeaders> find_segment_headers(std::span<const std::uint8_t> frame,
                                                                 std::size_t transport, std::uint8_t protocol) noexcept;

}  // namespace penstock::port
