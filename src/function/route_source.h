// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The routes of a chain, as they are now: a router publishes them, and functions of the same chain ask for them, such
// as whether a packet came by the port that leads back to its source.

#pragma once

#include <cstdint>
#include <memory>

#include "base/ip_address.h"
#include "packet/layout.h"
#include "packet/verdict.h"

namespace penstock::function {

/// What the most specific route to an address says.
struct FoundRoute {
  enum class Kind : std::uint8_t {
    none,  // there is no route, or it drops packets
    unicast,
    local,  // to the host itself
    broadcast,
    anycast,
    multicast,
  } kind = Kind::none;
  std::uint64_t ports = 0;    // of all next hops, bits by PortIndex; those through no port of the chain have none
  PortIndex first = kNoPort;  // of the first next hop
};

/// Of one worker.
class RouteReader {
 public:
  virtual ~RouteReader() = default;
  /// Takes the newest routes. Call it at a batch boundary.
  virtual void refresh() noexcept = 0;
  /// An IPv4 address is in the low bits.
  [[nodiscard]] virtual FoundRoute find(NetworkLayer family, const Ipv6Address& address) const noexcept = 0;
};

/// Implemented by functions beside NetworkFunction.
class RouteSource {
 public:
  virtual ~RouteSource() = default;
  /// The source must outlive the reader. Thread-safe.
  [[nodiscard]] virtual std::unique_ptr<RouteReader> read_routes() = 0;
};

}  // namespace penstock::function
