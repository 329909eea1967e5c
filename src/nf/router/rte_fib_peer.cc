// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/rte_fib_peer.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_memory.h>
#include <rte_vect.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace penstock::router {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + rte_strerror(rte_errno));
}

/// DPDK tells its tables apart by name.
std::string name() {
  static unsigned count = 0;
  return "peer" + std::to_string(count++);
}

/// Without huge pages DPDK's memory is a shared file of small pages. Puts anonymous memory for which the kernel may use
/// large pages in its place; DPDK has written only a few pages of it so far.
int offer_huge_pages(const rte_memseg_list* list, void*) {
  constexpr std::size_t kPage = 4096;
  auto* const base = static_cast<std::byte*>(list->base_va);
  std::vector<unsigned char> resident((list->len + kPage - 1) / kPage);
  if (::mincore(base, list->len, resident.data()) != 0) return -1;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> written;
  for (std::size_t page = 0; page < resident.size(); ++page) {
    std::byte* const begin = base + page * kPage;
    if ((resident[page] & 1) != 0) written.emplace_back(page, std::vector<std::byte>(begin, begin + kPage));
  }
  if (::mmap(base, list->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != base)
    return -1;
  (void)::madvise(base, list->len, MADV_HUGEPAGE);
  for (const auto& [page, bytes] : written) std::ranges::copy(bytes, base + page * kPage);
  return 0;
}

}  // namespace

void start_dpdk(std::size_t megabytes) {
  std::string memory = std::to_string(megabytes);
  std::string arguments[] = {"lookup_bench", "--no-huge", "--no-pci",    "--no-shconf", "--no-telemetry",
                             "-l",           "0",         "--log-level", "error",       "--force-max-simd-bitwidth=512",
                             "-m",           memory};
  char* argv[std::size(arguments) + 1] = {};
  for (std::size_t i = 0; i < std::size(arguments); ++i) argv[i] = arguments[i].data();
  if (rte_eal_init(static_cast<int>(std::size(arguments)), argv) < 0) fail("rte_eal_init");
  if (rte_memseg_list_walk(offer_huge_pages, nullptr) != 0) throw std::runtime_error("cannot replace DPDK's memory");
}

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
