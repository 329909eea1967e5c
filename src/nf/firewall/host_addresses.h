// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kinds of addresses that rules may ask for, as Linux's table `local` has them (addrtype, fib … type).

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "classify/interval.h"
#include "function/port_addresses.h"

namespace penstock::firewall {

struct HostAddresses {
  /// The host's own, the loopback's included; empty: unknown.
  classify::IntervalSet local4{}, local6{};
  /// Broadcast addresses and the anycast addresses of subnets.
  classify::IntervalSet broadcast4{}, anycast6{};
  bool subnets_known = false;  // each address has its prefix length; otherwise, the latter two are not complete

  [[nodiscard]] bool known() const noexcept { return !local4.empty(); }
  [[nodiscard]] const classify::IntervalSet& local(NetworkLayer family) const noexcept {
    return family == NetworkLayer::ipv4 ? local4 : local6;
  }
  /// "broadcast", in lower case. Empty: the type is not supported.
  [[nodiscard]] std::optional<classify::IntervalSet> of_type(NetworkLayer family, std::string_view type) const;
  /// Why rules cannot ask for this type, or for routes (no type); empty: they can.
  [[nodiscard]] std::string_view lacks(std::string_view type) const noexcept;
};

/// `addresses`: by PortIndex. Without any, nothing is known.
[[nodiscard]] HostAddresses make_host_addresses(const std::vector<function::PortAddresses>& addresses);

}  // namespace penstock::firewall
