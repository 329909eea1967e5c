// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The flows of the port `generator`: distinct 5-tuples. The same seed gives the same flows on every platform.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock::port {

/// A prefix of either family, in network byte order.
struct AddressRange {
  std::array<std::uint8_t, 16> bytes{};
  unsigned length = 0;  // in bits
};

struct FlowPlan {
  unsigned address_bytes = 4;  // 4 or 16
  std::uint64_t flows = 1;
  std::uint64_t seed = 1;
  AddressRange source;
  std::vector<AddressRange> destinations;  // flow i uses number i modulo their count, in seeded random order
  std::uint16_t destination_port = 80;
};

/// One flow. The addresses and ports are contiguous, as in IPv4 without options and IPv6 without extension headers, so
/// that one copy writes them to a packet.
struct Flow {
  static constexpr std::size_t kMostTupleBytes = 36;
  std::array<std::uint8_t, kMostTupleBytes> tuple{};
  std::uint32_t address_sum = 0;  // partial checksums, see `checksum_add`
  std::uint32_t port_sum = 0;
  std::uint32_t tcp_sequence = 1;
};

/// Accepts "192.0.2.0/24", "2001:db8::1" and "default". Fails if `text` is not a prefix or address of `address_bytes`
/// bytes.
[[nodiscard]] Result<AddressRange> read_range(std::string_view text, unsigned address_bytes, const Place& place);

/// Reads one prefix or address per line. The rest of a line is ignored and "#" begins a comment, so a routing table can
/// be used directly.
[[nodiscard]] Result<std::vector<AddressRange>> read_ranges(const std::string& path, unsigned address_bytes);

/// Fails if the ranges are too small for this many distinct flows. Source ports start at 1024.
[[nodiscard]] Result<std::vector<Flow>> make_flows(const FlowPlan& plan);

}  // namespace penstock::port
