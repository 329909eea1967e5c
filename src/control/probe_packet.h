// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packet that an operator asks about: made from a line such as "tcp 10.1.0.5:4242 192.0.2.7:443".

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "packet/packet.h"
#include "run/chain.h"

namespace penstock::control {

struct ProbeText {
  /// PROTOCOL SOURCE DESTINATION, with ports for tcp, udp and sctp (IPv6: [2001:db8::1]:80); icmp and icmp6 may have
  /// TYPE[/CODE] after it (default: an echo request). Other protocols by name (esp, gre …) or number.
  std::string_view tuple;
  std::string_view flags;                 // of TCP: "syn,ack", or "none"; "": syn
  std::optional<std::uint64_t> length{};  // of the frame; empty: no payload
};

/// The most bytes of a frame.
inline constexpr std::size_t kLongestProbe = 65'535;

/// An Ethernet frame with correct lengths and checksums, as a host would send it: TTL or hop limit 64, IPv4 with DF,
/// and a payload of zeros.
[[nodiscard]] Result<std::vector<std::uint8_t>> make_probe(const ProbeText& text);

/// The port by which it arrives. `name`: "" stands for the only port that reads.
[[nodiscard]] Result<PortIndex> input_port(const run::Chain& chain, const std::string& name);

}  // namespace penstock::control
