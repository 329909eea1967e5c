// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: ports and functions made of lambdas, packets that carry a number, and chains of these. A chain owns its
// fakes; a test keeps references to them, and reads them after the workers have stopped.

#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "packet/testing/packet_builder.h"
#include "run/chain.h"

namespace penstock::run::testing {

using Bytes = std::vector<std::uint8_t>;

/// A UDP frame of flow `flow` that ends with `number`. Consecutive numbers have different lengths.
inline Bytes numbered(std::uint64_t number, unsigned flow = 0) {
  std::string payload(number % 50, 'x');
  for (int shift = 56; shift >= 0; shift -= 8) payload += static_cast<char>(number >> shift);
  return penstock::testing::packet()
      .eth()
      .ipv4("10.0." + std::to_string(flow / 200) + "." + std::to_string(1 + flow % 200), "192.0.2.1")
      .udp(static_cast<std::uint16_t>(1024 + flow), 53)
      .payload(payload)
      .bytes();
}
inline std::vector<Bytes> numbered_frames(std::uint64_t count, std::uint64_t first = 0) {
  std::vector<Bytes> frames;
  for (std::uint64_t i = 0; i < count; ++i) frames.push_back(numbered(first + i));
  return frames;
}
inline std::uint64_t number_of(const std::uint8_t* frame, std::size_t length) {
  std::uint64_t number = 0;
  for (std::size_t i = length - 8; i < length; ++i) number = number << 8 | frame[i];
  return number;
}
inline std::uint64_t number_of(PacketView packet) { return number_of(packet.frame, packet.length()); }
inline std::uint64_t number_of(const Bytes& frame) { return number_of(frame.data(), frame.size()); }
inline std::uint64_t bytes_of(const std::vector<Bytes>& frames) {
  std::uint64_t bytes = 0;
  for (const Bytes& frame : frames) bytes += frame.size();
  return bytes;
}

inline bool append(Batch& batch, const Bytes& frame, PortIndex in_port = 0) {
  return batch.append(frame, {1, static_cast<std::uint32_t>(frame.size()), in_port, LinkType::ethernet});
}

class FakePort final : public port::Port {
 public:
  using Poll = std::function<port::RxStatus(unsigned worker, Batch& batch)>;
  using Refuses = std::function<bool(PacketView packet)>;

  struct Sent {
    Bytes bytes;
    PacketDescriptor descriptor;
  };

  Poll poll;  // empty: the port does not read
  std::optional<std::chrono::nanoseconds> arrivals_to_clock;
  bool is_sink = false;
  Refuses refuses;  // empty: accepts all
  bool waits = true;
  bool wakes = false;  // as interfaces do
  Errors check_errors, open_errors, start_errors, close_errors;
  std::function<void()> while_opening = [] {};
  std::function<void()> while_starting = [] {};
  std::function<void()> while_closing = [] {};
  std::function<port::Lost()> loses = [] { return port::Lost{}; };  // called at each flush
  std::function<void(std::size_t frames)> takes_back = [](std::size_t) {};
  std::function<port::Departures()> departures = [] { return port::Departures{}; };
  std::optional<port::OfferedLoad> load;
  std::optional<port::FragmentCounts> fragment_counts;
  std::function<bool()> has_failed = [] { return false; };
  std::optional<port::CapabilityNeeds> needs;

  bool opened = false, started = false, closed = false;
  PacketMemory* packet_memory = nullptr;  // once opened
  std::atomic<bool> interrupted{false};
  std::vector<std::vector<Sent>> sent;  // by worker
  std::vector<int> flushes;             // by worker

  bool reads() const noexcept override { return static_cast<bool>(poll); }
  bool writes() const noexcept override { return is_sink; }
  bool lossless() const noexcept override { return waits; }
  Errors check() const override { return check_errors; }
  void interrupt() noexcept override { interrupted = true; }
  Result<void> start() override {
    while_starting();
    if (!start_errors.empty()) return failure(start_errors);
    started = true;
    return {};
  }
  std::optional<port::OfferedLoad> offered() const noexcept override { return load; }
  std::optional<port::FragmentCounts> fragments() const noexcept override { return fragment_counts; }
  Result<void> open(const port::Opening& opening) override {
    while_opening();
    if (!open_errors.empty()) return failure(open_errors);
    opened = true;
    packet_memory = opening.memory;
    sent.resize(opening.workers);
    flushes.resize(opening.workers);
    for (unsigned i = 0; i < opening.workers; ++i) queues_.push_back(std::make_unique<Queue>(*this, i));
    return {};
  }
  port::RxQueue* rx(unsigned worker) noexcept override { return poll ? queues_[worker].get() : nullptr; }
  port::TxQueue* tx(unsigned worker) noexcept override { return is_sink ? queues_[worker].get() : nullptr; }
  Errors close() override {
    while_closing();
    closed = true;
    return close_errors;
  }
  bool failed() const noexcept override { return has_failed(); }
  std::optional<port::CapabilityNeeds> capabilities() const override { return needs; }

  [[nodiscard]] std::vector<std::uint64_t> numbers(unsigned worker = 0) const {
    std::vector<std::uint64_t> all;
    for (const Sent& packet : sent[worker]) all.push_back(number_of(packet.bytes));
    return all;
  }
  [[nodiscard]] std::uint64_t sent_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& of_worker : sent) {
      for (const Sent& packet : of_worker) bytes += packet.bytes.size();
    }
    return bytes;
  }

 private:
  class Queue final : public port::RxQueue, public port::TxQueue {
   public:
    Queue(FakePort& port, unsigned worker) : port_(port), worker_(worker) {}
    port::RxStatus poll(Batch& batch) noexcept override { return port_.poll(worker_, batch); }
    void take_back(std::size_t frames) noexcept override { port_.takes_back(frames); }
    port::Departures departures() noexcept override { return port_.departures(); }
    std::optional<std::chrono::nanoseconds> arrivals_to_clock() noexcept override { return port_.arrivals_to_clock; }
    bool add_wake_ups(std::vector<pollfd>& /*to*/) noexcept override { return port_.wakes; }
    Discarded discard(std::size_t most) noexcept override {
      std::vector<std::uint8_t> bytes(1 << 20);
      std::vector<PacketDescriptor> descriptors(most);
      Batch batch(bytes, descriptors, {});
      const port::RxStatus status = poll(batch);
      return {status, batch.size(), batch.frame_bytes()};
    }
    std::size_t send(std::span<const PacketView> packets) noexcept override {
      std::size_t taken = 0;
      for (const PacketView& packet : packets) {
        if (port_.refuses && port_.refuses(packet)) {
          packet.packet->verdict = Verdict::drop(0);
          continue;
        }
        port_.sent[worker_].push_back({Bytes(packet.frame, packet.frame + packet.length()), *packet.packet});
        ++taken;
      }
      return taken;
    }
    port::Lost flush() noexcept override { return ++port_.flushes[worker_], port_.loses(); }

   private:
    FakePort& port_;
    unsigned worker_;
  };
  std::vector<std::unique_ptr<Queue>> queues_;
};

/// Polls one group of frames at a time; frames that do not fit follow at the next poll. Then ends. For one worker.
inline FakePort::Poll script(std::vector<std::vector<Bytes>> groups, PortIndex in_port = 0) {
  return [groups = std::move(groups), in_port, group = std::size_t{0}, next = std::size_t{0}](unsigned,
                                                                                              Batch& batch) mutable {
    if (group == groups.size()) return port::RxStatus::end;
    for (; next < groups[group].size(); ++next) {
      if (!append(batch, groups[group][next], in_port)) return port::RxStatus::more;
    }
    next = 0;
    return ++group == groups.size() ? port::RxStatus::end : port::RxStatus::idle;
  };
}

class FakeFunction final : public function::NetworkFunction {
 public:
  using Process = std::function<void(std::span<PacketView> packets)>;

  std::function<std::optional<function::StageRecipe>()> recipe = [] { return std::nullopt; };
  std::function<std::optional<std::uint64_t>()> version = [] { return std::nullopt; };  // of the recipe
  function::NfTraits own_traits{.name = "fake", .summary = "", .cpu = {}, .devices = {}, .finish = {}};
  Process process = [](std::span<PacketView>) {};
  Errors check_errors, begin_errors;
  std::function<void()> at_begin = [] {};  // of the run
  std::function<void()> at_end = [] {};
  std::function<void()> at_make = [] {};  // of a stage
  Errors take_over_errors;
  function::NetworkFunction* predecessor = nullptr;  // whose place it has taken last
  int predecessors_ended = 0;
  std::atomic<int> stages{0};      // that exist now
  std::atomic<int> boundaries{0};  // calls of begin_batch, over all stages
  std::function<void(PacketView packet)> observe = [](PacketView) {};
  std::function<void()> at_stage_end = [] {};
  function::Emitter* emitter = nullptr;     // of the latest stage, if the traits request one
  stack::Attachment* attachment = nullptr;  // ditto

  const function::NfTraits& traits() const noexcept override { return own_traits; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override {
    at_make();
    return std::make_unique<Stage>(*this);
  }
  std::optional<function::StageRecipe> stage_recipe(function::Processor /*processor*/) const override {
    return recipe();
  }
  std::optional<std::uint64_t> recipe_version() const noexcept override { return version(); }
  Errors check() const override { return check_errors; }
  Result<void> begin_run() override {
    at_begin();
    if (!begin_errors.empty()) return failure(begin_errors);
    return {};
  }
  void end_run() noexcept override { at_end(); }
  Result<void> take_over(function::NetworkFunction& before) override {
    if (!take_over_errors.empty()) return failure(take_over_errors);
    predecessor = &before;
    return {};
  }
  void predecessor_ended() noexcept override { ++predecessors_ended; }
  std::string description() const override { return "a fake"; }

 private:
  class Stage final : public function::CpuStage {
   public:
    explicit Stage(FakeFunction& function) : function_(function) { ++function_.stages; }
    ~Stage() override {
      function_.at_stage_end();
      --function_.stages;
    }
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    void set_emitter(function::Emitter& emitter) noexcept override { function_.emitter = &emitter; }
    void attach(stack::Attachment& attachment) noexcept override { function_.attachment = &attachment; }
    void begin_batch() noexcept override { ++function_.boundaries; }
    void process(std::span<PacketView> packets) noexcept override { function_.process(packets); }
    void observe(PacketView packet) noexcept override { function_.observe(packet); }
    std::string explain(PacketView packet) const override { return "number " + std::to_string(number_of(packet)); }

   private:
    FakeFunction& function_;
  };
};

/// A function that decides on each packet separately.
inline FakeFunction::Process each(std::function<Verdict(PacketView packet)> decide) {
  return [decide = std::move(decide)](std::span<PacketView> packets) {
    for (const PacketView packet : packets) packet.packet->verdict = decide(packet);
  };
}

struct FakeChain : Chain {
  FakePort& add_port(std::string name) {
    auto port = std::make_unique<FakePort>();
    FakePort& fake = *port;
    ports.push_back({std::move(name), std::move(port)});
    wiring.push_back(kNoPort);
    return fake;
  }
  FakePort& add_source(std::string name, FakePort::Poll poll) {
    FakePort& port = add_port(std::move(name));
    port.poll = std::move(poll);
    return port;
  }
  /// All packets leave by this port, unless a function or the test decides otherwise.
  FakePort& add_sink(std::string name) {
    FakePort& port = add_port(std::move(name));
    port.is_sink = true;
    wiring.assign(ports.size(), static_cast<PortIndex>(ports.size() - 1));
    return port;
  }
  FakeFunction& add_function(std::string name, FakeFunction::Process process) {
    auto function = std::make_unique<FakeFunction>();
    FakeFunction& fake = *function;
    fake.process = std::move(process);
    functions.push_back({std::move(name), std::move(function)});
    return fake;
  }
  void open() {
    for (NamedPort& named : ports) static_cast<void>(named.port->open(settings.workers));
  }
};

}  // namespace penstock::run::testing
