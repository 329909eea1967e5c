// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "experiments/sharing/arrangement.h"

namespace penstock::experiments {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
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

/// Four tenants of ipsec reach 320 Gbit/s with best effort and 288 with shares, and of nids 400 and 360. One alone
/// reaches half of that with two workers, with profile 4q.
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
    add("tenants", "best-effort", 1, 20);
    add("tenants", "equal", 0.8, 1);
    add("tenants", "weighted", 0.9, 1);
    add("tenants", "fixed", 0.9, 1);
    record.points.back().set("fixed_gbps", 500);
    add("tenants", "deadline", 0.98, 3);
    add("tenants", "time-slicing", 1.2, 1);
    for (const char* const sharing : {"best-effort", "equal", "weighted", "fixed", "deadline"})
      add("tenants", sharing, 0.5, 0, 1);
    add("greedy", "best-effort", 1, 100);
    add("greedy", "equal", 0.8, 1);
    add("greedy", "weighted", 0.85, 4);
    add("greedy", "fixed", 0.85, 0.5);
    add("greedy", "deadline", 0.95, 12);
    add("mixed", "weighted", 0.9, 0.5, 4, "8q+4q+2q+2q");
    add("mixed", "fixed", 0.8, 0.2, 4, "8q+4q+2q+2q");
    add("mixed", "deadline", 0.95, 20, 4, "8q+4q+2q+2q");
    const std::tuple<unsigned, double, double> kOnDevice[] = {
        {24, 0.5, 0.7}, {32, 2, 0.99}, {40, 0.3, 1}, {48, 30, 1.1}};
    for (const auto& [most, error, part] : kOnDevice) {
      add("on-device-greedy", "equal", part, error);
      record.points.back().set("on_device", most);
    }
    const std::tuple<unsigned, const char*, double> kLearning[] = {
        {1, "best-effort", 0.1}, {1, "proxy-mps-50", 0.38}, {3, "proxy-mps-50", 0.3}, {1, "time-slicing", 0.49}};
    for (const auto& [learners, sharing, part] : kLearning) {
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
                                  "nids:1Gbps:", "nids::0", "nids::-1ms", "nids::100ns", "nids::1h"}) {
    const auto refused = tenant_wish_of(wrong);
    EXPECT_FALSE(refused) << wrong;
    EXPECT_TRUE(refused || !refused.error().front().expected.empty()) << wrong;
  }
}

TEST(SharingAdvices, GiveATenantTheSmallestProfileWithItsShare) {
  // With weighted, of 288 and 360: 54 are 3 sixteenths, 100 are 4.4, 18 are 1.
  const auto advice = advice_for({"ipsec:54Gbps", "nids:100Gbps", "ipsec:18Gbps"});
  ASSERT_TRUE(advice) << to_string(advice.error());
  EXPECT_EQ(advice->scheduler, "weighted");
  EXPECT_EQ(units_of(*advice), (std::vector<unsigned>{4, 8, 1}));
  EXPECT_NEAR(advice->tenants[0].part, 0.1875, 1e-9);
  EXPECT_DOUBLE_EQ(*advice->tenants[1].expected_gbps, 100);
  EXPECT_EQ(advice->tenants[0].workers, 1U) << "one alone has 80 Gbit/s";
  EXPECT_EQ(advice->tenants[1].workers, 2U) << "100, with a quarter to spare";
}

TEST(SharingAdvices, DivideWhatIsLeftBetweenTheOthers) {
  const auto advice = advice_for({"nids:90Gbps", "nids", "ipsec"}, true);
  ASSERT_TRUE(advice) << to_string(advice.error());
  EXPECT_EQ(units_of(*advice), (std::vector<unsigned>{4, 4, 4}));
  EXPECT_NEAR(*advice->tenants[1].expected_gbps, 135, 1e-6) << "half of 270";
  EXPECT_NEAR(*advice->tenants[2].expected_gbps, 108, 1e-6);
  const auto all = advice_for({"nids", "nids", "nids", "nids"});
  ASSERT_TRUE(all);
  EXPECT_EQ(units_of(*all), std::vector<unsigned>(4, 4));
  EXPECT_DOUBLE_EQ(*all->tenants[0].expected_gbps, 100);
}

TEST(SharingAdvices, PromiseOneTenantNoMoreThanOneReached) {
  const auto one = advice_for({"nids"});
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_DOUBLE_EQ(*one->tenants[0].expected_gbps, 200);
  const auto two = advice_for({"nids", "ipsec:16Gbps"});
  ASSERT_TRUE(two) << to_string(two.error());
  EXPECT_LE(*two->tenants[0].expected_gbps, 200);
  const auto more = advice_for({"nids:201Gbps", "ipsec"});
  ASSERT_FALSE(more);
  EXPECT_THAT(to_string(more.error()), HasSubstr("found 201.0 Gbit/s, expected at most 200.0 Gbit/s"));
}

TEST(SharingAdvices, RefuseTenantsThatDoNotFit) {
  const auto error_of = [](const std::vector<const char*>& tenants, bool holds_shares = false) {
    const auto advice = advice_for(tenants, holds_shares);
    return advice ? std::string() : to_string(advice.error());
  };
  EXPECT_THAT(error_of({"ipsec:150Gbps", "ipsec:150Gbps", "nids:100Gbps"}),
              HasSubstr("rates that take 118.8 % of the"));
  // They would fit by their rates, but not by profiles.
  const std::vector<const char*> large{"ipsec:80Gbps", "ipsec:80Gbps", "ipsec:80Gbps"};
  EXPECT_EQ(error_of(large), "") << "best effort needs no shares";
  EXPECT_EQ(error_of(large, true), "") << "equal knows no profiles";
  EXPECT_THAT(error_of({"ipsec:80Gbps:1ms", "ipsec:80Gbps", "ipsec:80Gbps"}), HasSubstr("found 8q, 8q, 8q, expected"));
  EXPECT_THAT(error_of({"ipsec:150Gbps:1ms", "nids:150Gbps", "nids"}), HasSubstr("8q, 8q; 1 without a rate"));
  EXPECT_THAT(error_of(std::vector<const char*>(17, "nids")), HasSubstr("found 17 tenants, expected at most 16"));
  EXPECT_EQ(error_of(std::vector<const char*>(16, "nids")), "");
  EXPECT_THAT(error_of({"router", "nids"}), HasSubstr("found 'router', expected ipsec, nids"));
}

TEST(SharingAdvices, ChooseTheFastestSchedulerOfThoseThatKeepWhatIsNeeded) {
  const auto scheduler = [](const std::vector<const char*>& tenants, bool holds_shares) {
    const auto advice = advice_for(tenants, holds_shares);
    return advice ? advice->scheduler : to_string(advice.error());
  };
  EXPECT_EQ(scheduler({"nids", "nids"}, false), "best-effort");
  EXPECT_EQ(scheduler({"nids", "ipsec"}, true), "weighted") << "deadline is faster, but does not hold them";
  EXPECT_EQ(scheduler({"nids", "ipsec::1ms"}, true), "deadline") << "the only one that knows bounds";
  const auto fixed = advice_for({"nids", "nids"}, true);
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->scheduler, "weighted") << "as fast as fixed, and simpler";
  Record loose = record();
  for (Point& point : loose.points) {
    if (point.text("sweep") == "greedy" && point.text("sharing") != "fixed") point.set("share_error_percent", 30);
  }
  const SharingWish alike{{tenant_wish_of("nids").value(), tenant_wish_of("nids").value()}, true, 0};
  const auto holds = advise(loose, alike, "r.json");
  ASSERT_TRUE(holds);
  EXPECT_EQ(holds->scheduler, "fixed");
  EXPECT_EQ(holds->fixed_gbps, 500);
  const SharingWish unlike{{tenant_wish_of("nids").value(), tenant_wish_of("ipsec").value()}, true, 0};
  const auto mixed = advise(loose, unlike, "r.json");
  ASSERT_TRUE(mixed);
  EXPECT_NE(mixed->scheduler, "fixed") << "which has one rate for all";
  EXPECT_THAT(mixed->reasons, Contains(HasSubstr("SHARES DO NOT HOLD")));
}

/// Beside others that want all, `equal` gives a tenant no more than them.
TEST(SharingAdvices, HoldNoLargerShareByEqualParts) {
  Record only_equal = record();
  for (Point& point : only_equal.points) {
    if (point.text("sweep") == "greedy" && point.text("sharing") != "equal") point.set("share_error_percent", 30);
  }
  const auto advice_for_two = [&](const char* first) {
    const SharingWish wish{{tenant_wish_of(first).value(), tenant_wish_of("nids:20Gbps").value()}, true, 0};
    return advise(only_equal, wish, "r.json");
  };
  const auto half = advice_for_two("nids:150Gbps"), more = advice_for_two("nids:190Gbps");
  ASSERT_TRUE(half) << to_string(half.error());
  EXPECT_EQ(half->scheduler, "equal");
  ASSERT_TRUE(more) << to_string(more.error());
  EXPECT_NE(more->scheduler, "equal") << "190 of 320 Gbit/s are more than half";
}

TEST(SharingAdvices, SayThatABoundCostsShares) {
  const auto advice = advice_for({"nids::1ms", "ipsec"}, true);
  ASSERT_TRUE(advice);
  EXPECT_THAT(advice->reasons, Contains(HasSubstr("SHARES DO NOT HOLD within 5 %: deadline came closest, with an error "
                                                  "of 12.0 % beside a greedy tenant")));
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
  EXPECT_THAT(reasons_of("nids:10Gbps:2ms"),
              Contains(HasSubstr("With a bound of 1000 us, 0.4 % of the batches of a tenant of nids")));
  EXPECT_THAT(reasons_of("nids:10Gbps:600us"), Contains(HasSubstr("With a bound of 500 us, 9.0 %")));
  EXPECT_THAT(reasons_of("nids:10Gbps:100us"),
              Contains(HasSubstr("Bounds of 100 us or less were not measured for nids")));
}

TEST(SharingAdvices, LetOntoTheDeviceWhatIsFastAndHoldsShares) {
  const auto advice = advice_for({"nids", "nids"}, true);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->on_device_mib, 32U) << "as fast as 40, and faster than 24; with 48 shares do not hold";
  EXPECT_EQ(advice_for({"nids", "nids"})->on_device_mib, 0U) << "no shares are to hold";
}

TEST(SharingAdvices, LimitTrainings) {
  const auto one = advice_for({"nids:10Gbps"}, false, 1);
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_TRUE(one->in_mps);
  EXPECT_EQ(one->training_percent, 50U);
  EXPECT_EQ(one->tenants[0].expected_gbps, std::nullopt) << "it was not measured for these";
  const auto three = advice_for({"nids:10Gbps"}, false, 3);
  ASSERT_TRUE(three) << to_string(three.error());
  EXPECT_EQ(three->training_percent, 16U) << "of all three 50 together";
  const auto two = advice_for({"nids:10Gbps"}, false, 2);
  ASSERT_FALSE(two);
  EXPECT_THAT(to_string(two.error()), HasSubstr("no tenant of nids beside 2 trainings was measured"));
  EXPECT_FALSE(advice_for({"nids:10Gbps"}).value().in_mps);
}

TEST(SharingAdvices, CountPointsWithoutSensibleValuesAsMissing) {
  const SharingWish wish{{tenant_wish_of("nids").value(), tenant_wish_of("nids").value()}, false, 0};
  const auto good = advise(record(), wish, "r.json");
  ASSERT_TRUE(good);
  for (const auto& [key, value] : {std::pair{"tenants", Value(-1.0)},
                                   {"tenants", Value(4294967297.0)},
                                   {"tenants", Value(2.5)},
                                   {"profile", Value(std::string("xq"))},
                                   {"profile", Value(std::string("4q+"))},
                                   {"gbps", Value(-5.0)},
                                   {"gbps", Value(0.0)},
                                   {"workers", Value(-4.0)}}) {
    Record odd = record();
    Point more = point_of("tenants", "nids", "best-effort", 4, "4q", 9999, 0);
    odd.points.push_back(more.set(key, value));
    const auto advice = advise(odd, wish, "r.json");
    ASSERT_TRUE(advice) << key << to_text(value);
    EXPECT_DOUBLE_EQ(*advice->tenants[0].expected_gbps, *good->tenants[0].expected_gbps) << key << to_text(value);
  }
  Record silent = record();
  for (Point& point : silent.points) point.set("share_error_percent", "");
  const auto advice = advise(silent, {wish.tenants, true, 0}, "r.json");
  ASSERT_TRUE(advice);
  EXPECT_THAT(advice->reasons, Contains(HasSubstr("was not measured for these functions")));
  EXPECT_EQ(advice->on_device_mib, 0U);
}

/// Of tenants that were measured.
TEST(SharingAdvices, PromiseNoMoreThanTheKeptRecordHas) {
  const std::string file = PENSTOCK_RECORDS "/h200-xeon-16/sharing.json";
  const auto kept = parse_record(read_input(file).value(), file);
  ASSERT_TRUE(kept) << to_string(kept.error());
  for (const char* const function : {"ipsec", "nids"}) {
    for (const std::size_t number : {1U, 4U, 16U}) {
      for (const bool holds_shares : {false, true}) {
        const SharingWish wish{std::vector<TenantWish>(number, tenant_wish_of(function).value()), holds_shares, 0};
        const auto advice = advise(*kept, wish, file);
        ASSERT_TRUE(advice) << to_string(advice.error());
        double promised = 0, most = 0;
        for (const auto& tenant : advice->tenants) promised += *tenant.expected_gbps;
        for (const Point& point : kept->points) {
          if (satisfies(point, {{"function", {function}}, {"sharing", {advice->scheduler}}}) &&
              (point.number("tenants") == 1) == (number == 1))
            most = std::max(most, point.number("gbps").value_or(0));
        }
        EXPECT_LE(promised, most * 1.0001) << function << number << advice->scheduler;
        EXPECT_GT(promised, most / 2);
      }
    }
  }
}

TEST(SharingAdvices, NeedARecordOfTheExperimentWithWhatTheyRestOn) {
  const SharingWish wish{{tenant_wish_of("nids").value(), tenant_wish_of("nids").value()}, true, 0};
  Record other = record();
  other.experiment = "chain";
  EXPECT_THAT(to_string(advise(other, wish, "r.json").error()), HasSubstr("r.json: the record is from another"));
  Record lacks = record();
  std::erase_if(lacks.points, [](const Point& point) { return point.text("sweep") == "greedy"; });
  EXPECT_THAT(advise(lacks, wish, "r.json").value().reasons, Contains(HasSubstr("was not measured")));
  Record none = record();
  none.points.clear();
  EXPECT_THAT(to_string(advise(none, wish, "r.json").error()), HasSubstr("expected a record of"));
  EXPECT_FALSE(advise(record(), {}, "r.json"));
}

}  // namespace
}  // namespace penstock::experiments
