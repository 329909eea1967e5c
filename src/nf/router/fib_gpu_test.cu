// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares lookups in a table's copy on the device with lookups on the host.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/memory.h"
#include "nf/router/lpm_oracle.h"
#include "nf/router/multibit_build.h"
#include "nf/router/multibit_core.h"

namespace penstock::router {
namespace {

constexpr unsigned kThreads = 256;

template <typename View>
__global__ void look_up(View table, const typename View::Address* addresses, std::uint32_t* values, unsigned count) {
  const unsigned i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) values[i] = lookup(table, addresses[i]);
}

std::uint64_t draw_bits(std::mt19937_64& random, unsigned width) { return random() >> (64 - width); }

/// Prefixes are in a few /8s and /16s, as in real tables, so that they nest.
Ipv4Address draw_address(std::mt19937_64& random, Ipv4Address) {
  const auto bits = static_cast<std::uint32_t>(random());
  return random() % 4 == 0 ? Ipv4Address{bits} : Ipv4Address{bits & 0x0303'ffff | 0x0a00'0000};
}
Ipv6Address draw_address(std::mt19937_64& random, Ipv6Address) {
  if (random() % 4 == 0) return {random(), random()};
  return {0x2001'0db8'0000'0000 | draw_bits(random, 32) & 0xf00f'ffff, random()};
}
Ipv4Prefix cut(Ipv4Address address, unsigned length) {
  return {{address.bits & ipv4_mask(length)}, static_cast<std::uint8_t>(length)};
}
Ipv6Prefix cut(Ipv6Address address, unsigned length) {
  const Ipv6Address mask = ipv6_mask(length);
  return {{address.high & mask.high, address.low & mask.low}, static_cast<std::uint8_t>(length)};
}

template <typename View>
class FibOnDevice : public testing::Test {};

using Views = testing::Types<Dir24View, Trie1View, Trie4View, Trie6View>;
TYPED_TEST_SUITE(FibOnDevice, Views);

TYPED_TEST(FibOnDevice, FindsWhatTheHostFindsForAMillionAddresses) {
  using View = TypeParam;
  using Table = MultibitTable<View>;
  using Address = typename View::Address;
  constexpr unsigned kAddresses = 1'000'000;

  std::mt19937_64 random(1);
  std::vector<typename Table::Route> routes;
  for (std::uint32_t value = 0; value < 20'000; ++value) {
    const auto length = static_cast<unsigned>(8 + random() % (View::kAddressBits - 7));
    routes.push_back({cut(draw_address(random, Address{}), length), value});
  }
  const auto table = Table::build(routes);
  ASSERT_TRUE(table);

  std::vector<Address> addresses;
  for (const auto& route : routes) append_edges(addresses, route.prefix);
  while (addresses.size() < kAddresses) addresses.push_back(draw_address(random, Address{}));

  const View host = table->view();
  const gpu::DeviceBuffer<std::uint32_t> root(std::span(host.root, View::kRootEntries));
  const gpu::DeviceBuffer<std::uint32_t> nodes(std::span(host.nodes, host.node_entries));
  const gpu::DeviceBuffer<Address> asked{std::span<const Address>(addresses)};
  gpu::DeviceBuffer<std::uint32_t> values(kAddresses);
  look_up<<<(kAddresses + kThreads - 1) / kThreads, kThreads>>>(View{root.data(), nodes.data(), host.node_entries},
                                                                asked.data(), values.data(), kAddresses);
  gpu::check_launch();

  const std::vector<std::uint32_t> found = values.to_host();
  unsigned routed = 0;
  for (unsigned i = 0; i < kAddresses; ++i) {
    ASSERT_EQ(found[i], table->lookup(addresses[i])) << to_string(addresses[i]);
    routed += found[i] != kNoRoute ? 1 : 0;
  }
  EXPECT_GT(routed, kAddresses / 8);
  EXPECT_LT(routed, kAddresses);
}

}  // namespace
}  // namespace penstock::router
