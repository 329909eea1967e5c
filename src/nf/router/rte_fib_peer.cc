// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/rte_fib_peer.h"

#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_vect.h>

#include <stdexcept>
#include <string>

namespace penstock::router {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + rte_strerror(rte_errno));
}

/// DPDK identifies tables by name.
std::string name() {
  static unsigned count = 0;
  return "peer" + std::to_string(count++);
}

}  // namespace

void RteFibDelete::operator()(rte_fib* fib) const noexcept { rte_fib_free(fib); }
void RteFibDelete::operator()(rte_fib6* fib) const noexcept { rte_fib6_free(fib); }

RteFib4::RteFib4(std::span<const Route4> routes) {
  rte_fib_conf conf{};
  conf.type = RTE_FIB_DIR24_8;
  conf.default_nh = 0xff'ffff;
  conf.max_routes = 1 << 21;
  conf.dir24_8.nh_sz = RTE_FIB_DIR24_8_4B;
  conf.dir24_8.num_tbl8 = 1 << 15;
  fib_.reset(rte_fib_create(name().c_str(), 0, &conf));
  if (fib_ == nullptr) fail("rte_fib_create");
  if (rte_fib_select_lookup(fib_.get(), RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512) != 0) fail("AVX-512 look-up of rte_fib");
  for (const auto& [prefix, value] : routes) {
    if (rte_fib_add(fib_.get(), prefix.address.bits, prefix.length, value) != 0) fail("rte_fib_add");
  }
}

void RteFib4::lookup_bulk(std::span<const Ipv4Address> addresses, std::span<std::uint64_t> values) const noexcept {
  auto* bits = const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(addresses.data()));  // it only reads
  rte_fib_lookup_bulk(fib_.get(), bits, values.data(), static_cast<int>(addresses.size()));
}

RteFib6::RteFib6(std::span<const Route6> routes) {
  rte_fib6_conf conf{};
  conf.type = RTE_FIB6_TRIE;
  conf.default_nh = 0xff'ffff;
  conf.max_routes = 1 << 19;
  conf.trie.nh_sz = RTE_FIB6_TRIE_4B;
  conf.trie.num_tbl8 = 1 << 18;
  fib_.reset(rte_fib6_create(name().c_str(), 0, &conf));
  if (fib_ == nullptr) fail("rte_fib6_create");
  if (rte_fib6_select_lookup(fib_.get(), RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512) != 0) fail("AVX-512 look-up of rte_fib6");
  for (const auto& [prefix, value] : routes) {
    const Address address = wire(prefix.address);
    if (rte_fib6_add(fib_.get(), address.bytes, prefix.length, value) != 0) fail("rte_fib6_add");
  }
}

RteFib6::Address RteFib6::wire(const Ipv6Address& address) noexcept {
  Address wire;
  for (unsigned i = 0; i < 8; ++i) {
    wire.bytes[i] = static_cast<std::uint8_t>(address.high >> (56 - 8 * i));
    wire.bytes[8 + i] = static_cast<std::uint8_t>(address.low >> (56 - 8 * i));
  }
  return wire;
}

void RteFib6::lookup_bulk(std::span<const Address> addresses, std::span<std::uint64_t> values) const noexcept {
  auto* bytes = const_cast<std::uint8_t(*)[16]>(&addresses.data()->bytes);  // it only reads
  rte_fib6_lookup_bulk(fib_.get(), bytes, values.data(), static_cast<int>(addresses.size()));
}

}  // namespace penstock::router
