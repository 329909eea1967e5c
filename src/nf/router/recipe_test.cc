// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recipes of real tables, and of somebody who lies. What a check lets pass runs on the host, where the address
// sanitizer watches.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "function/recipe_tables.h"
#include "nf/router/recipe_for_test.h"
#include "nf/router/router_for_test.h"

namespace penstock::router {
namespace {

using testing::RandomFrames;

constexpr std::string_view kRoutes =
    "default via 10.1.0.2 dev wan\n192.0.2.0/25 via 10.0.0.9 dev lan\n"
    "192.0.2.128/26\n\tnexthop via 10.1.0.2 dev wan weight 1\n\tnexthop dev dmz weight 3\n"
    "blackhole 198.18.0.0/24\nunreachable 198.18.1.0/24\nlocal 198.18.4.1 dev lan table local\n"
    "10.0.0.0/8 dev lan\n10.1.2.0/24 dev dmz\n10.1.2.3/32 via 10.0.0.9 dev lan\n"
    "2001:db8::/32 via fe80::1 dev wan\n2001:db8:1::/48 dev lan\nfe80::/121 via fe80::1 dev wan\n"
    "2001:db8:2::/48\n\tnexthop via fe80::1 dev wan weight 1\n\tnexthop via fe80::2 dev dmz weight 1\n"
    "2001:db8:1:0:8000::/66 via fe80::2 dev dmz\n";
constexpr std::string_view kNeighbours =
    "10.1.0.2 dev wan lladdr 02:00:00:00:01:02 REACHABLE\n10.0.0.9 dev lan lladdr 02:00:00:00:00:09 STALE\n"
    "fe80::1 dev wan lladdr 02:00:00:00:03:01 STALE\n";

std::unique_ptr<Router> router_with(Fib4Engine engine) {
  RouterConfig config = config_of(kRoutes);
  config.engine = engine;
  config.neighbours = neighbours_of(kNeighbours);
  config.ports[kWan] = {{{2, 0, 0, 0, 0xaa, 1}}, true};
  config.rules.host = kDmz;
  return build(std::move(config));
}

function::StageRecipe recipe_of(const Router& router) { return *router.stage_recipe(function::Processor::gpu); }

std::string refusal(const function::StageRecipe& recipe) {
  const auto checked = check_recipe(recipe);
  return checked ? "accepted" : to_string(checked.error());
}

template <typename T>
std::vector<T> array_of(const function::StageRecipe& recipe, std::size_t table) {
  const auto& bytes = *recipe.tables.at(table);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(reinterpret_cast<std::byte*>(values.data()), bytes.data(), bytes.size());
  return values;
}
template <typename T>
void put(function::StageRecipe& recipe, std::size_t table, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  recipe.tables.at(table) = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}
// Each array of a trie is two tables: values and ends.
constexpr std::size_t kRoot4 = 0, kNodes4 = 2, kRoot6 = 4, kNodes6 = 6, kHops = 8, kSlots = 9, kPorts = 10;

class RouterRecipe : public ::testing::TestWithParam<Fib4Engine> {};

INSTANTIATE_TEST_SUITE_P(Engines, RouterRecipe,
                         ::testing::Values(Fib4Engine::kDir24, Fib4Engine::kTrie1, Fib4Engine::kTrie4),
                         [](const auto& engine) { return std::string(to_string(engine.param)); });

TEST_P(RouterRecipe, ForwardsAsItsTwinDoes) {
  const auto router = router_with(GetParam());
  const function::StageRecipe recipe = recipe_of(*router);
  EXPECT_EQ(recipe.kernel, remote_kernel().name);
  ASSERT_EQ(refusal(recipe), "accepted");
  RandomFrames draw(1);
  auto on_recipe = packets_for_router(2000, draw, draw);
  auto on_twin = on_recipe;
  const std::vector<Verdict> verdicts = run_on_host(recipe, on_recipe);
  const auto twin = router->make_cpu_stage();
  twin->begin_batch();
  std::size_t forwarded = 0;
  for (std::size_t i = 0; i < on_twin.size(); ++i) {
    PacketView packet = on_twin[i].view();
    twin->process({&packet, 1});
    ASSERT_EQ(verdicts[i], packet.packet->verdict) << i;
    ASSERT_TRUE(std::equal(packet.frame, packet.frame + packet.length(), on_recipe[i].view().frame)) << i;
    forwarded += verdicts[i].alive() ? 1 : 0;
  }
  EXPECT_GT(forwarded, on_twin.size() / 30);
}

TEST_P(RouterRecipe, IsOfTheNewestTables) {
  const auto router = router_with(GetParam());
  RouterChange change;
  change.replaces_routes = true;
  change.routes = config_of("0.0.0.0/1 dev lan\n").routes;
  ASSERT_TRUE(router->update(change));
  const function::StageRecipe recipe = recipe_of(*router);
  ASSERT_EQ(refusal(recipe), "accepted");
  testing::LonePacket packets[] = {
      testing::LonePacket({testing::packet().eth().ipv4("10.9.9.9", "11.1.2.3").udp(1, 2).bytes(), 0, {}}),
      testing::LonePacket({testing::packet().eth().ipv4("10.9.9.9", "192.0.2.1").udp(1, 2).bytes(), 0, {}})};
  const auto verdicts = run_on_host(recipe, packets);
  EXPECT_EQ(name_of(verdicts[0]), "no_neighbour");
  EXPECT_EQ(name_of(verdicts[1]), "no_route");
}

/// The number of a node must not be taken for that of a hop.
TEST_P(RouterRecipe, HasNoRouteBelowTheLastLevelOfATrie) {
  constexpr std::uint32_t kNode = 5000;
  function::StageRecipe recipe = recipe_of(*router_with(GetParam()));
  const auto fill = [&](std::size_t table, std::uint32_t entries) {
    put<std::uint32_t>(recipe, table, {child_entry(kNode)});
    put<std::uint32_t>(recipe, table + 1, {entries});
  };
  const RecipeParts before = *read_recipe(recipe);
  fill(kRoot4,
       static_cast<std::uint32_t>(std::visit([](const auto& trie) { return trie.root.size(); }, before.tables.v4)));
  fill(kRoot6, static_cast<std::uint32_t>(before.tables.v6.root.size()));
  for (const std::size_t nodes : {kNodes4, kNodes6}) fill(nodes, (kNode + 1) << 8);
  ASSERT_EQ(refusal(recipe), "accepted");
  const RecipeParts parts = *read_recipe(recipe);
  const ExpandedTables tables(parts.tables);
  EXPECT_EQ(std::visit([](const auto& v4) { return lookup(v4, Ipv4Address{0x01020304}); }, tables.spans().v4_view()),
            kNoRoute);
  EXPECT_EQ(lookup(tables.spans().v6.view(), Ipv6Address{}), kNoRoute);
}

TEST(RouterRecipeAlone, IsMuchSmallerThanItsTables) {
  const function::StageRecipe recipe = recipe_of(*router_with(Fib4Engine::kDir24));
  std::size_t bytes = 0;
  for (const function::TableBytes& table : recipe.tables) bytes += table->size();
  const std::size_t on_device = read_recipe(recipe)->tables.bytes();
  EXPECT_GT(on_device, Dir24View::kRootEntries * sizeof(std::uint32_t));
  EXPECT_LT(bytes, on_device / 1000);
  EXPECT_GE(remote_kernel().load_bytes(recipe), on_device) << "what is reserved is what it becomes";
}

/// Runs what the checks let pass of `rounds` lies.
void expect_no_lie_leaves_its_tables(const function::StageRecipe& recipe, int rounds) {
  RandomFrames draw(2);
  const auto packets = packets_for_router(150, draw, draw);
  int passed = 0;
  for (int round = 0; round < rounds; ++round) {
    const function::StageRecipe lie = testing::lie_about(recipe, draw);
    if (!can_be_loaded(lie)) continue;
    ++passed;
    auto own = packets;
    run_on_host(lie, own);
  }
  EXPECT_GT(passed, rounds / 20);
  EXPECT_LT(passed, rounds);
}

TEST_P(RouterRecipe, KeepsLookupsInItsTablesWhateverItSays) {
  const int rounds = GetParam() == Fib4Engine::kDir24 ? 60 : 2000;  // those that pass become 64 MiB of tables
  expect_no_lie_leaves_its_tables(recipe_of(*router_with(GetParam())), rounds);
}

// What follows lies with care.

TEST(RouterRecipeAlone, IsRefusedIfAnEntryOfATrieLeadsOutOfIt) {
  const auto router = router_with(Fib4Engine::kTrie4);
  const auto hops = static_cast<std::uint32_t>(array_of<Hop>(recipe_of(*router), kHops).size());
  const function::StageRecipe good = recipe_of(*router);
  const RecipeParts parts = *read_recipe(good);
  const auto nodes4 = std::visit([](const auto& trie) { return trie.nodes.size(); }, parts.tables.v4);
  for (const auto& [table, size] : {std::pair{kRoot4, nodes4}, {kNodes6, parts.tables.v6.nodes.size()}}) {
    const auto nodes = static_cast<std::uint32_t>(size);
    for (const std::uint32_t bad : {hops, kMaxValue, route_entry(128, hops), child_entry((nodes >> 4) + 300),
                                    child_entry(nodes >> 4 << 8), ~std::uint32_t{0}}) {
      auto recipe = recipe_of(*router);
      auto entries = array_of<std::uint32_t>(recipe, table);
      entries.at(1) = bad;
      put(recipe, table, entries);
      EXPECT_EQ(refusal(recipe), "recipe of router: an entry of a trie leads out of its table") << bad;
    }
  }
}

TEST(RouterRecipeAlone, IsRefusedIfRunsDoNotFollowEachOther) {
  const auto router = router_with(Fib4Engine::kDir24);
  const auto with_ends = [&](std::size_t table, auto change) {
    auto recipe = recipe_of(*router);
    auto ends = array_of<std::uint32_t>(recipe, table + 1);
    EXPECT_GT(ends.size(), 2U);
    change(ends);
    put(recipe, table + 1, ends);
    return refusal(recipe);
  };
  constexpr std::string_view kWrong = "recipe of router: runs of a trie that do not follow each other";
  for (const std::size_t table : {kRoot4, kNodes4, kRoot6, kNodes6}) {
    EXPECT_EQ(with_ends(table, [](auto& ends) { std::swap(ends[0], ends[1]); }), kWrong) << table;
    EXPECT_EQ(with_ends(table, [](auto& ends) { ends[1] = ends[0]; }), kWrong) << table << ": no entry";
    EXPECT_EQ(with_ends(table, [](auto& ends) { ends[0] = 0; }), kWrong) << table << ": no entry";
    EXPECT_EQ(with_ends(table, [](auto& ends) { ends.back() = 1; }), kWrong) << table;
    EXPECT_EQ(with_ends(table, [](auto& ends) { ends.pop_back(); }), kWrong) << table << ": no end";
    EXPECT_EQ(with_ends(table, [](auto& ends) { ends.push_back(~0U); }), kWrong) << table << ": no value";
  }
  EXPECT_EQ(with_ends(kRoot4, [](auto& ends) { ++ends.back(); }),
            "recipe of router: root of a trie: found 16777217 entries, expected 16777216");
}

TEST(RouterRecipeAlone, ReservesWhatRunsBecome) {
  auto recipe = recipe_of(*router_with(Fib4Engine::kTrie4));
  auto ends = array_of<std::uint32_t>(recipe, kNodes6 + 1);
  ends.back() = ~std::uint32_t{0};
  put(recipe, kNodes6 + 1, ends);
  ASSERT_EQ(refusal(recipe), "accepted");
  EXPECT_GE(remote_kernel().load_bytes(recipe), std::uint64_t{4} * ~std::uint32_t{0});
}

TEST(RouterRecipeAlone, IsRefusedIfAGroupOfNextHopsHasNoEndOrOneTooLate) {
  auto recipe = recipe_of(*router_with(Fib4Engine::kTrie4));
  auto hops = array_of<Hop>(recipe, kHops);
  hops.back().upper_bound = 5;
  put(recipe, kHops, hops);
  EXPECT_EQ(refusal(recipe), "recipe of router: the last group of next hops has no end");
  hops.resize(hops.size() + 70'000);
  for (Hop& hop : hops) hop.upper_bound = 0;
  hops.back().upper_bound = ~std::uint32_t{0};
  put(recipe, kHops, hops);
  EXPECT_EQ(refusal(recipe), "recipe of router: too long a group of next hops");
}

TEST(RouterRecipeAlone, IsRefusedIfThereIsNoSuchPort) {
  auto recipe = recipe_of(*router_with(Fib4Engine::kTrie4));
  auto ports = array_of<EgressPort>(recipe, kPorts);
  ports.resize(2);
  put(recipe, kPorts, ports);
  EXPECT_EQ(refusal(recipe), "recipe of router: port of the host: found 2");
}

TEST(RouterRecipeAlone, IsRefusedIfASearchForANeighbourHasNoEnd) {
  auto recipe = recipe_of(*router_with(Fib4Engine::kTrie4));
  auto slots = array_of<Neighbour>(recipe, kSlots);
  for (Neighbour& slot : slots) slot.device = 1;
  put(recipe, kSlots, slots);
  EXPECT_EQ(refusal(recipe), "recipe of router: too many neighbours without a gap");
  slots.resize(1 << 16, Neighbour{{}, 1, {}});
  slots[30'000].device = kNoPort;
  put(recipe, kSlots, slots);
  EXPECT_EQ(refusal(recipe), "recipe of router: too many neighbours without a gap");
  slots.resize(15);
  put(recipe, kSlots, slots);
  EXPECT_EQ(refusal(recipe), "recipe of router: number of slots for neighbours: found 15, expected a power of two");
  put(recipe, kSlots, std::vector<Neighbour>{});
  EXPECT_EQ(refusal(recipe), "recipe of router: number of slots for neighbours: found 0, expected a power of two");
}

TEST(RouterRecipeAlone, NeedsWhatTheStageDoes) {
  const auto router = router_with(Fib4Engine::kTrie4);
  const function::StageNeeds needs = remote_kernel().needs(recipe_of(*router));
  const Access& own = *router->traits().access_on(function::Processor::gpu);
  EXPECT_EQ(needs.access.reads | own.reads, needs.access.reads);
  EXPECT_EQ(needs.access.writes | own.writes, needs.access.writes);
}

}  // namespace
}  // namespace penstock::router
