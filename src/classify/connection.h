// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What rules can test of a packet's connection, as one small number: the state, the direction and the translations, as
// Linux's connection tracking (nf_conntrack) and its rules name them.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/host_device.h"

namespace penstock::classify {

enum class ConnectionState : std::uint8_t { invalid, begins, established, related, untracked };  // `begins`: "new"
inline constexpr std::uint32_t kConnectionStates = 5;

/// The part of a packet in its connection. Packets that are invalid or untracked have no connection, so no condition on
/// its direction or translations holds for them.
struct Connection {
  ConnectionState state = ConnectionState::begins;
  bool reply = false;  // against the direction of the packet that began the connection
  bool source_translated = false;
  bool destination_translated = false;

  [[nodiscard]] PENSTOCK_HOST_DEVICE constexpr bool exists() const noexcept {
    return state != ConnectionState::invalid && state != ConnectionState::untracked;
  }
};

/// Connections as numbers, of which conditions are sets of 64 bits.
inline constexpr std::uint32_t kConnectionNumbers = 64;

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint8_t number_of(const Connection& connection) noexcept {
  return static_cast<std::uint8_t>(static_cast<unsigned>(connection.state) | (connection.reply ? 8U : 0U) |
                                   (connection.source_translated ? 16U : 0U) |
                                   (connection.destination_translated ? 32U : 0U));
}

/// Of a number that `number_of` returns.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Connection connection_of(std::uint32_t number) noexcept {
  return {static_cast<ConnectionState>(number & 7), (number & 8) != 0, (number & 16) != 0, (number & 32) != 0};
}

/// The set of connections for which `holds` is true.
template <typename Holds>
[[nodiscard]] constexpr std::uint64_t connections_where(const Holds& holds) {
  std::uint64_t set = 0;
  for (std::uint32_t number = 0; number < kConnectionNumbers; ++number) {
    if ((number & 7) < kConnectionStates && holds(connection_of(number))) set |= std::uint64_t{1} << number;
  }
  return set;
}

/// "invalid", "new", "established", "related" or "untracked", by ConnectionState.
[[nodiscard]] std::string_view name(ConnectionState state);
[[nodiscard]] std::optional<ConnectionState> connection_state_named(std::string_view name);
/// "new", "established, reply"
[[nodiscard]] std::string to_string(const Connection& connection);

}  // namespace penstock::classify
