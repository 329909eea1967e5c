// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole runs with a function in a process of its own.

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "process/testing/served_chain.h"

namespace penstock::process {
namespace {

using namespace std::chrono_literals;
using testing::age;
using testing::drop_thirds;
using testing::FakeChain;
using testing::FakeFunction;

class Process : public testing::ServedChain {
 protected:
  [[nodiscard]] std::string refused() {
    auto function = connect_function(settings());
    return function ? "" : to_string(function.error());
  }
};

std::uint64_t of(const nlohmann::json& report, const char* key) { return report.at("process").at(key); }

TEST_F(Process, DecidesAsInTheChain) {
  serve(drop_thirds);
  const Outcome remote = run_remote(settings());
  expect_same(run_local(drop_thirds), remote);
  EXPECT_EQ(of(remote.function, "lost_packets"), 0U);
  ASSERT_EQ(remote.report.functions.size(), 1U);
}

TEST_F(Process, SeesPacketsWhereTheChainHasThem) {
  serve(drop_thirds);
  // Time for the memory to be opened to it.
  const Outcome remote = run_remote(settings(), [](std::size_t) { std::this_thread::sleep_for(1ms); });
  EXPECT_LT(of(remote.function, "copied_packets"), kPackets / 2);
  expect_same(run_local(drop_thirds), remote);
}

TEST_F(Process, ChangesPackets) {
  serve(age);
  const Outcome local = run_local(age);
  const Outcome copied = run_remote(settings());
  expect_same(local, copied);
  EXPECT_EQ(of(copied.function, "copied_packets"), kPackets);
  RemoteSettings settings = this->settings();
  settings.in_place = true;
  const Outcome in_place = run_remote(settings, [](std::size_t) { std::this_thread::sleep_for(1ms); });
  expect_same(local, in_place);
  EXPECT_LT(of(in_place.function, "copied_packets"), kPackets / 2);
}

TEST_F(Process, DoesNotWriteWhatItDoesNotDeclare) {
  serve([](FakeFunction& function) {
    drop_thirds(function);
    function.process = run::testing::each([](PacketView packet) {
      packet.packet->mark = 7;
      packet.packet->verdict.value = 1;
      packet.packet->length = 1;
      packet.packet->wire_length = 99;
      return packet.packet->verdict;
    });
  });
  const Outcome outcome = run_remote(settings());
  ASSERT_EQ(outcome.sent.at(0).size(), kPackets);
  for (const auto& sent : outcome.sent[0]) {
    ASSERT_EQ(sent.descriptor.mark, 0U);
    ASSERT_EQ(sent.descriptor.wire_length, sent.bytes.size());
  }
}

TEST_F(Process, ServesSeveralWorkersAndChains) {
  serve(age);
  auto function = connect_function(settings()).value();
  FakeChain chain;
  chain.settings.workers = 3;
  std::array<std::function<port::RxStatus(unsigned, Batch&)>, 3> polls;
  polls.fill(run::testing::script({run::testing::numbered_frames(kPackets)}));
  chain.add_source("in", [&](unsigned worker, Batch& batch) { return polls[worker](worker, batch); });
  auto& sink = chain.add_sink("out");
  chain.functions.push_back({"fake", std::move(function)});
  std::jthread other([&] { expect_none_missing(run_remote(settings())); });
  const std::atomic<bool> stop{false};
  const auto result = run::run(chain, {}, stop);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->report.forwarded.packets, 3 * (kPackets - (kPackets + 2) / 3));
  for (const auto& sent : sink.sent) EXPECT_EQ(sent.size(), kPackets - (kPackets + 2) / 3);
}

TEST_F(Process, ChoosesPortsThatWrite) {
  const auto choose = [](PortIndex port) {
    return [port](FakeFunction& function) {
      function.own_traits.cpu = {{}, {Field::verdict}};
      function.own_traits.chooses_port = true;
      function.process = run::testing::each([port](PacketView) { return Verdict::forward(port); });
    };
  };
  serve(choose(1));
  EXPECT_EQ(run_remote(settings()).report.forwarded.packets, kPackets);
  serve(choose(kNoPort));
  EXPECT_EQ(run_remote(settings()).report.forwarded.packets, kPackets);
  serve(choose(0));  // it only reads
  const Outcome outcome = run_remote(settings());
  expect_none_missing(outcome);
  EXPECT_EQ(outcome.report.forwarded.packets, 0U);
  EXPECT_GE(of(outcome.function, "losses"), 1U);
}

TEST_F(Process, ChoosesPortsOfSomePackets) {
  const testing::Prepare prepare = [](FakeFunction& function) {
    function.own_traits.cpu = {{Field::payload}, {Field::verdict}};
    function.own_traits.chooses_some_ports = true;
    function.process = run::testing::each([](PacketView packet) {
      return run::testing::number_of(packet) % 3 == 0 ? Verdict::forward(2) : packet.packet->verdict;
    });
  };
  serve(prepare);
  const auto sent_by_other = [&](std::unique_ptr<function::NetworkFunction> function) {
    const Outcome outcome = run_chain(
        std::move(function), [](std::size_t) {},
        [](FakeChain& chain) {
          chain.add_sink("other");
          chain.wiring = {1, kNoPort, kNoPort};
        });
    expect_none_missing(outcome);
    return outcome.report.ports.at(2).out.packets;
  };
  auto local = std::make_unique<FakeFunction>();
  prepare(*local);
  RemoteSettings settings = this->settings();
  settings.surroundings.ports.push_back({.name = "other", .writes = true});
  const std::uint64_t expected = sent_by_other(std::move(local));
  EXPECT_EQ(expected, (kPackets + 2) / 3);
  EXPECT_EQ(sent_by_other(connect_function(settings).value()), expected);
}

TEST_F(Process, TakesFramesFromAnywhere) {
  serve(age);
  // The function before it moves frames to memory that is not shared.
  static std::vector<std::vector<std::uint8_t>> moved;
  moved.clear();
  const auto before = [](FakeChain& chain) {
    auto mover = std::make_unique<FakeFunction>();
    mover->process = [](std::span<PacketView> packets) {
      for (PacketView& packet : packets) {
        moved.emplace_back(packet.frame, packet.frame + packet.length());
        packet.frame = moved.back().data();
      }
    };
    chain.functions.insert(chain.functions.begin(), {"mover", std::move(mover)});
  };
  RemoteSettings settings = this->settings();
  settings.in_place = true;
  const Outcome remote = run_chain(
      connect_function(settings).value(), [](std::size_t) { std::this_thread::sleep_for(100us); }, before);
  expect_same(run_local(age), remote);
  EXPECT_EQ(of(remote.function, "copied_packets"), kPackets);
}

TEST_F(Process, DropsPacketsWithoutItAndIsUsedAgain) {
  serve(drop_thirds);
  const Outcome outcome = run_remote(settings(), [&](std::size_t polled) {
    if (polled == 20) server_.reset();
    if (polled == 40) serve(drop_thirds);
    std::this_thread::sleep_for(polled > 40 ? 20ms : 1ms);
  });
  expect_none_missing(outcome);
  const std::uint64_t lost = of(outcome.function, "lost_packets");
  EXPECT_EQ(of(outcome.function, "losses"), 1U);
  EXPECT_GT(lost, 0U);
  EXPECT_LT(lost, kPackets / 2) << "it was not used again";
  std::uint64_t dropped_without = 0;
  for (const auto& [reason, packets] : outcome.report.functions.at(0).drop_reasons)
    dropped_without += reason == "process_lost" ? packets : 0;
  EXPECT_EQ(dropped_without, lost);
}

TEST_F(Process, PassesPacketsWithoutItIfTheChainSaysSo) {
  serve([](FakeFunction& function) {
    drop_thirds(function);
    function.process = run::testing::each([](PacketView) { return Verdict::drop(0); });
  });
  RemoteSettings settings = this->settings();
  settings.passes_when_lost = true;
  const Outcome outcome = run_remote(settings, [&](std::size_t polled) {
    if (polled == 20) server_.reset();
    std::this_thread::sleep_for(100us);
  });
  expect_none_missing(outcome);
  EXPECT_GT(outcome.report.forwarded.packets, 0U);
  EXPECT_EQ(outcome.report.forwarded.packets, of(outcome.function, "lost_packets"));
}

TEST_F(Process, IsLostIfItTakesTooLong) {
  std::atomic<bool> hangs{true};
  serve([&](FakeFunction& function) {
    drop_thirds(function);
    function.process = [&](std::span<PacketView>) {
      while (hangs.load()) std::this_thread::sleep_for(1ms);
    };
  });
  RemoteSettings settings = this->settings();
  settings.patience = 20ms;
  const auto began = std::chrono::steady_clock::now();
  const Outcome outcome = run_remote(settings);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  hangs.store(false);
  server_.reset();
  expect_none_missing(outcome);
  EXPECT_EQ(outcome.report.dropped.packets, kPackets);
  EXPECT_GE(of(outcome.function, "losses"), 1U);
}

TEST_F(Process, RefusesWhatItCannotServe) {
  const auto with = [&](const std::function<void(function::NfTraits&)>& change) {
    serve([&](FakeFunction& function) { change(function.own_traits); });
    return refused();
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(with([](auto& traits) { traits.emits = true; }), HasSubstr("it makes packets"));
  EXPECT_THAT(with([](auto& traits) { traits.growth.tail = 8; }), HasSubstr("does not say"));
  EXPECT_THAT(with([](auto& traits) {
                traits.cpu.writes |= FieldSet{Field::frame_shape};
                traits.growth.head = kMostGrowth + 1;
              }),
              HasSubstr("adds 1025 bytes"));
  EXPECT_THAT(with([](auto& traits) { traits.replaces_frames = true; }), HasSubstr("larger frames"));
  EXPECT_THAT(with([](auto& traits) { traits.connections = conntrack::Options(); }), HasSubstr("connections"));
  EXPECT_THAT(with([](auto& traits) { traits.asks_for_arrivals = true; }), HasSubstr("arrived"));
  EXPECT_THAT(with([](auto& traits) { traits.cpu.writes |= FieldSet{Field::timestamp}; }), HasSubstr("timestamp"));
  EXPECT_EQ(with([](auto&) {}), "");
  server_.reset();
  EXPECT_THAT(refused(), HasSubstr("penstock function serve"));
}

/// Puts 20 bytes before each frame and 3 after it, or removes as many; leaves each third one as it is.
void change_lengths(FakeFunction& function) {
  function.own_traits.cpu = {{Field::payload}, {Field::payload, Field::frame_shape, Field::wire_length}};
  function.own_traits.growth = {20, 3};
  function.process = [](std::span<PacketView> packets) {
    for (PacketView& packet : packets) {
      const std::uint64_t number = run::testing::number_of(packet);
      if (number % 3 == 0) continue;
      const bool grows = number % 3 == 1;
      const std::int32_t head = grows ? 20 : -2;
      std::uint8_t* const from = packet.frame;
      packet.frame -= head;
      std::memmove(packet.frame, from, 14);  // the link header stays
      packet.packet->offset -= static_cast<std::uint32_t>(head);
      packet.packet->length += static_cast<std::uint32_t>(head);
      if (grows) {
        std::memset(packet.frame + packet.packet->length, 0x5a, 3);
        packet.packet->length += 3;
        std::memset(packet.frame + 14, static_cast<int>(number), 20);
      }
      packet.packet->wire_length = packet.packet->length;
    }
  };
}

TEST_F(Process, ChangesTheLengthOfFrames) {
  serve(change_lengths);
  const Outcome local = run_local(change_lengths);
  for (const bool in_place : {false, true}) {
    RemoteSettings settings = this->settings();
    settings.in_place = in_place;
    const Outcome remote = run_remote(settings);
    expect_same(local, remote);
    ASSERT_EQ(remote.sent.at(0).size(), kPackets);
    for (std::size_t i = 0; i < kPackets; ++i) ASSERT_EQ(remote.sent[0][i].bytes, local.sent[0][i].bytes) << i;
    EXPECT_EQ(of(remote.function, "losses"), 0U);
  }
}

TEST_F(Process, SaysWhyItCannotMakeTheFunction) {
  auto server = Server::start({path_}, [](std::string_view, const Surroundings& surroundings) {
    return Result<std::unique_ptr<function::NetworkFunction>>(
        failure(Error{{"rules.txt", 7, 0}, "no such port", surroundings.ports.at(1).name, "lan"}));
  });
  ASSERT_TRUE(server);
  const std::string why = refused();
  EXPECT_THAT(why, ::testing::HasSubstr("rules.txt:7: no such port"));
  EXPECT_THAT(why, ::testing::HasSubstr("expected lan"));
}

TEST_F(Process, CannotPassIfItChoosesPorts) {
  for (const bool all : {false, true}) {
    serve([all](FakeFunction& function) {
      (all ? function.own_traits.chooses_port : function.own_traits.chooses_some_ports) = true;
    });
    RemoteSettings settings = this->settings();
    settings.passes_when_lost = true;
    const auto function = connect_function(settings);
    ASSERT_FALSE(function);
    EXPECT_THAT(to_string(function.error()), ::testing::HasSubstr("chooses where packets leave"));
  }
}

TEST_F(Process, ChangesItsTablesInAReload) {
  serve(drop_thirds);
  FakeChain chain;
  std::atomic<bool> ends{false};
  std::uint64_t number = 0;
  chain.add_source("in", [&](unsigned, Batch& batch) {
    while (run::testing::append(batch, run::testing::numbered(number))) ++number;
    return ends.load() ? port::RxStatus::end : port::RxStatus::more;
  });
  chain.add_sink("out");
  chain.functions.push_back({"fake", connect_function(settings()).value()});
  const std::atomic<bool> stop{false};
  auto started = run::start(chain, {}, stop);
  ASSERT_TRUE(started) << to_string(started.error());
  run::Run& run = **started;
  while (run.report().forwarded.packets == 0) std::this_thread::sleep_for(1ms);
  // The next function drops all.
  const auto former = std::move(server_);
  ASSERT_EQ(::rename(path_.c_str(), (path_ + "-former").c_str()), 0);
  serve([](FakeFunction& function) {
    drop_thirds(function);
    function.process = run::testing::each([](PacketView) { return Verdict::drop(0); });
  });
  run::Functions next;
  next.push_back(connect_function(settings()).value());
  const auto applied = run.apply(std::move(next));
  ASSERT_TRUE(applied) << to_string(applied.error());
  const std::uint64_t forwarded = run.report().forwarded.packets;
  const std::uint64_t in = run.report().in.packets;
  while (run.report().in.packets < in + 10'000) std::this_thread::sleep_for(1ms);
  ends.store(true);
  const auto result = run.wait();
  ::unlink((path_ + "-former").c_str());
  EXPECT_LE(result.report.forwarded.packets, forwarded + 1024) << "those in flight";
  EXPECT_EQ(result.report.in.packets, result.report.forwarded.packets + result.report.dropped.packets);
  nlohmann::json report;
  chain.functions[0].function->report(report);
  EXPECT_EQ(of(report, "lost_packets"), 0U);
}

TEST(StageOfAProcess, OnlyFindsWhatTheProcessConfirms) {
  const function::StageNeeds finds{{{Field::payload}, {}}, 32, 0, {}, false};
  function::NfTraits traits;
  traits.finish = traits.cpu = {{Field::payload}, {Field::verdict}};
  traits.stack = stack::StackNeed::tcp_stream;
  EXPECT_EQ(why_no_stage(traits, finds, /*confirms=*/true), "");
  EXPECT_NE(why_no_stage(traits, finds, /*confirms=*/false), "");
  const auto with = [&](const std::function<void(function::StageNeeds&)>& change) {
    function::StageNeeds needs = finds;
    change(needs);
    return why_no_stage(traits, needs, /*confirms=*/true);
  };
  EXPECT_NE(with([](auto& needs) { needs.access.writes = {Field::verdict}; }), "");
  EXPECT_NE(with([](auto& needs) { needs.findings_bytes = 4; }), "") << "too short to tell which are clear";
  EXPECT_NE(with([](auto& needs) { needs.findings_bytes = kMostFindings + 1; }), "");
  EXPECT_NE(with([](auto& needs) { needs.state_bytes = 8; }), "");
  traits.cpu.writes |= FieldSet{Field::ipv4_ttl};
  EXPECT_NE(why_no_stage(traits, finds, /*confirms=*/true), "");
}

TEST(StageOfAProcess, DecidesAlone) {
  const function::StageNeeds decides{{{Field::ipv4_src, Field::verdict}, {Field::verdict}}, 4, 0, {}, false};
  function::NfTraits traits;
  traits.cpu = {{Field::ipv4_src}, {Field::verdict}};
  EXPECT_EQ(why_no_stage(traits, decides), "");
  traits.finish = Access{{Field::frame_shape}, {}};
  EXPECT_NE(why_no_stage(traits, decides), "") << "it confirms what the device finds";
  traits.finish_counts = true;
  EXPECT_EQ(why_no_stage(traits, decides), "");

  const auto with = [&](const std::function<void(function::StageNeeds&)>& change) {
    function::StageNeeds needs = decides;
    change(needs);
    return why_no_stage(traits, needs);
  };
  EXPECT_NE(with([](auto& needs) { needs.state_bytes = 8; }), "");
  EXPECT_NE(with([](auto& needs) { needs.growth.tail = 1; }), "");
  EXPECT_NE(with([](auto& needs) { needs.chooses_port = true; }), "");
  const auto writes_ttl = [](auto& needs) { needs.access.writes |= FieldSet{Field::ipv4_ttl}; };
  EXPECT_NE(with(writes_ttl), "") << "the function only looks";
  traits.cpu.writes |= FieldSet{Field::ipv4_checksum};
  EXPECT_EQ(with(writes_ttl), "");
  EXPECT_NE(with([](auto& needs) { needs.access.writes |= FieldSet{Field::mark}; }), "");
  traits.chooses_port = true;
  EXPECT_EQ(with([](auto& needs) { needs.chooses_port = true; }), "");
  traits.chooses_port = false;
  traits.chooses_some_ports = true;
  EXPECT_EQ(with([](auto& needs) { needs.chooses_port = true; }), "");
  traits.stack = stack::StackNeed::flow;
  EXPECT_NE(why_no_stage(traits, decides), "");
}

TEST_F(Process, TracksFlowsOfItsOwn) {
  std::atomic<bool> attached{false};
  serve([&](FakeFunction& function) {
    drop_thirds(function);
    function.own_traits.stack = stack::StackNeed::flow;
    auto process = function.process;
    function.process = [&function, &attached, process](std::span<PacketView> packets) {
      if (function.attachment != nullptr) attached.store(true);
      process(packets);
    };
  });
  expect_same(run_local(drop_thirds), run_remote(settings()));
  server_.reset();
  EXPECT_TRUE(attached.load());
}

}  // namespace
}  // namespace penstock::process
