// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Processes that lie, hang or die, on either side: the other side goes on, and no packet is missing.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "base/shared_memory.h"
#include "conntrack/connections.h"
#include "conntrack/packet_connection.h"
#include "function/confirming_stage.h"
#include "function/connection_keeper.h"
#include "function/connection_reader.h"
#include "function/granted_stage.h"
#include "ipc/testing/lingering.h"
#include "packet/parse_core.h"
#include "process/burst_page.h"
#include "process/link.h"
#include "process/testing/confirming_function.h"
#include "process/testing/served_chain.h"

namespace penstock::process {
namespace {

using namespace std::chrono_literals;
using testing::drop_thirds;
using testing::FakeFunction;

/// A function's process made by hand, which can do anything. It serves one connection after the other.
class HandMadeFunction {
 public:
  struct Behaviour {
    std::function<void(Description&)> describe = [](Description&) {};
    std::function<void(Reply&)> reply = [](Reply&) {};
    /// Returns whether the burst in this slot becomes `done`.
    std::function<bool(BurstPage&, BurstSlot&)> serve = [](BurstPage&, BurstSlot&) { return true; };
    std::function<bool()> hangs_up = [] { return false; };  // in place of a reply to a queue
  };

  HandMadeFunction(const std::string& path, Behaviour behaviour)
      : behaviour_(std::move(behaviour)), listener_(ipc::Listener::open(path, 0600).value()), thread_([this] {
          while (!stops_.load()) {
            ipc::FileDescriptor socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!socket) {
              ::usleep(500);
              continue;
            }
            ++connections_;
            converse(socket.get());
          }
        }) {}
  HandMadeFunction(const HandMadeFunction&) = delete;
  HandMadeFunction& operator=(const HandMadeFunction&) = delete;
  ~HandMadeFunction() {
    stops_.store(true);
    thread_.join();
    for (void* const memory : mapped_) ::munmap(memory, kQueueBytes);
  }
  [[nodiscard]] int connections() const { return connections_.load(); }
  /// Whether a descriptor of frames could be mapped for writing.
  [[nodiscard]] bool could_write() const { return could_write_.load(); }
  [[nodiscard]] bool has_opened() const { return opened_.load(); }

 private:
  void converse(int socket) {
    std::deque<std::pair<BurstPage*, std::uint32_t>> queues;
    bool open = true;
    while (open && !stops_.load()) {
      for (auto& [page, number] : queues) {
        if (page->submitted.load() == number) continue;
        ++number;
        if (behaviour_.serve(*page, page->slots[number % kSlots])) page->done.store(number);
      }
      const auto received = ipc::receive_message(socket, kMostMessageBytes, 0ms);
      if (!received) {
        open = errno == ETIMEDOUT;
        continue;
      }
      MessageType type{};
      std::memcpy(&type, received->bytes.data(), sizeof type);
      if (type == MessageType::hello) {
        Description description;
        description.name = Text<kLongestName>("fake");
        description.writes = FieldSet{Field::verdict}.bits();
        description.reasons = 1;
        description.reason[0] = Text<kLongestReason>("blocked");
        behaviour_.describe(description);
        static_cast<void>(ipc::send_message(socket, bytes_of(description), {}, 1000ms));
        continue;
      }
      if (type == MessageType::end_queue) continue;
      if (type == MessageType::ask_token) break;
      if (type == MessageType::make_queue) {
        if (behaviour_.hangs_up()) break;
        void* const memory =
            ::mmap(nullptr, kQueueBytes, PROT_READ | PROT_WRITE, MAP_SHARED, received->descriptors.at(0).get(), 0);
        queues.emplace_back(static_cast<BurstPage*>(memory), 0);
        mapped_.push_back(memory);
      } else {
        opened_.store(true);
        void* const memory =
            ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, received->descriptors.at(0).get(), 0);
        if (memory != MAP_FAILED) could_write_.store(true);
      }
      Reply reply;
      reply.id = 1;
      behaviour_.reply(reply);
      static_cast<void>(ipc::send_message(socket, bytes_of(reply), {}, 1000ms));
    }
  }

  const Behaviour behaviour_;
  ipc::Listener listener_;
  std::atomic<bool> stops_{false};
  std::atomic<int> connections_{0};
  std::atomic<bool> could_write_{false}, opened_{false};
  std::vector<void*> mapped_;  // queues; of the thread
  std::thread thread_;
};

using HostileFunction = testing::ServedChain;
using Behaviour = HandMadeFunction::Behaviour;

TEST_F(HostileFunction, CannotWriteWhatItOnlyReads) {
  const HandMadeFunction hand_made(path_, {});
  const Outcome outcome = run_remote(settings(), [](std::size_t) { std::this_thread::sleep_for(200us); });
  EXPECT_EQ(outcome.report.forwarded.packets, kPackets);
  EXPECT_TRUE(hand_made.has_opened());
  EXPECT_FALSE(hand_made.could_write());
}

TEST_F(HostileFunction, IsRefusedIfItsDescriptionIsNonsense) {
  const auto refused = [&](std::function<void(Description&)> describe) {
    Behaviour behaviour;
    behaviour.describe = std::move(describe);
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    return !connect_function(settings());
  };
  EXPECT_FALSE(refused([](Description&) {}));
  EXPECT_TRUE(refused([](Description& d) { d.name = Text<kLongestName>("other"); }));
  EXPECT_TRUE(refused([](Description& d) { d.name.bytes.fill('x'); }));
  EXPECT_TRUE(refused([](Description& d) { d.reasons = kMostReasons + 1; }));
  EXPECT_TRUE(refused([](Description& d) { d.reasons = 0xffffffff; }));
  EXPECT_TRUE(refused([](Description& d) { d.reasons = 2; })) << "an empty reason";
  EXPECT_TRUE(refused([](Description& d) { d.reason[0] = Text<kLongestReason>("process_lost"); }));
  EXPECT_TRUE(refused([](Description& d) { d.reason[0] = Text<kLongestReason>("a\"},\n"); }));
  EXPECT_TRUE(refused([](Description& d) { d.reason[0].bytes.fill('\xff'); }));
  EXPECT_TRUE(refused([](Description& d) { d.writes = ~std::uint64_t{0}; }));
  EXPECT_TRUE(refused([](Description& d) { d.head = 1; })) << "it does not change lengths";
  EXPECT_TRUE(refused([](Description& d) {
    d.writes |= FieldSet{Field::frame_shape}.bits();
    d.tail = kMostGrowth + 1;
  }));
  EXPECT_TRUE(refused([](Description& d) { d.writes |= std::uint64_t{1} << 63; }));
  const auto reads_connections = [](Description& d) {
    d.flags |= Description::kReadsConnections;
    d.connections.most_connections = 1000;
    d.connections.timeouts.fill(30);
  };
  EXPECT_FALSE(refused(reads_connections));
  for (const auto& change : std::initializer_list<std::function<void(Description&)>>{
           [](Description& d) { d.connections.most_connections = 0; },
           [](Description& d) { d.connections.most_connections = 0xffffffff; },
           [](Description& d) { d.connections.most_fragments = 0xffffffff; },
           [](Description& d) { d.connections.most_expectations = 0xffffffff; },
           [](Description& d) { d.connections.most_retransmissions = 256; },
           [](Description& d) { d.connections.timeouts[16] = 0; },
           [](Description& d) { d.connections.timeouts[0] = 0xffffffff; },
           [](Description& d) { d.flags |= Description::kTracksFlows; }}) {
    EXPECT_TRUE(refused([&](Description& d) {
      reads_connections(d);
      change(d);
    }));
  }
  EXPECT_TRUE(refused([](Description& d) {
    d.failed = 1;
    d.text.bytes.fill('\x1b');
  }));
}

TEST_F(HostileFunction, IsRefusedIfItsStageIsNonsense) {
  const auto refused = [&](std::function<void(Description&)> describe) {
    Behaviour behaviour;
    behaviour.describe = [&](Description& d) {
      d.flags |= Description::kHasStage;
      d.stage.reads = FieldSet{Field::ipv4_src, Field::verdict}.bits();
      d.stage.writes = FieldSet{Field::verdict}.bits();
      d.stage.findings_bytes = 4;
      describe(d);
    };
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    return !connect_function(settings());
  };
  EXPECT_FALSE(refused([](Description&) {}));
  EXPECT_TRUE(refused([](Description& d) { d.stage.reads |= std::uint64_t{1} << 63; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.writes |= std::uint64_t{1} << 63; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.findings_bytes = 1 << 20; }));
  EXPECT_FALSE(refused([](Description& d) { d.stage.state_bytes = kMostStates; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.state_bytes = kMostStates + 8; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.state_bytes = 12; }));
  EXPECT_TRUE(refused([](Description& d) { d.state_reads = std::uint64_t{1} << 63; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.head = 1; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.tail = 0xffffffff; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.chooses_port = 1; })) << "its verdicts name no ports";
  EXPECT_TRUE(refused([](Description& d) { d.stage.writes |= FieldSet{Field::frame_shape}.bits(); }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.writes |= FieldSet{Field::mark}.bits(); }));
  EXPECT_TRUE(refused([](Description& d) { d.flags |= Description::kTracksFlows; }));
  const auto writes = FieldSet{Field::ipv4_ttl}.bits();
  EXPECT_TRUE(refused([&](Description& d) { d.stage.writes |= writes; })) << "it only looks at packets on the CPU";
  EXPECT_FALSE(refused([&](Description& d) {
    d.stage.writes |= writes;
    d.writes |= writes;
  }));
  // Packets that may begin a connection are given to its process while the device waits for them.
  const auto reads_connections = [](Description& d) {
    d.flags |= Description::kReadsConnections;
    d.connections.most_connections = 1000;
    d.connections.timeouts.fill(30);
    d.stage.state_bytes = sizeof(conntrack::PacketConnection);
  };
  EXPECT_FALSE(refused(reads_connections));
  for (const std::uint64_t change : {writes, FieldSet{Field::frame_shape}.bits()}) {
    EXPECT_TRUE(refused([&](Description& d) {
      reads_connections(d);
      d.writes |= change;
    }));
  }
}

/// Each packet that may begin a connection is a burst of its own.
TEST_F(HostileFunction, CannotUseThePatienceOfABatchForEachOfItsPackets) {
  Behaviour behaviour;
  behaviour.describe = [](Description& d) {
    d.flags |= Description::kReadsConnections;
    d.connections.most_connections = 10'000;
    d.connections.timeouts.fill(30);
  };
  behaviour.serve = [](BurstPage&, BurstSlot& slot) {
    std::this_thread::sleep_for(10ms);
    slot.results[0].verdict = Verdict::forward();
    return true;
  };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  RemoteSettings settings = this->settings();
  settings.patience = 30ms;
  const auto function = connect_function(settings).value();
  ASSERT_TRUE(function->begin_run());
  {
    const auto stage = function->make_cpu_stage();
    const auto connections = function::make_connections(*function, function::kBurst);
    stage->set_connections(*connections);
    std::vector<run::testing::Bytes> frames;
    std::vector<PacketDescriptor> descriptors(function::kBurst);
    std::vector<PacketView> packets;
    for (std::size_t i = 0; i < descriptors.size(); ++i) frames.push_back(run::testing::numbered(i));
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
      descriptors[i].length = descriptors[i].wire_length = static_cast<std::uint32_t>(frames[i].size());
      packets.push_back({frames[i].data(), &descriptors[i]});
      parse(packets[i]);
    }
    const auto begun = std::chrono::steady_clock::now();
    stage->process(packets);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 10s);
    EXPECT_FALSE(descriptors.back().verdict.alive()) << "process_lost";
  }
  nlohmann::json report;
  function->report(report);
  EXPECT_EQ(report["process"]["losses"], 1);
  function->end_run();
}

TEST_F(HostileFunction, IsRefusedIfWhatItConfirmsIsNonsense) {
  const auto refused = [&](std::function<void(Description&)> describe) {
    Behaviour behaviour;
    behaviour.describe = [&](Description& d) {
      d.flags |=
          Description::kHasStage | Description::kConfirms | Description::kFinishWaits | Description::kTracksFlows;
      d.stage.reads = FieldSet{Field::payload}.bits();
      d.stage.findings_bytes = 32;
      d.finish_reads = d.reads = FieldSet{Field::payload}.bits();
      describe(d);
    };
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    RemoteSettings settings = this->settings();
    settings.in_proxy = true;
    return !connect_function(settings);
  };
  EXPECT_FALSE(refused([](Description&) {}));
  EXPECT_FALSE(refused([](Description& d) { d.finish_writes = FieldSet{Field::verdict}.bits(); }));
  EXPECT_TRUE(refused([](Description& d) { d.finish_writes = FieldSet{Field::ipv4_ttl}.bits(); }));
  EXPECT_TRUE(refused([](Description& d) { d.finish_reads |= std::uint64_t{1} << 63; }));
  EXPECT_TRUE(refused([](Description& d) { d.finish_writes |= std::uint64_t{1} << 63; }));
  EXPECT_TRUE(refused([](Description& d) { d.stage.findings_bytes = 0; })) << "there is nothing to confirm";
  EXPECT_TRUE(refused([](Description& d) { d.stage.findings_bytes = kMostFindings + 1; }))
      << "a queue has no room for them";
  EXPECT_TRUE(refused([](Description& d) { d.stage.writes = FieldSet{Field::verdict}.bits(); })) << "it decides";
  EXPECT_TRUE(refused([](Description& d) { d.writes |= FieldSet{Field::ipv4_ttl}.bits(); }));
}

/// `process_lost` must not become a way around the function: unless packets may pass without it, none leaves before the
/// process has confirmed what was found.
TEST_F(HostileFunction, LetsNoPacketLeaveUnconfirmedUnlessItMayPassUnseen) {
  Behaviour behaviour;
  behaviour.describe = [](Description& d) {
    d.flags |= Description::kHasStage | Description::kConfirms | Description::kFinishWaits;
    d.stage.findings_bytes = 32;
  };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  for (const bool passes : {false, true}) {
    RemoteSettings settings = this->settings();
    settings.in_proxy = true;
    settings.passes_when_lost = passes;
    const auto function = connect_function(settings).value();
    EXPECT_EQ(function->traits().finish_waits, passes);
    EXPECT_EQ(function->traits().finish->writes.has(Field::verdict), !passes);
  }
}

/// A function in another process, with a finish stage that gets one packet.
class Confirmation {
 public:
  explicit Confirmation(const RemoteSettings& settings)
      : function_(connect_function(settings).value()),
        stage_(function_->make_cpu_stage()),
        finish_(function_->make_finish_stage(*stage_)) {
    descriptor_.length = descriptor_.wire_length = static_cast<std::uint32_t>(frame_.size());
  }
  /// Of a finding of tables with this number.
  Verdict finish(std::uint64_t grant) {
    const PacketView packet{frame_.data(), &descriptor_};
    const std::array<std::byte, 32> finding{};
    const std::byte* const findings = finding.data();
    descriptor_.verdict = Verdict::forward();
    dynamic_cast<function::HandingStage&>(*finish_).take_grant(grant);
    finish_->finish({&packet, 1}, {&findings, 1});
    return descriptor_.verdict;
  }
  [[nodiscard]] nlohmann::json report() const {
    nlohmann::json report;
    function_->report(report);
    return report["process"];
  }

 private:
  std::unique_ptr<function::NetworkFunction> function_;
  std::unique_ptr<function::CpuStage> stage_;
  std::unique_ptr<function::FinishStage> finish_;
  run::testing::Bytes frame_ = run::testing::numbered(1);
  PacketDescriptor descriptor_;
};

/// It describes a stage whose findings are all clear.
class ConfirmingFunction : public HostileFunction {
 protected:
  static void describe(Description& d) {
    d.flags |= Description::kHasStage | Description::kConfirms;
    d.stage.findings_bytes = 32;
    d.clear_value = 0;
  }
  [[nodiscard]] RemoteSettings in_proxy() const {
    RemoteSettings settings = this->settings();
    settings.in_proxy = true;
    return settings;
  }
};

TEST_F(ConfirmingFunction, GetsPacketsWithoutFindingsIfTheseAreOfOtherTables) {
  std::atomic<int> processed{0};
  Behaviour behaviour;
  behaviour.describe = describe;
  behaviour.serve = [&](BurstPage&, BurstSlot& slot) {
    slot.results[0].verdict = Verdict::drop(0);
    processed += slot.kind == BurstSlot::kProcess ? 1 : 0;
    return true;
  };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  Confirmation confirmation(in_proxy());
  EXPECT_EQ(confirmation.finish(0), Verdict::drop(0)) << "of no granted tables";
  EXPECT_EQ(confirmation.finish(77), Verdict::drop(0)) << "of tables that another process has granted";
  EXPECT_EQ(processed, 2);
  EXPECT_EQ(confirmation.report()["clear_packets"], 0);
  EXPECT_EQ(confirmation.report()["lost_packets"], 0);
}

TEST_F(ConfirmingFunction, IsLostIfItConfirmsByAnImpossibleVerdict) {
  for (const Verdict verdict : {Verdict::drop(1), Verdict::punt(), Verdict{VerdictKind::consume, 0, 0},
                                Verdict{static_cast<VerdictKind>(77), 0, 0}}) {
    Behaviour behaviour;
    behaviour.describe = describe;
    behaviour.serve = [&](BurstPage&, BurstSlot& slot) {
      slot.results[0].verdict = verdict;
      return true;
    };
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    Confirmation confirmation(in_proxy());
    EXPECT_EQ(confirmation.finish(77), Verdict::drop(1)) << "process_lost";
    EXPECT_EQ(confirmation.report()["lost_packets"], 1);
    EXPECT_EQ(confirmation.report()["losses"], 1);
  }
}

TEST_F(HostileFunction, HasAStageOnlyInAProxy) {
  Behaviour behaviour;
  behaviour.describe = [](Description& d) {
    d.flags |= Description::kHasStage;
    d.stage.writes = FieldSet{Field::verdict}.bits();
  };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  for (const bool in_proxy : {false, true}) {
    RemoteSettings settings = this->settings();
    settings.in_proxy = in_proxy;
    const auto function = connect_function(settings);
    ASSERT_TRUE(function);
    EXPECT_EQ((*function)->traits().access_on(function::Processor::gpu) != nullptr, in_proxy);
    EXPECT_EQ(function::granted_stage_of(**function) != nullptr, in_proxy);
  }
}

/// All packets of its bursts are dropped, none is missing, and the chain goes on.
class Liar : public HostileFunction {
 protected:
  void expect_lost(std::function<bool(BurstPage&, BurstSlot&)> serve) {
    Behaviour behaviour;
    behaviour.serve = std::move(serve);
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    RemoteSettings settings = this->settings();
    settings.patience = 30ms;
    const Outcome outcome = run_remote(settings);
    expect_none_missing(outcome);
    EXPECT_EQ(outcome.report.forwarded.packets, 0U);
    EXPECT_EQ(outcome.function["process"]["lost_packets"], kPackets);
  }
};

TEST_F(Liar, IsLostIfAVerdictIsImpossible) {
  const auto with = [](Verdict verdict) {
    return [verdict](BurstPage&, BurstSlot& slot) {
      for (PacketResult& result : slot.results) result = {verdict, 0};
      return true;
    };
  };
  expect_lost(with(Verdict::drop(1)));  // the reason for lost packets
  expect_lost(with(Verdict::drop(0xffff)));
  expect_lost(with(Verdict::punt()));
  expect_lost(with({static_cast<VerdictKind>(77), 0, 0}));
}

TEST_F(Liar, IsLostIfItNeverAnswers) {
  expect_lost([](BurstPage&, BurstSlot&) { return false; });
}

TEST_F(Liar, IsLostIfItAnswersOtherBursts) {
  for (const std::uint32_t far : {1U, kSlots, kSlots + 1, 0x80000000U, 0xffffffffU}) {
    expect_lost([far](BurstPage& page, BurstSlot&) {
      page.done.store(page.submitted.load() + far);
      return false;
    });
  }
}

TEST_F(HostileFunction, CanChangeNothingButItsVerdicts) {
  std::mt19937 random(1);
  Behaviour behaviour;
  behaviour.serve = [&](BurstPage& page, BurstSlot& slot) {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&slot);
    for (std::size_t i = 0; i < sizeof slot; i += 1 + random() % 64) bytes[i] = static_cast<std::uint8_t>(random());
    auto* const copies = reinterpret_cast<std::uint8_t*>(&page) + kCopiesAt;
    for (std::size_t i = 0; i < kSlots * kCopiesBytes; i += 1 + random() % 512)
      copies[i] = static_cast<std::uint8_t>(random());
    for (PacketResult& result : slot.results) result = {Verdict::forward(static_cast<PortIndex>(random())), 77};
    page.sleeping.store(1);
    return true;
  };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  const Outcome outcome = run_remote(settings());
  const auto frames = run::testing::numbered_frames(kPackets);
  ASSERT_EQ(outcome.sent.at(0).size(), kPackets);
  for (std::size_t i = 0; i < kPackets; ++i) {
    ASSERT_EQ(outcome.sent[0][i].bytes, frames[i]);
    ASSERT_EQ(outcome.sent[0][i].descriptor.mark, 0U);
  }
}

/// It changes results while they are checked and used.
TEST_F(HostileFunction, ChangesResultsWhileTheyAreRead) {
  std::atomic<BurstPage*> attacked{nullptr};
  std::atomic<bool> stops{false};
  std::jthread attacker([&] {
    bool good = false;
    while (!stops.load()) {
      BurstPage* const page = attacked.load();
      if (page == nullptr) continue;
      for (PacketResult& result : page->slots[1].results) {
        result.verdict = (good = !good) ? Verdict::forward() : Verdict::drop(9999);
      }
    }
  });
  Behaviour behaviour;
  behaviour.serve = [&](BurstPage& page, BurstSlot&) {
    attacked.store(&page);
    return true;
  };
  {
    // The attacked page must stay mapped.
    HandMadeFunction hand_made(path_, std::move(behaviour));
    RemoteSettings settings = this->settings();
    settings.patience = 50ms;
    const Outcome outcome = run_remote(settings, [&](std::size_t polled) {
      if (polled > 60) attacked.store(nullptr);
    });
    expect_none_missing(outcome);
    stops.store(true);
    attacker.join();
  }
}

/// Packets of a function that says it changes lengths, by up to 20 bytes before a frame and 3 after it.
TEST_F(HostileFunction, IsLostIfItMovesFramesByMoreThanItsFunctionCan) {
  const auto forwarded = [&](std::int32_t head, std::int64_t longer) {
    Behaviour behaviour;
    behaviour.describe = [](Description& d) {
      d.writes |= FieldSet{Field::frame_shape, Field::payload}.bits();
      d.head = 20;
      d.tail = 3;
    };
    behaviour.serve = [&](BurstPage&, BurstSlot& slot) {
      for (std::size_t i = 0; i < slot.packets; ++i)
        slot.results[i] = {Verdict::forward(), 0, head,
                           static_cast<std::uint32_t>(slot.descriptors[i].length + longer)};
      return true;
    };
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    const Outcome outcome = run_remote(settings());
    expect_none_missing(outcome);
    EXPECT_FALSE(hand_made.could_write());
    return outcome.report.forwarded.packets;
  };
  const auto length = static_cast<std::int64_t>(run::testing::numbered(1).size());
  EXPECT_EQ(forwarded(0, 0), kPackets);
  EXPECT_EQ(forwarded(20, 23), kPackets);
  EXPECT_EQ(forwarded(-5, -5), kPackets);
  EXPECT_EQ(forwarded(21, 21), 0U) << "before its room";
  EXPECT_EQ(forwarded(0, 4), 0U) << "after its room";
  EXPECT_EQ(forwarded(-5, 0), 0U) << "the same";
  EXPECT_EQ(forwarded(0, -length + 13), 0U) << "without its link header";
  EXPECT_EQ(forwarded(static_cast<std::int32_t>(-length - 1), 0), 0U);
  EXPECT_EQ(forwarded(std::numeric_limits<std::int32_t>::min(), 0), 0U);
  EXPECT_EQ(forwarded(std::numeric_limits<std::int32_t>::max(), 0), 0U);
  EXPECT_EQ(forwarded(0, 0x7fffffff), 0U);
}

/// Frames of the ring must not be taken for copies in the queue's memory, from which they would be read back.
TEST_F(HostileFunction, NumbersMemoryAsTheQueuesOwn) {
  for (const std::uint32_t number : {0U, 1U << 16, static_cast<std::uint32_t>(kMostMemories) + 1, 0xffffffffU}) {
    Behaviour behaviour;
    behaviour.describe = [](Description& d) { d.writes |= FieldSet{Field::ipv4_ttl}.bits(); };
    behaviour.reply = [number](Reply& reply) { reply.id = number; };
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    RemoteSettings settings = this->settings();
    settings.in_place = true;
    const Outcome outcome = run_remote(settings, [](std::size_t) { std::this_thread::sleep_for(200us); });
    EXPECT_TRUE(hand_made.has_opened());
    const auto frames = run::testing::numbered_frames(kPackets);
    ASSERT_EQ(outcome.sent.at(0).size(), kPackets);
    for (std::size_t i = 0; i < kPackets; ++i) ASSERT_EQ(outcome.sent[0][i].bytes, frames[i]) << number;
  }
}

TEST_F(HostileFunction, RefusesQueuesOrHangsUp) {
  {
    Behaviour behaviour;
    behaviour.reply = [](Reply& reply) { reply.failed = 1; };
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    const Outcome outcome = run_remote(settings());
    expect_none_missing(outcome);
    EXPECT_EQ(outcome.report.dropped.packets, kPackets);
  }
  Behaviour behaviour;
  behaviour.hangs_up = [] { return true; };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  const Outcome outcome = run_remote(settings());
  expect_none_missing(outcome);
  EXPECT_EQ(outcome.report.dropped.packets, kPackets);
  EXPECT_GE(outcome.function["process"]["losses"], 1) << "noticed by a request";
}

/// Requests, workers and the watcher can notice it. Here it is a request, for a queue or a token.
TEST_F(HostileFunction, IsNamedOnceWhoeverNoticesThatItIsLost) {
  for (const bool by_token : {false, true}) {
    std::atomic<bool> ends{false};
    Behaviour behaviour;
    behaviour.hangs_up = [&] { return ends.load(); };
    const HandMadeFunction hand_made(path_, std::move(behaviour));
    const auto function = connect_function(settings()).value();
    const auto stage = function->make_cpu_stage();
    ends.store(true);
    ::testing::internal::CaptureStderr();
    if (by_token) {
      EXPECT_FALSE(dynamic_cast<function::GrantedStage&>(*function).ask_for_token([] { return false; }));
    } else {
      EXPECT_NE(function->make_cpu_stage(), nullptr) << "its queue is asked for";
    }
    auto frame = run::testing::numbered(1);
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    PacketView packet{frame.data(), &descriptor};
    for (int i = 0; i < 3; ++i) stage->process({&packet, 1});
    EXPECT_FALSE(descriptor.verdict.alive()) << "process_lost";
    const std::string log = ::testing::internal::GetCapturedStderr();
    nlohmann::json report;
    function->report(report);
    EXPECT_EQ(report["process"]["losses"], 1);
    EXPECT_EQ(report["process"]["lost_packets"], 3);
    EXPECT_THAT(log, ::testing::HasSubstr("has ended, or has closed the connection: its packets are dropped"));
  }
}

TEST_F(HostileFunction, IsNotUsedAgainIfItHasBecomeAnotherOne) {
  std::atomic<int> descriptions{0};
  std::atomic<int> bursts{0};
  Behaviour behaviour;
  behaviour.describe = [&](Description& description) {
    if (descriptions++ > 0) description.reason[0] = Text<kLongestReason>("another");
  };
  behaviour.serve = [&](BurstPage&, BurstSlot&) { return ++bursts < 5; };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  RemoteSettings settings = this->settings();
  settings.patience = 10ms;
  const Outcome outcome = run_remote(settings, [&](std::size_t) { std::this_thread::sleep_for(5ms); });
  expect_none_missing(outcome);
  EXPECT_GE(descriptions.load(), 2);
  EXPECT_GE(bursts.load(), 1);
  EXPECT_LE(bursts.load(), 5 + static_cast<int>(kSlots)) << "those under way";
}

/// Such as with a file that has a mistake now.
TEST_F(HostileFunction, SaysWhyItRefusesWhenItIsBack) {
  std::atomic<int> descriptions{0};
  Behaviour behaviour;
  behaviour.describe = [&](Description& description) {
    if (descriptions++ > 0) description = refusal({{"rules.txt", 7, 0}, "no such action", "'pas'", "pass or drop"});
  };
  behaviour.serve = [](BurstPage&, BurstSlot&) { return false; };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  RemoteSettings settings = this->settings();
  settings.patience = 10ms;
  ::testing::internal::CaptureStderr();
  const Outcome outcome = run_remote(settings, [&](std::size_t) { std::this_thread::sleep_for(5ms); });
  const std::string log = ::testing::internal::GetCapturedStderr();
  expect_none_missing(outcome);
  EXPECT_THAT(log,
              ::testing::HasSubstr("is back, but refuses, and is tried again every 10 s: rules.txt:7: no such action: "
                                   "found 'pas', expected pass or drop\n"));
}

TEST_F(HostileFunction, IsUsedAgainIfItWasLostWithAFragmentOfAnotherWorker) {
  Behaviour behaviour;
  behaviour.describe = [](Description& description) { description.flags |= Description::kTracksFlows; };
  behaviour.serve = [](BurstPage&, BurstSlot& slot) {
    for (PacketResult& result : slot.results) result.verdict = Verdict::forward();
    return slot.kind == BurstSlot::kProcess;
  };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  RemoteSettings settings = this->settings();
  settings.patience = 20ms;
  const auto function = connect_function(settings).value();
  ASSERT_TRUE(function->begin_run());
  const auto stage = function->make_cpu_stage();
  auto frame = run::testing::numbered(1);
  PacketDescriptor descriptor;
  descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
  PacketView packet{frame.data(), &descriptor};
  stage->observe(packet);
  for (int i = 0; i < 500; ++i) {
    descriptor.verdict = Verdict::forward();
    stage->process({&packet, 1});
    if (descriptor.verdict.alive()) break;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(descriptor.verdict.alive());
  nlohmann::json report;
  function->report(report);
  EXPECT_EQ(report["process"]["losses"], 1);
}

/// It costs the chain its patience each time, but ever more rarely.
TEST_F(HostileFunction, ThatHangsAgainAndAgainIsUsedEverMoreRarely) {
  Behaviour behaviour;
  behaviour.serve = [](BurstPage&, BurstSlot&) { return false; };
  const HandMadeFunction hand_made(path_, std::move(behaviour));
  RemoteSettings settings = this->settings();
  settings.patience = 5ms;
  const Outcome outcome = run_remote(settings, [&](std::size_t) { std::this_thread::sleep_for(20ms); });
  expect_none_missing(outcome);
  EXPECT_LE(hand_made.connections(), 6) << "within about two seconds";
}

// Chains that lie to a function's process.

class HostileChain : public testing::ServedChain {
 protected:
  void SetUp() override { serve(drop_thirds); }
  void TearDown() override {
    // It serves others.
    expect_same(run_local(drop_thirds), run_remote(settings()));
  }
  struct HandMade {
    std::shared_ptr<Link> link;
    std::span<std::uint8_t> memory;
    std::uint32_t queue = 0;
    [[nodiscard]] BurstPage& page() const { return *reinterpret_cast<BurstPage*>(memory.data()); }
    /// Of the first burst.
    [[nodiscard]] BurstSlot& slot() const { return page().slots[1]; }
    ~HandMade() { unmap_memory(memory.data(), memory.size()); }
  };
  [[nodiscard]] Hello hello() const { return hello_of("fake", settings().surroundings).value(); }
  std::unique_ptr<HandMade> connect() {
    auto made = std::make_unique<HandMade>();
    made->link = Link::open(path_, hello()).value().link;
    made->memory = {static_cast<std::uint8_t*>(map_memory(kQueueBytes, true)), kQueueBytes};
    made->queue = made->link->request(MakeQueue{}, shared_part_of(made->memory)->file).value();
    return made;
  }
  /// One packet in the queue's own memory.
  static void put(HandMade& made) {
    BurstSlot& slot = made.slot();
    const auto frame = run::testing::numbered(1);
    std::memcpy(made.memory.data() + kCopiesAt, frame.data(), frame.size());
    slot.kind = BurstSlot::kProcess;
    slot.packets = 1;
    slot.frames[0] = frame_place(kCopies, 0);
    slot.descriptors[0] = {};
    slot.descriptors[0].length = slot.descriptors[0].wire_length = static_cast<std::uint32_t>(frame.size());
  }
  static bool is_done(HandMade& made) {
    const std::uint32_t number = made.page().submitted.fetch_add(1) + 1;
    wake(made.page().submitted);
    for (int i = 0; i < 2000; ++i) {
      if (made.page().done.load() == number) return true;
      if (made.link->has_gone()) return false;
      ::usleep(1000);
    }
    ADD_FAILURE() << "neither done nor ended";
    return false;
  }
};

TEST_F(HostileChain, LosesTheFunctionIfABurstIsWrong) {
  const auto is_refused = [&](const std::function<void(BurstSlot&)>& change) {
    const auto made = connect();
    put(*made);
    change(made->slot());
    return !is_done(*made);
  };
  EXPECT_FALSE(is_refused([](BurstSlot&) {}));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.packets = 0; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.packets = function::kBurst + 1; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.packets = 0xffffffff; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.frames[0] = frame_place(kCopies, kSlots * kCopiesBytes); }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.frames[0] = frame_place(kCopies, kSlots * kCopiesBytes - 8); }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.frames[0] = frame_place(1, 0); })) << "memory that is not open";
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.frames[0] = ~FramePlace{0}; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.descriptors[0].length = kSlots * kCopiesBytes + 1; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.descriptors[0].length = 0xffffffff; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.descriptors[0].link_type = static_cast<LinkType>(99); }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.descriptors[0].in_port = 2; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.descriptors[0].verdict.value = 2; }));
}

TEST_F(HostileChain, LosesAFunctionThatConfirmsNothingIfItSendsFindings) {
  const auto made = connect();
  put(*made);
  made->slot().kind = BurstSlot::kConfirm;
  EXPECT_FALSE(is_done(*made));
}

TEST_F(HostileChain, LosesAFunctionThatMakesNoStatesIfItAsksForThem) {
  const auto made = connect();
  put(*made);
  made->slot().kind = BurstSlot::kDecide;
  EXPECT_FALSE(is_done(*made));
}

/// Drops packets of connections that are not known.
class ReadingFunction final : public function::NetworkFunction, public function::ConnectionReader {
 public:
  ReadingFunction() {
    traits_.name = "fake";
    traits_.cpu = {{Field::ipv4_src}, {Field::verdict}};
    traits_.drop_reasons = testing::kReasons;
    traits_.connections = conntrack::Options();
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::string description() const override { return ""; }
  std::string why_needs_connections() const override { return ""; }
  void read_connections() override {}
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(); }

 private:
  class Stage final : public function::CpuStage, public function::ConnectionReadingStage {
   public:
    void take_connections(std::span<const conntrack::PacketConnection> connections) noexcept override {
      connections_ = connections;
    }
    void process(std::span<PacketView> packets) noexcept override {
      constexpr auto kEstablished = static_cast<unsigned>(conntrack::State::established);
      for (std::size_t i = 0; i < packets.size(); ++i) {
        const unsigned state = connections_[i].number & conntrack::PacketConnection::kState;
        if (state != kEstablished) packets[i].packet->verdict = Verdict::drop(0);
      }
    }

   private:
    std::span<const conntrack::PacketConnection> connections_;
  };
  function::NfTraits traits_;
};

class HostileConnections : public HostileChain {
 protected:
  void SetUp() override {
    auto server = Server::start({path_}, [](std::string_view, const Surroundings&) {
      return Result<std::unique_ptr<function::NetworkFunction>>(std::make_unique<ReadingFunction>());
    });
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }
  void TearDown() override {}
};

TEST_F(HostileConnections, AreThoseThatCanBe) {
  const auto verdict_with = [&](std::uint8_t number, std::uint8_t full) -> std::optional<Verdict> {
    const auto made = connect();
    put(*made);
    conntrack::PacketConnection connection;
    connection.number = number;
    connection.full = full;
    std::memcpy(made->slot().states.data(), &connection, sizeof connection);
    if (!is_done(*made)) return std::nullopt;
    return made->slot().results[0].verdict;
  };
  constexpr auto kEstablished = static_cast<std::uint8_t>(conntrack::State::established);
  ASSERT_TRUE(verdict_with(kEstablished, 0));
  EXPECT_TRUE(verdict_with(kEstablished, 0)->alive());
  EXPECT_TRUE(verdict_with(kEstablished | conntrack::PacketConnection::kReply, 0)->alive());
  ASSERT_TRUE(verdict_with(static_cast<std::uint8_t>(conntrack::State::new_connection), 0));
  EXPECT_FALSE(verdict_with(static_cast<std::uint8_t>(conntrack::State::new_connection), 0)->alive());
  EXPECT_FALSE(verdict_with(5, 0)) << "there is no such state";
  EXPECT_FALSE(verdict_with(64 | kEstablished, 0));
  EXPECT_FALSE(verdict_with(255, 0));
  EXPECT_FALSE(verdict_with(kEstablished, 2));
}

/// A packet that the process drops begins no connection, so that the next one of its connection is new too.
TEST_F(HostileConnections, DoNotBeginWithPacketsThatTheProcessDrops) {
  auto function = connect_function(settings());
  ASSERT_TRUE(function) << to_string(function.error());
  const Outcome outcome = run_chain(std::move(*function));
  expect_none_missing(outcome);
  EXPECT_EQ(outcome.report.dropped.packets, kPackets);
  EXPECT_EQ(outcome.function["connections"]["confirmed"], 0) << outcome.function.dump(2);
  EXPECT_EQ(outcome.function["connections"]["packets_that_begin"], kPackets);
  EXPECT_EQ(outcome.function["connections"]["now"], 0);
}

/// The function puts 20 bytes before each frame.
class HostileLengths : public HostileChain {
 protected:
  static void grow(FakeFunction& function) {
    drop_thirds(function);
    function.own_traits.cpu.writes |= FieldSet{Field::payload, Field::frame_shape};
    function.own_traits.growth = {20, 3};
    function.process = [](std::span<PacketView> packets) {
      for (PacketView& packet : packets) {
        packet.frame -= 20;
        packet.packet->offset -= 20;
        packet.packet->length += 20;
        std::memset(packet.frame, 7, 20);
      }
    };
  }
  void SetUp() override { serve(grow); }
  void TearDown() override {}
  static constexpr std::size_t kAt = 64;
  static void put(HandMade& made) {
    HostileChain::put(made);
    std::memmove(made.memory.data() + kCopiesAt + kAt, made.memory.data() + kCopiesAt, 100);
    made.slot().frames[0] = frame_place(kCopies, kAt);
  }
};

TEST_F(HostileLengths, AreOfFramesWithRoom) {
  const auto is_refused = [&](const std::function<void(BurstSlot&)>& change) {
    const auto made = connect();
    put(*made);
    change(made->slot());
    return !is_done(*made);
  };
  EXPECT_FALSE(is_refused([](BurstSlot&) {}));
  EXPECT_FALSE(is_refused([](BurstSlot& slot) { slot.frames[0] = frame_place(kCopies, 20); }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.frames[0] = frame_place(kCopies, 19); }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) {
    slot.frames[0] = frame_place(kCopies, kSlots * kCopiesBytes - 2 - slot.descriptors[0].length);
  }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.descriptors[0].length = kCopiesBytes; }))
      << "more than a burst can have";
  EXPECT_TRUE(is_refused([](BurstSlot& slot) {
    slot.packets = function::kBurst;
    for (std::size_t i = 0; i < function::kBurst; ++i) {
      slot.frames[i] = slot.frames[0];
      slot.descriptors[i] = slot.descriptors[0];
      slot.descriptors[i].length = 8000;
    }
  })) << "the same";
}

TEST_F(HostileLengths, ChangeNothingButTheFrame) {
  const auto made = connect();
  put(*made);
  const std::uint32_t length = made->slot().descriptors[0].length;
  const std::vector<std::uint8_t> before(made->memory.begin() + kCopiesAt, made->memory.begin() + kCopiesAt + 512);
  ASSERT_TRUE(is_done(*made));
  EXPECT_EQ(made->slot().results[0].head, 20);
  EXPECT_EQ(made->slot().results[0].length, length + 20);
  std::vector<std::uint8_t> expected = before;
  std::fill_n(expected.begin() + kAt - 20, 20, std::uint8_t{7});
  EXPECT_EQ(std::vector<std::uint8_t>(made->memory.begin() + kCopiesAt, made->memory.begin() + kCopiesAt + 512),
            expected);
}

/// Its findings are below 100.
class HostileFindings : public HostileChain {
 protected:
  struct Confirming : function::FinishStage, function::ConfirmingStage {
    explicit Confirming(HostileFindings& test) : counts(test) {}
    void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override {
      counts.confirmed += packets.size();
      for (std::size_t i = 0; i < packets.size(); ++i) {
        if (std::to_integer<int>(findings[i][0]) == 7) packets[i].packet->verdict = Verdict::drop(1);
      }
    }
    bool can_be(const std::byte* finding) const noexcept override { return std::to_integer<int>(finding[0]) < 100; }
    void pass_over(const function::PassedOver& packets) noexcept override { counts.passed_over += packets.packets; }
    HostileFindings& counts;
  };
  void SetUp() override {
    const auto make = [this](std::string_view, const Surroundings&) {
      auto fake = std::make_unique<FakeFunction>();
      drop_thirds(*fake);
      fake->own_traits.finish = fake->own_traits.cpu;
      fake->own_traits.findings_bytes = 16;
      return Result<std::unique_ptr<function::NetworkFunction>>(std::make_unique<testing::ConfirmingFake>(
          std::move(fake), function::ClearFindings(), [this] { return std::make_unique<Confirming>(*this); }));
    };
    server_ = Server::start({path_}, make).value();
  }
  std::atomic<std::uint64_t> confirmed{0}, passed_over{0};
};

TEST_F(HostileFindings, AreCheckedBeforeTheyAreUsed) {
  const auto is_refused = [&](const std::function<void(BurstSlot&)>& change) {
    const auto made = connect();
    put(*made);
    made->slot().kind = BurstSlot::kConfirm;
    change(made->slot());
    return !is_done(*made);
  };
  EXPECT_FALSE(is_refused([](BurstSlot&) {}));
  EXPECT_EQ(confirmed, 1U);
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.findings[0] = std::byte{100}; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) {
    slot.packets = 2;
    slot.frames[1] = slot.frames[0];
    slot.descriptors[1] = slot.descriptors[0];
    slot.findings[16] = std::byte{255};
  }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.packets = function::kBurst + 1; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.frames[0] = ~FramePlace{0}; }));
  EXPECT_TRUE(is_refused([](BurstSlot& slot) { slot.kind = 77; }));
  EXPECT_EQ(confirmed, 1U);
  EXPECT_FALSE(is_refused([](BurstSlot& slot) { slot.findings[1] = std::byte{255}; })) << "what the function ignores";
}

TEST_F(HostileFindings, DecideLikePackets) {
  const auto made = connect();
  put(*made);
  made->slot().kind = BurstSlot::kConfirm;
  made->slot().findings[0] = std::byte{7};
  ASSERT_TRUE(is_done(*made));
  EXPECT_EQ(made->slot().results[0].verdict, Verdict::drop(1));
}

TEST_F(HostileFindings, MayBeMissingWhereOnlyClearOnesAreCounted) {
  const auto made = connect();
  put(*made);
  BurstSlot& slot = made->slot();
  slot.kind = BurstSlot::kConfirm;
  slot.packets = 0;
  slot.passed_over = {5, 500};
  ASSERT_TRUE(is_done(*made));
  EXPECT_EQ(passed_over, 5U);
  EXPECT_EQ(confirmed, 0U);
}

TEST_F(HostileChain, LosesTheFunctionIfItSubmitsMoreThanThereAreSlots) {
  const auto made = connect();
  for (BurstSlot& slot : made->page().slots) slot.packets = 1;
  made->page().submitted.store(kSlots + 1);
  wake(made->page().submitted);
  for (int i = 0; i < 2000 && !made->link->has_gone(); ++i) ::usleep(1000);
  EXPECT_TRUE(made->link->has_gone());
  EXPECT_EQ(made->page().done.load(), 0U);
}

TEST_F(HostileChain, IsBelievedNothingThatTheFunctionDependsOn) {
  const auto made = connect();
  put(*made);
  PacketDescriptor& packet = made->slot().descriptors[0];
  packet.verdict = {static_cast<VerdictKind>(200), 9, 1};
  packet.region = 30;
  packet.offset = 0xfffffff0;
  packet.layout.network_offset = packet.layout.transport_offset = 0xffff;
  packet.layout.flags = 0xffff;
  packet.layout.end = 0xffffffff;
  EXPECT_TRUE(is_done(*made));
  EXPECT_EQ(made->slot().results[0].verdict.kind, VerdictKind::forward);
}

TEST_F(HostileChain, CannotOpenMemoryThatMayVanish) {
  const auto made = connect();
  OpenMemory request;
  request.queue = made->queue;
  request.bytes = 4096;
  const ipc::FileDescriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_FALSE(made->link->request(request, unsealed.get()));
  const ipc::FileDescriptor sealed(make_shared_file("test", 4096));
  request.bytes = 4097;
  EXPECT_FALSE(made->link->request(request, sealed.get()));
  request.bytes = 0;
  EXPECT_FALSE(made->link->request(request, sealed.get()));
  request.bytes = ~std::uint64_t{0};
  EXPECT_FALSE(made->link->request(request, sealed.get()));
  request.bytes = 4096;
  request.queue = 77;
  EXPECT_FALSE(made->link->request(request, sealed.get()));
  request.queue = made->queue;
  for (std::size_t i = 0; i < kMostMemories; ++i) EXPECT_TRUE(made->link->request(request, sealed.get())) << i;
  EXPECT_FALSE(made->link->request(request, sealed.get())) << "too many";
  EXPECT_FALSE(made->link->request(MakeQueue{}, unsealed.get()));
  EXPECT_FALSE(made->link->request(MakeQueue{}, sealed.get())) << "too small";
  put(*made);
  made->slot().frames[0] = frame_place(1, 4090);
  EXPECT_FALSE(is_done(*made)) << "a frame beyond the memory";
}

TEST_F(HostileChain, LosesTheFunctionIfItSaysNonsense) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const auto socket = ipc::connect_to(path_, {"the function's process", "penstock function serve"}).value();
    if (round % 2 == 0) {
      ASSERT_EQ(ipc::send_message(socket.get(), bytes_of(hello()), {}, 1000ms), 0);
      ASSERT_TRUE(ipc::receive_message(socket.get(), sizeof(Description), 2000ms));
    }
    std::vector<std::byte> bytes(1 + random() % 200);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    if (bytes.size() >= 4 && round % 4 < 2) {
      const auto type = static_cast<std::uint32_t>(random() % 6);
      std::memcpy(bytes.data(), &type, sizeof type);
    }
    ASSERT_EQ(ipc::send_message(socket.get(), bytes, {}, 1000ms), 0);
    const auto answer = ipc::receive_message(socket.get(), sizeof(Description), 5000ms);
    // What could be a request is refused; else the connection is closed.
    const auto reply = answer ? message_of<Reply>(answer->bytes) : std::nullopt;
    const auto token = answer ? message_of<TokenReply>(answer->bytes) : std::nullopt;
    const bool is_refused = (reply && reply->failed != 0) || (token && token->failed != 0);
    EXPECT_TRUE(answer ? is_refused : errno != ETIMEDOUT);
  }
  Hello hello = this->hello();
  hello.ports = 0xffffffff;
  EXPECT_NE(Link::open(path_, hello).value().description.failed, 0U);
  hello = this->hello();
  hello.port[0].name = Text<kLongestName>("a\nb");
  EXPECT_NE(Link::open(path_, hello).value().description.failed, 0U);
  hello = this->hello();
  hello.port[0].exit = 2;
  EXPECT_NE(Link::open(path_, hello).value().description.failed, 0U);
  hello = this->hello();
  hello.version = kProtocolVersion + 1;
  EXPECT_NE(Link::open(path_, hello).value().description.failed, 0U);
}

/// Some lie in messages that are never received.
TEST_F(HostileChain, KeepsNobodyOutByDescriptorsThatTakeLongToClose) {
  ipc::testing::Lingering received;
  std::array<ipc::testing::Lingering, 8> left;
  const auto socket = ipc::connect_to(path_, {"the function's process", "penstock function serve"}).value();
  ASSERT_EQ(ipc::send_message(socket.get(), bytes_of(hello()), {}, 1000ms), 0);
  ASSERT_TRUE(ipc::receive_message(socket.get(), sizeof(Description), 5000ms));
  ASSERT_TRUE(received.send_over(socket.get(), bytes_of(MakeQueue{})));
  const auto answer = ipc::receive_message(socket.get(), sizeof(Reply), 5000ms);
  ASSERT_TRUE(answer);
  EXPECT_NE(message_of<Reply>(answer->bytes).value().failed, 0U);
  // Nothing of this is a message, so the first one ends a connection.
  for (ipc::testing::Lingering& lingering : left) {
    const auto wrong = ipc::connect_to(path_, {"the function's process", "penstock function serve"}).value();
    static_cast<void>(ipc::send_message(wrong.get(), ipc::testing::kMessage, {}, 1000ms));
    lingering.send_over(wrong.get());
  }
  expect_same(run_local(drop_thirds), run_remote(settings()));
}

TEST_F(HostileChain, HasABoundedNumberOfConnections) {
  std::vector<ipc::FileDescriptor> silent;
  for (int i = 0; i < 100; ++i) {
    if (auto socket = ipc::connect_to(path_, {"it", "it"})) silent.push_back(std::move(*socket));
  }
  const Description refused = Link::open(path_, hello()).value().description;
  EXPECT_NE(refused.failed, 0U);
  EXPECT_EQ(refused.text.view(), "too many connections");
  EXPECT_EQ(refused.found.view(), "32");
  std::this_thread::sleep_for(3s);  // those that say nothing are closed
}

}  // namespace
}  // namespace penstock::process
