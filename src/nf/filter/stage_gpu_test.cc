// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the GPU stage on a lane, followed by the finish stage, with the CPU twin: verdicts, frames and counts.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nf/filter/filter.h"
#include "nf/filter/recipe.h"
#include "nf/stage_twins_for_test.h"

namespace penstock::filter {
namespace {

using testing::RandomFrames;
using testing::StageTwins;
using testing::Way;

FilterList list_of(const std::vector<std::pair<std::string, Action>>& filters, bool headers_only = false) {
  FilterList list;
  list.headers_only = headers_only;
  for (const auto& [expression, action] : filters) {
    NamedFilter filter;
    filter.name = std::to_string(list.filters.size());
    filter.text = expression;
    filter.action = action;
    const auto compiled = compile_for_all(filter, {});
    EXPECT_TRUE(compiled) << to_string(compiled.error());
    list.filters.push_back(std::move(filter));
  }
  return list;
}

constexpr Action kPass{};
constexpr Action kDrop{Action::Kind::drop, kNoPort};
constexpr Action kToOne{Action::Kind::to, 1};

/// Two equal functions: one runs on the device, the other is its CPU twin.
struct Filters {
  Filters(const FilterList& list, GpuEngine engine)
      : on_device(made(list, engine)), on_host(made(list, GpuEngine::automatic)) {}

  static std::unique_ptr<Filter> made(const FilterList& list, GpuEngine engine) {
    FilterOptions options;
    options.gpu_engine = engine;
    options.most_filters = (list.filters.size() + 31) / 32 * 32;
    return std::move(*Filter::build(list, options));
  }
  void expect_equal_counts() const {
    const auto device = on_device->counts();
    const auto host = on_host->counts();
    for (std::size_t i = 0; i < host.size(); ++i) {
      ASSERT_EQ(device[i].packets, host[i].packets) << "filter " << i;
      ASSERT_EQ(device[i].bytes, host[i].bytes) << "filter " << i;
      ASSERT_EQ(device[i].decided_packets, host[i].decided_packets) << "filter " << i;
    }
  }

  std::unique_ptr<Filter> on_device, on_host;
};

void expect_twins(const FilterList& list, GpuEngine engine, const Way& way, int rounds) {
  Filters nfs(list, engine);
  StageTwins twins(*nfs.on_device, *nfs.on_host, way);
  RandomFrames draw(3);
  for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 1000U}) {
    while (twins.lane().batch().size() < size) ASSERT_TRUE(twins.lane().append(draw.frame()));
    ASSERT_NO_FATAL_FAILURE(twins.run()) << size << " packets";
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::uint32_t n = draw.below(4000); n > 0; --n) {
      if (!twins.lane().append(draw.frame())) break;
    }
    ASSERT_NO_FATAL_FAILURE(twins.run()) << "round " << round;
  }
  ASSERT_NO_FATAL_FAILURE(nfs.expect_equal_counts());
  EXPECT_GT(twins.forwarded(), 0U);
  EXPECT_LT(twins.forwarded(), twins.packets());
}

struct Case {
  Way way;
  GpuEngine engine;
};
void PrintTo(const Case& tested, std::ostream* out) { *out << tested.way.name << name(tested.engine); }

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Way& way : testing::kWays) {
    for (const GpuEngine engine : {GpuEngine::interpreter, GpuEngine::generated}) all.push_back({way, engine});
  }
  return all;
}

class FilterOnDevice : public ::testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Ways, FilterOnDevice, ::testing::ValuesIn(cases()), [](const auto& tested) {
  return fmt::format("{}_{}", tested.param.way.name, name(tested.param.engine));
});

TEST_P(FilterOnDevice, DecidesAndCountsAsItsTwin) {
  const FilterList list = list_of({{"tcp and len > 100", kPass},
                                   {"ip[40] & 1 = 1", kDrop},
                                   {"udp portrange 1-1023", kToOne},
                                   {"ip6 and not tcp", kPass},
                                   {"vlan and udp", kDrop}});
  expect_twins(list, GetParam().engine, GetParam().way, 10);
}

TEST(FilterOnDeviceByItsRecipe, DecidesAndCountsAsItsTwin) {
  for (const bool headers_only : {false, true}) {
    const FilterList list =
        list_of({{"ip6 and udp", kToOne}, {"tcp port 80 or vlan", kDrop}, {"greater 100", kPass}}, headers_only);
    Filters nfs(list, GpuEngine::automatic);
    for (const Way& way : testing::kWays) {
      testing::FromRecipe on_device(*nfs.on_device, remote_kernel());
      StageTwins twins(on_device, *nfs.on_host, way);
      RandomFrames draw(4);
      for (int round = 0; round < 5; ++round) {
        while (twins.lane().append(draw.frame())) continue;
        ASSERT_NO_FATAL_FAILURE(twins.run()) << way.name << ", round " << round;
      }
      ASSERT_NO_FATAL_FAILURE(nfs.expect_equal_counts());
    }
  }
}

TEST_P(FilterOnDevice, SeesOnlyHeadersAsItsTwinDoes) {
  FilterList list = list_of({{"udp[8] & 1 = 1", kDrop}, {"tcp[tcpflags] & tcp-syn != 0", kPass}, {"ip6", kPass}}, true);
  list.otherwise = kDrop;
  expect_twins(list, GetParam().engine, GetParam().way, 10);
}

TEST_P(FilterOnDevice, RunsAThousandFilters) {
  std::vector<std::pair<std::string, Action>> filters;
  for (int i = 0; i < 1000; ++i) {
    const char* const kinds[] = {"tcp dst port {}", "udp src port {}", "host 10.0.0.{}", "less {} and ip"};
    filters.emplace_back(fmt::format(fmt::runtime(kinds[i % 4]), i % 250 + 1), i % 3 == 0 ? kDrop : kPass);
  }
  expect_twins(list_of(filters), GetParam().engine, GetParam().way, 2);
}

}  // namespace
}  // namespace penstock::filter
