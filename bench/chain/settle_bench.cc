// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The cost of a batch on a GPU for the worker's core, for Gaviss's chain C4 (firewall, nids, router, ipsec; every
// packet is encrypted, and whole frames come back). The lanes have no device; their results are available at once.
// Firewall, nids and ipsec use their real finish stages; nids finds nothing, as with the experiment's traffic. Not
// included is what a device costs the core otherwise: launches, copies, the index that is sent.
//
// Batches come back in the order of submission, each only when all lanes are busy. So neither descriptors nor results
// are in the near caches, as if a device had just written them.
//
// `NidsRouter` is the chain nids, router, from which records come back: the fields that the router changes. Here nids
// looks at every packet after the batch was sent, as it was before the router.
//
// `C4State` is C4 over TCP connections that nids follows. They are played from memory, so `fill` copies them.
//
// `FirewallRouter` is the shortest chain: headers cross, and the fields that the router changes come back. Its batches
// have 8,192 packets of any size.
//
// Axes: frame size with FCS. Counters, in ns per packet: `fill`, the generator with `frames: kept`, which lends them;
// `host`, submit and retire.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/thread_time.h"
#include "config/chain_file.h"
#include "experiments/chain/chains.h"
#include "nf/ipsec/device_tables.h"
#include "nf/nids/match/packet_literals.h"
#include "plan/device_plan.h"
#include "run/device_executor.h"

namespace penstock {
namespace {

constexpr std::size_t kLanes = 8;
constexpr std::uint32_t kGrowth = 50;  // approximate growth by ESP in tunnel mode
constexpr std::size_t kBatchBytes = std::size_t{4} << 20;

/// Returns preset results, for as many packets as the batch has.
class PresetLane final : public ring::Lane {
 public:
  /// `busy`: the number of lanes with a batch in flight. Borrowed.
  PresetLane(const plan::DevicePlan& plan, std::uint32_t length, std::size_t packets, std::size_t& busy)
      : busy_(busy), verdicts_(packets, {VerdictKind::forward, 3, 1}), lengths_(packets, length + kGrowth) {
    const ring::SegmentShape& segment = plan.segments.at(0);
    if (plan.segments.size() == 1 && segment.stages.size() == 2 && !segment.frames_down && !segment.down.empty()) {
      preset_records(segment, packets);
      return;
    }
    if (plan.segments.size() != 1 || segment.stages.size() != 4 || !segment.frames_down || !segment.down.empty())
      throw std::runtime_error("the chain is no longer planned as this lane has its results");
    const std::uint32_t rule = 0;
    nids::PacketLiterals literals;
    literals.flags = nids::PacketLiterals::kScanned | nids::PacketLiterals::kPayload;
    const ipsec::OutboundFinding sa{0, length - 14};
    findings_[0] = repeated(&rule, sizeof rule, packets, segment.stages[0].findings_bytes);
    findings_[1] = repeated(&literals, sizeof literals, packets, segment.stages[1].findings_bytes);
    findings_[3] = repeated(&sa, sizeof sa, packets, segment.stages[3].findings_bytes);
    frames_.resize(packets * aligned_frame(length + kGrowth));
    for (const auto& findings : findings_) results_.findings.push_back(findings.empty() ? nullptr : findings.data());
    results_.lengths = {nullptr, nullptr, nullptr, lengths_.data()};
    results_.frames = frames_.data();
  }

  bool start(const Batch& batch, std::size_t, std::span<std::uint8_t* const>) noexcept override {
    results_.verdicts = std::span<const Verdict>(verdicts_).first(batch.size());
    for (std::size_t i = 0; i < batch.size(); ++i) lengths_[i] = batch.packets()[i].length + kGrowth;
    ++busy_;
    return true;
  }
  /// The executor polls the oldest lane first; it is done when all lanes are busy.
  gpu::Progress progress() noexcept override {
    if (busy_ < kLanes) return gpu::Progress::kRunning;
    --busy_;
    return gpu::Progress::kDone;
  }
  const ring::SegmentResults& results() const noexcept override { return results_; }
  void exchange_stages(ring::LaneStages&) noexcept override {}
  void abandon() noexcept override {}
  void take_pictures(std::span<const std::uint32_t>) noexcept override {}
  ring::Picture picture(std::size_t, std::size_t) const noexcept override { return {}; }
  std::uint32_t fetch(std::size_t, PacketDescriptor&, std::span<std::uint8_t>) noexcept override { return 0; }
  void begin_batch() noexcept override {}
  Crossed crossed() const noexcept override { return {}; }

 private:
  /// For a function before the router: the firewall or nids.
  void preset_records(const ring::SegmentShape& segment, std::size_t packets) {
    const std::uint32_t rule = 0;
    nids::PacketLiterals literals;
    literals.flags = nids::PacketLiterals::kScanned;  // no literal of a payload, so nids looks at the packet
    const bool by_firewall = segment.stages[0].findings_bytes == sizeof rule;
    findings_[0] = by_firewall ? repeated(&rule, sizeof rule, packets, segment.stages[0].findings_bytes)
                               : repeated(&literals, sizeof literals, packets, segment.stages[0].findings_bytes);
    results_.findings = {findings_[0].data(), nullptr};
    results_.lengths = {nullptr, nullptr};
    const ring::RecordHeader header{14, 34, PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader,
                                    NetworkLayer::ipv4, ip_protocol::kTcp};
    frames_.resize(packets * segment.down.bytes, 0x11);
    for (std::size_t i = 0; i < packets; ++i)
      std::memcpy(frames_.data() + i * segment.down.bytes, &header, sizeof header);
    results_.records = frames_.data();
  }
  static std::vector<std::byte> repeated(const void* finding, std::size_t size, std::size_t packets, std::size_t room) {
    if (size != room) throw std::runtime_error("C4's findings are no longer as this lane has them");
    std::vector<std::byte> all(packets * size);
    for (std::size_t i = 0; i < packets; ++i) std::memcpy(all.data() + i * size, finding, size);
    return all;
  }

  std::size_t& busy_;
  std::vector<Verdict> verdicts_;
  std::vector<std::uint32_t> lengths_;
  std::vector<std::byte> findings_[4];
  std::vector<std::uint8_t> frames_;  // or records
  ring::SegmentResults results_;
};

std::string generator(const std::string& destinations, std::int64_t size) {
  return fmt::format("generator: {{size: {}, transport: tcp, flows: 10000, frames: kept, destinations: {}}}", size,
                     experiments::yaml_text(destinations));
}

/// The chain, and the default batches for a GPU.
config::LoadedChain load(const experiments::Workplace& workplace, const std::string& functions,
                         const std::string& source, std::size_t packets = 16384) {
  const std::string yaml = fmt::format(
      "ports:\n  lan: {{{}}}\n  wan: {{'null': {{}}}}\nchain: {}\nrun: {{processor: cpu, batch: {{bytes: {}, packets: "
      "{}}}}}\n",
      source, functions, kBatchBytes, packets);
  auto loaded = config::load_chain(workplace.put("chain.yaml", yaml), {});
  if (!loaded) throw std::runtime_error(to_string(loaded.error()));
  return std::move(*loaded);
}

struct OwnBatch {
  OwnBatch(const run::RunSettings& settings, const PacketMemory& memory, std::uint32_t most_lent_bytes)
      : bytes(settings.batch_bytes),
        descriptors(settings.batch_packets),
        batch(bytes, descriptors, {}, &memory, most_lent_bytes) {}
  std::vector<std::uint8_t> bytes;
  std::vector<PacketDescriptor> descriptors;
  Batch batch;
};

void measure(benchmark::State& state, config::LoadedChain loaded, std::uint32_t most_lent_bytes = Batch::kNoLimit) {
  const run::Chain& chain = loaded.chain;
  PacketMemory memory;
  port::Opening opening(1);
  opening.memory = &memory;
  opening.batch_bytes = most_lent_bytes == Batch::kNoLimit ? chain.settings.batch_bytes : std::size_t{1} << 31;
  opening.batch_packets = chain.settings.batch_packets;
  if (most_lent_bytes != Batch::kNoLimit) opening.lent_alignment = 128;
  for (const run::NamedPort& port : chain.ports) {
    if (auto opened = port.port->open(opening); !opened) throw std::runtime_error(to_string(opened.error()));
  }
  const auto plan = plan::plan_device(chain.traits(), plan::prefer(function::Processor::gpu, chain.traits()));
  if (!plan) throw std::runtime_error(to_string(plan.error()));
  run::LaneSet set;
  std::size_t busy = 0;
  for (std::size_t i = 0; i < kLanes; ++i) {
    set.lanes.push_back(std::make_unique<PresetLane>(*plan, static_cast<std::uint32_t>(state.range(0)) - 4,
                                                     chain.settings.batch_packets, busy));
  }
  run::WorkerCounters counters(chain);
  run::DeviceExecutor executor(chain, *plan, std::move(set), 0, counters, nullptr);
  executor.begin();
  std::vector<std::unique_ptr<OwnBatch>> batches;
  for (std::size_t i = 0; i < kLanes + 1; ++i)
    batches.push_back(std::make_unique<OwnBatch>(chain.settings, memory, most_lent_bytes));
  port::RxQueue& source = *chain.ports[0].port->rx(0);

  std::uint64_t packets = 0;
  std::chrono::nanoseconds filling{0};
  std::chrono::nanoseconds hosting{0};
  std::size_t next = 0;
  const auto round = [&] {
    Batch& batch = batches[next]->batch;
    next = (next + 1) % batches.size();
    batch.reset(0);
    const auto start = thread_time();
    source.poll(batch);
    const auto filled = thread_time();
    batch.mark_arrivals(Batch::Clock::now());
    if (!executor.submit(batch)) throw std::runtime_error("no lane is free");
    while (Batch* const done = executor.retire()) source.take_back(done->lent());
    const auto end = thread_time();
    packets += batch.size();
    filling += filled - start;
    hosting += end - filled;
    return end - start;
  };
  for (std::size_t i = 0; i < 2 * batches.size(); ++i) round();  // until all memory has been touched
  packets = 0;
  filling = hosting = {};
  for (auto _ : state) state.SetIterationTime(std::chrono::duration<double>(round()).count());
  const auto each = [&](std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / static_cast<double>(packets);
  };
  state.SetItemsProcessed(static_cast<std::int64_t>(packets));
  state.counters["packets"] = static_cast<double>(packets) / static_cast<double>(state.iterations());  // per batch
  state.counters["fill"] = each(filling);
  state.counters["host"] = each(hosting);
  busy = kLanes;
  while (executor.retire() != nullptr) busy = kLanes;
  executor.end();
}

void C4(benchmark::State& state) {
  const experiments::Workplace workplace;
  experiments::Chains chains(workplace);
  const experiments::MeasuredChain c4 = chains.chain("C4", "paper");
  measure(state, load(workplace, c4.functions, generator(c4.destinations, state.range(0))));
}

void C4State(benchmark::State& state) {
  const experiments::Workplace workplace;
  experiments::Chains chains(workplace);
  const experiments::MeasuredChain c4 =
      chains.with_connections("C4", "paper", "streams", std::to_string(state.range(0)), 1000);
  measure(state, load(workplace, c4.functions,
                      fmt::format("memory: {{read: {}, loop: 0}}", experiments::yaml_text(c4.capture))));
}

void NidsRouter(benchmark::State& state) {
  const experiments::Workplace workplace;
  experiments::Chains chains(workplace);
  const experiments::MeasuredChain router = chains.chain("router", "paper");
  std::string functions = chains.chain("nids", "paper").functions;
  functions.replace(functions.rfind(']'), 1, ", " + router.functions.substr(1));
  measure(state, load(workplace, functions, generator(router.destinations, state.range(0))));
}

void FirewallRouter(benchmark::State& state) {
  const experiments::Workplace workplace;
  experiments::Chains chains(workplace);
  const experiments::MeasuredChain chain = chains.chain("firewall-router", "");
  measure(state, load(workplace, chain.functions, generator(chain.destinations, state.range(0)), 8192),
          ring::kHeaderBytes);
}

BENCHMARK(C4)->Arg(64)->Arg(512)->Arg(1518)->UseManualTime();
BENCHMARK(C4State)->Arg(64)->Arg(512)->Arg(1518)->UseManualTime();
BENCHMARK(NidsRouter)->Arg(64)->Arg(512)->Arg(1518)->UseManualTime();
BENCHMARK(FirewallRouter)->Arg(64)->Arg(1518)->UseManualTime();

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
