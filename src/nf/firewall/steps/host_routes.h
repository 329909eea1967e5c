// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the host would send packets to an address, as Linux's tables say: first its own addresses, the broadcast
// addresses and the anycast addresses of its subnets (the table `local`), then the routes of the chain's router.
// Answers the steps that ask for routes, as xt_rpfilter and nft_fib do.

#pragma once

#include <memory>
#include <vector>

#include "classify/key.h"
#include "classify/step.h"
#include "function/port_addresses.h"
#include "function/route_source.h"

namespace penstock::firewall {

/// Of one worker.
class HostRoutes {
 public:
  /// `addresses`: by PortIndex; borrowed.
  HostRoutes(std::unique_ptr<function::RouteReader> routes, const std::vector<function::PortAddresses>& addresses)
      : routes_(std::move(routes)), addresses_(addresses) {}

  /// At a batch boundary.
  void refresh() noexcept { routes_->refresh(); }
  [[nodiscard]] bool holds(const classify::ReversePath& path, const classify::Key& key) const noexcept;
  [[nodiscard]] bool holds(const classify::RouteOut& out, const classify::Key& key) const noexcept;

 private:
  [[nodiscard]] function::FoundRoute find(NetworkLayer family, const Ipv6Address& address,
                                          PortIndex in_port) const noexcept;
  [[nodiscard]] function::FoundRoute own(NetworkLayer family, const Ipv6Address& address) const noexcept;

  std::unique_ptr<function::RouteReader> routes_;
  const std::vector<function::PortAddresses>& addresses_;
};

}  // namespace penstock::firewall
