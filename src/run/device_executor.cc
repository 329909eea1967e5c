// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/device_executor.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "function/burst.h"
#include "packet/batch.h"
#include "run/cpu_executor.h"

namespace penstock::run {

DeviceExecutor::DeviceExecutor(const Chain& chain, plan::DevicePlan plan,
                               std::vector<std::unique_ptr<ring::Lane>> lanes, unsigned worker,
                               WorkerCounters& counters, Trace* trace)
    : chain_(chain),
      plan_(std::move(plan)),
      worker_(worker),
      counters_(counters),
      trace_(trace),
      emits_(chain.emits()),
      twins_(chain, worker, counters, emitter_),
      outlet_(chain, worker, counters),
      flights_(std::max<std::size_t>(1, lanes.size())) {
  for (std::size_t f = 0; f < chain.functions.size(); ++f) {
    function::NetworkFunction& function = *chain.functions[f].function;
    const function::NfTraits& traits = function.traits();
    finish_.push_back({function.make_finish_stage(twins_.stage(f)), traits.finish && !traits.finish->writes.empty(),
                       plan::finish_changes_frames(traits), traits.finish_waits});
    finish_.back().waits &= finish_.back().stage != nullptr;
    if (traits.emits && finish_.back().stage != nullptr) finish_.back().stage->set_emitter(emitter_);
  }
  const std::vector<function::NfTraits> traits = chain.traits();
  next_growing_.assign(traits.size() + 1, traits.size());
  for (std::size_t f = traits.size(); f-- > 0;) {
    const bool grows = traits[f].growth.head + traits[f].growth.tail > 0 && f >= plan::functions_before_device(plan_);
    next_growing_[f] = grows ? f : next_growing_[f + 1];
  }
  const auto waiting = static_cast<std::size_t>(std::ranges::count_if(finish_, &Finish::waits));
  for (const ring::SegmentShape& segment : plan_.segments) scatter_.emplace_back(segment.down);
  for (auto& lane : lanes) lanes_.push_back({std::move(lane)});
  for (Flight& flight : flights_) {
    flight.frames.resize(chain.settings.batch_packets);
    flight.punted.reserve(chain.settings.batch_packets);
    flight.set_aside.resize(chain.settings.batch_packets);
    flight.waiting.reserve(waiting * chain.settings.batch_packets);
    if (waiting > 0) flight.exchanged.reserve(chain.settings.batch_packets);
    if (emits_) flight.emissions = function::Emissions(chain.settings.batch_bytes, chain.settings.batch_packets);
    if (need_room(0, traits.size())) {
      flight.scratch = FrameScratch(chain.settings.batch_bytes, chain.settings.batch_packets, plan::growth_of(traits));
    }
  }
}

DeviceExecutor::~DeviceExecutor() {
  for (LaneState& state : lanes_) {
    if (state.lane != nullptr) state.lane->abandon();
  }
}

std::vector<std::span<std::uint8_t>> DeviceExecutor::memory_sent_again() const {
  bool grown = false;
  bool sent_again = false;
  for (const plan::DevicePlan::Run& run : plan_.runs) {
    grown |= run.processor == function::Processor::cpu && need_room(run.first, run.last);
    sent_again |= grown && run.processor == function::Processor::gpu && plan_.segments[run.segment].sends_packets;
  }
  std::vector<std::span<std::uint8_t>> memory;
  if (!sent_again) return memory;
  for (const Flight& flight : flights_) memory.push_back(flight.scratch.memory());
  return memory;
}

DeviceExecutor::WarmUp DeviceExecutor::warm_up(Batch& batch, std::chrono::nanoseconds limit) noexcept {
  static constexpr std::array<std::uint8_t, 1514> kFrame{};
  const Batch::Clock::time_point deadline = Batch::Clock::now() + limit;
  WarmUp result = WarmUp::done;
  const auto takes_over = [&](const LaneState& state) {
    result = warm_up(*state.lane, batch, deadline);
    // A lane that cannot enqueue as it prefers to does so otherwise the next time.
    if (result == WarmUp::failed) result = warm_up(*state.lane, batch, deadline);
    return result == WarmUp::done;
  };
  for (const ring::BatchSize& size : ring::kBatchOfEachWay) {
    const std::span frame = std::span(kFrame).first(size.frame_bytes);
    // As many as there is room for.
    while (batch.size() < size.packets && batch.append(frame, {0, size.frame_bytes, 0, LinkType::ethernet})) continue;
    const bool good = std::ranges::all_of(lanes_, takes_over);
    batch.reset(0);
    if (!good) break;
  }
  return result;
}

DeviceExecutor::WarmUp DeviceExecutor::warm_up(ring::Lane& lane, const Batch& batch,
                                               Batch::Clock::time_point deadline) const noexcept {
  for (std::size_t segment = 0; segment < plan_.segments.size(); ++segment) {
    gpu::Progress progress = gpu::Progress::kFailed;
    if (lane.start(batch, segment, {})) {
      while ((progress = lane.progress()) == gpu::Progress::kRunning && Batch::Clock::now() < deadline) continue;
    }
    if (progress == gpu::Progress::kDone) continue;
    if (progress == gpu::Progress::kRunning) return WarmUp::hangs;
    lane.abandon();
    return WarmUp::failed;
  }
  return WarmUp::done;
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
  flight.listed = false;
  flight.scratch.reset();
  if (emits_) flight.emissions.begin(batch);
  emitter_.go_into(emissions_of(flight));
  flight.punted.clear();
  flight.finish_waits = false;
  flight.waiting.clear();
  flight.exchanged.clear();
  if (!flight.on_device) return true;  // its turn comes in `retire`
  flight.lane->busy = true;
  if (run_of(flight).processor == function::Processor::cpu) {
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
  finish_.clear();
  twins_.end();
}

void DeviceExecutor::release() noexcept { lanes_.clear(); }

Batch* DeviceExecutor::retire() noexcept {
  std::size_t run_before = plan_.runs.size();  // where the batch before stands: this one must not pass it
  for (std::size_t i = 0; i < count_; ++i) {
    Flight& flight = flights_[(first_ + i) % flights_.size()];
    if (!flight.traced) advance(flight, run_before);
    run_before = flight.run;
    // What waits for this batch to be sent has to see its packets before those of the next one.
    if (!flight.waiting.empty()) break;
  }
  if (count_ == 0) return nullptr;
  Flight& flight = flights_[first_];
  if (flight.traced) {
    // With packets that are traced it goes the way of the twins, all at once.
    if (need_room(0, chain_.functions.size())) give_room_to_all(flight);
    emitter_.go_into(emissions_of(flight));
    run_on_twins(*flight.batch, frames_of(flight), twins_, outlet_, emissions_of(flight), chain_.functions.size(),
                 trace_);
  } else if (flight.run == plan_.runs.size()) {
    send(flight);
    finish_sent(flight);
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
  emitter_.go_into(emissions_of(flight));
  while (flight.run < limit) {
    const plan::DevicePlan::Run& run = run_of(flight);
    if (run.processor == function::Processor::gpu && flight.on_device) {
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
    const bool starts_segment = flight.run < plan_.runs.size() && run_of(flight).processor == function::Processor::gpu;
    if (starts_segment && flight.on_device && !start_segment(flight)) fail(flight);
  }
}

bool DeviceExecutor::start_segment(Flight& flight) noexcept {
  for (const std::uint32_t packet : flight.punted) {
    Verdict& verdict = flight.batch->packets()[packet].verdict;
    if (verdict.alive()) flight.set_aside[packet] = std::exchange(verdict, Verdict::punt());
  }
  flight.started = Batch::Clock::now();
  const bool started = flight.lane->lane->start(*flight.batch, run_of(flight).segment, frames_of(flight));
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
  for (const std::uint32_t packet : flight.punted) {
    Verdict& verdict = flight.batch->packets()[packet].verdict;
    if (verdict.kind == VerdictKind::punt) verdict = flight.set_aside[packet];
  }
}

void DeviceExecutor::list_frames(Flight& flight) noexcept {
  if (std::exchange(flight.listed, true)) return;
  for (std::size_t i = 0; i < flight.batch->size(); ++i) flight.frames[i] = flight.batch->view(i).frame;
}

void DeviceExecutor::give_room(Flight& flight, std::size_t packet) noexcept {
  list_frames(flight);
  std::uint8_t*& frame = flight.frames[packet];
  frame = flight.scratch.with_room(packet, frame, flight.batch->packets()[packet].length);
}

void DeviceExecutor::give_room_to_all(Flight& flight) noexcept {
  const std::span<const PacketDescriptor> packets = flight.batch->packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (packets[i].verdict.alive()) give_room(flight, i);
  }
}

namespace {

/// How far ahead of a loop over packets their descriptors are fetched, which have been out of the near caches since the
/// batch was filled.
constexpr std::size_t kFetchAhead = 16;

/// The findings of a stage that has the most of them: whole lines for a few packets, where the others' streams come by
/// themselves.
struct Widest {
  const std::byte* findings = nullptr;
  std::size_t bytes = 0;
};
Widest widest(const ring::SegmentShape& shape, const ring::SegmentResults& results) noexcept {
  Widest found;
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    if (shape.stages[s].findings_bytes > found.bytes) found = {results.findings[s], shape.stages[s].findings_bytes};
  }
  return found;
}

}  // namespace

/// What came back goes into the batch, and is accounted for. All functions see the packets in their order, whether on
/// the device or, one that is left to them, on the twins.
void DeviceExecutor::settle_segment(Flight& flight) noexcept {
  const plan::DevicePlan::Run run = run_of(flight);
  FunctionCounters& first = counters_.functions[run.first];
  first.segments.add(1);
  first.segment_time_ns.add(
      static_cast<std::uint64_t>(std::chrono::nanoseconds(Batch::Clock::now() - flight.started).count()));
  const ring::SegmentResults& results = flight.lane->lane->results();
  const ring::Lane::Crossed crossed = flight.lane->lane->crossed();
  counters_.device.bytes_to_device.add(crossed.to_device);
  counters_.device.bytes_to_host.add(crossed.to_host);
  flight.finish_waits = may_wait(flight, results);
  // Those that come back are listed as they do; until then they are where they were.
  const bool were_listed = std::exchange(flight.listed, flight.listed || shape_of(flight).frames_down);
  const auto view_before = [&](std::size_t i) {
    return were_listed ? PacketView{flight.frames[i], &flight.batch->packets()[i]} : flight.batch->view(i);
  };

  const std::span<PacketDescriptor> packets = flight.batch->packets();
  Returned next{results.records, results.frames};
  std::array<PacketView, function::kBurst> burst;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  bool any_ended = false;
  const auto settle = [&] {
    if (count == 0) return;
    settle_burst(
        flight, results, next,
        {std::span(burst).first(std::exchange(count, 0)), std::exchange(bytes, 0), std::exchange(any_ended, false)});
  };
  const Widest findings = widest(shape_of(flight), results);
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i + kFetchAhead < packets.size()) __builtin_prefetch(&packets[i + kFetchAhead], 1);
    __builtin_prefetch(findings.findings + i * findings.bytes);  // for when the burst is settled
    Verdict& verdict = packets[i].verdict;
    const bool punted_before = verdict.kind == VerdictKind::punt;
    if (punted_before) {
      verdict = flight.set_aside[i];
    } else if (!verdict.alive()) {
      continue;
    } else if (results.verdicts[i].kind != VerdictKind::punt) {
      verdict = results.verdicts[i];
      any_ended |= !verdict.alive();
      bytes += packets[i].length;
      burst[count++] = view_before(i);
      if (count == function::kBurst) settle();
      continue;
    } else {
      counters_.device.punted.add(1);
      flight.punted.push_back(static_cast<std::uint32_t>(i));
    }
    settle();
    // What functions of the segment did to it before one left it to the CPU is on the device alone: from the start.
    if (flight.listed) flight.frames[i] = view_before(i).frame;
    run_alone(flight, i, run.first, run.last);
  }
  settle();
}

namespace {

/// Of a packet of a segment, whose verdict names the function that decided: whether it got to this one, ...
bool reached(Verdict verdict, std::size_t function) noexcept { return verdict.alive() || verdict.nf >= function; }
/// ... and whether it ended there.
bool ended_at(Verdict verdict, std::size_t function) noexcept { return !verdict.alive() && verdict.nf == function; }

}  // namespace

/// Counts as the CPU twins do. The packets are those that the device worked on, with its verdicts.
void DeviceExecutor::settle_burst(Flight& flight, const ring::SegmentResults& results, Returned& next,
                                  Settled burst) noexcept {
  const ring::SegmentShape& shape = shape_of(flight);
  report::TrafficSum reaching{burst.packets.size(), burst.bytes};
  Waits waits{};
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    const std::size_t function = shape.stages[s].function;
    FunctionCounters& counters = counters_.functions[function];
    counters.in.add(reaching.packets, reaching.bytes);
    if (flight.finish_waits && finish_[function].waits) {
      put_off(flight, s, results, burst, waits);
    } else if (finish_[function].stage != nullptr) {
      burst.any_ended |= finish(flight, s, results, burst);
    }
    if (results.lengths[s] != nullptr) reaching.bytes = set_lengths(flight, s, results, burst);
    if (s + 1 == shape.stages.size()) take_back(flight, results, next, burst, waits);
    if (finish_[function].takes_back) {
      burst.any_ended |= change_returned(function, burst.packets);
      reaching.bytes = 0;
      for (const PacketView& packet : burst.packets) {
        if (reached(packet.packet->verdict, function)) reaching.bytes += packet.length();
      }
    }
    if (burst.any_ended) count_ended(function, burst.packets, reaching);
    counters.forwarded.add(reaching.packets, reaching.bytes);
  }
}

/// Those behind the stage. Returns the bytes of all frames that have reached it.
std::uint64_t DeviceExecutor::set_lengths(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                                          const Settled& burst) noexcept {
  const std::size_t function = shape_of(flight).stages[stage].function;
  const std::uint32_t* const lengths = results.lengths[stage];
  std::uint64_t bytes = 0;
  for (const PacketView& packet : burst.packets) {
    PacketDescriptor& descriptor = *packet.packet;
    const std::size_t i = index_of(flight, packet);
    if (burst.any_ended && !reached(descriptor.verdict, function)) continue;
    // What the finish stage dropped has the length that the function was given.
    if (!burst.any_ended || !ended_at(descriptor.verdict, function) || ended_at(results.verdicts[i], function)) {
      descriptor.wire_length += lengths[i] - descriptor.length;  // modulo 2^32
      descriptor.length = lengths[i];
    }
    bytes += descriptor.length;
  }
  return bytes;
}

/// Whether finish stages see the same once the batch is sent, and in the same order as what goes to the twins.
bool DeviceExecutor::may_wait(const Flight& flight, const ring::SegmentResults& results) const noexcept {
  const auto waits = [&](const ring::SegmentShape::Stage& stage) { return finish_[stage.function].waits; };
  return flight.run + 1 == plan_.runs.size() && std::ranges::any_of(shape_of(flight).stages, waits) &&
         flight.punted.empty() &&
         std::ranges::none_of(results.verdicts, [](Verdict verdict) { return verdict.kind == VerdictKind::punt; });
}

/// The packets of the burst that have reached the stage, and what it found of them.
void DeviceExecutor::find_worked_on(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                                    const Settled& burst, WorkedOn& those) const noexcept {
  const ring::SegmentShape::Stage& shape = shape_of(flight).stages[stage];
  const std::byte* const findings = results.findings[stage];
  if (!burst.any_ended) {
    those.packets = burst.packets;
    const std::size_t first = index_of(flight, burst.packets.front());
    if (index_of(flight, burst.packets.back()) - first + 1 == burst.packets.size()) {  // all of a part of the batch
      const std::byte* next = findings + first * shape.findings_bytes;
      for (const std::byte*& of_this : std::span(those.of_each).first(burst.packets.size())) {
        of_this = next;
        next += shape.findings_bytes;
      }
      return;
    }
  }
  std::size_t count = 0;
  for (std::size_t n = 0; n < burst.packets.size(); ++n) {
    const PacketView packet = burst.packets[n];
    if (burst.any_ended && !reached(packet.packet->verdict, shape.function)) continue;
    those.of_each[count] = findings + index_of(flight, packet) * shape.findings_bytes;
    those.some[count] = packet;
    those.at[count++] = static_cast<std::uint8_t>(n);
  }
  if (burst.any_ended) those.packets = std::span(those.some).first(count);
}

void DeviceExecutor::put_off(Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                             const Settled& burst, Waits& waits) noexcept {
  WorkedOn those;
  find_worked_on(flight, stage, results, burst, those);
  if (those.packets.empty()) return;
  std::array<std::uint8_t, function::kBurst> chosen;
  const std::size_t count =
      finish_[shape_of(flight).stages[stage].function].stage->choose(those.packets, those.findings(), chosen);
  for (const std::uint8_t n : std::span(chosen).first(count)) {
    const PacketView packet = those.packets[n];
    flight.waiting.push_back({packet, packet.length(), packet.packet->wire_length, stage});
    waits[burst.any_ended ? those.at[n] : n] = true;
  }
}

/// The batch has been sent, and its memory is still ours: the packets are made again what they were before the segment.
void DeviceExecutor::finish_sent(Flight& flight) noexcept {
  if (flight.waiting.empty()) return;
  const plan::DevicePlan::Run& run = plan_.runs.back();
  const ring::SegmentShape& shape = plan_.segments[run.segment];
  const ring::SegmentResults& results = flight.lane->lane->results();
  for (const auto& [packet, record] : flight.exchanged) scatter_[run.segment].exchange(record, packet);
  std::array<PacketView, function::kBurst> burst;
  std::array<const std::byte*, function::kBurst> findings;
  for (auto next = flight.waiting.begin(); next != flight.waiting.end();) {
    const std::size_t stage = next->stage;
    std::size_t count = 0;
    for (; next != flight.waiting.end() && next->stage == stage && count < function::kBurst; ++next) {
      next->packet.packet->length = next->length;
      next->packet.packet->wire_length = next->wire_length;
      findings[count] = results.findings[stage] + index_of(flight, next->packet) * shape.stages[stage].findings_bytes;
      burst[count++] = next->packet;
    }
    finish_[shape.stages[stage].function].stage->finish(std::span(burst).first(count),
                                                        std::span(findings).first(count));
  }
}

/// Whether it dropped any.
bool DeviceExecutor::finish(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                            const Settled& burst) noexcept {
  const std::uint8_t function = shape_of(flight).stages[stage].function;
  Finish& finish = finish_[function];
  WorkedOn those;
  find_worked_on(flight, stage, results, burst, those);
  const std::span<const PacketView> packets = those.packets;
  if (packets.empty()) return false;
  if (finish.drops && burst.any_ended) {
    for (const PacketView& packet : packets) {
      Verdict& verdict = packet.packet->verdict;
      if (!verdict.alive() && verdict.nf > function) verdict = Verdict::forward();
    }
  }
  finish.stage->finish(packets, those.findings());
  if (!finish.drops) return false;
  bool any_dropped = false;
  for (const PacketView& packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    const Verdict of_device = results.verdicts[index_of(flight, packet)];
    if (verdict == of_device) continue;
    if (verdict.alive()) {
      verdict = of_device;
      continue;
    }
    if (verdict.kind != VerdictKind::drop)
      broken_invariant(chain_.functions[function].name, worker_, *packet.packet,
                       "its finish stage does more than drop");
    verdict.nf = function;
    any_dropped = true;
  }
  return any_dropped;
}

/// Frames and records of those that the device forwards, also where a finish stage has dropped them since.
void DeviceExecutor::take_back(Flight& flight, const ring::SegmentResults& results, Returned& next,
                               const Settled& burst, const Waits& waits) noexcept {
  const std::size_t segment = run_of(flight).segment;
  const ring::SegmentShape& shape = plan_.segments[segment];
  if (!shape.frames_down && shape.down.empty()) return;
  if (!burst.any_ended && shape.down.empty()) {
    for (PacketView& packet : burst.packets) {
      flight.frames[index_of(flight, packet)] = packet.frame = next.frame;
      next.frame += aligned_frame(packet.length());
    }
    return;
  }
  const std::uint32_t* const lengths = results.last_lengths();
  for (std::size_t n = 0; n < burst.packets.size(); ++n) {
    PacketView& packet = burst.packets[n];
    const std::size_t i = index_of(flight, packet);
    if (!results.verdicts[i].alive()) continue;
    const bool goes_on = packet.packet->verdict.alive();
    if (shape.frames_down) {
      if (goes_on) flight.frames[i] = packet.frame = next.frame;
      next.frame += aligned_frame(lengths != nullptr ? lengths[i] : packet.length());
    }
    if (!shape.down.empty()) {
      if (goes_on && waits[n]) {
        scatter_[segment].exchange(next.record, packet);
        flight.exchanged.emplace_back(packet, next.record);
      } else if (goes_on) {
        scatter_[segment](next.record, packet);
      }
      next.record += shape.down.bytes;
    }
  }
}

/// What the finish stage of the segment's last function does with the frames that have come back. Whether it dropped
/// any.
bool DeviceExecutor::change_returned(std::size_t function, std::span<const PacketView> packets) noexcept {
  std::array<PacketView, function::kBurst> alive;
  std::array<std::uint32_t, function::kBurst> lengths;
  std::array<std::uint32_t, function::kBurst> wire_lengths;
  std::size_t count = 0;
  for (const PacketView& packet : packets) {
    if (!packet.packet->verdict.alive()) continue;
    lengths[count] = packet.length();
    wire_lengths[count] = packet.packet->wire_length;
    alive[count++] = packet;
  }
  if (count == 0) return false;
  finish_[function].stage->take_back(std::span(alive).first(count));
  bool any_dropped = false;
  for (std::size_t n = 0; n < count; ++n) {
    PacketDescriptor& packet = *alive[n].packet;
    if (packet.length > lengths[n])
      broken_invariant(chain_.functions[function].name, worker_, packet, "its finish stage makes a frame longer");
    packet.wire_length = wire_lengths[n] + packet.length - lengths[n];  // whether or not the stage has seen to it
    if (packet.verdict.alive()) continue;
    if (packet.verdict.kind != VerdictKind::drop)
      broken_invariant(chain_.functions[function].name, worker_, packet, "its finish stage does more than drop");
    packet.verdict.nf = static_cast<std::uint8_t>(function);
    any_dropped = true;
  }
  return any_dropped;
}

void DeviceExecutor::count_ended(std::size_t function, std::span<const PacketView> packets,
                                 report::TrafficSum& reaching) noexcept {
  FunctionCounters& counters = counters_.functions[function];
  for (const PacketView& packet : packets) {
    const Verdict verdict = packet.packet->verdict;
    if (!ended_at(verdict, function)) continue;
    const std::uint64_t length = packet.length();
    reaching.packets -= 1;
    reaching.bytes -= length;
    if (verdict.kind == VerdictKind::consume) {
      counters.consumed.add(1, length);
    } else {
      if (verdict.value >= counters.dropped.size())
        broken_invariant(chain_.functions[function].name, worker_, *packet.packet,
                         "drops for a reason that it does not declare");
      counters.dropped[verdict.value].add(1, length);
    }
  }
}

/// One packet through functions [first, last) on their twins.
void DeviceExecutor::run_alone(Flight& flight, std::size_t packet, std::size_t first, std::size_t last) noexcept {
  if (need_room(first, last)) give_room(flight, packet);
  PacketView one = view(flight, packet);
  twins_.parse({&one, 1});
  static_cast<void>(twins_.run({&one, 1}, first, last));
  if (flight.listed) flight.frames[packet] = one.frame;
}

void DeviceExecutor::run_on_cpu(Flight& flight, std::size_t first, std::size_t last) noexcept {
  if (need_room(first, last)) give_room_to_all(flight);
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return view(flight, i); },
      [&](std::span<PacketView> burst) {
        twins_.parse(burst);
        const std::span<PacketView> left = twins_.run(burst, first, last);
        if (!flight.listed) return;
        for (const PacketView& packet : left) {
          flight.frames[index_of(flight, packet)] = packet.frame;
        }
      });
}

void DeviceExecutor::send(Flight& flight) noexcept {
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return view(flight, i); },
      [&](std::span<PacketView> burst) { outlet_.send(burst, emissions_of(flight)); });
  outlet_.end_batch(*flight.batch, emissions_of(flight));
}

}  // namespace penstock::run
