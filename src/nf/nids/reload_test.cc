// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions that take each other's place while packets flow, driven as a run drives them (run/epoch.h).

#include <gmock/gmock.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "function/stack_use.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/testing/nids_bed.h"
#include "stack/shared_stack.h"

namespace penstock::nids {
namespace {

using ::testing::ElementsAre;
using testing::Frame;
using testing::Frames;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Json;
using testing::question;
using ::testing::SizeIs;

/// Several workers, whose functions are reloaded.
class Reloads : public testing::NidsFunction {
 protected:
  /// One worker's stages. The last one is in use; the one before may still have batches.
  struct Worker {
    std::unique_ptr<stack::SharedStack> stack;
    std::deque<std::unique_ptr<function::CpuStage>> stages;
    function::CpuStage* used = nullptr;

    void use(function::CpuStage& stage) {
      if (used != &stage) stage.attach(*stack->attachment(0));
      used = &stage;
    }
    void process(const std::vector<Frame>& frames, bool former = false) {
      use(former ? *stages.front() : *stages.back());
      Frames batch(frames);
      used->begin_batch();
      for (std::size_t i = 0; i < batch.views.size(); i += 100) {
        used->process(std::span(batch.views).subspan(i, std::min<std::size_t>(100, batch.views.size() - i)));
        stack->settle(0);
      }
      for (const PacketView view : batch.views) verdicts.push_back(view.packet->verdict.alive());
    }
    std::vector<bool> verdicts;
  };

  void begin(const std::string& rules, const std::vector<Given>& given = {}, std::size_t workers = 1,
             report::EventLog* eve = nullptr) {
    given_ = given;
    eve_ = eve;
    functions_.push_back(make(rules, given, eve));
    if (recording_) nids().record(*recording_);
    for (std::size_t w = 0; w < workers; ++w) {
      Worker& worker = workers_.emplace_back();
      const stack::StackUse use = function::stack_use(nids());
      worker.stack = std::make_unique<stack::SharedStack>(FieldSet{}, std::span(&use, 1), static_cast<unsigned>(w));
      worker.stages.push_back(nids().make_cpu_stage());
      worker.use(*worker.stages.back());
    }
  }
  /// Returns the changes. The former stages remain.
  std::string begin_reload(const std::string& rules) {
    auto next = make(rules, given_, eve_);
    auto changes = next->changes_from(nids());
    EXPECT_TRUE(changes) << to_string(changes.error());
    succeed(std::move(next));
    return *changes;
  }
  /// The function before takes its place back.
  void begin_rollback() { succeed(std::move(functions_.front())); }
  void end_reload() {
    for (Worker& worker : workers_) {
      worker.use(*worker.stages.back());
      worker.stages.pop_front();
    }
    nids().predecessor_ended();
  }
  std::string reload(const std::string& rules) {
    std::string changes = begin_reload(rules);
    end_reload();
    return changes;
  }
  void roll_back() {
    begin_rollback();
    end_reload();
  }
  void end() {
    for (Worker& worker : workers_) {
      worker.use(*worker.stages.back());
      worker.stack->finish();
      worker.stages.clear();
    }
    nids().end_run();
  }

  [[nodiscard]] Nids& nids() { return static_cast<Nids&>(*functions_.back()); }
  [[nodiscard]] Worker& worker(std::size_t w = 0) { return workers_[w]; }
  [[nodiscard]] Json report() { return report_of(nids()); }
  /// By sid, in the order of the report.
  [[nodiscard]] std::vector<std::pair<int, int>> alerts() {
    std::vector<std::pair<int, int>> alerts;
    const Json whole = report();
    for (const Json& rule : whole["rules"]) alerts.emplace_back(rule["sid"], rule["alerts"]);
    return alerts;
  }
  void publish() {
    for (Worker& worker : workers_) worker.stages.back()->begin_batch();
  }

  std::optional<NidsRecording> recording_;

 private:
  void succeed(std::unique_ptr<function::NetworkFunction> next) {
    const auto taken = next->take_over(nids());
    EXPECT_TRUE(taken) << to_string(taken.error());
    std::unique_ptr<function::NetworkFunction> former = std::move(functions_.back());
    functions_.clear();
    functions_.push_back(std::move(former));
    functions_.push_back(std::move(next));
    for (Worker& worker : workers_) {
      worker.stages.push_back(nids().make_cpu_stage());
      function::CpuStage& predecessor = *worker.stages[worker.stages.size() - 2];
      worker.use(*worker.stages.back());
      worker.stages.back()->take_over(predecessor);
    }
  }

  std::vector<Given> given_;
  report::EventLog* eve_ = nullptr;
  std::deque<std::unique_ptr<function::NetworkFunction>> functions_;  // the former one, and the one in use
  std::deque<Worker> workers_;
};

std::string alert_on(const std::string& text, int sid, const std::string& options = "") {
  return "alert udp any any -> any any (msg:\"" + text + "\"; content:\"" + text + "\"; " + options +
         " sid:" + std::to_string(sid) + ";)\n";
}

TEST_F(Reloads, ContinueTheCountsOfRulesThatStay) {
  begin(alert_on("one", 1) + alert_on("two", 2) + alert_on("three", 3), {}, 2);
  worker(0).process({question("one two"), question("three")});
  worker(1).process({question("one"), question("two")});
  reload(alert_on("four", 4) + alert_on("three", 3, "rev:2;") + alert_on("one", 1));
  EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 2), std::pair(3, 1)));
  worker(0).process({question("one four"), question("three")});
  worker(1).process({question("two")});
  publish();
  EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 3), std::pair(3, 2), std::pair(4, 1)));
  EXPECT_EQ(report()["alerts"], 5 + 3) << "with those of the removed rule";
  EXPECT_EQ(report()["stack"]["packets"], 4 + 3);
  EXPECT_EQ(report()["inspection"]["packets"], 4 + 3);
  EXPECT_EQ(report()["load"]["loaded"], 3);
  end();
  EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 3), std::pair(3, 2), std::pair(4, 1)));
  EXPECT_EQ(report()["stack"]["packets"], 4 + 3);
}

TEST_F(Reloads, CountWhatTheFormerStagesStillInspect) {
  begin(alert_on("one", 1) + alert_on("two", 2));
  worker().process({question("one two")});
  begin_reload(alert_on("three", 3) + alert_on("one", 1));
  for (const bool former : {true, false, true, false, true}) worker().process({question("one two three")}, former);
  EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 6), std::pair(3, 2)));
  publish();
  EXPECT_EQ(report()["alerts"], 2 + 5 * 2);
  EXPECT_EQ(report()["stack"]["packets"], 6);
  end_reload();
  EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 6), std::pair(3, 2)));
  end();
  EXPECT_EQ(report()["alerts"], 2 + 5 * 2);
  EXPECT_EQ(report()["stack"]["packets"], 6);
}

TEST_F(Reloads, RollBackAndForthWithAllCounts) {
  const std::string first = alert_on("one", 1) + alert_on("two", 2);
  begin(first);
  worker().process({question("one two")});
  for (int i = 1; i <= 3; ++i) {
    reload(alert_on("three", 3) + alert_on("one", 1));
    worker().process({question("one two three")});
    begin_rollback();
    worker().process({question("one two three")}, true);
    worker().process({question("one two three")});
    end_reload();
    publish();
    EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 1 + 3 * i), std::pair(2, 1 + i)));
    EXPECT_EQ(report()["alerts"], 2 + 6 * i);
    EXPECT_EQ(report()["stack"]["packets"], 1 + 3 * i);
  }
}

// The new function fails at once: the old one takes its place back while some batches are still out.
TEST_F(Reloads, RollBackBeforeTheFormerStagesHaveEnded) {
  begin(alert_on("one", 1) + alert_on("two", 2));
  worker().process({question("one two")});
  begin_reload(alert_on("one", 1));
  worker().process({question("one two")});
  begin_rollback();
  worker().process({question("one two")}, true);  // by the first stage
  worker().process({question("one two")});
  publish();
  EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 4), std::pair(2, 3)));
  end_reload();
  end();
  EXPECT_EQ(report()["alerts"], 7);
  EXPECT_EQ(report()["stack"]["packets"], 4);
}

TEST_F(Reloads, KeepFlowStateAndHostState) {
  const std::string talk = alert_on("login", 1, "flowbits:set,in; flowbits:noalert;") +
                           alert_on("count", 2, "threshold:type threshold, track by_src, count 3, seconds 60;");
  begin(talk, {}, 2);
  worker(0).process({question("login"), question("count")});
  worker(1).process({question("count", 4001)});
  reload(alert_on("x", 7, "flowbits:set,other;") + alert_on("secret", 3, "flowbits:isset,in;") + talk);
  worker(0).process({question("secret"), question("secret", 4009), question("count")});
  publish();
  EXPECT_THAT(alerts(), ElementsAre(std::pair(3, 1), std::pair(2, 1)));
}

TEST_F(Reloads, KeepFlowsDroppedThatAFormerRuleDropped) {
  begin("drop udp any any -> any any (content:\"bad\"; sid:1;)\n", {{"action", {"drop"}}});
  worker().process({question("bad"), question("good", 5000)});
  reload(alert_on("never", 2));
  worker().process({question("good"), question("bad", 5000)});
  EXPECT_EQ(worker().verdicts, (std::vector<bool>{false, true, false, true}));
  publish();
  EXPECT_EQ(report()["inspection"]["dropped"], 2);
}

TEST_F(Reloads, FindNewContentsAcrossTheReloadInAStream) {
  begin("alert tcp any any -> any any (content:\"0123456789abcdef\"; sid:1;)\n");
  testing::Conversation talk;
  worker().process(talk.handshake());
  worker().process({talk.data(0, "attack at"), talk.ack(1), talk.ack(0)});
  reload("alert tcp any any -> any any (content:\"attack at dawn\"; sid:2;)\n");
  worker().process({talk.data(0, " dawn"), talk.ack(1)});
  end();
  EXPECT_THAT(alerts(), ElementsAre(std::pair(2, 1)));
}

TEST_F(Reloads, BeginTheProfileAnew) {
  recording_ = NidsRecording{.profile = true, .alert_frames = true};
  begin(alert_on("one", 1) + alert_on("two", 2));
  worker().process({question("one"), question("two")});
  reload(alert_on("two", 2) + alert_on("one", 1));
  worker().process({question("."), question("."), question("."), question("two")});
  const std::vector<RuleProfileSum> profile = nids().profile();
  ASSERT_THAT(profile, SizeIs(2));
  EXPECT_EQ(profile[0].evaluations, 1U);
  EXPECT_EQ(profile[1].evaluations, 0U);
  end();
  for (const std::uint32_t frame : {1U, 2U, 4U}) EXPECT_TRUE(nids().alert_frames().contains(frame)) << frame;
  EXPECT_FALSE(nids().alert_frames().contains(3));
}

TEST_F(Reloads, WriteOneStatisticsRecordForTheRun) {
  report::EventLog eve(eve_path_, report::EventLog::Start::anew);
  ASSERT_TRUE(eve.open());
  eve.begin();
  begin(alert_on("one", 1), {}, 1, &eve);
  worker().process({question("one")});
  reload(alert_on("one", 1) + alert_on("two", 2));
  worker().process({question("one"), question("two")});
  end();
  EXPECT_THAT(eve.close(), IsEmpty());
  const std::vector<Json> all = records();
  ASSERT_THAT(all, SizeIs(4));
  EXPECT_EQ(all[3]["stats"]["detect"]["alert"], 3);
  EXPECT_EQ(all[3]["stats"]["detect"]["engines"][0]["rules_loaded"], 2);
}

TEST_F(Reloads, SayWhatChanges) {
  begin(alert_on("one", 1) + alert_on("two", 2) + alert_on("three", 3));
  EXPECT_EQ(reload(alert_on("one", 1) + alert_on("two", 2) + alert_on("three", 3)), "");
  EXPECT_EQ(reload(alert_on("three", 3) + alert_on("two", 2, "rev:2;") + alert_on("four", 4) + alert_on("five", 5)),
            "2 rules added, 1 removed, 1 changed (of 4)");
  EXPECT_EQ(reload(alert_on("three", 3)), "3 rules removed (of 1)");
  EXPECT_EQ(reload(alert_on("3", 3)), "1 rule changed (of 1)");
  // Other addresses in the same rule text.
  const std::string at_home = "alert udp $HOME_NET any -> any any (content:\"x\"; sid:1;)\n";
  const auto here = make(at_home, {{"vars", {"HOME_NET=10.0.0.0/8"}}});
  const auto there = make(at_home, {{"vars", {"HOME_NET=10.0.0.0/9"}}, {"payload", {"true"}}, {"most_alerts", {"9"}}});
  EXPECT_EQ(*there->changes_from(*here), "1 rule changed (of 1); set anew: most_alerts, payload");
}

TEST_F(Reloads, RefuseWhatOnlyANewRunCanChange) {
  const std::string rules = alert_on("one", 1);
  const auto running = make(rules, {{"stream_depth", {"1MiB"}}});
  const auto refused = [&](const std::vector<Given>& given) {
    const auto changes = make(rules, given)->changes_from(*running);
    return changes ? "accepted: " + *changes : to_string(changes.error());
  };
  EXPECT_EQ(refused({}), "accepted: ");
  EXPECT_EQ(refused({{"tcp_idle_timeout", {"10m"}}, {"stream_depth", {"1024KiB"}}, {"when_full", {"pass"}}}),
            "accepted: ")
      << "other words for the same";
  EXPECT_THAT(refused({{"stream_depth", {"2MiB"}}}),
              HasSubstr("chain.yaml:2:1: stream_depth: cannot change while the chain runs: found 2,097,152 bytes, "
                        "expected 1,048,576 bytes, or a new run"));
  for (const Given& given : std::vector<Given>{{"action", {"drop"}},
                                               {"fragment_policy", {"bsd"}},
                                               {"overlaps", {"policy"}},
                                               {"tracking", {"packets"}},
                                               {"midstream", {"true"}},
                                               {"checksums", {"ignore"}},
                                               {"flow_memory", {"1MiB"}},
                                               {"host_memory", {"1MiB"}},
                                               {"flow_state", {"automaton"}},
                                               {"vxlan_ports", {"4789"}},
                                               {"tcp_idle_timeout", {"5s"}},
                                               {"fragment_timeout", {"5s"}}}) {
    EXPECT_THAT(refused({given}), HasSubstr(given.first + ": cannot change while the chain runs")) << given.first;
  }
}

const std::string kNoLiterals = "alert udp any any -> any 53 (dsize:>2; sid:9;)\n";

TEST_F(Reloads, KeepTheStagesOfThePlanWithoutLiterals) {
  begin(alert_on("one", 1), {{"flow_state", {"automaton"}}});
  ASSERT_TRUE(nids().traits().devices[function::Processor::gpu]);
  ASSERT_FALSE(make(kNoLiterals, {})->traits().devices[function::Processor::gpu]);
  reload(kNoLiterals);
  EXPECT_TRUE(nids().traits().devices[function::Processor::gpu]);
  EXPECT_EQ(nids().traits().findings_bytes, sizeof(PacketLiterals));
  EXPECT_EQ(nids().traits().state_bytes, sizeof(FlowState));
  EXPECT_NE(nids().make_state_stage(*worker().stages.back()), nullptr);
  const auto finish = nids().make_finish_stage(*worker().stages.back());
  ASSERT_NE(finish, nullptr);
  Frames frames({question("one"), question("no")});
  PacketLiterals nothing;
  nothing.flags = PacketLiterals::kScanned | PacketLiterals::kPayload;
  const FlowState state;
  const std::array findings{reinterpret_cast<const std::byte*>(&nothing), reinterpret_cast<const std::byte*>(&nothing)};
  const std::array states{reinterpret_cast<const std::byte*>(&state), reinterpret_cast<const std::byte*>(&state)};
  finish->take_states(states);
  finish->finish(frames.views, findings);
  EXPECT_THAT(alerts(), ElementsAre(std::pair(9, 1)));
  roll_back();
  EXPECT_TRUE(nids().traits().devices[function::Processor::gpu]);
}

TEST_F(Reloads, StayOnTheCpuIfThePlanHasNoGpuStage) {
  begin(kNoLiterals);
  reload(alert_on("one", 1));
  EXPECT_FALSE(nids().traits().devices[function::Processor::gpu]);
  EXPECT_EQ(nids().traits().findings_bytes, 0U);
  EXPECT_EQ(nids().make_finish_stage(*worker().stages.back()), nullptr);
  worker().process({question("one")});
  EXPECT_THAT(alerts(), ElementsAre(std::pair(1, 1)));
}

// The finish stages of batches that a device has searched for the former literals are those of the former rules.
TEST_F(Reloads, TakeADevicesFindingsWithTheRulesThatItSearchedFor) {
  begin(alert_on("one", 1) + alert_on("two", 2));
  const auto former = nids().make_finish_stage(*worker().stages.back());
  begin_reload(alert_on("two", 2) + alert_on("three", 3));
  const auto finish = nids().make_finish_stage(*worker().stages.back());
  const auto found = [&](function::FinishStage& by, bool is_former, const Frame& frame, std::uint32_t literal) {
    worker().use(is_former ? *worker().stages.front() : *worker().stages.back());
    PacketLiterals literals;
    literals.flags = PacketLiterals::kScanned | PacketLiterals::kPayload;
    literals.add(literal);
    const std::array findings{reinterpret_cast<const std::byte*>(&literals)};
    Frames frames({frame});
    by.finish(frames.views, findings);
  };
  for (std::uint32_t literal = 0; literal < 2; ++literal) {
    found(*former, true, question("one two three"), literal);
    found(*finish, false, question("one two three"), literal);
  }
  EXPECT_THAT(alerts(), ElementsAre(std::pair(2, 2), std::pair(3, 1)));
  publish();
  EXPECT_EQ(report()["alerts"], 4);
  EXPECT_EQ(report()["inspection"]["scanned_on_gpu"], 4);
}

// As in a run: the worker has a thread of its own, the control thread destroys stages, and another one reads reports.
TEST_F(Reloads, GoOnWhileTheWorkerRunsAndReportsAreRead) {
  constexpr int kReloads = 12;
  std::vector<std::unique_ptr<function::NetworkFunction>> functions;
  functions.push_back(make(alert_on("one", 1) + alert_on("two", 2)));
  const stack::StackUse use = function::stack_use(*functions[0]);
  stack::SharedStack stack(FieldSet{}, std::span(&use, 1), 0);
  std::vector<std::unique_ptr<function::CpuStage>> stages;
  stages.push_back(functions[0]->make_cpu_stage());
  stages[0]->attach(*stack.attachment(0));
  std::atomic<function::CpuStage*> next{nullptr};
  std::atomic<function::NetworkFunction*> reported{functions[0].get()};
  std::atomic<int> taken{0};
  std::atomic<bool> stops{false};
  std::uint64_t packets = 0;

  std::thread worker([&, stage = stages[0].get()]() mutable {
    const std::vector<Frame> frames{question("one two three"), question("one", 4001)};
    const auto process = [&](function::CpuStage& by) {
      Frames batch(frames);
      by.begin_batch();
      by.process(batch.views);
      stack.settle(0);
      packets += frames.size();
    };
    while (!stops.load()) {
      process(*stage);
      function::CpuStage* const other = next.exchange(nullptr);
      if (other == nullptr) continue;
      other->attach(*stack.attachment(0));
      other->take_over(*stage);
      process(*other);
      stage->attach(*stack.attachment(0));
      process(*stage);
      other->attach(*stack.attachment(0));
      stage = other;
      taken.fetch_add(1);
    }
  });
  std::thread reader([&] {
    while (!stops.load()) {
      const Json report = report_of(*reported.load());
      EXPECT_GE(report["stack"]["packets"], 0);
    }
  });
  for (int i = 1; i <= kReloads; ++i) {
    auto& running = *functions.back();
    functions.push_back(make(alert_on("three", 3) + alert_on("one", 1) + (i % 2 == 0 ? alert_on("two", 2) : "")));
    EXPECT_TRUE(functions.back()->take_over(running));
    stages.push_back(functions.back()->make_cpu_stage());
    next.store(stages.back().get());
    while (taken.load() < i) std::this_thread::yield();
    reported.store(functions.back().get());
    stages[static_cast<std::size_t>(i) - 1].reset();
    functions.back()->predecessor_ended();
  }
  stops.store(true);
  worker.join();
  reader.join();
  stack.finish();
  stages.clear();
  const Json report = report_of(*functions.back());
  EXPECT_EQ(report["stack"]["packets"], packets);
  const auto& rules = report["rules"];
  const auto one = std::find_if(rules.begin(), rules.end(), [](const Json& rule) { return rule["sid"] == 1; });
  EXPECT_EQ((*one)["alerts"], packets);
}

TEST_F(Reloads, DoNotNeedMoreMemoryEachTime) {
  const auto rules = [](int i) {
    std::string text;
    for (int r = 0; r < 20; ++r) {
      const std::string n = std::to_string(20 * i + r);
      text += alert_on("text " + n, 20 * i + r + 1,
                       "flowbits:set,b" + n + "; flowint:c" + n + ",+,1; xbits:set,d" + n +
                           ",track ip_src; threshold:type limit, track by_flow, count 3, seconds 60;");
    }
    return text + alert_on("stays", 1'000'000);
  };
  begin(rules(0), {{"matcher", {"aho_corasick"}}}, 2);
  std::vector<std::size_t> used;
  for (int i = 1; i <= 60; ++i) {
    for (std::size_t w = 0; w < 2; ++w)
      worker(w).process({question("stays"), question("text " + std::to_string(20 * i))});
    reload(rules(i));
    if (i % 3 == 0) {
      roll_back();
      roll_back();
    }
    if (i % 20 == 0) used.push_back(::mallinfo2().uordblks + ::mallinfo2().hblkhd);
  }
  publish();
  EXPECT_EQ(alerts().front(), std::pair(1'000'000, 120));
  EXPECT_EQ(report()["stack"]["packets"], 240);
  EXPECT_LT(used[2], used[1] + 20'000) << "bytes, after 20 more reloads";
}

}  // namespace
}  // namespace penstock::nids
