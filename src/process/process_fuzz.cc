// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as what the process of a chain writes into the memory that it shares with a function's process, and
// as what both tell each other before the first packet. A burst is processed or refused, and packets that are processed
// are as functions may expect them.

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/shared_memory.h"
#include "base/testing/fuzz_check.h"
#include "conntrack/packet_connection.h"
#include "function/connection_reader.h"
#include "function/granted_stage.h"
#include "process/description.h"
#include "process/served_queue.h"

using namespace penstock;
using namespace penstock::process;

namespace {

constexpr std::size_t kPorts = 3;
constexpr std::size_t kFrameBytes = 4096;
constexpr std::uint32_t kFindingBytes = 16;

/// Reads all of each packet, and relies on what a function may rely on. Findings begin with a byte below 200.
class Reader final : public function::NetworkFunction,
                     public function::ConfirmingFunction,
                     public function::ConnectionReader,
                     public function::DecidingFunction {
 public:
  Reader() {
    traits_.name = "reader";
    traits_.cpu = {FieldSet::all(), {Field::verdict}};
    traits_.finish = traits_.cpu;
    traits_.findings_bytes = kFindingBytes;
    traits_.state_bytes = sizeof(std::uint64_t);
    traits_.connections = conntrack::Options();
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(); }
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& /*twin*/) override {
    return std::make_unique<Finish>();
  }
  std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& /*twin*/) override {
    return std::make_unique<States>();
  }
  std::optional<function::ClearFindings> clear_findings() const noexcept override { return function::ClearFindings(); }
  std::string why_needs_connections() const override { return ""; }
  void read_connections() override {}
  void decide_for_others() override {}
  std::string description() const override { return "reads"; }

 private:
  class Stage final : public function::CpuStage, public function::ConnectionReadingStage {
   public:
    void take_connections(std::span<const conntrack::PacketConnection> connections) noexcept override {
      for (const conntrack::PacketConnection& one : connections) testing::check(one.is_possible());
      connections_ = connections;
    }
    void process(std::span<PacketView> packets) noexcept override {
      testing::check(!packets.empty() && packets.size() <= function::kBurst);
      testing::check(connections_.size() == packets.size());
      for (const PacketView& packet : packets) read(packet);
    }
    void observe(PacketView packet) noexcept override { read(packet); }

    static void read(PacketView packet) {
      const PacketDescriptor& descriptor = *packet.packet;
      const PacketLayout& layout = packet.layout();
      testing::check(descriptor.verdict.alive() && descriptor.in_port < kPorts);
      testing::check(descriptor.verdict.value == kNoPort || descriptor.verdict.value < kPorts);
      testing::check(layout.transport_offset <= layout.payload_offset && layout.payload_offset <= packet.length());
      testing::check(layout.end <= packet.length());
      std::uint8_t sum = 0;
      for (const std::uint8_t byte : std::span(packet.frame, packet.length()))
        sum = static_cast<std::uint8_t>(sum + byte);
      if ((sum & 1) != 0) packet.packet->verdict = Verdict::drop(0);
    }

   private:
    std::span<const conntrack::PacketConnection> connections_;
  };
  class States final : public function::StateStage {
   public:
    void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept override {
      testing::check(!packets.empty() && packets.size() <= function::kBurst && states.size() == packets.size());
      for (std::size_t i = 0; i < packets.size(); ++i) {
        Stage::read(packets[i]);
        std::memset(states[i], 7, sizeof(std::uint64_t));
      }
    }
  };
  class Finish final : public function::FinishStage, public function::ConfirmingStage {
   public:
    void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override {
      testing::check(!packets.empty() && packets.size() <= function::kBurst && findings.size() == packets.size());
      for (const std::byte* const finding : findings) testing::check(can_be(finding));
      for (const PacketView& packet : packets) Stage::read(packet);
    }
    bool can_be(const std::byte* finding) const noexcept override { return std::to_integer<int>(finding[0]) < 200; }
    bool can_be_state(const std::byte* state) const noexcept override { return std::to_integer<int>(state[0]) < 100; }
    void take_states(std::span<const std::byte* const> states) noexcept override {
      for (const std::byte* const state : states) testing::check(can_be_state(state));
    }
    void pass_over(const function::PassedOver& packets) noexcept override { testing::check(packets.packets > 0); }
  };
  function::NfTraits traits_;
};

/// A function with these traits.
class Described final : public function::NetworkFunction, public function::ConnectionReader {
 public:
  explicit Described(const function::NfTraits& traits) : traits_(traits) {}
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return nullptr; }
  std::string description() const override { return "described"; }
  std::string why_needs_connections() const override { return ""; }
  void read_connections() override {}

 private:
  const function::NfTraits& traits_;
};

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : left_(data, size) {}
  [[nodiscard]] bool empty() const { return left_.empty(); }
  std::uint8_t byte() {
    std::uint8_t byte = 0;
    fill(&byte, 1);
    return byte;
  }
  /// As much as there is.
  void fill(void* to, std::size_t bytes) {
    const std::size_t taken = std::min(bytes, left_.size());
    if (taken > 0) std::memcpy(to, left_.data(), taken);
    left_ = left_.subspan(taken);
  }

 private:
  std::span<const std::uint8_t> left_;
};

void try_texts(Input& input) {
  Hello hello;
  input.fill(&hello, sizeof hello);
  if (const auto surroundings = surroundings_of(hello)) {
    testing::check(surroundings->ports.size() == hello.ports);
    testing::check(hello_of("reader", *surroundings).has_value());
  }
  Description description;
  input.fill(&description, sizeof description);
  if (const auto served = ServedTraits::read(description, "reader", /*in_proxy=*/true)) {
    const function::NfTraits& traits = (*served)->traits();
    testing::check(traits.drop_reasons.size() == (*served)->reasons() + 1 &&
                   traits.drop_reasons.back() == ServedTraits::kLost);
    testing::check(why_not_served(Described(traits)).empty());
    const function::StageNeeds* const stage = (*served)->stage();
    testing::check((stage != nullptr) == (traits.access_on(function::Processor::gpu) != nullptr));
    testing::check(stage == nullptr || why_no_stage(traits, *stage, (*served)->clear_findings().has_value()).empty());
    testing::check(!traits.finish || (stage != nullptr && (*served)->clear_findings()));
    testing::check(!traits.finish_waits || traits.finish->writes.empty());
  }
}

void write_slot(Input& input, BurstSlot& slot) {
  slot.kind = input.byte();
  slot.packets = input.byte();
  slot.begins_batch = input.byte();
  slot.passed_over = {input.byte() / 128U, 77};
  const std::size_t given = std::min<std::size_t>(slot.packets, 4);  // the others are as before
  for (std::size_t i = 0; i < given; ++i) {
    const std::uint8_t how = input.byte();
    slot.findings[i * kFindingBytes] = std::byte{input.byte()};
    slot.states[i * sizeof(conntrack::PacketConnection)] = std::byte{input.byte()};
    PacketDescriptor& descriptor = slot.descriptors[i];
    if ((how & 1) != 0) {
      input.fill(&slot.frames[i], sizeof(FramePlace));
    } else {
      slot.frames[i] = frame_place(how >> 6, input.byte() * 8U);
    }
    if ((how & 2) != 0) {
      input.fill(static_cast<void*>(&descriptor), sizeof descriptor);
    } else {
      descriptor = {};
      descriptor.length = descriptor.wire_length = input.byte() * 8U;
      descriptor.in_port = (how >> 2) % 4;
    }
  }
}

void try_bursts(Input& input) {
  const int queue_file = make_shared_file("fuzz", kQueueBytes);
  const int frame_file = make_shared_file("fuzz", kFrameBytes);
  auto memory = std::make_unique<const MappedFile>(queue_file, kQueueBytes, true);
  BurstPage& page = *reinterpret_cast<BurstPage*>(memory->bytes().data());
  std::uint8_t* const copies = memory->bytes().data() + kCopiesAt;
  auto frames = std::make_unique<const MappedFile>(frame_file, kFrameBytes, true);
  ::close(queue_file);
  ::close(frame_file);
  input.fill(frames->bytes().data(), 256);
  Reader reader;
  std::atomic<bool> is_wrong{false};
  ServedQueue queue(reader, 0, std::move(memory), kPorts, [&](ServedQueue::End end, std::string_view why) {
    testing::check(end == ServedQueue::End::chain_is_wrong && !why.empty());
    is_wrong.store(true);
  });
  testing::check(queue.add(std::move(frames)) == 1U);
  for (std::uint32_t number = 0; !input.empty() && !is_wrong.load();) {
    input.fill(copies, 64);
    const std::uint32_t bursts = 1 + input.byte() % (kSlots + 1);
    for (std::uint32_t b = 1; b <= bursts; ++b) write_slot(input, page.slots[(number + b) % kSlots]);
    number += bursts;
    page.submitted.store(number);
    wake(page.submitted);
    while (page.done.load() != number && !is_wrong.load()) std::this_thread::yield();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input(data, size);
  if (input.byte() % 4 == 0) {
    try_texts(input);
  } else {
    try_bursts(input);
  }
  return 0;
}
