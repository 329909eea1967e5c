// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Points of the experiment `sharing` with real processes: a proxy whose device is simulated, and its tenants.

#include "experiments/sharing/sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "experiments/record_check.h"
#include "experiments/sharing/arrangement.h"
#include "gpu/devices.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// The processes that this one has started and not yet ended.
std::string children() {
  std::string all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "children");
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  return all;
}

bool is_same(const Point& one, const Point& other) {
  constexpr std::array kKeys{"sweep", "sharing", "mode", "tenants", "profile", "size"};
  return std::ranges::all_of(kKeys, [&](const char* key) { return one.text(key) == other.text(key); });
}

class Sharing : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(children(), ""); }

  static Point point(const char* sharing, unsigned tenants, const char* profile, const char* sweep = "tenants") {
    return Point()
        .set("sweep", sweep)
        .set("function", "router")
        .set("processor", "gpu")
        .set("size", 512)
        .set("mode", "streams")
        .set("sharing", sharing)
        .set("tenants", tenants)
        .set("profile", profile)
        .set("learners", 0);
  }
  [[nodiscard]] std::unique_ptr<Trial> trial() const {
    return make_sharing_trial(setting_, {{PENSTOCK_PROGRAM, "run", "--quiet"}, {PENSTOCK_PROXY_PROGRAM, "simulate"}});
  }

  std::atomic<bool> stop_{false};
  Setting setting_{.quick = false,
                   .repeats = 2,
                   .duration = milliseconds{150},
                   .workers = 1,
                   .gpus = {},
                   .rules = {},
                   .routes = {},
                   .stop = &stop_};
};

void expect_results(const Point& point, std::size_t tenants) {
  EXPECT_GT(point.number("gbps"), 0) << describe(point);
  EXPECT_GT(point.number("p99_us"), 0) << describe(point);
  EXPECT_GT(point.number("bytes_up"), 0) << describe(point);
  EXPECT_GE(*point.number("gbps"), *point.number("least_gbps"));
  EXPECT_GE(point.number("share_error_percent"), 0);
  const std::string rates = point.text("tenant_gbps");
  EXPECT_EQ(std::ranges::count(rates, ' '), static_cast<std::ptrdiff_t>(tenants) - 1) << rates;
}

TEST_F(Sharing, MeasuresTenantsOfAProxy) {
  const auto trial = this->trial();
  for (Point point : {point("best-effort", 1, "4q"), point("equal", 2, "4q"), point("weighted", 2, "8q+2q", "mixed")}) {
    ASSERT_EQ(trial->make_ready(point), "") << describe(point);
    const auto measured = trial->measure(point, {});
    ASSERT_TRUE(measured) << to_string(measured.error());
    expect_results(point, static_cast<std::size_t>(*point.number("tenants")));
    ASSERT_NE(point.find("gbps_repeats"), nullptr);
    EXPECT_EQ(point.number("limit_gbps"), std::nullopt) << "without a GPU";
  }
}

TEST_F(Sharing, MeasuresWhatFixedSharesArePartsOf) {
  const auto trial = this->trial();
  // Half of a rate that one core simulates: with less, a batch of 8 MiB could take longer than a repeat.
  Point fixed = point("fixed", 2, "8q");
  ASSERT_EQ(trial->make_ready(fixed), "");
  const auto measured = trial->measure(fixed, {});
  ASSERT_TRUE(measured) << to_string(measured.error());
  expect_results(fixed, 2);
  EXPECT_GT(fixed.number("fixed_gbps"), 0);
}

TEST_F(Sharing, MeasuresHowATenantComesAndGoes) {
  setting_.duration = milliseconds{1200};  // in which all tenants get a processor for a whole batch, also of two
  const auto trial = this->trial();
  Point visited = point("weighted", 2, "4q", "attach");
  ASSERT_EQ(trial->make_ready(visited), "");
  const auto measured = trial->measure(visited, {});
  ASSERT_TRUE(measured) << to_string(measured.error());
  expect_results(visited, 2);
  constexpr std::array kValues{"start_ms",
                               "attach_ms",
                               "detach_ms",
                               "visited_gbps",
                               "visited_p99_us",
                               "kept_percent",
                               "kept_beside_cpu_percent"};
  for (const char* const value : kValues) EXPECT_GT(visited.number(value), 0) << value << ": " << describe(visited);
  EXPECT_GE(visited.number("start_ms"), visited.number("attach_ms"));
  ASSERT_NE(visited.find("attach_ms_repeats"), nullptr) << "it comes several times";
}

TEST_F(Sharing, MeasuresUnlikeTenantsBetweenWhichMultiprocessorsAreDivided) {
  const auto trial = this->trial();
  for (Point unlike : {point("blocks", 2, "8q", "spatial"), point("green-contexts", 2, "8q", "spatial")}) {
    ASSERT_EQ(trial->make_ready(unlike), "") << describe(unlike);
    const auto measured = trial->measure(unlike, {});
    ASSERT_TRUE(measured) << to_string(measured.error());
    EXPECT_GT(unlike.number("least_gbps"), 0) << describe(unlike);
    EXPECT_GT(unlike.number("p99_us"), 0) << describe(unlike);
    EXPECT_EQ(unlike.number("share_error_percent"), std::nullopt) << describe(unlike);
  }
}

TEST_F(Sharing, MeasuresHowManyBatchesAreLate) {
  const auto trial = this->trial();
  constexpr unsigned kNever = 10'000'000;
  for (const unsigned bound_us : {1U, kNever}) {
    Point bounded = point("deadline", 2, "8q", "bounds").set("bound_us", bound_us);
    bounded.set("size", 64);  // what it offers is much for a simulated device
    ASSERT_EQ(trial->make_ready(bounded), "") << describe(bounded);
    const auto measured = trial->measure(bounded, {});
    ASSERT_TRUE(measured) << to_string(measured.error());
    EXPECT_GT(bounded.number("first_p99_us"), 0) << describe(bounded);
    EXPECT_GT(bounded.number("others_gbps"), 0) << describe(bounded);
    EXPECT_EQ(bounded.number("late_percent"), bound_us == kNever ? 0 : 100) << describe(bounded);
  }
}

TEST_F(Sharing, LeavesOutTenantsThatDoNotFit) {
  const auto trial = this->trial();
  EXPECT_THAT(trial->make_ready(point("best-effort", 2, "16q")), HasSubstr("no room for a tenant of profile 16q"));
  EXPECT_EQ(trial->make_ready(point("best-effort", 1, "16q")), "") << "the next point is not concerned";
}

TEST_F(Sharing, LeavesOutWhatTheMachineDoesNotHave) {
  if (gpu::list_devices().availability == gpu::Availability::kUsable) GTEST_SKIP() << "of machines without a GPU";
  const auto trial = this->trial();
  EXPECT_THAT(trial->make_ready(point("time-slicing", 2, "4q")), HasSubstr("GPU"));
  EXPECT_EQ(trial->make_ready(point("best-effort", 1, "4q")), "");
}

TEST_F(Sharing, AllQuickPointsMakeARecordThatIsShown) {
  setting_.repeats = 1;
  setting_.duration = milliseconds{1200};  // in which all tenants get a processor for a whole batch, also of two
  const auto trial = this->trial();
  Record record;
  record.experiment = "sharing";
  for (Point point : sharing_points(true)) {
    if (!is_proxied(point) || *point.number("tenants") > 4 || *point.number("learners") > 0) continue;
    point.set("function", "router");
    if (std::ranges::any_of(record.points, [&](const Point& other) { return is_same(other, point); })) continue;
    ASSERT_EQ(trial->make_ready(point), "") << describe(point);
    const auto measured = trial->measure(point, Point().set("pcie_both_each_way", 40));
    ASSERT_TRUE(measured) << to_string(measured.error());
    EXPECT_GT(point.number("limit_gbps"), 0) << describe(point);
    record.points.push_back(std::move(point));
  }
  EXPECT_GT(record.points.size(), 8U);
  const Errors wrong = check_record(record, sharing_experiment(), "record");
  EXPECT_TRUE(wrong.empty()) << to_string(wrong);
  for (const Figure& figure : sharing_experiment().figures()) {
    if (!has_points(figure, record)) continue;
    EXPECT_NE(table(figure, record, Style::terminal), "") << figure.id;
    EXPECT_NE(plot_svg(figure, record), "") << figure.id;
  }
  EXPECT_THAT(sharing_experiment().further_tables(record, Style::terminal), HasSubstr("Which scheduler and profile"));
}

TEST_F(Sharing, EndsAllProcessesWhenItIsStopped) {
  setting_.duration = std::chrono::minutes{10};
  std::thread user;
  {
    const auto trial = this->trial();
    Point endless = point("best-effort", 2, "4q");
    ASSERT_EQ(trial->make_ready(endless), "");
    EXPECT_NE(children(), "");
    user = std::thread([&] {
      std::this_thread::sleep_for(milliseconds{200});
      stop_ = true;
    });
    static_cast<void>(trial->measure(endless, {}));
  }
  user.join();
}

TEST_F(Sharing, NoticesATenantThatIsKilled) {
  const auto trial = this->trial();
  Point killed = point("best-effort", 2, "4q");
  ASSERT_EQ(trial->make_ready(killed), "");
  // The proxy was started first, and then the tenants.
  std::vector<pid_t> pids;
  std::istringstream text(children());
  for (pid_t pid = 0; text >> pid;) pids.push_back(pid);
  ASSERT_EQ(pids.size(), 3U);
  ::kill(std::ranges::max(pids), SIGKILL);
  const auto measured = trial->measure(killed, {});
  ASSERT_FALSE(measured);
  EXPECT_THAT(to_string(measured.error()), HasSubstr("a tenant has ended while it was measured"));
}

}  // namespace
}  // namespace penstock::experiments
