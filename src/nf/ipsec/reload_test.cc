// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions that take each other's place while packets flow: what continues, what begins and what ends.
//
//     old    ── packets ──┬─ batches that began earlier ─┐
//     new                 └───────── packets ────────────┴──▶

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "function/stack_use.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/numbers/faulty_folder_for_test.h"
#include "nf/ipsec/numbers/kept_numbers.h"
#include "nf/ipsec/numbers/played_device_for_test.h"
#include "packet/testing/fragments.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::fragments_of;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A worker, with a function that is reloaded. Between `begin_reload` and `end_reload`, there are stages of two
/// functions.
class Worker {
 public:
  Worker(const std::string& states, const std::optional<std::string>& policies, Settings settings,
         std::shared_ptr<NumberSource> numbers = random_numbers(), SaRegistry* registry = nullptr)
      : settings_(settings), numbers_(std::move(numbers)), registry_(registry == nullptr ? own_registry_ : *registry) {
    now_.function = load(states, policies, settings_);
    const auto begun = now_.function->begin_run();
    EXPECT_TRUE(begun) << to_string(begun.error());
    const stack::StackUse use = function::stack_use(*now_.function);
    stack_ = std::make_unique<stack::SharedStack>(FieldSet{}, std::span(&use, 1), 0);
    make_stage(now_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    stack_->finish();
    before_.stage.reset();
    now_.stage.reset();
  }

  /// Changes and errors, as the user sees them.
  std::string begin_reload(const std::string& states, const std::optional<std::string>& policies) {
    return begin_reload(states, policies, settings_);
  }
  std::string begin_reload(const std::string& states, const std::optional<std::string>& policies, Settings settings) {
    auto next = load_ipsec(states, policies, settings, registry_, numbers_);
    if (!next) return to_string(next.error());
    const auto changes = (*next)->changes_from(*now_.function);
    if (!changes) return to_string(changes.error());
    if (auto taken = (*next)->take_over(*now_.function); !taken) return to_string(taken.error());
    switch_to(std::move(*next));
    return *changes;
  }
  void end_reload() {
    before_.stage.reset();
    now_.function->predecessor_ended();
  }
  std::string reload(const std::string& states, const std::optional<std::string>& policies) {
    std::string changes = begin_reload(states, policies);
    if (before_.stage != nullptr) end_reload();
    return changes;
  }
  void begin_rollback() {
    auto old = std::move(before_.function);
    const auto taken = old->take_over(*now_.function);
    EXPECT_TRUE(taken) << to_string(taken.error());
    switch_to(std::move(old));
  }
  void rollback() {
    begin_rollback();
    end_reload();
  }

  std::vector<Done> operator()(const std::vector<Arriving>& batch) { return run_in(now_, batch); }
  Done operator()(const Arriving& one) { return run_in(now_, {one}).front(); }
  /// A batch that began before the reload.
  std::vector<Done> earlier(const std::vector<Arriving>& batch) { return run_in(before_, batch); }
  Done earlier(const Arriving& one) { return earlier(std::vector<Arriving>{one}).front(); }

  [[nodiscard]] nlohmann::json report() {
    now_.stage->begin_batch();
    nlohmann::json report;
    now_.function->report(report);
    return report;
  }
  [[nodiscard]] Ipsec& function() { return *now_.function; }
  [[nodiscard]] Ipsec& old_function() { return *before_.function; }
  [[nodiscard]] SaState& state(std::size_t sa = 0) { return *now_.function->tables().states()[sa]; }

 private:
  struct Epoch {
    std::unique_ptr<Ipsec> function;
    std::unique_ptr<function::CpuStage> stage;
  };

  std::unique_ptr<Ipsec> load(const std::string& states, const std::optional<std::string>& policies,
                              Settings settings) {
    auto function = load_ipsec(states, policies, settings, registry_, numbers_);
    EXPECT_TRUE(function) << to_string(function.error());
    return std::move(*function);
  }
  void switch_to(std::unique_ptr<Ipsec> next) {
    before_ = std::exchange(now_, {std::move(next), nullptr});
    make_stage(now_);
    now_.stage->take_over(*before_.stage);
    attached_ = now_.stage.get();
  }
  void make_stage(Epoch& epoch) {
    epoch.stage = epoch.function->make_cpu_stage();
    epoch.stage->set_emitter(making_.emitter);
    attach(epoch);
  }
  void attach(Epoch& epoch) {
    if (stack::Attachment* attachment = stack_->attachment(0)) epoch.stage->attach(*attachment);
    attached_ = epoch.stage.get();
  }
  std::vector<Done> run_in(Epoch& epoch, const std::vector<Arriving>& batch) {
    if (attached_ != epoch.stage.get()) attach(epoch);  // only where the stages alternate
    making_.emissions.begin({});
    return run(*epoch.stage, *epoch.function, batch);
  }

  const Settings settings_;
  const std::shared_ptr<NumberSource> numbers_;
  SaRegistry own_registry_;
  SaRegistry& registry_;
  Making making_;
  Epoch before_, now_;
  const function::CpuStage* attached_ = nullptr;  // last
  std::unique_ptr<stack::SharedStack> stack_;
};

Settings inward() {
  Settings settings;
  settings.inbound = true;
  return settings;
}

StateText sa(std::uint32_t spi, std::uint32_t reqid = 1) {
  StateText state;
  state.spi = spi;
  state.reqid = reqid;
  return state;
}

/// Of a packet that AES-GCM protects.
std::uint64_t iv_of(const Bytes& frame) {
  return std::uint64_t{word_at(frame, kEspAt + 8)} << 32 | word_at(frame, kEspAt + 12);
}

/// What no two packets of an SA may have in common.
struct Sent {
  std::set<std::uint32_t> numbers;
  std::set<std::uint64_t> ivs;
  std::uint32_t last = 0;

  /// Expects that the packet has the next number, and an IV that none has had.
  void add(const Done& done) {
    ASSERT_EQ(done.fate, "forwarded");
    last = sequence_of(done.bytes);
    EXPECT_TRUE(numbers.insert(last).second) << "number " << last << " is sent twice";
    EXPECT_TRUE(ivs.insert(iv_of(done.bytes)).second) << "an IV is used twice";
  }
  void add(const std::vector<Done>& all) {
    for (const Done& done : all) add(done);
  }
};

const std::string kOut = everything("out", tunnel_template());
const std::string kFwd = everything("fwd", tunnel_template());

/// With numbers that are kept in a folder, and with random ones.
class ReloadSending : public ::testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<NumberSource> numbers() {
    if (!GetParam()) return random_numbers();
    return std::make_shared<KeptNumbers>(
        "/state", KeptNumbers::Access{[this]() -> Result<std::unique_ptr<StateFolder>> { return disk_.open(); },
                                      [] { return Errors{}; }, [this] { return disk_.open(); }});
  }

  FaultyDisk disk_{1};
  Sent sent_;
};
INSTANTIATE_TEST_SUITE_P(, ReloadSending, ::testing::Bool(),
                         [](const auto& kept) { return kept.param ? "kept" : "random"; });

//   old   1 2 3     5     7
//   new         4     6     8 …
TEST_P(ReloadSending, ContinuesTheNumbersOfSasThatStay) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker({plain(), plain(), plain()}));
  EXPECT_EQ(worker.begin_reload(sa(0x1000)() + sa(0x2000, 2)(), kOut), "1 SA added");
  for (int i = 0; i < 2; ++i) {
    sent_.add(worker(plain()));
    sent_.add(worker.earlier(plain()));
  }
  worker.end_reload();
  sent_.add(worker({plain(), plain()}));
  EXPECT_EQ(sent_.last, 9U);
  EXPECT_THAT(sent_.numbers, SizeIs(9)) << "without a gap";
  EXPECT_EQ(*sent_.ivs.rbegin() - *sent_.ivs.begin(), 8U) << "one run of IVs";
}

TEST_P(ReloadSending, NeverRepeatsNumbersOrIvsInRollbacks) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker(plain()));
  EXPECT_EQ(worker.reload(sa(0x1000)() + sa(0x2000, 2)(), kOut), "1 SA added");
  for (int i = 0; i < 20; ++i) {
    sent_.add(worker(plain()));
    worker.begin_rollback();
    sent_.add(worker(plain()));
    sent_.add(worker.earlier(plain()));
    worker.end_reload();
    sent_.add(worker({plain(), plain()}));
  }
  EXPECT_EQ(sent_.last, 1U + 20 * 5);
  EXPECT_EQ(*sent_.ivs.rbegin() - *sent_.ivs.begin(), 100U) << "one run of IVs";
}

TEST_P(ReloadSending, ContinuesAnSaThatARollbackBringsBack) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker({plain(), plain()}));
  for (std::uint32_t i = 0; i < 5; ++i) {
    if (i == 0) {
      EXPECT_EQ(worker.begin_reload(sa(0x2000)(), kOut), "1 SA added, 1 removed");
    } else {
      worker.begin_rollback();
    }
    EXPECT_EQ(spi_of(worker(plain()).bytes), 0x2000U);
    sent_.add(worker.earlier(plain()));  // is still protected by the old SA
    worker.end_reload();
    worker.rollback();
    const Done done = worker(plain());
    EXPECT_EQ(spi_of(done.bytes), 0x1000U);
    sent_.add(done);
    EXPECT_EQ(sent_.last, 2 + (i + 1) * 2) << "without a gap";
  }
}

TEST_P(ReloadSending, ContinuesAnSaThatALaterReloadBringsBack) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker({plain(), plain()}));
  EXPECT_EQ(worker.reload(sa(0x2000)(), kOut), "1 SA added, 1 removed");
  EXPECT_EQ(worker.reload(sa(0x3000)(), kOut), "1 SA added, 1 removed");
  EXPECT_EQ(worker.reload(sa(0x4000)(), kOut), "1 SA added, 1 removed");
  EXPECT_EQ(worker.reload(sa(0x1000)(), kOut), "1 SA added, 1 removed");
  sent_.add(worker(plain()));
  EXPECT_EQ(sent_.last, 3U);
}

TEST_P(ReloadSending, NeverSendsOnAnSaThatHasBeenRemoved) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  EXPECT_EQ(worker(plain()).fate, "forwarded");
  const auto removed = worker.function().tables().states()[0];
  EXPECT_EQ(worker.begin_reload(sa(0x1000, 2)(), kOut), "1 SA changed");
  EXPECT_EQ(worker(plain()).fate, "no_sa") << "it has another reqid";
  EXPECT_EQ(worker.earlier(plain()).fate, "forwarded");
  worker.end_reload();
  EXPECT_EQ(removed->take(1).count, 0U) << "although the old function still exists";
  EXPECT_EQ(worker.reload(sa(0x2000, 2)(), kOut), "1 SA added, 1 removed");
  EXPECT_EQ(worker(plain()).fate, "no_sa");
  EXPECT_EQ(removed->take(1).count, 0U) << "nobody could";
  EXPECT_EQ(worker.reload(sa(0x2000)(), kOut), "1 SA changed");
  EXPECT_EQ(worker(plain()).fate, "forwarded");
}

TEST_P(ReloadSending, TakesNoNumbersFromAFileThatShowsOthers) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker({plain(), plain(), plain()}));
  StateText live = sa(0x1000);
  for (const std::uint64_t oseq : {std::uint64_t{1}, std::uint64_t{0xffff'0000}}) {
    live.sent = oseq;
    EXPECT_EQ(worker.reload(live(), kOut), "") << "nothing has changed";
    sent_.add(worker(plain()));
  }
  EXPECT_EQ(sent_.last, 5U);
}

class ReloadKept : public ReloadSending {};
INSTANTIATE_TEST_SUITE_P(, ReloadKept, ::testing::Values(true));

TEST_P(ReloadKept, FailsWithoutConsequencesIfTheDiskIsFull) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker(plain()));
  disk_.fails_with = ENOSPC;
  EXPECT_THAT(worker.begin_reload(sa(0x1000)() + sa(0x2000)(), kOut),
              HasSubstr("cannot reserve sequence numbers in state_dir"));
  sent_.add(worker(plain()));
  EXPECT_EQ(worker.reload(sa(0x1000)(), policy_text("src 0.0.0.0/0 dst 0.0.0.0/0", "out", tunnel_template())),
            "1 policy removed")
      << "which needs no disk";
  sent_.add(worker(plain()));
  disk_.fails_with = 0;
  EXPECT_EQ(worker.reload(sa(0x1000)() + sa(0x2000)(), kOut), "1 SA added; 1 policy added");
  EXPECT_EQ(sent_.last, 3U);
}

TEST_P(ReloadKept, FailsWithoutConsequencesIfAnotherProcessSendsOnTheNewSa) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker(plain()));
  {
    Worker other(sa(0x2000)(), kOut, {}, numbers());
    EXPECT_THAT(worker.begin_reload(sa(0x1000)() + sa(0x2000)(), kOut),
                HasSubstr("another process sends with SA 0x00002000"));
    sent_.add(worker(plain()));
  }
  EXPECT_EQ(worker.reload(sa(0x1000)() + sa(0x2000)(), kOut), "1 SA added");
  EXPECT_EQ(sent_.last, 2U);
}

TEST_P(ReloadKept, LetsAnotherProcessSendOnARemovedSa) {
  Worker worker(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(worker(plain()));
  EXPECT_EQ(worker.reload(sa(0x2000)(), kOut), "1 SA added, 1 removed");
  Worker other(sa(0x1000)(), kOut, {}, numbers());
  sent_.add(other(plain()));
  EXPECT_EQ(sent_.last, 2U) << "without a gap";
}

TEST(Reload, ProtectsWithAddedSasAndByNewPolicies) {
  Worker out(sa(0x1000)(), policy_text("src 0.0.0.0/0 dst 0.0.0.0/0 proto tcp", "out", tunnel_template()), {});
  EXPECT_EQ(out(plain()), (Done{"forwarded", plain()})) << "no policy selects it";
  EXPECT_EQ(
      out.reload(sa(0x1000)() + sa(0x2000, 2)(), policy_text("src 0.0.0.0/0 dst 0.0.0.0/0", "out", tunnel_template(2))),
      "1 SA added; 1 policy added, 1 removed");
  const Done sealed = out(plain());
  EXPECT_EQ(spi_of(sealed.bytes), 0x2000U);
  Worker in(sa(0x1000)(), kFwd, inward());
  EXPECT_EQ(in(sealed.bytes).fate, "wrong_spi");
  EXPECT_EQ(in.reload(sa(0x1000)() + sa(0x2000)(), kFwd), "1 SA added");
  EXPECT_EQ(in(sealed.bytes), (Done{"forwarded", plain()}));
  EXPECT_EQ(in.reload(sa(0x1000)(), kFwd), "1 SA removed");
  EXPECT_EQ(in(out(plain()).bytes).fate, "wrong_spi");
}

TEST(Reload, ContinuesTheReplayWindow) {
  End out = outwards(sa(0x1000)(), kOut);
  Worker in(sa(0x1000)(), kFwd, inward());
  std::vector<Bytes> sealed;
  for (int i = 0; i < 5; ++i) sealed.push_back(out(plain()).bytes);
  EXPECT_EQ(in(sealed[0]).fate, "forwarded");
  EXPECT_EQ(in(sealed[3]).fate, "forwarded");
  EXPECT_EQ(in.begin_reload(sa(0x1000)() + sa(0x2000)(), kFwd), "1 SA added");
  EXPECT_EQ(in(sealed[0]).fate, "replayed");
  EXPECT_EQ(in(sealed[1]).fate, "forwarded");
  EXPECT_EQ(in.earlier(sealed[1]).fate, "replayed");
  EXPECT_EQ(in.earlier(sealed[2]).fate, "forwarded");
  EXPECT_EQ(in(sealed[2]).fate, "replayed");
  in.end_reload();
  EXPECT_EQ(in(sealed[3]).fate, "replayed");
  in.rollback();
  for (const Bytes& old : {sealed[0], sealed[1], sealed[2], sealed[3]}) EXPECT_EQ(in(old).fate, "replayed");
  EXPECT_EQ(in(sealed[4]).fate, "forwarded");
}

TEST(Reload, ContinuesTheReplayWindowOfAnSaThatComesBack) {
  End out = outwards(sa(0x1000)(), kOut);
  Worker in(sa(0x1000)(), kFwd, inward());
  const Bytes sealed = out(plain()).bytes, next = out(plain()).bytes;
  EXPECT_EQ(in(sealed).fate, "forwarded");
  EXPECT_EQ(in.reload(sa(0x2000)(), kFwd), "1 SA added, 1 removed");
  EXPECT_EQ(in(sealed).fate, "wrong_spi");
  EXPECT_EQ(in.reload(sa(0x3000)(), kFwd), "1 SA added, 1 removed");
  EXPECT_EQ(in.reload(sa(0x1000)(), kFwd), "1 SA added, 1 removed");
  EXPECT_EQ(in(sealed).fate, "replayed");
  EXPECT_EQ(in(next).fate, "forwarded");
}

TEST(Reload, ContinuesLifetimes) {
  StateText state = sa(0x1000);
  state.more = limited("soft 3(packets), hard 5(packets)");
  Worker out(state(), kOut, {});
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(fates(out({plain(), plain()})), Each("forwarded"));
  EXPECT_EQ(out.begin_reload(state() + sa(0x2000, 2)(), kOut), "1 SA added");
  EXPECT_EQ(out.earlier(plain()).fate, "forwarded");
  EXPECT_EQ(out(plain()).fate, "forwarded");
  out.end_reload();
  EXPECT_THAT(fates(out({plain(), plain()})), ElementsAre("forwarded", "lifetime"));
  out.rollback();
  EXPECT_EQ(out(plain()).fate, "lifetime");
  static_cast<void>(out.report());
  const std::string log = ::testing::internal::GetCapturedStderr();
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("soft limit"), 1U) << log;
  EXPECT_EQ(count("hard limit"), 1U) << log;
}

TEST(Reload, RefusesOtherKeysOrLimitsForAnSaThatStays) {
  Worker out(sa(0x1000)(), kOut, {});
  StateText other = sa(0x1000);
  other.algorithms = kCbcSha1;
  EXPECT_EQ(
      out.begin_reload(sa(0x2000)() + other(), kOut),
      "state.txt:9: SA 0x00001000 from 192.0.2.1 to 192.0.2.2 was loaded from state.txt:1, with different values: "
      "found keys or algorithms, expected the same values, since its state continues, or a new SPI for new keys");
  other = sa(0x1000);
  other.more = limited("soft (INF)(packets), hard 5(packets)");
  EXPECT_THAT(out.begin_reload(other(), kOut), HasSubstr("found the lifetimes"));
  Worker in(sa(0x1000)(), kFwd, inward());
  other = sa(0x1000);
  other.window = 128;
  EXPECT_THAT(in.begin_reload(other(), kFwd), HasSubstr("found the replay window"));
  EXPECT_EQ(in(out(plain()).bytes).fate, "forwarded");
}

TEST(Reload, RefusesWhatOnlyANewRunCanChange) {
  const auto from = [](Settings running, Settings next) {
    Worker worker(sa(0x1000)(), everything("fwd", tunnel_template()) + kOut, running);
    const std::string refused = worker.begin_reload(sa(0x1000)(), everything("fwd", tunnel_template()) + kOut, next);
    EXPECT_EQ(worker.reload(sa(0x1000)() + sa(0x2000)(), everything("fwd", tunnel_template()) + kOut), "1 SA added");
    return refused;
  };
  Settings cuts, answers;
  cuts.mtu = answers.mtu = 1400;
  answers.too_big = TooBig::icmp;
  EXPECT_EQ(from({}, inward()), "direction cannot change in a reload: found in, expected out, or a new run");
  EXPECT_EQ(from(inward(), {}), "direction cannot change in a reload: found out, expected in, or a new run");
  EXPECT_EQ(from({}, cuts),
            "whether there is an mtu cannot change in a reload: found mtu: 1400, expected no mtu, or a new run");
  EXPECT_EQ(from(cuts, {}),
            "whether there is an mtu cannot change in a reload: found no mtu, expected an mtu, or a new run");
  EXPECT_EQ(from(cuts, answers), "too_big cannot change in a reload: found icmp, expected fragment, or a new run");
}

TEST(Reload, RefusesMorePaddingThanPacketsHaveRoomFor) {
  StateText padded = sa(0x1000);
  padded.more = "\ttfcpad 700\n";
  Worker worker(padded(), kOut, {});
  const FrameRoom room = worker.function().traits().growth;
  EXPECT_EQ(worker.reload(sa(0x1000)(), kOut), "1 SA changed");
  EXPECT_EQ(worker.function().traits().growth.tail, room.tail) << "packets still have it";
  EXPECT_EQ(worker.reload(padded(), kOut), "1 SA changed");
  EXPECT_EQ(worker(plain()).bytes.size(), 14U + 20 + 8 + 8 + 700 + 4 + 16);
  StateText longer = sa(0x1000);
  longer.more = "\ttfcpad 701\n";
  EXPECT_EQ(worker.begin_reload(longer(), kOut),
            "the longest TFC padding (tfcpad) cannot change in a reload: found 701 bytes, expected at most 700 bytes, "
            "which packets have room for, or a new run");
}

TEST(Reload, SaysWhatHasChanged) {
  Settings settings;
  settings.mtu = 1400;
  const std::string first = policy_text("src 10.0.0.0/8 dst 0.0.0.0/0", "out", tunnel_template(), 1);
  const std::string second = policy_text("src 11.0.0.0/8 dst 0.0.0.0/0", "out", tunnel_template(), 1);
  Worker worker(sa(0x1000)() + sa(0x2000)() + sa(0x3000)(), first + second, settings);
  EXPECT_EQ(worker.reload(sa(0x1000)() + sa(0x2000)() + sa(0x3000)(), first + second + kFwd), "")
      << "policies of other directions do not matter";
  EXPECT_EQ(worker.reload(sa(0x1000)() + sa(0x4000)() + sa(0x5000)(), first + second), "2 SAs added, 2 removed");
  EXPECT_EQ(worker.reload(sa(0x4000)() + sa(0x1000)() + sa(0x5000)(), second + first),
            "SAs in another order; policies in another order");
  settings.mtu = 1500;
  settings.drops_unselected = true;
  EXPECT_EQ(worker.begin_reload(sa(0x4000)() + sa(0x1000)() + sa(0x5000)(), second + first, settings),
            "unselected: drop; mtu: 1500");
  worker.end_reload();
  EXPECT_EQ(worker(plain()).fate, "forwarded");
  EXPECT_EQ(worker.begin_reload(sa(0x1000)(), kOut, settings), "2 SAs removed; 2 policies added, 2 removed");
  worker.end_reload();
}

TEST(Reload, ContinuesTheCountersOfSasThatStay) {
  StateText state = sa(0x1000);
  state.more = "\tlifetime current:\n\t  1000(bytes), 10(packets)\n\t  add 2001-01-01 00:00:00 use -\n";
  Worker worker(sa(0x3000, 3)() + state(), kOut, {});
  const auto packets = [&]() -> std::uint64_t {
    const nlohmann::json report = worker.report();
    for (const nlohmann::json& one : report["sas"]) {
      if (one["spi"] == "0x00001000") return one["packets"];
    }
    return 0;
  };
  EXPECT_EQ(packets(), 0U) << "not shown: it has carried nothing here";
  static_cast<void>(worker({plain(), plain()}));
  EXPECT_EQ(packets(), 12U);
  StateText live = state;
  live.more = "\tlifetime current:\n\t  500(bytes), 50(packets)\n\t  add 2001-01-01 00:00:00 use -\n";
  EXPECT_EQ(worker.begin_reload(live() + sa(0x2000, 2)(), kOut), "1 SA added, 1 removed");
  EXPECT_EQ(packets(), 12U);
  static_cast<void>(worker(plain()));
  static_cast<void>(worker.earlier(plain()));
  EXPECT_EQ(packets(), 14U);
  worker.end_reload();
  EXPECT_EQ(packets(), 14U);
  static_cast<void>(worker(plain()));
  EXPECT_EQ(packets(), 15U);
  EXPECT_EQ(worker.report()["sas"][0]["line"], 1);
  worker.begin_rollback();
  static_cast<void>(worker({plain(), plain()}));
  static_cast<void>(worker.earlier(plain()));
  EXPECT_EQ(packets(), 18U);
  worker.end_reload();
  EXPECT_EQ(packets(), 18U);
  EXPECT_EQ(worker.reload(sa(0x2000)(), kOut), "1 SA added, 2 removed");
  EXPECT_EQ(packets(), 0U);
  worker.rollback();
  EXPECT_EQ(packets(), 18U);
}

//   old   [512..1024]   [0..512]
//   new                            [1024..]    completes it
TEST(Reload, CompletesDatagramsWhoseFragmentsWait) {
  const Bytes inner = plain(1400);
  End out = outwards(sa(0x1000)(), kOut);
  Worker in(sa(0x1000)(), kFwd, inward());
  const auto fragments = [&](std::uint32_t id) { return fragments_of(out(inner).bytes, {512, 1024}, id); };
  auto some = fragments(7), others = fragments(8);
  EXPECT_EQ(in(some[1]).fate, "consumed");
  EXPECT_EQ(in(others[2]).fate, "consumed");
  EXPECT_EQ(in.begin_reload(sa(0x1000)() + sa(0x2000)(), kFwd), "1 SA added");
  EXPECT_EQ(in(others[0]).fate, "consumed");
  EXPECT_EQ(in.earlier(some[0]).fate, "consumed");
  EXPECT_EQ(in(some[2]), (Done{"forwarded", inner}));
  EXPECT_EQ(in.earlier(others[1]), (Done{"forwarded", inner}));
  some = fragments(9);
  EXPECT_EQ(in.earlier(some[0]).fate, "consumed");
  EXPECT_EQ(in.report()["fragments"]["received"], 7);
  in.end_reload();
  EXPECT_EQ(in(some[1]).fate, "consumed");
  in.rollback();
  EXPECT_EQ(in(some[2]), (Done{"forwarded", inner}));
  for (int i = 0; i < 10; ++i) in.rollback();
  EXPECT_EQ(in.report()["fragments"],
            (nlohmann::json{{"received", 9}, {"reassembled", 3}, {"timed_out", 0}, {"dropped", 0}}));
}

TEST(Reload, RemembersWhichUdpDatagramsCarryNoEsp) {
  StateText state = sa(0x1000);
  state.more = kInUdp;
  Worker in(state(), everything("fwd", ""), inward());
  const Bytes udp = penstock::testing::packet()
                        .eth()
                        .ipv4("198.51.100.7", "192.0.2.2")
                        .udp(53, 53)
                        .payload(std::string(1000, 'd'))
                        .bytes();
  const auto fragments = fragments_of(udp, {512}, 3);
  EXPECT_EQ(in(fragments[0]).fate, "forwarded");
  EXPECT_EQ(in.begin_reload(state() + sa(0x2000)(), everything("fwd", "")), "1 SA added");
  EXPECT_EQ(in(fragments[1]).fate, "forwarded") << "passes like the first one";
  in.end_reload();
}

/// The stages of one worker's thread, which the control thread replaces.
struct Handover {
  std::atomic<function::CpuStage*> next = nullptr;  // to be taken over at a batch boundary
  std::atomic<bool> is_done = false;                // the worker does not use the stage before any more
  std::atomic<bool> is_over = false;
};

//   control   load ── take_over ── make stage ─┐   report   ┌─ destroy stage ── predecessor_ended
//   worker    old  old  old  old  old  old   new old new  new  new  new  new
TEST(Reload, HappensWhileWorkersSend) {
  constexpr unsigned kWorkers = 2;
  SaRegistry registry;
  const auto numbers = random_numbers();
  const auto load = [&](unsigned reload) {
    const std::string states = reload % 2 == 0 ? sa(0x1000)() + sa(0x2000, 2)() : sa(0x3000, 2)() + sa(0x1000)();
    auto made = load_ipsec(states, kOut, {}, registry, numbers);
    EXPECT_TRUE(made);
    return std::move(*made);
  };
  std::unique_ptr<Ipsec> now = load(0), old;
  ASSERT_TRUE(now->begin_run());
  std::array<std::unique_ptr<function::CpuStage>, kWorkers> stages, old_stages;
  std::array<Handover, kWorkers> handovers;
  std::array<std::vector<Done>, kWorkers> sent;
  std::vector<std::thread> threads;
  for (unsigned w = 0; w < kWorkers; ++w) {
    stages[w] = now->make_cpu_stage();
    threads.emplace_back(
        [&handover = handovers[w], &all = sent[w], stage = stages[w].get(), &function = *now]() mutable {
          const auto batch = [&](function::CpuStage& by) {
            for (Done& done : run(by, function, {plain(), plain(), plain()})) all.push_back(std::move(done));
          };
          while (!handover.is_over) {
            batch(*stage);
            function::CpuStage* const next = handover.next.exchange(nullptr);
            if (next == nullptr) continue;
            next->take_over(*stage);
            batch(*next);
            batch(*stage);
            batch(*next);
            stage = next;
            handover.is_done = true;
          }
        });
  }
  const Ipsec& first = *now;  // whose traits `run` reads
  std::unique_ptr<Ipsec> keeps_first;
  for (unsigned reload = 1; reload <= 60; ++reload) {
    std::unique_ptr<Ipsec> next = reload % 5 == 0 ? std::move(old) : load(reload);
    ASSERT_TRUE(next->take_over(*now));
    if (old.get() == &first) keeps_first = std::move(old);
    old = std::exchange(now, std::move(next));
    for (unsigned w = 0; w < kWorkers; ++w) {
      old_stages[w] = std::exchange(stages[w], now->make_cpu_stage());
      handovers[w].next = stages[w].get();
    }
    for (unsigned w = 0; w < kWorkers; ++w) {
      nlohmann::json report;
      while (!handovers[w].is_done.exchange(false)) now->report(report = {});
      old_stages[w].reset();
    }
    now->predecessor_ended();
  }
  for (Handover& handover : handovers) handover.is_over = true;
  for (std::thread& thread : threads) thread.join();
  Sent all;
  std::size_t packets = 0;
  for (const auto& by_worker : sent) {
    std::uint32_t last = 0;
    for (const Done& done : by_worker) {
      all.add(done);
      EXPECT_GT(all.last, std::exchange(last, all.last)) << "a worker's packets leave in their order";
    }
    packets += by_worker.size();
  }
  EXPECT_EQ(*all.numbers.rbegin(), packets) << "without a gap";
  EXPECT_EQ(*all.ivs.rbegin() - *all.ivs.begin(), packets - 1) << "one run of IVs";
  nlohmann::json report;
  now->report(report);
  EXPECT_EQ(report["sas"][0]["packets"], packets);
}

/// GPU stages on a simulated device: one for each batch in flight.
class ReloadOnDevice : public ::testing::Test {
 protected:
  using Stages = std::vector<std::unique_ptr<const Sender>>;
  static Stages stages_of(const Ipsec& function) {
    Stages stages;
    for (int i = 0; i < 4; ++i) stages.push_back(std::make_unique<Sender>(function.tables(), 64));
    return stages;
  }
  /// The next number that a batch gets for the function's first SA.
  static std::uint64_t batch_takes() {
    PlayedDevice& device = *PlayedDevice::last;
    const SequenceRange taken = device.kernel_takes(device.joined.back()[0], 1);
    EXPECT_EQ(taken.count, 1U);
    return taken.first;
  }

  std::shared_ptr<DeviceCounting> counting_ = std::make_shared<DeviceCounting>(&play_device, [](int) {});
  SaRegistry registry_{counting_};
};

TEST_F(ReloadOnDevice, NumbersContinueAndNothingGrows) {
  StateText limited_sa = sa(0x1000);
  limited_sa.more = limited("soft (INF)(packets), hard 1000000(packets)");
  Worker worker(limited_sa(), kOut, {}, random_numbers(), &registry_);
  Stages stages = stages_of(worker.function());
  Sent sent;
  std::uint64_t last = 0;
  for (std::uint32_t reload = 0; reload < 300; ++reload) {
    EXPECT_EQ(batch_takes(), ++last);
    sent.add(worker(plain()));
    EXPECT_EQ(sent.last, ++last) << "the CPU asks the device";
    Stages old = std::move(stages);
    if (reload % 3 == 2) {
      worker.begin_rollback();
    } else {
      EXPECT_EQ(worker.begin_reload(limited_sa() + sa(0x2000 + reload, 2)(), kOut),
                reload == 0 ? "1 SA added" : "1 SA added, 1 removed");
    }
    stages = stages_of(worker.function());
    EXPECT_EQ(batch_takes(), ++last);
    sent.add(worker.earlier(plain()));
    EXPECT_EQ(sent.last, ++last);
    old.clear();
    worker.end_reload();
  }
  const PlayedDevice& device = *PlayedDevice::last;
  EXPECT_EQ(device.views.size(), 4U);
  EXPECT_LE(device.cells.size(), 4U) << "of the SAs of two functions, and of one that a rollback may bring back";
  stages.clear();
  EXPECT_EQ(device.views.size(), 0U);
  EXPECT_FALSE(worker.state().is_near_end());
  worker.state().expect_in_flight(480'000);
  EXPECT_FALSE(worker.state().is_near_end()) << "nothing else is in flight";
}

TEST_F(ReloadOnDevice, SaThatComesBackContinues) {
  Worker worker(sa(0x1000)(), kOut, {}, random_numbers(), &registry_);
  Stages stages = stages_of(worker.function());
  for (std::uint64_t number = 1; number <= 5; ++number) EXPECT_EQ(batch_takes(), number);
  EXPECT_EQ(worker.begin_reload(sa(0x2000)(), kOut), "1 SA added, 1 removed");
  Stages next = stages_of(worker.function());
  stages.clear();
  worker.end_reload();
  EXPECT_EQ(batch_takes(), 1U) << "of the new SA";
  worker.begin_rollback();
  stages = stages_of(worker.function());
  EXPECT_EQ(batch_takes(), 6U);
  next.clear();
  worker.end_reload();
  EXPECT_EQ(sequence_of(worker(plain()).bytes), 7U);
}

}  // namespace
}  // namespace penstock::ipsec
