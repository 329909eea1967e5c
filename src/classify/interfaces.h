// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the interface names in rules stand for here: ports of the chain, by their own names or by those that the user
// maps to them.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace penstock::classify {

struct Interfaces {
  /// The name that maps an interface to no port at all.
  static constexpr std::string_view kNone = "none";

  std::vector<std::string> ports;  // names, by PortIndex
  /// Interface, and port or kNone. "eth+" and "eth*" are all interfaces that begin with eth and have no closer name.
  std::vector<std::pair<std::string, std::string>> aliases;
  bool out_known = true;         // when rules are tried, packets know where they leave
  bool unknown_is_none = false;  // a name that is not here is an interface by which no packet comes

  /// The ports that `pattern` ("eth0", or "eth+" for all that begin so) stands for, a bit for each; nothing where the
  /// name is unknown.
  [[nodiscard]] std::optional<std::uint64_t> ports_of(std::string_view pattern) const;
  /// "lan, wan"
  [[nodiscard]] std::string port_names() const;
};

/// `mapping`: "interface=port" items at `place`.
[[nodiscard]] Result<Interfaces> make_interfaces(std::span<const std::string> ports,
                                                 std::span<const std::string> mapping, const Place& place,
                                                 bool out_known);

}  // namespace penstock::classify
