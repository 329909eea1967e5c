// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/device_executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "chain/burst.h"
#include "chain/cpu_executor.h"
#include "packet/batch.h"

namespace penstock::chain {

DeviceExecutor::DeviceExecutor(const Chain& chain, DevicePlan plan, std::vector<std::unique_ptr<ring::Lane>> lanes,
                               unsigned worker, WorkerCounters& counters, Trace* trace)
    : chain_(chain),
      plan_(std::move(plan)),
      worker_(worker),
      counters_(counters),
      trace_(trace),
      twins_(chain, worker, counters),
      outlet_(chain, worker, counters),
      flights_(std::max<std::size_t>(1, lanes.size())) {
  for (const NamedFunction& f : chain.functions) finish_.push_back(f.function->make_finish_stage());
  for (const ring::SegmentShape& segment : plan_.segments) scatter_.emplace_back(segment.down);
  for (auto& lane : lanes) lanes_.push_back({std::move(lane)});
  for (Flight& flight : flights_) flight.frames.reserve(chain.settings.batch_packets);
}

DeviceExecutor::~DeviceExecutor() {
  for (LaneState& state : lanes_) {
    if (state.lane != nullptr) state.lane->abandon();
  }
}

bool DeviceExecutor::warm_up(std::span<std::uint8_t> memory) noexcept {
  // A lane that cannot enqueue as it prefers to does so otherwise the next time.
  return std::ranges::all_of(
      lanes_, [&](const LaneState& state) { return warm_up(*state.lane, memory) || warm_up(*state.lane, memory); });
}

bool DeviceExecutor::warm_up(ring::Lane& lane, std::span<std::uint8_t> memory) const noexcept {
  constexpr std::array<std::uint8_t, 60> kFrame{};
  constexpr auto kMostTime = std::chrono::seconds{30};
  PacketDescriptor descriptor;
  Batch batch(memory, std::span(&descriptor, 1), {});
  if (!batch.append(kFrame, {0, kFrame.size(), 0, LinkType::ethernet})) return true;  // nor does a larger frame fit
  const auto start = Batch::Clock::now();
  for (std::size_t segment = 0; segment < plan_.segments.size(); ++segment) {
    gpu::Progress progress = gpu::Progress::kFailed;
    if (lane.start(batch, segment, {})) {
      while ((progress = lane.progress()) == gpu::Progress::kRunning && Batch::Clock::now() - start < kMostTime)
        continue;
    }
    if (progress == gpu::Progress::kDone) continue;
    lane.abandon();
    return false;
  }
  return true;
}

DeviceExecutor::LaneState* DeviceExecutor::free_lane() noexcept {
  // One after the other, so that each takes up new tables now and then.
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    next_lane_ = (next_lane_ + 1) % lanes_.size();
    LaneState& state = lanes_[next_lane_];
    if (!state.busy && state.failures < kMostFailures) return &state;
  }
  return nullptr;
}

bool DeviceExecutor::all_lost() const noexcept {
  return std::ranges::all_of(lanes_, [](const LaneState& s) { return s.failures >= kMostFailures; });
}

bool DeviceExecutor::submit(Batch& batch) noexcept {
  if (count_ == flights_.size()) return false;
  LaneState* const lane = free_lane();
  const bool lost = all_lost();
  if (lane == nullptr && !lost) return false;
  twins_.begin_batch();
  Flight& flight = flights_[(first_ + count_) % flights_.size()];
  ++count_;
  flight.batch = &batch;
  flight.traced = trace_ != nullptr && trace_->wants_more();
  flight.lane = flight.traced ? nullptr : lane;
  flight.on_device = flight.lane != nullptr;
  flight.run = 0;
  flight.frames.clear();
  flight.punted.clear();
  if (!flight.on_device) return true;  // its turn comes in `retire`
  flight.lane->busy = true;
  if (run_of(flight).processor == Processor::cpu) {
    run_on_cpu(flight, run_of(flight).first, run_of(flight).last);
    ++flight.run;
  }
  if (!start_segment(flight)) fail(flight);
  return true;
}

bool DeviceExecutor::idle() const noexcept { return count_ < 2 && !all_lost(); }

void DeviceExecutor::pass_boundary() noexcept {
  twins_.begin_batch();
  for (LaneState& state : lanes_) {
    if (!state.busy && state.lane != nullptr) state.lane->begin_batch();
  }
}

void DeviceExecutor::end() noexcept {
  lanes_.clear();
  finish_.clear();
  twins_.end();
}

Batch* DeviceExecutor::retire() noexcept {
  std::size_t run_before = plan_.runs.size();  // where the batch before stands: this one must not pass it
  for (std::size_t i = 0; i < count_; ++i) {
    Flight& flight = flights_[(first_ + i) % flights_.size()];
    if (!flight.traced) advance(flight, run_before);
    run_before = flight.run;
  }
  if (count_ == 0) return nullptr;
  Flight& flight = flights_[first_];
  if (flight.traced) {
    // With packets that are traced it goes the way of the twins, all at once.
    run_on_twins(*flight.batch, twins_, outlet_, chain_.functions.size(), trace_);
  } else if (flight.run == plan_.runs.size()) {
    send(flight);
  } else {
    return nullptr;
  }
  if (flight.lane != nullptr) {
    flight.lane->busy = false;
    if (flight.on_device) flight.lane->failures = 0;  // it has done a whole batch
    // One that is given up takes its stages along: they would never let go of their tables.
    if (flight.lane->failures >= kMostFailures) flight.lane->lane.reset();
  }
  first_ = (first_ + 1) % flights_.size();
  --count_;
  return flight.batch;
}

void DeviceExecutor::advance(Flight& flight, std::size_t limit) noexcept {
  while (flight.run < limit) {
    const DevicePlan::Run& run = run_of(flight);
    if (run.processor == Processor::gpu && flight.on_device) {
      const gpu::Progress progress = flight.lane->lane->progress();
      if (progress == gpu::Progress::kRunning) return;
      if (progress == gpu::Progress::kDone) {
        settle_segment(flight);
      } else {
        fail(flight);
        continue;
      }
    } else {
      run_on_cpu(flight, run.first, run.last);
    }
    ++flight.run;
    const bool starts_segment = flight.run < plan_.runs.size() && run_of(flight).processor == Processor::gpu;
    if (starts_segment && flight.on_device && !start_segment(flight)) fail(flight);
  }
}

bool DeviceExecutor::start_segment(Flight& flight) noexcept {
  for (Punted& punted : flight.punted) {
    punted.verdict = std::exchange(flight.batch->packets()[punted.packet].verdict, Verdict::punt());
  }
  const bool started = flight.lane->lane->start(*flight.batch, run_of(flight).segment, flight.frames);
  counters_.device.segments.add(1);
  return started;
}

/// The device has failed this batch: from the run that it is in, it goes on on the CPU. The host's batch is as it was
/// when the run began.
void DeviceExecutor::fail(Flight& flight) noexcept {
  flight.lane->lane->abandon();
  restore_punted(flight);
  counters_.device.failures.add(1);
  if (++flight.lane->failures == kMostFailures) counters_.device.lanes_lost.add(1);
  flight.on_device = false;
}

void DeviceExecutor::restore_punted(Flight& flight) noexcept {
  for (const Punted& punted : flight.punted) flight.batch->packets()[punted.packet].verdict = punted.verdict;
}

PacketView DeviceExecutor::view(Flight& flight, std::size_t packet) noexcept {
  if (flight.frames.empty()) return flight.batch->view(packet);
  return {flight.frames[packet], &flight.batch->packets()[packet]};
}

/// What came back goes into the batch, and is accounted for.
void DeviceExecutor::settle_segment(Flight& flight) noexcept {
  const DevicePlan::Run run = run_of(flight);
  const ring::SegmentShape& shape = plan_.segments[run.segment];
  const ring::SegmentResults& results = flight.lane->lane->results();
  const std::size_t punted_before = flight.punted.size();
  const ring::Lane::Crossed crossed = flight.lane->lane->crossed();
  counters_.device.bytes_to_device.add(crossed.to_device);
  counters_.device.bytes_to_host.add(crossed.to_host);

  Batch& batch = *flight.batch;
  PacketDescriptor* const packets = batch.packets().data();
  if (shape.frames_down && flight.frames.empty()) {
    for (std::size_t i = 0; i < batch.size(); ++i) flight.frames.push_back(batch.view(i).frame);
  }
  const std::uint8_t* record = results.records;
  std::uint8_t* frame = results.frames;
  const auto view_of = [&](std::size_t i) { return view(flight, i); };
  for_each_burst(batch, view_of, [&](std::span<PacketView> burst) {
    for (const PacketView& packet : burst) {
      Verdict& verdict = packet.packet->verdict;
      verdict = results.verdicts[static_cast<std::size_t>(packet.packet - packets)];
      // Punted before the first function, by what describes packets on the device.
      if (verdict.kind == VerdictKind::punt) verdict.nf = std::max(verdict.nf, static_cast<std::uint8_t>(run.first));
    }
    consume_findings(shape, results, burst, packets);
    count(run, burst);
    for (PacketView& packet : burst) {
      if (!packet.packet->verdict.alive()) continue;
      const auto i = static_cast<std::size_t>(packet.packet - packets);
      if (!results.lengths.empty()) {
        packet.packet->wire_length += results.lengths[i] - packet.packet->length;
        packet.packet->length = results.lengths[i];
      }
      if (shape.frames_down) {
        flight.frames[i] = packet.frame = frame;
        frame += aligned_frame(packet.packet->length);
      }
      if (!shape.down.empty()) {
        scatter_[run.segment](record, packet);
        record += shape.down.bytes;
      }
    }
    for (PacketView& packet : burst) {
      if (packet.packet->verdict.kind == VerdictKind::punt) finish_punted(flight, packet, run);
    }
  });
  restore_punted(flight);
  for (std::size_t p = 0; p < punted_before; ++p) {
    Punted& punted = flight.punted[p];
    if (!punted.verdict.alive()) continue;
    run_alone(flight, view(flight, punted.packet), run.first, run.last);
    punted.verdict = packets[punted.packet].verdict;
  }
}

/// A packet that the GPU stage of function `verdict.nf` left to the CPU.
void DeviceExecutor::finish_punted(Flight& flight, PacketView packet, const DevicePlan::Run& run) noexcept {
  const std::size_t first = packet.packet->verdict.nf;
  packet.packet->verdict = Verdict::forward();
  counters_.device.punted.add(1);
  run_alone(flight, packet, first, run.last);
  const auto i = static_cast<std::uint32_t>(packet.packet - flight.batch->packets().data());
  flight.punted.push_back({i, packet.packet->verdict});
}

void DeviceExecutor::run_alone(Flight& flight, PacketView packet, std::size_t first, std::size_t last) noexcept {
  std::span<PacketView> one(&packet, 1);
  twins_.parse(one);
  static_cast<void>(twins_.run(one, first, last));
  if (!flight.frames.empty()) {
    flight.frames[static_cast<std::size_t>(packet.packet - flight.batch->packets().data())] = packet.frame;
  }
}

void DeviceExecutor::consume_findings(const ring::SegmentShape& shape, const ring::SegmentResults& results,
                                      std::span<const PacketView> burst, const PacketDescriptor* packets) noexcept {
  std::array<PacketView, kBurst> worked_on;
  std::array<const std::byte*, kBurst> findings;
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    const ring::SegmentShape::Stage& stage = shape.stages[s];
    FinishStage* const finish = finish_[stage.function].get();
    if (finish == nullptr) continue;
    std::size_t count = 0;
    for (const PacketView& packet : burst) {
      const Verdict verdict = packet.packet->verdict;
      const bool punted_here = verdict.kind == VerdictKind::punt && verdict.nf == stage.function;
      if ((!verdict.alive() && verdict.nf < stage.function) || punted_here) continue;
      findings[count] = results.findings[s] + static_cast<std::size_t>(packet.packet - packets) * stage.findings_bytes;
      worked_on[count++] = packet;
    }
    if (count > 0) finish->finish(std::span(worked_on).first(count), std::span(findings).first(count));
  }
}

/// What the functions of a segment did, by the verdicts: as the CPU twins count it.
void DeviceExecutor::count(const DevicePlan::Run& run, std::span<const PacketView> burst) noexcept {
  report::TrafficSum reaching{burst.size(), 0};
  std::size_t ended = 0;
  for (const PacketView& packet : burst) {
    reaching.bytes += packet.length();
    ended += packet.packet->verdict.alive() ? 0 : 1;
  }
  for (std::size_t f = run.first; f < run.last; ++f) {
    FunctionCounters& counters = counters_.functions[f];
    report::TrafficSum in = reaching;
    report::TrafficSum forwarded = reaching;
    for (const PacketView& packet : burst) {
      if (ended == 0) break;
      const Verdict verdict = packet.packet->verdict;
      if (verdict.alive() || verdict.nf != f) continue;
      const std::uint64_t length = packet.length();
      forwarded.packets -= 1;
      forwarded.bytes -= length;
      if (verdict.kind == VerdictKind::punt) {  // its twin counts it
        in.packets -= 1;
        in.bytes -= length;
      } else if (verdict.kind == VerdictKind::consume) {
        counters.consumed.add(1, length);
      } else {
        if (verdict.value >= counters.dropped.size())
          broken_invariant(chain_.functions[f].name, worker_, *packet.packet, "drops for a reason it does not name");
        counters.dropped[verdict.value].add(1, length);
      }
    }
    counters.in.add(in.packets, in.bytes);
    counters.forwarded.add(forwarded.packets, forwarded.bytes);
    reaching = forwarded;
  }
}

void DeviceExecutor::run_on_cpu(Flight& flight, std::size_t first, std::size_t last) noexcept {
  const PacketDescriptor* const packets = flight.batch->packets().data();
  for_each_burst(
      *flight.batch, [&](std::size_t i) { return view(flight, i); },
      [&](std::span<PacketView> burst) {
        twins_.parse(burst);
        const std::span<PacketView> left = twins_.run(burst, first, last);
        if (flight.frames.empty()) return;
        for (const PacketView& packet : left) {
          flight.frames[static_cast<std::size_t>(packet.packet - packets)] = packet.frame;
        }
      });
}

void DeviceExecutor::send(Flight& flight) noexcept {
  for_each_burst(
      *flight.batch, [&](std::size_t i) { return view(flight, i); },
      [&](std::span<PacketView> burst) { outlet_.send(burst); });
  outlet_.end_batch(*flight.batch);
}

}  // namespace penstock::chain
