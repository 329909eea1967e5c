// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The address and TCP port at which a server listens.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "base/ip_address.h"

namespace penstock {

struct ListenAddress {
  std::variant<Ipv4Address, Ipv6Address> address;
  std::uint16_t port = 0;

  /// Only processes of this machine can connect.
  [[nodiscard]] bool is_loopback() const noexcept;
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

/// "127.0.0.1:9474", "[::1]:9474". No host names: they may have several addresses, or others later.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);
[[nodiscard]] std::string to_string(const ListenAddress& listen);

}  // namespace penstock
