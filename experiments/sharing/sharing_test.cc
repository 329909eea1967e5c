// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/sharing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "base/text_file.h"
#include "config/chain_file.h"
#include "experiments/record_check.h"
#include "experiments/sharing/arrangement.h"
#include "experiments/sharing/learners.h"
#include "experiments/sharing/mps.h"
#include "experiments/sharing/recommend.h"
#include "experiments/sharing/run_socket.h"
#include "experiments/sharing/started.h"
#include "experiments/sharing/tenants.h"
#include "experiments/sharing/usage.h"
#include "experiments/sharing/visitor.h"
#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::atomic<bool> kNeverStop{false};

Point point_of(const char* sweep, const char* function, const char* sharing, unsigned tenants, const char* profile) {
  return Point()
      .set("sweep", sweep)
      .set("function", function)
      .set("processor", "gpu")
      .set("size", kSharingSize)
      .set("mode", "streams")
      .set("sharing", sharing)
      .set("tenants", tenants)
      .set("profile", profile)
      .set("learners", 0);
}

TEST(SharingPlan, NeverHasMoreTenantsThanFit) {
  for (const bool quick : {false, true}) {
    for (const Point& point : sharing_points(quick)) {
      unsigned units = 0;
      for (const TenantPlan& tenant : tenants_of(point))
        units += static_cast<unsigned>(std::stoul(tenant.profile.substr(0, tenant.profile.size() - 1)));
      EXPECT_LE(units, 16U) << describe(point);
      EXPECT_EQ(static_cast<double>(tenants_of(point).size()), point.number("tenants")) << describe(point);
    }
  }
}

TEST(SharingPlan, HasTheFiguresOfThePaper) {
  std::map<std::string, std::set<std::string>> seen;
  for (const Point& point : sharing_points(false)) {
    const std::string sweep = point.text("sweep");
    if (point.text("function") != "ipsec") continue;
    if (sweep == "size" && point.text("sharing") == "alone") seen["2a"].insert(point.text("size") + point.text("mode"));
    if (sweep == "size" && point.text("sharing") == "best-effort") seen["2b"].insert(point.text("size"));
    if (sweep == "tenants" && point.text("sharing") == "equal") seen["3"].insert(point.text("tenants"));
    if (sweep == "profiles" && point.text("sharing") == "best-effort") seen["4"].insert(point.text("profile"));
    if (sweep == "learning" && point.text("size") == "1522") seen["6"].insert(point.text("learners"));
  }
  EXPECT_EQ(seen["2a"].size(), 14U);
  EXPECT_EQ(seen["2b"].size(), 7U);
  EXPECT_EQ(seen["3"], (std::set<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(seen["4"], (std::set<std::string>{"16q", "8q", "4q", "2q", "1q"}));
  EXPECT_EQ(seen["6"], (std::set<std::string>{"0", "1", "2", "3"}));
}

TEST(SharingPlan, LimitsLearnersThatAreClientsOfMps) {
  const auto percent = [](const char* sharing, unsigned learners) {
    return learner_percent(point_of("learning", "ipsec", sharing, 1, "4q").set("learners", learners));
  };
  EXPECT_EQ(percent("mps", 1), 100U);
  EXPECT_EQ(percent("proxy-mps", 2), 100U);
  EXPECT_EQ(percent("proxy-mps-75", 0), 75U);
  EXPECT_EQ(percent("proxy-mps-75", 1), 75U);
  EXPECT_EQ(percent("proxy-mps-75", 3), 25U) << "all together have no more";
  EXPECT_EQ(percent("proxy-mps-2", 3), 1U);
  const auto kind = [](const char* sharing) {
    const Point point = point_of("learning", "ipsec", sharing, 1, "4q");
    return scheduler_of(point) + (is_proxied(point) ? " proxied" : "") + (uses_mps(point) ? " mps" : "");
  };
  EXPECT_EQ(kind("proxy-mps-75"), "best-effort proxied mps");
  EXPECT_EQ(kind("proxy-mps"), "best-effort proxied mps");
  EXPECT_EQ(kind("weighted"), "weighted proxied");
  EXPECT_EQ(kind("blocks"), "weighted proxied");
  EXPECT_EQ(kind("green-contexts"), "weighted proxied");
  EXPECT_EQ(kind("mps"), " mps");
  EXPECT_EQ(kind("time-slicing"), "");
}

TEST(SharingPlan, SeldomStartsLearnersAgain) {
  std::set<std::string> seen;
  std::string last;
  for (const Point& point : sharing_points(false)) {
    if (point.text("sweep") != "learning" || point.text("learners") == "0") continue;
    const std::string learners =
        fmt::format("{} {} {}", point.text("learners"), uses_mps(point), learner_percent(point));
    if (learners == last) continue;
    EXPECT_TRUE(seen.insert(learners).second) << learners;
    last = learners;
  }
  EXPECT_LE(seen.size(), 12U);
}

TEST(SharingPlan, VariesWhatTheProxyLetsOntoTheDevice) {
  std::map<std::string, std::set<unsigned>> seen;
  for (const Point& point : sharing_points(false)) {
    const std::string sweep = point.text("sweep");
    if (!sweep.starts_with("on-device")) {
      EXPECT_EQ(on_device_of(point), 40U) << describe(point);
      continue;
    }
    seen[sweep + ' ' + point.text("function")].insert(on_device_of(point));
    std::set<unsigned> streams;
    for (const TenantPlan& tenant : tenants_of(point)) streams.insert(tenant.streams);
    EXPECT_EQ(streams.size(), sweep == "on-device" ? 1U : 2U) << describe(point);
  }
  ASSERT_EQ(seen.size(), 4U);
  for (const auto& [of, most] : seen) EXPECT_EQ(most, (std::set<unsigned>{16, 24, 32, 40, 48, 64})) << of;
}

TEST(SharingPlan, IsShortIfQuick) { EXPECT_LE(sharing_points(true).size(), 25U); }

TEST(SharingPlan, PromisesSharesByProfileIfTheSchedulerDoes) {
  const auto promised = [](const char* sharing) {
    std::vector<double> parts;
    for (const TenantPlan& tenant : tenants_of(point_of("mixed", "ipsec", sharing, 4, "8q+4q+2q+2q")))
      parts.push_back(tenant.promised);
    return parts;
  };
  EXPECT_EQ(promised("weighted"), (std::vector<double>{0.5, 0.25, 0.125, 0.125}));
  EXPECT_EQ(promised("fixed"), promised("weighted"));
  EXPECT_EQ(promised("deadline"), promised("weighted"));
  EXPECT_EQ(promised("equal"), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(promised("time-slicing"), promised("equal"));
}

TEST(SharingPlan, PutsALightTenantBesideOneThatComputesMuch) {
  std::set<std::string> pairs, alone;
  for (const Point& point : sharing_points(false)) {
    if (point.text("sweep") != "spatial") continue;
    const std::vector<TenantPlan> tenants = tenants_of(point);
    const std::string sharing = ' ' + point.text("sharing");
    if (tenants.size() == 1) {
      alone.insert(tenants[0].function + sharing);
    } else {
      ASSERT_EQ(tenants.size(), 2U);
      EXPECT_EQ(tenants[0].workers, tenants[1].workers);
      pairs.insert(tenants[0].function + ' ' + tenants[1].function + sharing);
    }
  }
  for (const std::string sharing : {"weighted", "blocks", "green-contexts"}) {
    for (const std::string function : {"ipsec", "nids", "router"})
      EXPECT_TRUE(alone.contains(fmt::format("{} {}", function, sharing))) << function << sharing;
  }
  for (const std::string sharing : {"weighted", "blocks", "green-contexts", "time-slicing", "mps"}) {
    for (const std::string function : {"ipsec", "nids"})
      EXPECT_TRUE(pairs.contains(fmt::format("{} router {}", function, sharing))) << function << sharing;
  }
}

TEST(SharingPlan, HasOneGreedyTenant) {
  std::vector<unsigned> streams;
  for (const TenantPlan& tenant : tenants_of(point_of("greedy", "ipsec", "equal", 4, "4q")))
    streams.push_back(tenant.streams);
  EXPECT_EQ(streams, (std::vector<unsigned>{4, 1, 1, 1}));
}

TEST(SharingPlan, ComparesThoseBesideTheGreedyOneWithTheSameBesideOneLikeThem) {
  std::set<std::string> greedy, modest;
  for (const Point& point : sharing_points(false)) {
    const std::string of = point.text("function") + ' ' + point.text("sharing");
    if (point.text("sweep") == "greedy") greedy.insert(of);
    if (point.text("sweep") != "modest") continue;
    modest.insert(of);
    const std::vector<TenantPlan> beside = tenants_of(point_of("greedy", "ipsec", "equal", 4, "4q"));
    for (const TenantPlan& tenant : tenants_of(point)) {
      EXPECT_EQ(tenant.streams, beside.back().streams) << describe(point);
      EXPECT_EQ(tenant.workers, beside.back().workers) << describe(point);
    }
  }
  EXPECT_EQ(greedy.size(), 14U);
  EXPECT_EQ(modest, greedy);
}

TEST(SharingPlan, HasATenantWithABound) {
  std::map<std::string, std::set<unsigned>> seen;
  for (const Point& point : sharing_points(false)) {
    const std::vector<TenantPlan> tenants = tenants_of(point);
    const bool is_bounded = point.text("sweep") == "bounds";
    for (const TenantPlan& tenant : tenants)
      EXPECT_EQ(tenant.bound_us > 0, is_bounded && &tenant == &tenants.front()) << describe(point);
    if (!is_bounded) continue;
    seen[point.text("function") + ' ' + point.text("sharing")].insert(tenants.front().bound_us);
    EXPECT_NE(tenants.front().rate, "") << "it gets what it needs, if its bound is kept";
    EXPECT_EQ(tenants.back().rate, "");
    EXPECT_TRUE(is_proxied(point));
    EXPECT_FALSE(promises_shares(point));
  }
  EXPECT_EQ(seen.size(), 6U);
  for (const auto& [of, bounds] : seen) EXPECT_EQ(bounds, (std::set<unsigned>{500, 1000, 2000})) << of;
}

TEST(SharingPlan, VariesTheWorkersOfFourTenants) {
  std::set<unsigned> seen;
  for (const Point& point : sharing_points(false)) {
    if (point.text("sweep") != "workers") continue;
    for (const TenantPlan& tenant : tenants_of(point)) {
      EXPECT_EQ(tenant.workers, point.number("workers")) << describe(point);
      EXPECT_GE(tenant.streams, 2U);
      seen.insert(tenant.workers);
    }
  }
  EXPECT_EQ(seen, (std::set<unsigned>{1, 2, 3, 4}));
}

TEST(SharingPlan, HasWorkersThatCanUseTheProfile) {
  const auto workers = [](const char* sweep, unsigned tenants, const char* profile) {
    std::vector<unsigned> all;
    for (const TenantPlan& tenant : tenants_of(point_of(sweep, "nids", "weighted", tenants, profile)))
      all.push_back(tenant.workers);
    return all;
  };
  EXPECT_EQ(workers("mixed", 4, "8q+4q+2q+2q"), (std::vector<unsigned>{4, 2, 1, 1}));
  EXPECT_EQ(workers("profiles", 16, "1q"), std::vector<unsigned>(16, 1));
  EXPECT_EQ(workers("size", 1, "4q"), std::vector<unsigned>{1}) << "as in the paper";
}

TEST(SharingPlan, HasRoomForTheVisitor) {
  unsigned points = 0;
  for (const Point& point : sharing_points(false)) {
    if (point.text("sweep") != "attach") continue;
    ++points;
    EXPECT_TRUE(is_proxied(point)) << describe(point);
    unsigned units = 0;
    std::vector<TenantPlan> all = tenants_of(point);
    all.push_back(visitor_of(point));
    for (const TenantPlan& tenant : all)
      units += static_cast<unsigned>(std::stoul(tenant.profile.substr(0, tenant.profile.size() - 1)));
    EXPECT_LE(units, 16U) << describe(point);
    for (const TenantPlan& tenant : tenants_of(point)) EXPECT_GT(tenant.streams, 1U);
  }
  EXPECT_EQ(points, 9U);
}

class SharingFilesForTest {
 public:
  SharingFilesForTest()
      : files{.state = folder.put("state.txt",
                                  "src 192.0.2.1 dst 198.51.100.2\n\tproto esp spi 0x100 reqid 1 mode tunnel\n"
                                  "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
                                  "\tenc cbc(aes) 0x202122232425262728292a2b2c2d2e2f\n"),
              .policy = folder.put("policy.txt",
                                   "src 0.0.0.0/0 dst 0.0.0.0/0 \n\tdir out priority 1 ptype main \n"
                                   "\ttmpl src 192.0.2.1 dst 198.51.100.2\n\t\tproto esp reqid 1 mode tunnel\n"),
              .rules = folder.put("nids.rules", detection_rules_text(5, true)),
              .pages = PENSTOCK_SOURCE_DIR "/examples/gateway/lan.pcap",
              .routes = folder.put("routes.txt", routes_text(10))} {}

  const Workplace folder;
  const SharingFiles files;
};

TEST(SharingChains, OfEveryPointCanBeLoaded) {
  const SharingFilesForTest with;
  std::set<std::string> checked;
  for (const Point& point : sharing_points(false)) {
    std::vector<TenantPlan> all = tenants_of(point);
    if (point.text("sweep") == "attach") all.push_back(visitor_of(point));
    for (const TenantPlan& tenant : all) {
      const std::string text =
          tenant_chain(point, tenant, with.files, {.control = "/tmp/c.sock", .proxy = "/tmp/p.sock", .gpus = "0"});
      if (!checked.insert(text).second) continue;
      const auto loaded = config::load_chain(with.folder.put("chain.yaml", text), {.overrides = {}, .only_plan = true});
      // A function of which no recipe exists is the proxy's matter, not the chain file's.
      if (!loaded && to_string(loaded.error()).find("cannot run in a proxy") != std::string::npos) continue;
      ASSERT_TRUE(loaded) << text << to_string(loaded.error());
      EXPECT_EQ(loaded->chain.settings.workers, tenant.workers);
      EXPECT_EQ(loaded->chain.settings.proxy, is_proxied(point) ? "/tmp/p.sock" : "");
      EXPECT_TRUE(loaded->unsupported.empty()) << text << to_string(loaded->unsupported);
    }
  }
  EXPECT_GT(checked.size(), 50U);
}

nlohmann::json report_of(double elapsed_s, double packets, const std::map<std::string, double>& longer) {
  nlohmann::json report{
      {"elapsed_s", elapsed_s},
      {"packets", {{"in", packets}, {"forwarded", packets}, {"consumed", 0}, {"dropped", 0}}},
      {"bytes", {{"in", packets * 1000}}},
      {"pcie", {{"to_device_bytes", packets * 1100}, {"to_host_bytes", packets * 10}}},
      {"gpu", {{"segments", packets / 100}, {"failures", 0}}},
      {"latency_us", {{"max", 900.0}}},
  };
  for (const auto& [limit, count] : longer) report["latency_longer_than_us"][limit] = count;
  return report;
}

TEST(SharingUsage, IsWhatHappenedBetweenTwoReports) {
  const auto begin = usage_of(report_of(1, 1000, {{"100", 900}, {"200", 800}, {"1000", 700}}));
  const auto end = usage_of(report_of(3, 2'001'000, {{"100", 1'000'900}, {"200", 800}, {"1000", 700}}));
  ASSERT_TRUE(begin && end);
  const auto window = between(*begin, *end);
  ASSERT_TRUE(window) << to_string(window.error());
  EXPECT_DOUBLE_EQ(window->mpps, 1);
  EXPECT_DOUBLE_EQ(window->gbps, 8.032) << "with the FCS";
  EXPECT_DOUBLE_EQ(window->to_device, 1.1e9);
  EXPECT_GT(window->p99_us, 190) << "what was slow before does not count";
  EXPECT_LE(window->p99_us, 200);
}

TEST(SharingUsage, RefusesReportsOfRunsThatDidNotUseTheGpu) {
  const nlohmann::json good = report_of(2, 2000, {{"100", 5}});
  const auto begin = usage_of(report_of(1, 1000, {{"100", 5}}));
  ASSERT_TRUE(begin);
  const auto error_of = [&](const char* path, double value) {
    nlohmann::json report = good;
    report[nlohmann::json::json_pointer(path)] = value;
    const auto end = usage_of(report);
    EXPECT_TRUE(end);
    const auto window = between(*begin, *end);
    return window ? std::string() : to_string(window.error());
  };
  EXPECT_EQ(error_of("/elapsed_s", 2), "");
  EXPECT_THAT(error_of("/packets/in", 1000), HasSubstr("did nothing"));
  EXPECT_THAT(error_of("/packets/dropped", 3), HasSubstr("dropped packets"));
  EXPECT_THAT(error_of("/gpu/failures", 1), HasSubstr("failed on the GPU"));
  EXPECT_THAT(error_of("/gpu/segments", 10), HasSubstr("did not use the GPU"));
  nlohmann::json none = good;
  none["gpu"].erase("segments");
  const auto lacks = usage_of(none);
  ASSERT_FALSE(lacks);
  EXPECT_THAT(to_string(lacks.error()), HasSubstr("/gpu/segments"));
  none.erase("gpu");
  const auto on_cpu = usage_of(none);
  ASSERT_TRUE(on_cpu);
  EXPECT_EQ(on_cpu->segments, 0);
  EXPECT_FALSE(usage_of(nlohmann::json("text")));
}

TEST(SharingUsage, BoundsLatenciesBeyondTheLastLimit) {
  Usage begin, end;
  end.left = 100;
  end.longest_us = 250'000;
  end.longer = {{100, 100}, {100'000, 50}};
  EXPECT_EQ(p99_between(begin, end), 250'000);
  end.longer = {{100, 0}, {100'000, 0}};
  end.longest_us = 40;
  EXPECT_EQ(p99_between(begin, end), 40) << "not more than the longest";
  EXPECT_EQ(p99_between(end, end), 0) << "no packets";
}

TEST(SharingUsage, ComparesSharesWithWhatWasPromised) {
  const std::array equal{0.25, 0.25, 0.25, 0.25};
  EXPECT_DOUBLE_EQ(share_error_percent(std::array{1.0, 1.0, 1.0, 1.0}, equal), 0);
  EXPECT_DOUBLE_EQ(share_error_percent(std::array{4.0, 2.0, 1.0, 1.0}, equal), 100);
  EXPECT_DOUBLE_EQ(share_error_percent(std::array{4.0, 2.0, 1.0, 1.0}, std::array{0.5, 0.25, 0.125, 0.125}), 0);
  EXPECT_DOUBLE_EQ(share_error_percent(std::array{0.0, 0.0, 0.0, 0.0}, equal), 0);
}

TEST(SharingVisits, AreWhatTheProxySays) {
  const nlohmann::json status{
      {"detached", 3},
      {"detach_seconds", 0.06},
      {"tenants",
       {{{"name", "a.yaml"}, {"attach_ms", 12.5}}, {{"name", "b.yaml"}, {"attach_ms", nullptr}}, "no tenant"}}};
  EXPECT_EQ(attach_ms_of(status, "a.yaml"), 12.5);
  EXPECT_EQ(attach_ms_of(status, "b.yaml"), std::nullopt) << "it has had no batch yet";
  EXPECT_EQ(attach_ms_of(status, "c.yaml"), std::nullopt);
  ASSERT_TRUE(detached_of(status));
  EXPECT_EQ(detached_of(status)->tenants, 3);
  EXPECT_EQ(detached_of(status)->seconds, 0.06);
  for (const nlohmann::json& other : {nlohmann::json::object(), nlohmann::json{{"tenants", 1}, {"detached", "3"}}}) {
    EXPECT_EQ(attach_ms_of(other, "a.yaml"), std::nullopt);
    EXPECT_FALSE(detached_of(other));
  }
}

TEST(SharingPrograms, SayWhyTheyAreNotReady) {
  const Workplace folder;
  const std::string output = folder.path("out");
  const auto wait = [&](const char* script) {
    auto program = Program::start({"sh", "-c", script}, output);
    EXPECT_TRUE(program);
    return wait_until_ready(*program, {"the script", output, folder.path(""), milliseconds{300}, &kNeverStop},
                            [] { return false; });
  };
  const std::string script =
      "echo first; echo 2026-11-27T20:54:22.184Z error: " + folder.path("x.yaml") + ":3: no such thing; exit 2";
  const auto ended = wait(script.c_str());
  ASSERT_FALSE(ended);
  EXPECT_EQ(to_string(ended.error()), "the script ends at once: found x.yaml:3: no such thing");
  const auto slow = wait("exec sleep 100");
  ASSERT_FALSE(slow);
  EXPECT_THAT(to_string(slow.error()), HasSubstr("the script is not ready after 300 ms"));
  EXPECT_FALSE(RunSocket::connect(folder.path("nowhere.sock")));
}

TEST(SharingPrograms, TenantsSayWhyTheyEnd) {
  const Workplace folder;
  const auto tenants = Tenants::start({"sh", "-c", "echo bad chain; exit 2"}, {"a: b", "c: d"}, folder, kNeverStop);
  ASSERT_FALSE(tenants);
  EXPECT_EQ(to_string(tenants.error()), "a tenant ends at once: found bad chain");
}

TEST(SharingPrograms, LearnersSayWhatIsMissing) {
  const Workplace folder;
  if (!is_installed("python3")) GTEST_SKIP() << "needs python3";
  if (run_program({"python3", "-c", "import torch"}, folder.path("out"))) GTEST_SKIP() << "PyTorch is here";
  const auto learners = Learners::start(2, {}, 0, folder, kNeverStop);
  ASSERT_FALSE(learners);
  EXPECT_EQ(to_string(learners.error()), "a training process ends at once: found PyTorch is not installed");
  const auto compiled = run_program({"python3", "-m", "py_compile", folder.path("learner.py")}, folder.path("out"));
  EXPECT_TRUE(compiled) << to_string(compiled.error());
}

TEST(SharingPrograms, MpsSaysWhatIsMissing) {
  if (is_installed("nvidia-cuda-mps-control")) GTEST_SKIP() << "it is here";
  const Workplace folder;
  const auto mps = Mps::start(folder, kNeverStop);
  ASSERT_FALSE(mps);
  EXPECT_EQ(to_string(mps.error()), "nvidia-cuda-mps-control is not installed: it comes with NVIDIA's driver");
}

/// A search path that begins with a folder of programs that stand for others.
class FakePrograms {
 public:
  FakePrograms() : before_(std::getenv("PATH")) { ::setenv("PATH", (folder_.path("") + ":" + before_).c_str(), 1); }
  FakePrograms(const FakePrograms&) = delete;
  FakePrograms& operator=(const FakePrograms&) = delete;
  ~FakePrograms() { ::setenv("PATH", before_.c_str(), 1); }
  void add(const std::string& name, const std::string& script) const {
    std::filesystem::permissions(folder_.put(name, "#!/bin/sh\n" + script), std::filesystem::perms::owner_all);
  }

 private:
  const Workplace folder_;
  const std::string before_;
};

TEST(SharingPrograms, AnMpsDaemonIsAskedToQuit) {
  const FakePrograms programs;
  const Workplace folder;
  programs.add("nvidia-cuda-mps-control",
               "if [ \"$1\" = -f ]; then\n"
               "  until [ -e \"$CUDA_MPS_PIPE_DIRECTORY/quit\" ]; do sleep 0.01; done\n"
               "  echo quits > \"$CUDA_MPS_LOG_DIRECTORY/log\"\n"
               "else\n"
               "  read -r word more; echo $more > \"$CUDA_MPS_PIPE_DIRECTORY/$word\"\n"
               "fi\n");
  {
    const auto mps = Mps::start(folder, kNeverStop);
    ASSERT_TRUE(mps) << to_string(mps.error());
    EXPECT_TRUE(std::filesystem::exists(folder.path("mps/get_server_list")));
    const auto client =
        run_program(joined((*mps)->client(), {"sh", "-c", "echo $CUDA_MPS_PIPE_DIRECTORY"}), folder.path("client"));
    EXPECT_TRUE(client);
    EXPECT_EQ(last_line(folder.path("client"), folder.path("")), "mps");
    EXPECT_THAT((*mps)->client(25), Contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25"));
    EXPECT_EQ((*mps)->client(100), (*mps)->client()) << "no limit";
  }
  EXPECT_EQ(last_line(folder.path("mps/quit"), ""), "-t 2") << "it does not wait for clients that hang";
  EXPECT_TRUE(std::filesystem::exists(folder.path("mps/log")));
}

TEST(SharingPrograms, LearnersRunUntilTheyAreEnded) {
  const FakePrograms programs;
  const Workplace folder;
  programs.add(
      "python3",
      "i=0; while :; do i=$((i + 1)); echo \"$i.5 $i\" > \"$3.new\"; mv \"$3.new\" \"$3\"; sleep 0.01; done\n");
  const Words prefix{"env", "A=b"};
  const auto learners = Learners::start(2, prefix, 0, folder, kNeverStop);
  ASSERT_TRUE(learners) << to_string(learners.error());
  EXPECT_TRUE((*learners)->are(2, prefix));
  EXPECT_FALSE((*learners)->are(1, prefix));
  EXPECT_FALSE((*learners)->are(2, {"env", "A=c"}));
  const auto before = (*learners)->progress();
  auto after = before;
  const auto has_step = [&](std::size_t i) { return (*after)[i].steps > (*before)[i].steps; };
  while (before && after && !(has_step(0) && has_step(1))) {
    std::this_thread::sleep_for(milliseconds{10});
    after = (*learners)->progress();
  }
  ASSERT_TRUE(before && after);
  EXPECT_DOUBLE_EQ(steps_per_second(*before, *after), 2) << "a step in each second of their clock";
}

/// A module `torch` that computes nothing, in a folder for PYTHONPATH.
std::string fake_torch(const Workplace& folder, const std::string& more) {
  folder.put("torch.py",
             "import atexit, os, time\n"
             "from unittest.mock import MagicMock\n"
             "class Module: pass\n"
             "nn, cuda = MagicMock(), MagicMock()\n"
             "nn.Module = Module\n"
             "cuda.synchronize = lambda: time.sleep(0.001)\n"
             "optim = manual_seed = randn = randint = relu = MagicMock()\n" +
                 more);
  return "PYTHONPATH=" + folder.path("");
}

TEST(SharingPrograms, LearnersTrainUntilTheEndOfAStep) {
  if (!is_installed("python3")) GTEST_SKIP() << "needs python3";
  const Workplace folder, modules;
  const std::string path = fake_torch(modules,
                                      "def end():\n"
                                      "    with open(os.environ['ENDED'], 'a') as file: file.write('in order\\n')\n"
                                      "atexit.register(end)\n");
  const std::string ended = folder.path("ended");
  {
    const Words before{"env", path, "ENDED=" + ended};
    const auto learners = Learners::start(2, before, 0, folder, kNeverStop);
    ASSERT_TRUE(learners) << to_string(learners.error());
    const auto progress = (*learners)->progress();
    ASSERT_TRUE(progress) << to_string(progress.error());
    EXPECT_GE(progress->front().steps, 5);
    EXPECT_FALSE(std::filesystem::exists(ended));
  }
  const auto text = read_input(ended);
  ASSERT_TRUE(text) << "no learner ended by itself";
  EXPECT_EQ(*text, "in order\nin order\n");
}

TEST(SharingPrograms, LearnersGiveTheFirstLineOfAnError) {
  if (!is_installed("python3")) GTEST_SKIP() << "needs python3";
  const Workplace folder, modules;
  const std::string path =
      fake_torch(modules, "cuda.init.side_effect = RuntimeError('CUDA error: MPS has no room\\nCompile with ...')\n");
  const auto learners = Learners::start(1, {"env", path}, 0, folder, kNeverStop);
  ASSERT_FALSE(learners);
  EXPECT_EQ(to_string(learners.error()), "a training process ends at once: found CUDA error: MPS has no room");
}

TEST(SharingPrograms, LearnersSayWhyTheyHaveEnded) {
  const FakePrograms programs;
  const Workplace folder;
  programs.add("python3",
               "echo '1.5 9' > \"$3\"; until [ -e \"$3.end\" ]; do sleep 0.01; done; echo no memory; exit 1\n");
  const auto learners = Learners::start(1, {}, 0, folder, kNeverStop);
  ASSERT_TRUE(learners) << to_string(learners.error());
  EXPECT_TRUE((*learners)->progress());
  folder.put("learner0.end", "");
  while ((*learners)->progress()) std::this_thread::sleep_for(milliseconds{10});
  EXPECT_EQ(to_string((*learners)->progress().error()), "a training process has ended: found no memory");
  EXPECT_FALSE((*learners)->are(1, {}));
}

TEST(SharingLearners, CountTheirSteps) {
  EXPECT_EQ(parse_progress("          100.500000           42\n").steps, 42);
  EXPECT_EQ(parse_progress("          100.500000           42\n").time_s, 100.5);
  EXPECT_EQ(parse_progress("").steps, 0);
  EXPECT_DOUBLE_EQ(steps_per_second({{1, 10}, {1, 20}}, {{2, 15}, {1, 20}}), 5) << "one has finished no step";
}

TEST(SharingTables, RecommendTheFastestThatKeepsShares) {
  Record record;
  record.experiment = "sharing";
  const auto add = [&](const char* sweep, const char* sharing, double gbps, double error) {
    record.points.push_back(point_of(sweep, "ipsec", sharing, 4, "4q")
                                .set("gbps", gbps)
                                .set("share_error_percent", error)
                                .set("p99_us", 300)
                                .set("tenant_gbps", "10 9 9 9"));
  };
  add("greedy", "best-effort", 100, 60);
  add("greedy", "equal", 90, 3);
  add("greedy", "weighted", 95, 4);
  add("greedy", "mps", 200, 1);
  const Conditions greedy{{"sweep", {"greedy"}}};
  EXPECT_EQ(recommended_sharing(record, greedy, true)->text("sharing"), "weighted");
  EXPECT_EQ(recommended_sharing(record, greedy, false)->text("sharing"), "best-effort");
  EXPECT_EQ(recommended_sharing(record, {{"sweep", {"mixed"}}}, true), nullptr);
  const std::string text = sharing_tables(record, Style::terminal);
  EXPECT_THAT(text, HasSubstr("weighted"));
  EXPECT_THAT(text, Not(HasSubstr("(*) ")));
  record.points.erase(record.points.begin() + 1, record.points.begin() + 3);
  EXPECT_THAT(sharing_tables(record, Style::markdown), HasSubstr("| best-effort (*) |"));
}

TEST(SharingTables, RecommendForSeveralSizesOnlySchedulersThatKnowThem) {
  Record record;
  record.experiment = "sharing";
  for (const auto& [sharing, error] : {std::pair("equal", 1.0), std::pair("weighted", 4.0), std::pair("fixed", 9.0)})
    record.points.push_back(point_of("mixed", "nids", sharing, 4, "8q+4q+2q+2q")
                                .set("gbps", 50)
                                .set("share_error_percent", error)
                                .set("p99_us", 1234.5));
  EXPECT_THAT(sharing_tables(record, Style::markdown),
              HasSubstr("| nids | 4 of several sizes | weighted | 8q+4q+2q+2q | 4 | 50 | 4 | 1234 |  |  |"));
}

TEST(SharingTables, ShowWhatVisitsCost) {
  Record record;
  record.experiment = "sharing";
  record.points.push_back(point_of("attach", "ipsec", "weighted", 2, "4q")
                              .set("gbps", 50)
                              .set("p99_us", 300)
                              .set("start_ms", 210)
                              .set("attach_ms", 45.5)
                              .set("detach_ms", 12.25)
                              .set("visited_gbps", 49)
                              .set("kept_percent", 98)
                              .set("beside_cpu_gbps", 49.5)
                              .set("kept_beside_cpu_percent", 99)
                              .set("visited_p99_us", 450));
  EXPECT_THAT(sharing_tables(record, Style::markdown),
              HasSubstr("| ipsec | weighted | 210 | 45.5 | 12.2 | 50 | 98 | 99 | 300 | 450 |"));
  EXPECT_TRUE(check_record(record, sharing_experiment(), "record").empty())
      << to_string(check_record(record, sharing_experiment(), "record"));
}

TEST(SharingTables, CompareWithThePaper) {
  Record record;
  record.experiment = "sharing";
  for (const auto& [tenants, gbps] : {std::pair(1U, 10.0), std::pair(2U, 15.0), std::pair(4U, 20.0)})
    record.points.push_back(point_of("tenants", "ipsec", "best-effort", tenants, "4q").set("gbps", gbps));
  record.points.push_back(point_of("size", "ipsec", "alone", 1, "4q").set("gbps", 12));
  record.points.push_back(point_of("size", "ipsec", "best-effort", 1, "4q").set("gbps", 9));
  for (const unsigned learners : {0U, 2U})
    record.points.push_back(point_of("learning", "ipsec", "best-effort", 1, "4q")
                                .set("learners", learners)
                                .set("gbps", learners == 0 ? 10 : 4)
                                .set("steps_per_s", 33));
  const std::string text = sharing_tables(record, Style::markdown);
  EXPECT_THAT(text, HasSubstr("| ipsec | best-effort | 10 | 150 |  | 200 | 256 |"));
  EXPECT_THAT(text, HasSubstr("| ipsec | streams | 1522 | 12 | 9 | 75 | 90.3 |"));
  EXPECT_THAT(text, HasSubstr("| ipsec | streams | best-effort | 10 |  | 40 |  | 33 |"));
  EXPECT_TRUE(check_record(record, sharing_experiment(), "record").empty())
      << to_string(check_record(record, sharing_experiment(), "record"));
}

TEST(SharingTables, SayWhoKeepsItsShareBesideAnUnlikeNeighbour) {
  Record record;
  record.experiment = "sharing";
  const auto add = [&](const char* function, const char* sharing, unsigned tenants, double gbps, const char* each) {
    record.points.push_back(point_of("spatial", function, sharing, tenants, "8q")
                                .set("gbps", gbps)
                                .set("tenant_gbps", each)
                                .set("tenant_p99_us", "300 200"));
  };
  add("nids", "weighted", 1, 40, "40");
  add("router", "weighted", 1, 100, "100");
  add("nids+router", "weighted", 2, 56, "36 20");
  add("nids+router", "green-contexts", 2, 79, "19 60");
  add("ipsec+router", "mps", 2, 80, "20 60");
  const std::string text = sharing_tables(record, Style::markdown);
  EXPECT_THAT(text, HasSubstr("| nids | weighted | 40 | 100 |  |"));
  EXPECT_THAT(text, HasSubstr("| nids+router | weighted | 36 20 | 90 20 | 60 | 300 200 |"));
  EXPECT_THAT(text, HasSubstr("| nids+router | green-contexts | 19 60 | 48 60 | 5 | 300 200 |"));
  EXPECT_THAT(text, HasSubstr("| ipsec+router | mps | 20 60 |  |  |")) << "nobody knows its rate alone";
  EXPECT_TRUE(check_record(record, sharing_experiment(), "record").empty())
      << to_string(check_record(record, sharing_experiment(), "record"));
}

TEST(SharingTables, AreEmptyWithoutPoints) { EXPECT_EQ(sharing_tables({}, Style::terminal), ""); }

}  // namespace
}  // namespace penstock::experiments
