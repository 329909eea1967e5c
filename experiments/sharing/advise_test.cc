// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sharing/arrangement.h"

namespace penstock::experiments {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Point point_of(const char* sweep, const char* function, const char* sharing, unsigned tenants, const char* profile,
               double gbps, double error) {
  return Point()
      .set("sweep", sweep)
      .set("function", function)
      .set("size", kSharingSize)
      .set("mode", "streams")
      .set("sharing", sharing)
      .set("tenants", tenants)
      .set("profile", profile)
      .set("learners", 0)
      .set("gbps", gbps)
      .set("share_error_percent", error);
}

/// Four tenants of ipsec reach 320 Gbit/s with eight workers, and of nids 400.
Record record() {
  Record record;
  record.experiment = "sharing";
  record.machine.cores = 16;
  for (const char* const function : {"ipsec", "nids"}) {
    const double whole = std::string(function) == "ipsec" ? 320 : 400;
    const auto add = [&](const char* sweep, const char* sharing, double part, double error, unsigned tenants = 4,
                         const char* profile = "4q") {
      record.points.push_back(point_of(sweep, function, sharing, tenants, profile, whole * part, error));
    };
    add("tenants", "best-effort", 0.99, 20);
    add("tenants", "equal", 0.9, 1);
    add("tenants", "weighted", 1, 1);
    add("tenants", "deadline", 0.995, 3);
    add("tenants", "time-slicing", 1.2, 1);
    add("greedy", "best-effort", 1, 100);
    add("greedy", "equal", 0.8, 1);
    add("greedy", "weighted", 0.95, 4);
    add("greedy", "fixed", 0.7, 0.5);
    add("greedy", "deadline", 0.99, 12);
    add("mixed", "weighted", 0.9, 0.5, 4, "8q+4q+2q+2q");
    add("mixed", "fixed", 0.8, 0.2, 4, "8q+4q+2q+2q");
    add("mixed", "deadline", 0.95, 20, 4, "8q+4q+2q+2q");
    for (const auto& [most, error] : {std::pair{24U, 0.5}, {32U, 2.0}, {40U, 30.0}, {48U, 1.0}}) {
      add("on-device-greedy", "equal", 1, error);
      record.points.back().set("on_device", most);
    }
    for (const auto& [learners, sharing, part] : {std::tuple{0U, "best-effort", 0.5},
                                                  {1U, "best-effort", 0.1},
                                                  {0U, "proxy-mps-50", 0.4},
                                                  {1U, "proxy-mps-50", 0.38},
                                                  {3U, "proxy-mps-50", 0.3},
                                                  {1U, "time-slicing", 0.49}}) {
      add("learning", sharing, part, 0, 1);
      record.points.back().set("learners", learners);
    }
  }
  return record;
}

Result<SharingAdvice> advice_for(const std::vector<const char*>& tenants, bool holds_shares = false,
                                 unsigned trainings = 0) {
  SharingWish wish{{}, holds_shares, trainings};
  for (const char* const tenant : tenants) wish.tenants.push_back(tenant_wish_of(tenant).value());
  return advise(record(), wish, "r.json");
}

std::vector<unsigned> units_of(const SharingAdvice& advice) {
  std::vector<unsigned> units;
  for (const auto& tenant : advice.tenants) units.push_back(tenant.units);
  return units;
}

TEST(SharingWishes, AreReadFromText) {
  const auto whole = tenant_wish_of("nids:100Gbps:2ms");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->function, "nids");
  EXPECT_EQ(whole->gbps, 100);
  EXPECT_EQ(whole->bound, 2ms);
  const auto bound_only = tenant_wish_of("nids::500us");
  ASSERT_TRUE(bound_only);
  EXPECT_EQ(bound_only->gbps, std::nullopt);
  EXPECT_EQ(bound_only->bound, 500us);
  EXPECT_EQ(tenant_wish_of("ipsec")->gbps, std::nullopt);
  for (const char* const wrong : {"", ":1Gbps", "nids:1Gbps:2ms:", "nids:x", "nids:5kpps", "nids:0Gbps",
                                  "nids:1Gbps:", "nids::0", "nids::-1ms"}) {
    const auto refused = tenant_wish_of(wrong);
    EXPECT_FALSE(refused) << wrong;
    EXPECT_TRUE(refused || !refused.error().front().expected.empty()) << wrong;
  }
}

TEST(SharingAdvices, GiveATenantTheSmallestProfileWithItsShare) {
  // 60 of 320 are 18.75 %, and 5 % more of it: 3.15 sixteenths. 100 of 400: 4.2. 20 of 320: 1.05.
  const auto advice = advice_for({"ipsec:60Gbps", "nids:100Gbps", "ipsec:19Gbps"});
  ASSERT_TRUE(advice) << to_string(advice.error());
  EXPECT_EQ(units_of(*advice), (std::vector<unsigned>{4, 8, 1}));
  EXPECT_NEAR(advice->tenants[0].part, 0.1875, 1e-9);
  EXPECT_DOUBLE_EQ(advice->tenants[1].expected_gbps, 100);
  EXPECT_EQ(advice->tenants[0].workers, 2U) << "one of eight has 40 Gbit/s";
  EXPECT_EQ(advice->tenants[1].workers, 2U) << "50";
  EXPECT_EQ(advice->tenants[2].workers, 1U);
}

TEST(SharingAdvices, DivideWhatIsLeftBetweenTheOthers) {
  const auto advice = advice_for({"nids:90Gbps", "nids", "ipsec"});
  ASSERT_TRUE(advice) << to_string(advice.error());
  EXPECT_EQ(units_of(*advice), (std::vector<unsigned>{4, 4, 4}));
  EXPECT_NEAR(advice->tenants[1].expected_gbps, 155, 1e-6) << "half of 310";
  EXPECT_NEAR(advice->tenants[2].expected_gbps, 320 * 0.775 / 2, 1e-6);
  const auto all = advice_for({"nids", "nids", "nids", "nids"});
  ASSERT_TRUE(all);
  EXPECT_EQ(units_of(*all), std::vector<unsigned>(4, 4));
  EXPECT_DOUBLE_EQ(all->tenants[0].expected_gbps, 100);
  EXPECT_EQ(all->tenants[0].workers, 2U);
}

TEST(SharingAdvices, RefuseTenantsThatDoNotFit) {
  const auto error_of = [](const std::vector<const char*>& tenants) {
    const auto advice = advice_for(tenants);
    return advice ? std::string() : to_string(advice.error());
  };
  EXPECT_THAT(error_of({"ipsec:200Gbps", "nids:200Gbps"}), HasSubstr("found rates that take 112 % of the GPU"));
  // They would fit by their rates, but not by profiles.
  EXPECT_THAT(error_of({"ipsec:90Gbps", "ipsec:90Gbps", "ipsec:90Gbps"}), HasSubstr("8q, 8q, 8q together"));
  EXPECT_THAT(error_of({"ipsec:250Gbps", "nids"}), HasSubstr("16q, no room for one together"));
  EXPECT_THAT(error_of(std::vector<const char*>(17, "nids")), HasSubstr("no room for one"));
  EXPECT_EQ(error_of(std::vector<const char*>(16, "nids")), "");
  EXPECT_THAT(error_of({"router", "nids"}), HasSubstr("found 'router', expected ipsec, nids"));
  EXPECT_EQ(error_of({"ipsec:320Gbps"}), "") << "the whole GPU";
}

TEST(SharingAdvices, ChooseTheFastestSchedulerOfThoseThatKeepWhatIsNeeded) {
  const auto scheduler = [](const std::vector<const char*>& tenants, bool holds_shares) {
    const auto advice = advice_for(tenants, holds_shares);
    return advice ? advice->scheduler : to_string(advice.error());
  };
  EXPECT_EQ(scheduler({"nids", "nids"}, false), "best-effort") << "as fast as weighted, and simpler";
  EXPECT_EQ(scheduler({"nids", "ipsec"}, true), "weighted") << "deadline is faster, but does not hold them";
  EXPECT_EQ(scheduler({"nids:20Gbps", "nids:150Gbps"}, false), "weighted") << "among unlike ones";
  EXPECT_EQ(scheduler({"nids", "ipsec::1ms"}, true), "deadline") << "the only one that knows bounds";
}

TEST(SharingAdvices, SayWhatTheRecordSaysOfBounds) {
  Record with = record();
  with.points.push_back(
      point_of("bounds", "nids", "deadline", 2, "8q", 100, 0).set("bound_us", 1000).set("late_percent", 0.4));
  with.points.push_back(
      point_of("bounds", "nids", "deadline", 2, "8q", 100, 0).set("bound_us", 500).set("late_percent", 9));
  const auto reasons_of = [&](const char* tenant) {
    return advise(with, {{tenant_wish_of(tenant).value()}, false, 0}, "r.json").value().reasons;
  };
  EXPECT_THAT(reasons_of("nids:10Gbps:2ms"), Contains(HasSubstr("Of a bound of 1000 us for nids, 0.4 %")));
  EXPECT_THAT(reasons_of("nids:10Gbps:600us"), Contains(HasSubstr("Of a bound of 500 us for nids, 9.0 %")));
  EXPECT_THAT(reasons_of("nids:10Gbps:100us"), Contains(HasSubstr("A bound of 100 us was not measured for nids")));
}

TEST(SharingAdvices, LetOntoTheDeviceTheMostWithWhichSharesHeld) {
  const auto advice = advice_for({"nids"});
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->on_device_mib, 32U) << "not 48, since 40 is too much";
}

TEST(SharingAdvices, LimitTrainings) {
  const auto one = advice_for({"nids:10Gbps"}, false, 1);
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_TRUE(one->in_mps);
  EXPECT_EQ(one->training_percent, 50U);
  const auto three = advice_for({"nids:10Gbps"}, false, 3);
  ASSERT_TRUE(three) << to_string(three.error());
  EXPECT_EQ(three->training_percent, 16U) << "of all three 50 together";
  const auto two = advice_for({"nids:10Gbps"}, false, 2);
  ASSERT_FALSE(two);
  EXPECT_THAT(to_string(two.error()), HasSubstr("'learning'"));
  EXPECT_FALSE(advice_for({"nids:10Gbps"}).value().in_mps);
}

TEST(SharingAdvices, NeedARecordOfTheExperimentWithWhatTheyRestOn) {
  const SharingWish wish{{tenant_wish_of("nids").value(), tenant_wish_of("nids").value()}, true, 0};
  Record other = record();
  other.experiment = "chain";
  EXPECT_THAT(to_string(advise(other, wish, "r.json").error()), HasSubstr("r.json: the record is from another"));
  Record lacks = record();
  std::erase_if(lacks.points, [](const Point& point) { return point.text("sweep") == "greedy"; });
  EXPECT_THAT(to_string(advise(lacks, wish, "r.json").error()), HasSubstr("'greedy'"));
  Record none = record();
  none.points.clear();
  EXPECT_FALSE(advise(none, wish, "r.json"));
  EXPECT_FALSE(advise(record(), {}, "r.json"));
}

}  // namespace
}  // namespace penstock::experiments
