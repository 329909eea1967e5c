// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/fib.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/router/lpm_oracle.h"

namespace penstock::router {
namespace {

/// Makes routes and addresses of either family from the highest 32 bits of the address and a length.
template <typename View>
class Fib : public ::testing::Test {
 public:
  using Table = MultibitTable<View>;
  using Route = typename Table::Route;
  using Prefix = typename Table::Prefix;
  using Address = typename View::Address;
  static constexpr auto kBits = static_cast<std::uint8_t>(View::kAddressBits);

  static Address address(std::uint32_t high) {
    if constexpr (kBits == 32) {
      return {high};
    } else {
      return {std::uint64_t{high} << 32, 0};
    }
  }
  static Prefix prefix(std::uint32_t high, unsigned length) {
    return {address(high), static_cast<std::uint8_t>(length)};
  }
  static Prefix host(std::uint32_t high) { return prefix(high, kBits); }

  static Table table_of(std::vector<Route> routes, FibLimit limit = {}) {
    auto built = Table::build(routes, limit);
    if (!built) throw std::runtime_error(to_string(built.error()));
    return *std::move(built);
  }
  static std::vector<std::uint32_t> bytes_of(const Table& table) {
    const View view = table.view();
    std::vector<std::uint32_t> entries(view.root, view.root + View::kRootEntries);
    entries.insert(entries.end(), view.nodes, view.nodes + view.node_entries);
    return entries;
  }
};

using Views = ::testing::Types<Dir24View, Trie1View, Trie4View, Trie6View>;
TYPED_TEST_SUITE(Fib, Views);

TYPED_TEST(Fib, WithoutRoutesFindsNone) {
  const auto table = this->table_of({});
  EXPECT_EQ(table.lookup(this->address(0)), kNoRoute);
  EXPECT_EQ(table.lookup(this->address(0xffff'ffff)), kNoRoute);
  EXPECT_EQ(table.size(), 0u);
}

TYPED_TEST(Fib, FindsTheLongestOfNestedPrefixes) {
  const auto table = this->table_of({{this->prefix(0, 0), 1},
                                     {this->prefix(0x0a00'0000, 8), 2},
                                     {this->prefix(0x0a01'0000, 16), 3},
                                     {this->prefix(0x0a01'0180, 25), 4},
                                     {this->host(0x0a01'0181), 5}});
  EXPECT_EQ(table.lookup(this->address(0x0b00'0000)), 1u);
  EXPECT_EQ(table.lookup(this->address(0x0a02'0000)), 2u);
  EXPECT_EQ(table.lookup(this->address(0x0a01'0000)), 3u);
  EXPECT_EQ(table.lookup(this->address(0x0a01'0180)), 4u);
  EXPECT_EQ(table.lookup(this->address(0x0a01'0181)), 5u);
  EXPECT_EQ(table.lookup(next(this->address(0x0a01'0181))), 4u);
}

TYPED_TEST(Fib, AHostRouteMatchesItsAddressAlone) {
  const auto table = this->table_of({{this->host(0x0a01'0101), 7}});
  EXPECT_EQ(table.lookup(this->address(0x0a01'0101)), 7u);
  EXPECT_EQ(table.lookup(next(this->address(0x0a01'0101))), kNoRoute);
  EXPECT_EQ(table.lookup(previous(this->address(0x0a01'0101))), kNoRoute);
}

TYPED_TEST(Fib, TheLaterOfDuplicateRoutesCounts) {
  auto table = this->table_of({{this->prefix(0x0a00'0000, 8), 9}, {this->prefix(0x0a00'0000, 8), 4}});
  EXPECT_EQ(table.lookup(this->address(0x0a00'0001)), 4u);
  EXPECT_EQ(table.size(), 1u);
  ASSERT_TRUE(table.insert({this->prefix(0x0a00'0000, 8), 5}));
  EXPECT_EQ(table.lookup(this->address(0x0a00'0001)), 5u);
  EXPECT_EQ(table.size(), 1u);
}

TYPED_TEST(Fib, EraseGivesTheRangeOnlyToTheCoveringRoute) {
  auto table = this->table_of({{this->prefix(0x0a00'0000, 8), 1},
                               {this->prefix(0x0a00'0000, 12), 1},  // equal values must not be confused with one route
                               {this->prefix(0x0a00'0000, 20), 2},
                               {this->prefix(0x0a00'0000, 28), 1}});
  ASSERT_TRUE(table.erase(this->prefix(0x0a00'0000, 8)));
  EXPECT_EQ(table.lookup(this->address(0x0aff'0000)), kNoRoute);
  EXPECT_EQ(table.lookup(this->address(0x0a0f'0000)), 1u);
  ASSERT_TRUE(table.erase(this->prefix(0x0a00'0000, 20)));
  EXPECT_EQ(table.lookup(this->address(0x0a00'0fff)), 1u);
  ASSERT_TRUE(table.erase(this->prefix(0x0a00'0000, 12)));
  EXPECT_EQ(table.lookup(this->address(0x0a00'0fff)), kNoRoute);
  EXPECT_EQ(table.lookup(this->address(0x0a00'000f)), 1u);
}

TYPED_TEST(Fib, ErasesOneOfTwoEqualHalvesWithoutMoreMemory) {
  auto table = this->table_of({});
  ASSERT_TRUE(table.insert({this->prefix(0x0a00'0000, 25), 7}));
  ASSERT_TRUE(table.insert({this->prefix(0x0a00'0080, 25), 7}));
  ASSERT_TRUE(table.insert({this->host(0x0a00'0005), 1}));
  ASSERT_TRUE(table.erase(this->host(0x0a00'0005)));
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(table.insert({this->host(0xf000'0000 + (i << 24)), 2}));
  auto copy = table;  // has no room to spare
  ASSERT_TRUE(copy.erase(this->prefix(0x0a00'0000, 25)));
  EXPECT_EQ(copy.memory_bytes(), table.memory_bytes());
  EXPECT_EQ(copy.lookup(this->address(0x0a00'0005)), kNoRoute);
  EXPECT_EQ(copy.lookup(this->address(0x0a00'0080)), 7u);
  ASSERT_TRUE(copy.erase(this->prefix(0x0a00'0080, 25)));
  EXPECT_EQ(copy.lookup(this->address(0x0a00'0080)), kNoRoute);
}

TYPED_TEST(Fib, ErasesAmongEqualSiblingsWithoutMoreMemory) {
  // Few values at few addresses, so that siblings are often equal and ranges are often covered by longer routes.
  std::mt19937 random(3);
  auto table = this->table_of({});
  LinearOracle<typename TestFixture::Prefix> oracle;
  for (std::uint32_t step = 0; step < penstock::testing::rounds(4000); ++step) {
    const auto high = 0x0a00'0000 | static_cast<std::uint32_t>(random() % 512);
    const auto prefix = truncated(this->host(high), 22 + static_cast<unsigned>(random() % 11));
    const std::size_t before = table.memory_bytes();
    if (random() % 2 == 0) {
      ASSERT_EQ(table.erase(prefix), oracle.erase(prefix));
      ASSERT_EQ(table.memory_bytes(), before) << step;
    } else {
      const auto value = static_cast<std::uint32_t>(random() % 2);
      ASSERT_TRUE(table.insert({prefix, value}));
      oracle.insert(prefix, value);
    }
    std::vector<typename TestFixture::Address> addresses{this->address(0x0a00'0000 | random() % 512)};
    append_edges(addresses, prefix);
    for (const auto& address : addresses) ASSERT_EQ(table.lookup(address), oracle.lookup(address)) << step;
    if (step % 400 == 0) table = typename TestFixture::Table(table);  // has no room to spare
  }
}

TYPED_TEST(Fib, EraseOfAnUnknownPrefixChangesNothing) {
  auto table = this->table_of({{this->prefix(0x0a00'0000, 8), 1}});
  const auto before = this->bytes_of(table);
  EXPECT_FALSE(table.erase(this->prefix(0x0a00'0000, 9)));
  EXPECT_FALSE(table.erase(this->prefix(0, 0)));
  EXPECT_EQ(this->bytes_of(table), before);
}

TYPED_TEST(Fib, AcceptsTheLargestValueAndRefusesTheNext) {
  auto table = this->table_of({});
  ASSERT_TRUE(table.insert({this->host(1), kMaxValue}));
  EXPECT_EQ(table.lookup(this->address(1)), kMaxValue);
  const auto before = this->bytes_of(table);
  EXPECT_FALSE(table.insert({this->host(1), kMaxValue + 1}));
  EXPECT_FALSE(table.insert({{this->address(0), static_cast<std::uint8_t>(this->kBits + 1)}, 1}));
  EXPECT_FALSE(table.insert({this->prefix(0x0a01'0000, 8), 1})) << "host bits set";
  EXPECT_EQ(this->bytes_of(table), before);
  EXPECT_EQ(table.size(), 1u);
}

TYPED_TEST(Fib, BuildReportsEveryBadRoute) {
  const std::vector<typename TestFixture::Route> routes = {
      {this->host(1), kMaxValue + 1}, {this->host(2), 1}, {this->prefix(3, 8), 1}};
  const auto built = TestFixture::Table::build(routes);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().size(), 2u);
}

TYPED_TEST(Fib, AFullTableRefusesARouteAndDoesNotChange) {
  auto roomy = this->table_of({{this->host(0x0a00'0000), 1}});
  auto table = this->table_of({{this->host(0x0a00'0000), 1}}, {roomy.memory_bytes()});
  const auto before = this->bytes_of(table);
  EXPECT_FALSE(table.insert({this->host(0xf000'0000), 2}));
  EXPECT_EQ(this->bytes_of(table), before);
  EXPECT_EQ(table.size(), 1u);
  ASSERT_TRUE(table.erase(this->host(0x0a00'0000)));
  EXPECT_TRUE(table.insert({this->host(0xf000'0000), 2})) << "the nodes of the erased route are free";
  EXPECT_EQ(table.lookup(this->address(0xf000'0000)), 2u);
}

TYPED_TEST(Fib, BuildOverTheLimitFails) {
  const std::vector<typename TestFixture::Route> routes = {{this->host(1), 1}};
  EXPECT_FALSE(TestFixture::Table::build(routes, {TestFixture::Table::View::kRootEntries * 4}));
}

TYPED_TEST(Fib, ChurnTakesNoMoreMemory) {
  auto table = this->table_of({{this->host(0x0a00'0000), 1}});
  ASSERT_TRUE(table.insert({this->host(0xf000'0000), 2}));
  const std::size_t bytes = table.memory_bytes();
  for (std::uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(table.erase(this->host(0xf000'0000 + i)));
    ASSERT_TRUE(table.insert({this->host(0xf000'0001 + i), i}));
    ASSERT_EQ(table.lookup(this->address(0xf000'0001 + i)), i);
  }
  EXPECT_EQ(table.memory_bytes(), bytes);
}

TYPED_TEST(Fib, CopiesAreDeepAndEqualUpdatesKeepThemEqual) {
  auto table = this->table_of({{this->prefix(0x0a00'0000, 8), 1}, {this->host(0x0a00'0001), 2}});
  auto copy = table;
  const auto update = [&](auto& one) {
    one.erase(this->host(0x0a00'0001));
    ASSERT_TRUE(one.insert({this->host(0x0a00'0002), 3}));
    ASSERT_TRUE(one.insert({this->prefix(0x0a00'0000, 20), 4}));
  };
  update(table);
  EXPECT_EQ(copy.lookup(this->address(0x0a00'0001)), 2u);
  EXPECT_EQ(copy.lookup(this->address(0x0a00'0002)), 1u);
  update(copy);
  EXPECT_EQ(this->bytes_of(copy), this->bytes_of(table));
}

TYPED_TEST(Fib, BulkLookupsEqualSingleOnes) {
  std::vector<typename TestFixture::Route> routes = {{this->prefix(0x2000'0000, 4), 1}};
  std::mt19937 random(1);
  for (std::uint32_t i = 0; i < 500; ++i) {
    const auto high = 0x2000'0000 | static_cast<std::uint32_t>(random() & 0xff'ffff);
    routes.push_back({truncated(this->host(high), static_cast<unsigned>(random() % (this->kBits + 1u))), i});
  }
  const auto table = this->table_of(routes);
  for (const std::size_t count : {0u, 1u, 15u, 16u, 17u, 63u, 64u, 65u, 127u, 300u, 1000u}) {
    std::vector<typename TestFixture::Address> addresses;
    for (std::size_t i = 0; i < count; ++i) {
      auto edges = addresses;
      edges.clear();
      append_edges(edges, routes[random() % routes.size()].prefix);
      addresses.push_back(edges[random() % edges.size()]);
    }
    std::vector<std::uint32_t> values(count, 0xdead'beef);
    table.lookup_bulk(addresses, values);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], table.lookup(addresses[i])) << i << " of " << count;
  }
}

TEST(Fib4, BuildsTheEngineByItsName) {
  const std::vector<Route4> routes = {{*parse_ipv4_prefix("192.0.2.0/25"), 6}};
  for (const std::string_view name : {"dir24", "trie1", "trie4"}) {
    const auto engine = parse_fib4_engine(name);
    ASSERT_TRUE(engine) << name;
    EXPECT_EQ(to_string(*engine), name);
    auto fib = Fib4::build(*engine, routes);
    ASSERT_TRUE(fib);
    EXPECT_EQ(fib->engine(), *engine);
    EXPECT_EQ(fib->view().index(), static_cast<std::size_t>(*engine));
    EXPECT_EQ(fib->lookup(*parse_ipv4("192.0.2.127")), 6u);
    ASSERT_TRUE(fib->insert({*parse_ipv4_prefix("0.0.0.0/0"), 1}));
    EXPECT_EQ(fib->lookup(*parse_ipv4("192.0.2.128")), 1u);
    EXPECT_TRUE(fib->erase(*parse_ipv4_prefix("192.0.2.0/25")));
    EXPECT_EQ(fib->size(), 1u);
    std::vector<std::uint32_t> values(1);
    fib->lookup_bulk(std::vector<Ipv4Address>{*parse_ipv4("192.0.2.1")}, values);
    EXPECT_EQ(values[0], 1u);
  }
  EXPECT_FALSE(parse_fib4_engine("dir25"));
}

}  // namespace
}  // namespace penstock::router
