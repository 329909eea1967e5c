// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Maps the interface names in rules to ports of the chain: by the ports' own names, or by names that the user maps to
// them.

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
  /// Pairs of interface and port (or kNone). "eth+" and "eth*" are all interfaces whose names begin with eth and have
  /// no more specific entry.
  std::vector<std::pair<std::string, std::string>> aliases;
  bool out_known = true;         // the output port is known when rules are evaluated
  bool unknown_is_none = false;  // an unknown name is an interface through which no packet comes

  /// The ports for `pattern` ("eth0", or "eth+" for all that begin with eth), one bit each; empty if the name is
  /// unknown.
  [[nodiscard]] std::optional<std::uint64_t> ports_of(std::string_view pattern) const;
  /// "lan, wan"
  [[nodiscard]] std::string port_names() const;
};

/// `mapping`: "interface=port" items at `place`.
[[nodiscard]] Result<Interfaces> make_interfaces(std::span<const std::string> ports,
                                                 std::span<const std::string> mapping, const Place& place,
                                                 bool out_known);

}  // namespace penstock::classify
