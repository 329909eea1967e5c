// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which connections an operator means, as the options of conntrack(8) say it, and the names that Linux gives to
// protocols and states.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/ip_address.h"
#include "conntrack/record.h"

namespace penstock::conntrack {

/// By TcpState. The first one is no state of TCP, and has no name.
inline constexpr std::array<std::string_view, 10> kTcpStateNames = {
    "", "SYN_SENT", "SYN_RECV", "ESTABLISHED", "FIN_WAIT", "CLOSE_WAIT", "LAST_ACK", "TIME_WAIT", "CLOSE", "SYN_SENT2"};
[[nodiscard]] constexpr std::string_view name(TcpState state) noexcept {
  return kTcpStateNames[static_cast<std::size_t>(state)];
}

/// "tcp". Protocols without a name here are "unknown", as in Linux.
[[nodiscard]] std::string_view protocol_name(std::uint8_t protocol) noexcept;
/// From a name, or from a number in decimal digits.
[[nodiscard]] std::optional<std::uint8_t> protocol_named(std::string_view text) noexcept;

/// Addresses with the first `length` bits of `address`; those of IPv4 as in Tuple.
struct Prefix {
  Ipv6Address address;
  std::uint8_t length = 0;  // counted from the first bit of an IPv6 address: 96 more than IPv4's
  std::uint8_t ip_version = 0;

  [[nodiscard]] bool contains(const Ipv6Address& other) const noexcept {
    return penstock::contains(Ipv6Prefix{address, length}, other);
  }
};
/// "10.0.0.0/8", "2001:db8::1". Host bits must not be set.
[[nodiscard]] std::optional<Prefix> read_prefix(std::string_view text);

/// Conditions on the original tuple and the state. All of them must hold.
struct Filter {
  std::uint8_t ip_version = 0;  // 0: any
  std::optional<std::uint8_t> protocol{};
  std::optional<Prefix> source{}, destination{};
  std::optional<std::uint16_t> source_port{}, destination_port{};  // of protocols with ports
  std::optional<TcpState> tcp_state{};
  std::uint16_t status_set = 0, status_clear = 0;  // bits of Connection::status

  [[nodiscard]] bool matches(const Connection& connection) const noexcept {
    return matches(connection.original, connection.status, connection.tcp_state);
  }
  [[nodiscard]] bool matches(const Record& record) const noexcept {
    return matches(record.original, record.status, record.tcp_state);
  }

 private:
  [[nodiscard]] bool matches(const Tuple& tuple, std::uint16_t status, TcpState state) const noexcept;
};

}  // namespace penstock::conntrack
