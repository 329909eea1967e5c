// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// DPDK's FIB library, for comparison in the lookup bench: DIR-24-8 and the IPv6 trie, with 4-byte next hops and AVX-512
// lookups. Its headers are only included in rte_fib_peer.cc. Call `bench::start_dpdk` first.

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
