// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the tables with simple references: after each of many random updates with a linear search, and full BGP
// tables with a map per prefix length and the corpus's own results.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <random>
#include <tuple>
#include <vector>

#include "base/testing/rounds.h"
#include "nf/router/fib.h"
#include "nf/router/lpm_corpus.h"
#include "nf/router/lpm_oracle.h"

namespace penstock::router {
namespace {

[[maybe_unused]] const int kFixedSeed = ::setenv("RC_PARAMS", "seed=1 max_success=60", 0);

template <typename View>
class FibOracle : public ::testing::Test {};
using Views = ::testing::Types<Dir24View, Trie1View, Trie4View, Trie6View>;
TYPED_TEST_SUITE(FibOracle, Views);

struct Step {
  bool insert = true;
  unsigned base = 0;  // index of one of a few addresses that share prefixes, so that prefixes nest, touch and repeat
  unsigned length = 0;
  std::uint32_t value = 0;
};
void showValue(const Step& step, std::ostream& os) {
  os << (step.insert ? "insert" : "erase") << " base " << step.base << " /" << step.length << " = " << step.value;
}

rc::Gen<std::vector<Step>> steps(unsigned address_bits) {
  return rc::gen::container<std::vector<Step>>(
      rc::gen::build<Step>(rc::gen::set(&Step::insert, rc::gen::weightedElement<bool>({{2, true}, {1, false}})),
                           rc::gen::set(&Step::base, rc::gen::inRange(0u, 6u)),
                           rc::gen::set(&Step::length, rc::gen::inRange(0u, address_bits + 1)),
                           rc::gen::set(&Step::value, rc::gen::inRange(0u, 4u))));
}

Ipv4Prefix prefix_of(const Step& step, Ipv4Address) {
  constexpr std::uint32_t kBases[] = {0x0a01'0203, 0x0a01'0202, 0x0a01'02ff, 0x0a01'8000, 0xffff'ffff, 0};
  return truncated(Ipv4Prefix{{kBases[step.base]}, 32}, step.length);
}
Ipv6Prefix prefix_of(const Step& step, const Ipv6Address&) {
  constexpr std::uint64_t kOnes = ~std::uint64_t{0};
  constexpr std::uint64_t kNet = 0x2001'0db8'0001'0203;
  constexpr Ipv6Address kBases[] = {{kNet, 1}, {kNet, 0}, {kNet, kOnes}, {kNet ^ 0x10'0000, 0}, {kOnes, kOnes}, {0, 0}};
  return truncated(Ipv6Prefix{kBases[step.base], 128}, step.length);
}

TYPED_TEST(FibOracle, UpdatesEqualALinearSearchAfterEachStepAndAFreshBuildAtTheEnd) {
  using Table = MultibitTable<TypeParam>;
  using Address = typename TypeParam::Address;
  using Prefix = typename Table::Prefix;
  EXPECT_TRUE(rc::check([] {
    const auto sequence = *steps(TypeParam::kAddressBits);
    auto table = *Table::build({});
    LinearOracle<Prefix> oracle;
    std::vector<Address> addresses;
    for (const Step& step : sequence) append_edges(addresses, prefix_of(step, Address{}));
    std::vector<std::uint32_t> values(addresses.size());
    for (const Step& step : sequence) {
      const Prefix prefix = prefix_of(step, Address{});
      if (step.insert) {
        oracle.insert(prefix, step.value);
        RC_ASSERT(table.insert({prefix, step.value}).has_value());
      } else {
        RC_ASSERT(table.erase(prefix) == oracle.erase(prefix));
      }
      RC_ASSERT(table.size() == oracle.routes().size());
      table.lookup_bulk(addresses, values);
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        RC_ASSERT(values[i] == oracle.lookup(addresses[i]));
        RC_ASSERT(table.lookup(addresses[i]) == values[i]);
      }
    }
    std::vector<typename Table::Route> routes;
    for (const auto& [prefix, value] : oracle.routes()) routes.push_back({prefix, value});
    auto fresh = *Table::build(routes);
    std::vector<std::uint32_t> fresh_values(addresses.size());
    fresh.lookup_bulk(addresses, fresh_values);
    RC_ASSERT(fresh_values == values || sequence.empty());
    for (const auto& [prefix, value] : routes) {
      RC_ASSERT(fresh.erase(prefix) && table.erase(prefix));
    }
    for (const Address& address : addresses) RC_ASSERT(table.lookup(address) == kNoRoute);
  }));
}

std::vector<Route4> corpus_routes(Ipv4Address) { return corpus_routes4(); }
std::vector<Route6> corpus_routes(const Ipv6Address&) { return corpus_routes6(); }
std::vector<Match4> corpus_matches(Ipv4Address) { return corpus_matches4(); }
std::vector<Match6> corpus_matches(const Ipv6Address&) { return corpus_matches6(); }

Ipv4Address random_address(std::mt19937_64& random, Ipv4Address) { return {static_cast<std::uint32_t>(random())}; }
Ipv6Address random_address(std::mt19937_64& random, const Ipv6Address&) {
  return {std::uint64_t{1} << 61 | random() >> 3, random()};  // 2000::/3, which contains the routes
}

template <typename Oracle, typename Address>
std::vector<std::uint32_t> answers(const Oracle& oracle, const std::vector<Address>& addresses) {
  std::vector<std::uint32_t> values;
  values.reserve(addresses.size());
  for (const Address& address : addresses) values.push_back(oracle.lookup(address));
  return values;
}

template <typename Table, typename Address>
void expect_equal(const Table& table, const std::vector<Address>& addresses,
                  const std::vector<std::uint32_t>& expected) {
  std::vector<std::uint32_t> values(addresses.size());
  table.lookup_bulk(addresses, values);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (values[i] == expected[i]) continue;
    if (++wrong <= 10) ADD_FAILURE() << to_string(addresses[i]) << ": " << values[i] << ", expected " << expected[i];
  }
  EXPECT_EQ(wrong, 0u) << "of " << addresses.size();
}

TYPED_TEST(FibOracle, AFullTableEqualsTheSearchByLengthAtRandomAddressesAndAllEdges) {
  using Table = MultibitTable<TypeParam>;
  using Address = typename TypeParam::Address;
  using Prefix = typename Table::Prefix;
  const auto routes = corpus_routes(Address{});
  if (routes.empty()) GTEST_SKIP() << "the corpus is absent";
  auto built = Table::build(routes);
  ASSERT_TRUE(built);
  Table& table = *built;
  ASSERT_EQ(table.size(), routes.size());

  for (const auto& [address, value] : corpus_matches(Address{})) {
    ASSERT_EQ(table.lookup(address), value) << to_string(address);
  }

  ByLengthOracle<Prefix> oracle;
  std::vector<Address> addresses;
  for (const auto& [prefix, value] : routes) oracle.insert(prefix, value);
  for (std::size_t i = 0; i < routes.size(); i += penstock::testing::stride())
    append_edges(addresses, routes[i].prefix);
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i < penstock::testing::rounds(200'000); ++i)
    addresses.push_back(random_address(random, Address{}));
  const auto expected = answers(oracle, addresses);
  expect_equal(table, addresses, expected);

  // Every third route is erased, and the covering route takes its place.
  ByLengthOracle<Prefix> thinned;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    if (i % 3 == 0) {
      ASSERT_TRUE(table.erase(routes[i].prefix));
    } else {
      thinned.insert(routes[i].prefix, routes[i].value);
    }
  }
  expect_equal(table, addresses, answers(thinned, addresses));
  const std::size_t bytes = table.memory_bytes();
  for (std::size_t i = 0; i < routes.size(); i += 3) ASSERT_TRUE(table.insert(routes[i]));
  expect_equal(table, addresses, expected);
  EXPECT_EQ(table.memory_bytes(), bytes) << "freed nodes are used again";
}

}  // namespace
}  // namespace penstock::router
