// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// DPDK's FIB library as the look-up bench's peer: DIR-24-8 and the IPv6 trie with 4-byte next hops and their AVX-512
// look-ups. Its headers stay in rte_fib_peer.cc. `bench::start_dpdk` comes first.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ip_address.h"
#include "nf/router/fib_routes.h"

struct rte_fib;
struct rte_fib6;

namespace penstock::router {

struct RteFibDelete {
  void operator()(rte_fib* fib) const noexcept;
  void operator()(rte_fib6* fib) const noexcept;
};

class RteFib4 {
 public:
  explicit RteFib4(std::span<const Route4> routes);
  /// DPDK writes 64-bit next hops.
  void lookup_bulk(std::span<const Ipv4Address> addresses, std::span<std::uint64_t> values) const noexcept;

 private:
  std::unique_ptr<rte_fib, RteFibDelete> fib_;
};

class RteFib6 {
 public:
  struct Address {
    std::uint8_t bytes[16];
  };
  [[nodiscard]] static Address wire(const Ipv6Address& address) noexcept;

  explicit RteFib6(std::span<const Route6> routes);
  void lookup_bulk(std::span<const Address> addresses, std::span<std::uint64_t> values) const noexcept;

 private:
  std::unique_ptr<rte_fib6, RteFibDelete> fib_;
};

}  // namespace penstock::router
