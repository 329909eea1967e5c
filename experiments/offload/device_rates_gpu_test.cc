// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Measurements on a device return correct results, and wrong results end them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/offload/rates.h"
#include "experiments/workload.h"
#include "gpu/devices.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const std::atomic<bool> kNeverStop{false};
constexpr Timing kShort{2, milliseconds{5}, &kNeverStop};

std::unique_ptr<LookupWork> routing(std::size_t count) {
  std::vector<router::Route4> routes;
  for (const Ipv4Prefix& prefix : route_prefixes(count)) {
    routes.push_back({prefix, static_cast<std::uint32_t>(routes.size())});
  }
  return std::move(*make_routing(routes));
}

std::unique_ptr<LookupWork> firewall_of(std::size_t count) {
  return std::move(*make_firewall(std::move(firewall::read_rules(rules_text(count), "rules", {})->value)));
}

void expect_rates(const LookupWork& work, const char* name) {
  const auto engine = work.engine(name);
  ASSERT_TRUE(engine) << to_string(engine.error());
  DeviceRates device(gpu::current_device(), work);
  const DeviceTable table = (*engine)->to_device();
  for (const std::size_t batch : {std::size_t{256}, std::size_t{65536}, kKeys}) {
    for (const unsigned streams : {1U, 3U}) {
      const auto rates = device.end_to_end(table, batch, streams, kShort);
      ASSERT_TRUE(rates) << name << ' ' << batch << ": " << to_string(rates.error());
      ASSERT_EQ(rates->size(), 2U);
      EXPECT_GT(rates->front(), 1e5);
    }
    const auto rates = device.kernel(table, batch, kShort);
    ASSERT_TRUE(rates) << name << ' ' << batch << ": " << to_string(rates.error());
    ASSERT_EQ(rates->size(), 2U);
    EXPECT_GT(rates->front(), 1e5);
  }
}

TEST(DeviceRates, ComeWithTheResultsOfTheCpu) {
  const auto routes = routing(20'000);
  for (const char* engine : {"dir24", "trie4", "trie1"}) expect_rates(*routes, engine);
  const auto rules = firewall_of(300);
  for (const char* engine : {"bitvector", "linear"}) expect_rates(*rules, engine);
}

TEST(DeviceRates, AreRefusedWhereAResultIsWrong) {
  const auto work = routing(20'000);
  const auto other = routing(1'000);
  const auto engine = other->engine("trie4");
  ASSERT_TRUE(engine);
  DeviceRates device(gpu::current_device(), *work);
  const DeviceTable table = (*engine)->to_device();
  const auto end_to_end = device.end_to_end(table, 4096, 2, kShort);
  ASSERT_FALSE(end_to_end);
  EXPECT_THAT(to_string(end_to_end.error()), HasSubstr("the GPU's result for key "));
  const auto kernel = device.kernel(table, 4096, kShort);
  ASSERT_FALSE(kernel);
  EXPECT_THAT(to_string(kernel.error()), HasSubstr("the GPU's result for key "));
}

}  // namespace
}  // namespace penstock::experiments
