// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/control_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "control/client.h"
#include "control/unix_socket.h"

namespace penstock::control {
namespace {

class FakeRun final : public run::Run {
 public:
  // Tests look at them from other threads.
  std::atomic<int> applied = 0, rolled_back = 0, reopened = 0, rested = 0, resumed = 0, left = 0;
  std::string port = "tap interface=x";
  std::vector<run::TrackedConnections> tracked;

  report::RunReport report() const override {
    report::RunReport report;
    report.processor = "cpu";
    report.in.packets = 7;
    report.consumed.packets = 7;
    return report;
  }
  std::vector<run::Pulse> pulses() const override { return {}; }
  run::ExplainedPacket explain(PacketView packet) const override {
    run::ExplainedPacket explained;
    explained.packet = std::to_string(packet.length());
    return explained;
  }
  run::Taps& taps() noexcept override { return taps_; }
  std::span<const std::string_view> drop_reasons(std::size_t) const noexcept override { return {}; }
  std::vector<run::TrackedConnections> connections() const override { return tracked; }
  Errors reopen_logs() override {
    ++reopened;
    return {};
  }
  Result<void> apply(run::Functions) override {
    ++applied;
    return {};
  }
  Result<void> rollback() override {
    ++rolled_back;
    return {};
  }
  Result<run::Continuity> continuity() const override { return run::Continuity{2, {{"lan", port}}}; }
  Result<run::HandedPorts> rest() override {
    ++rested;
    run::HandedPorts ports;
    auto& handed = ports["lan"];
    handed.descriptors.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    handed.numbers = {1, 2, 3};
    return ports;
  }
  void resume() override { ++resumed; }
  void leave() noexcept override { ++left; }
  void stop() noexcept override {}
  run::RunResult wait() override { return {report(), {}}; }

 private:
  run::Taps taps_;
};

class ControlServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/penstock-control-" + std::to_string(::getpid()) + ".sock";
    auto listener = UnixListener::open(path_);
    ASSERT_TRUE(listener) << to_string(listener.error());
    auto opened = ControlServer::open(
        std::move(*listener),
        {loaded_, file_, reloader_, stop_, [this] { stop_ = true; }, [this](const ReloadOutcome&) { ++reported_; },
         [this](const HandOverOutcome& outcome) { handed_over_ = outcome.errors.empty(); },
         [this](pid_t successor) { left_to_ = successor; }});
    ASSERT_TRUE(opened) << to_string(opened.error());
    server_ = std::move(*opened);
  }

  /// The kind of failure; "": there was none.
  [[nodiscard]] std::string failure_of(Command command, Json arguments = Json::object()) const {
    auto client = Client::connect(path_);
    const auto answer = client->ask(command, std::move(arguments), [](const Json&) {});
    return answer ? "" : answer.error().kind;
  }
  [[nodiscard]] std::string state() const {
    auto client = Client::connect(path_);
    return (*client->ask(Command::status))["state"].get<std::string>();
  }
  [[nodiscard]] std::future<std::string> ask_in_background(Command command, Json arguments = Json::object()) const {
    return std::async(std::launch::async, [this, command, arguments] { return failure_of(command, arguments); });
  }
  /// The answer to a client that drains the run, which ends, and then the server. `before_the_answer`: after the run.
  [[nodiscard]] tl::expected<Json, NoResult> drained(const std::function<void()>& before_the_answer = [] {}) {
    EXPECT_TRUE(server_->begin(run_));
    auto client = Client::connect(path_);
    auto answer = std::async(std::launch::async, [&] { return client->ask(Command::drain); });
    while (!stop_) std::this_thread::yield();
    // The server has taken the request once it has answered a later one.
    EXPECT_EQ(state(), "ending");
    server_->end(run_.wait());
    before_the_answer();
    server_.reset();
    return answer.get();
  }
  /// Does what clients ask for until the answer is there.
  [[nodiscard]] std::string answer_to(std::future<std::string> asked) const {
    while (asked.wait_for(std::chrono::milliseconds{1}) != std::future_status::ready) server_->tick();
    return asked.get();
  }

  std::string path_;
  const std::string file_ = "chain.yaml";
  config::LoadedChain loaded_;
  std::function<Result<config::Reload>()> plan_ = [] {
    config::Reload reload;
    reload.changes.push_back({"nids", "1 rule added"});
    return reload;
  };
  Reloader reloader_{loaded_, [this](const config::LoadedChain&) { return plan_(); }};
  std::atomic<bool> stop_{false};
  int reported_ = 0;
  std::optional<bool> handed_over_;  // empty: nobody has tried
  pid_t left_to_ = 0;                // 0: the run has not left
  FakeRun run_;
  std::unique_ptr<ControlServer> server_;
};

TEST_F(ControlServerTest, ChangesTheLevelOfTheLogAtAnyTime) {
  auto client = Client::connect(path_);
  const auto level = [&](Json arguments) { return *client->ask(Command::log_level, std::move(arguments)); };
  EXPECT_EQ(level(Json::object()), Json({{"level", "info"}, {"before", "info"}})) << "the run has not begun";
  EXPECT_EQ(level({{"level", "warning"}}), Json({{"level", "warning"}, {"before", "info"}}));
  EXPECT_EQ(Log::of_process().level(), LogLevel::warning);
  EXPECT_EQ(level({{"level", "info"}}), Json({{"level", "info"}, {"before", "warning"}}));
}

/// Waits until a trace is wanted, and gives it this many paths.
void give_paths(run::Run& run, int count) {
  while (!run.taps().trace.wants_more()) std::this_thread::yield();
  const auto trace = run.taps().trace.join();
  PacketDescriptor packet;
  run::TracedPacket path;
  for (int i = 0; i < count; ++i) {
    const auto number = trace->choose({nullptr, &packet});
    ASSERT_TRUE(number);
    path.number = *number;
    trace->give(path);
  }
}

TEST_F(ControlServerTest, TracesUntilAllPathsHaveCome) {
  ASSERT_TRUE(server_->begin(run_));
  auto traced = std::async(std::launch::async, [&] {
    auto client = Client::connect(path_);
    std::vector<int> numbers;
    const auto result = client->ask(Command::trace, {{"packets", 150}},
                                    [&](const Json& event) { numbers.push_back(event["number"].get<int>()); });
    EXPECT_TRUE(result);
    EXPECT_EQ(numbers.size(), 150U);
    EXPECT_EQ(numbers.back(), 150);
    return result ? result->dump() : "";
  });
  give_paths(run_, 1);
  EXPECT_EQ(failure_of(Command::trace, {{"packets", 1}}), "busy");
  give_paths(run_, 149);
  EXPECT_EQ(traced.get(), R"({"packets":150,"lost":0,"ended":"count"})");
}

TEST_F(ControlServerTest, EndsATraceWithTheRun) {
  ASSERT_TRUE(server_->begin(run_));
  auto traced = std::async(std::launch::async, [&] { return failure_of(Command::trace, {{"packets", 2}}); });
  while (!run_.taps().trace.wants_more()) std::this_thread::yield();
  server_->end(run_.wait());
  EXPECT_EQ(traced.get(), "");
}

TEST_F(ControlServerTest, EndsATraceWithItsClient) {
  ASSERT_TRUE(server_->begin(run_));
  {
    auto socket = connect_to(path_);
    ASSERT_TRUE(socket);
    const std::string text = request_text({1, Command::trace, {{"packets", 2}}});
    ASSERT_EQ(::send(socket->get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    while (!run_.taps().trace.wants_more()) std::this_thread::yield();
  }
  while (run_.taps().trace.wants_more()) std::this_thread::yield();
}

TEST_F(ControlServerTest, KnowsTheStateOfTheRun) {
  EXPECT_EQ(state(), "starting");
  EXPECT_EQ(failure_of(Command::stats), "not_running");
  EXPECT_EQ(failure_of(Command::reload), "not_running");
  EXPECT_EQ(failure_of(Command::reopen_logs), "not_running");
  ASSERT_TRUE(server_->begin(run_));
  EXPECT_EQ(state(), "running");
  EXPECT_EQ(failure_of(Command::stats), "");
  EXPECT_EQ(failure_of(Command::stop), "");
  EXPECT_TRUE(stop_);
  EXPECT_EQ(state(), "ending");
  server_->end(run_.wait());
  EXPECT_EQ(state(), "ended");
  EXPECT_EQ(failure_of(Command::stats), "") << "the last report";
  EXPECT_EQ(failure_of(Command::reload), "not_running");
}

TEST_F(ControlServerTest, CarriesOutWhatTakesLongerInTheThreadOfTheRun) {
  ASSERT_TRUE(server_->begin(run_));
  EXPECT_EQ(answer_to(ask_in_background(Command::reload, {{"dry_run", true}})), "");
  EXPECT_EQ(run_.applied, 0) << "a dry run changes nothing";
  EXPECT_EQ(reported_, 0);
  EXPECT_EQ(answer_to(ask_in_background(Command::reload)), "");
  EXPECT_EQ(answer_to(ask_in_background(Command::rollback)), "");
  EXPECT_EQ(answer_to(ask_in_background(Command::reopen_logs)), "");
  EXPECT_EQ(run_.applied, 1);
  EXPECT_EQ(run_.rolled_back, 1);
  EXPECT_EQ(run_.reopened, 1);
  EXPECT_EQ(reported_, 2);
}

TEST_F(ControlServerTest, IsBusyWhileAReloadIsUnderWay) {
  ASSERT_TRUE(server_->begin(run_));
  std::latch planning(1), may_go_on(1);
  plan_ = [&]() -> Result<config::Reload> {
    planning.count_down();
    may_go_on.wait();
    return failure(Error{{}, "a mistake", "", ""});
  };
  auto first = ask_in_background(Command::reload);
  auto ticks = std::async(std::launch::async, [&] { return answer_to(std::move(first)); });
  planning.wait();
  EXPECT_EQ(failure_of(Command::reload), "busy");
  EXPECT_EQ(failure_of(Command::reload, {{"dry_run", true}}), "busy");
  EXPECT_EQ(failure_of(Command::rollback), "busy");
  EXPECT_EQ(state(), "running") << "what only looks is answered";
  may_go_on.count_down();
  EXPECT_EQ(ticks.get(), "mistakes");
  EXPECT_EQ(answer_to(ask_in_background(Command::rollback)), "") << "no longer busy";
}

TEST_F(ControlServerTest, AnswersWhoeverWaitsWhenItEnds) {
  const auto result = drained();
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)["packets"]["in"], 7);
}

TEST_F(ControlServerTest, NamesTheOutputsThatCouldNotBeWritten) {
  const auto result = drained([&] { server_->outputs_written({{{"report.json", 0, 0}, "cannot write", "", ""}}); });
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)["errors"], Json({"report.json: cannot write"}));
}

TEST_F(ControlServerTest, ServesAClientThatWaitsForAPlace) {
  std::vector<std::unique_ptr<Client>> others;
  for (int i = 0; i < 16; ++i) {
    others.push_back(std::make_unique<Client>(*Client::connect(path_)));
    ASSERT_TRUE(others.back()->ask(Command::status));
  }
  auto waiting = ask_in_background(Command::status);
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds{200}), std::future_status::timeout);
  others.pop_back();
  EXPECT_EQ(waiting.get(), "");
}

TEST_F(ControlServerTest, AnswersAQueuedRequestWhenTheRunEndsFirst) {
  ASSERT_TRUE(server_->begin(run_));
  // One of the two is in the queue, and the other one is answered as busy: then nothing is left to come.
  auto one = ask_in_background(Command::reload);
  auto other = ask_in_background(Command::reload);
  const auto is_ready = [](const auto& future) {
    return future.wait_for(std::chrono::milliseconds{1}) == std::future_status::ready;
  };
  while (!is_ready(one) && !is_ready(other)) continue;
  server_->end(run_.wait());
  server_.reset();
  const std::string first = one.get(), second = other.get();
  EXPECT_EQ(std::min(first, second), "busy");
  EXPECT_EQ(std::max(first, second), "not_running");
}

/// What a successor does while the other process, this one, waits for it.
class Successor {
 public:
  explicit Successor(const std::string& path, const run::Continuity& own = {2, {{"lan", "tap interface=x"}}})
      : process_(std::async(std::launch::async, [path, own] { return RunningProcess::connect(path, own); })) {}
  [[nodiscard]] RunningProcess::Connected connected(ControlServer& server) {
    while (process_.wait_for(std::chrono::milliseconds{1}) != std::future_status::ready) server.tick();
    return process_.get();
  }

 private:
  std::future<RunningProcess::Connected> process_;
};

/// Does what clients ask for while `use` runs in another thread.
template <typename Use>
auto while_served(ControlServer& server, Use use) {
  auto done = std::async(std::launch::async, use);
  while (done.wait_for(std::chrono::milliseconds{1}) != std::future_status::ready) server.tick();
  return done.get();
}

TEST_F(ControlServerTest, HandsItsPortsOver) {
  ASSERT_TRUE(server_->begin(run_));
  auto process = Successor(path_).connected(*server_);
  ASSERT_TRUE(process) << to_string(process.error().errors);
  EXPECT_EQ((*process)->pid(), ::getpid());
  EXPECT_EQ(run_.rested, 0) << "nothing has been asked for yet";
  auto ports = while_served(*server_, [&] {
    auto taken = (*process)->take();
    EXPECT_TRUE(taken) << to_string(taken.error());
    EXPECT_EQ(run_.left, 0);
    EXPECT_TRUE((*process)->confirm());
    return taken;
  });
  EXPECT_EQ(run_.left, 1);
  EXPECT_EQ(run_.resumed, 0);
  EXPECT_EQ(handed_over_, true);
  EXPECT_EQ(left_to_, ::getpid());
  const port::HandedPort& lan = ports->at("lan");
  ASSERT_EQ(lan.descriptors.size(), 1);
  EXPECT_GE(::fcntl(lan.descriptors[0].get(), F_GETFD), 0);
  EXPECT_EQ(lan.numbers, (std::vector<std::uint64_t>{1, 2, 3}));
}

TEST_F(ControlServerTest, GoesOnIfTheOtherProcessDies) {
  ASSERT_TRUE(server_->begin(run_));
  auto process = Successor(path_).connected(*server_);
  ASSERT_TRUE(process);
  while_served(*server_, [&] {
    EXPECT_TRUE((*process)->take());
    process->reset();
    return 0;
  });
  while (!handed_over_) server_->tick();
  EXPECT_EQ(handed_over_, false);
  EXPECT_EQ(left_to_, 0);
  EXPECT_EQ(run_.resumed, 1);
  EXPECT_EQ(run_.left, 0);
  EXPECT_EQ(state(), "running");
  EXPECT_EQ(answer_to(ask_in_background(Command::reload)), "") << "it is not busy any more";
}

TEST_F(ControlServerTest, GoesOnIfTheOtherProcessIsNotReadyInTime) {
  ASSERT_TRUE(server_->begin(run_));
  auto process = Successor(path_).connected(*server_);
  ASSERT_TRUE(process);
  const auto confirmed = while_served(*server_, [&] {
    EXPECT_TRUE((*process)->take());
    while (run_.resumed == 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    return (*process)->confirm();
  });
  EXPECT_FALSE(confirmed) << "two processes would have the ports";
  EXPECT_TRUE((*process)->goes_on());
  EXPECT_EQ(run_.left, 0);
  EXPECT_EQ(handed_over_, false);
}

TEST_F(ControlServerTest, IsNotTakenOverByARunThatDiffers) {
  ASSERT_TRUE(server_->begin(run_));
  const auto why = [&](const run::Continuity& own) {
    const auto process = Successor(path_, own).connected(*server_);
    EXPECT_EQ(process ? "" : process.error().kind, "mistakes") << "the user's";
    std::string text = process ? "" : to_string(process.error().errors);
    for (std::size_t at = 0; (at = text.find(path_, at)) != std::string::npos;) text.erase(at, path_.size() + 2);
    return text;
  };
  EXPECT_EQ(why({3, {{"lan", "tap interface=x"}}}),
            "the number of workers of the running process differs: found '2', expected 3, as here");
  EXPECT_EQ(why({2, {}}), "only the running process has port lan: expected the same ports");
  EXPECT_EQ(why({2, {{"lan", "tap interface=x"}, {"wan", "null"}}}),
            "the running process has no port wan: expected the same ports");
  EXPECT_EQ(why({2, {{"lan", "null"}}}),
            "port lan of the running process differs: found 'tap', expected null, as here");
  // Of many words, those that differ.
  run_.port = "af_packet interface=eth1 netns= receives=true blocks=32 block_timeout=8ms promiscuous=true";
  EXPECT_EQ(
      why({2,
           {{"lan", "af_packet interface=eth1 netns= receives=true blocks=64 block_timeout=8ms promiscuous=false"}}}),
      "port lan of the running process differs: found 'blocks=32', expected blocks=64, as here\n"
      "port lan of the running process differs: found 'promiscuous=true', expected promiscuous=false, as here");
  EXPECT_EQ(
      why({2, {{"lan", "af_packet interface=eth1 netns= receives=true blocks=32 block_timeout=8ms fanout=hash"}}}),
      "port lan of the running process differs: found 'promiscuous=true', expected none, as here\n"
      "port lan of the running process differs: expected fanout=hash, as here");
  EXPECT_EQ(run_.rested, 0);
}

TEST(ReadHanded, RefusesWhatIsMalformed) {
  const auto refused = [](const char* text, std::size_t descriptors) {
    std::vector<port::FileDescriptor> open;
    for (std::size_t i = 0; i < descriptors; ++i) open.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return !read_handed(Json::parse(text), std::move(open));
  };
  EXPECT_FALSE(refused(R"({"ports":{"a":{"descriptors":1,"numbers":[0,1]}}})", 1));
  for (const char* text :
       {"7", "{}", R"({"ports":[]})", R"({"ports":{"a":7}})", R"({"ports":{"a":{}}})",
        R"({"ports":{"a":{"descriptors":-1,"numbers":[]}}})", R"({"ports":{"a":{"descriptors":1,"numbers":[-1]}}})",
        R"({"ports":{"a":{"descriptors":1,"numbers":["x"]}}})", R"({"ports":{"a":{"descriptors":1,"numbers":7}}})",
        R"({"ports":{"a":{"descriptors":2,"numbers":[]}}})",
        R"({"ports":{"a":{"descriptors":18446744073709551615,"numbers":[]}}})",
        R"({"ports":{"a":{"descriptors":0,"numbers":[]}}})"})
    EXPECT_TRUE(refused(text, 1)) << text;
}

}  // namespace
}  // namespace penstock::control
