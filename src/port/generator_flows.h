// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The flows of the port `generator`: distinct 5-tuples, the same for the same seed everywhere.

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
  std::vector<AddressRange> destinations;  // flow i goes to one of the i-th, in an order that the seed shuffles
  std::uint16_t destination_port = 80;
};

/// One flow. Source and destination address and both ports lie one behind the other, as in IPv4 without options and in
/// IPv6 without extension headers, so that one copy puts them into a packet.
struct Flow {
  static constexpr std::size_t kMostTupleBytes = 36;
  std::array<std::uint8_t, kMostTupleBytes> tuple{};
  std::uint32_t address_sum = 0;  // running sums for checksums, see `checksum_add`
  std::uint32_t port_sum = 0;
  std::uint32_t tcp_sequence = 1;
};

/// "192.0.2.0/24", "2001:db8::1", "default"; none for what is no prefix of addresses of `address_bytes`.
[[nodiscard]] Result<AddressRange> read_range(std::string_view text, unsigned address_bytes, const Place& place);

/// One prefix or address a line, the rest of the line ignored, "#" begins a comment: a routing table serves as it is.
[[nodiscard]] Result<std::vector<AddressRange>> read_ranges(const std::string& path, unsigned address_bytes);

/// An error where the ranges have not room for so many flows. Source ports are 1024 and up.
[[nodiscard]] Result<std::vector<Flow>> make_flows(const FlowPlan& plan);

}  // namespace penstock::port
