// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/settlement.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "function/granted_stage.h"
#include "run/capture.h"

namespace penstock::run {

Settlement::Settlement(const Chain& chain, const plan::DevicePlan& plan, unsigned worker, WorkerCounters& counters,
                       CpuTwins& stages, function::Emitter& emitter, FlightTwins& twins, const StageSet& first_epoch)
    : chain_(chain), worker_(worker), counters_(counters), stages_(stages), emitter_(emitter), twins_(twins) {
  for (std::size_t f = 0; f < chain.functions.size(); ++f) {
    const function::NfTraits& traits = chain.functions[f].function->traits();
    finish_.push_back({traits.emits, traits.finish && !traits.finish->writes.empty(),
                       plan::finish_changes_frames(traits),
                       traits.finish_waits && chain.settings.defers_finish && first_epoch.finish[f] != nullptr});
  }
  for (const plan::DevicePlan::Run& run : plan.runs) {
    bool changed = false;  // by earlier functions of the segment
    for (std::size_t f = run.first; is_device(run.processor) && f < run.last; ++f) {
      finish_[f].host_has_frame = !changed;
      const Access* const access = chain.functions[f].function->traits().access_on(run.processor);
      changed |= access != nullptr && changes_bytes(*access);
    }
  }
  for (const ring::SegmentShape& segment : plan.segments) scatter_.emplace_back(segment.down);
}

void Settlement::begin_epoch(StageSet& next) noexcept {
  for (std::size_t f = 0; f < finish_.size(); ++f) {
    if (finish_[f].emits && next.finish[f] != nullptr) next.finish[f]->set_emitter(emitter_);
  }
}

std::size_t Settlement::waiting_stages() const noexcept {
  return static_cast<std::size_t>(std::ranges::count_if(finish_, &Finish::waits));
}

namespace {

/// How far ahead in the loop over packets descriptors are prefetched. They have left the near caches since the batch
/// was filled.
constexpr std::size_t kFetchAhead = 16;

/// The stage with the largest findings. They take whole cache lines for a few packets, so they are prefetched; the
/// hardware prefetches the smaller ones.
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

void Settlement::settle(Flight& flight) noexcept {
  const plan::DevicePlan::Run run = flight.current();
  FunctionCounters& first = counters_.functions[run.first];
  first.segments.add(1);
  first.segment_time_ns.add(
      static_cast<std::uint64_t>(std::chrono::nanoseconds(Batch::Clock::now() - flight.started).count()));
  const ring::SegmentResults& results = flight.lane->lane->results();
  const ring::Lane::Crossed crossed = flight.lane->lane->crossed();
  counters_.device.bytes_to_device.add(crossed.to_device);
  counters_.device.bytes_to_host.add(crossed.to_host);
  flight.finish_waits = may_wait(flight, results);
  // Frames that come back are then listed; until they are taken back, each is where it was.
  const bool were_listed = std::exchange(flight.listed, flight.listed || flight.shape().frames_down);
  const auto view_before = [&](std::size_t i) {
    return were_listed ? PacketView{flight.frames[i], &flight.batch->packets()[i]} : flight.batch->view(i);
  };

  const std::span<PacketDescriptor> packets = flight.batch->packets();
  Returned next{results.records, results.frames};
  std::array<PacketView, function::kBurst> burst;
  std::size_t count = 0;
  std::uint64_t bytes = 0;
  bool any_ended = false;
  const auto settle_those = [&] {
    if (count == 0) return;
    settle_burst(
        flight, results, next,
        {std::span(burst).first(std::exchange(count, 0)), std::exchange(bytes, 0), std::exchange(any_ended, false)});
  };
  // Packets for the twins, which come one after the other. Only one of the two bursts has packets.
  std::array<std::uint32_t, function::kBurst> left_to_twins;
  std::size_t left_count = 0;
  const auto pass_left = [&] {
    if (left_count > 0) twins_.run_some(flight, std::span(left_to_twins).first(std::exchange(left_count, 0)));
  };
  const Widest findings = widest(flight.shape(), results);
  const bool writes_headers = !flight.shape().frames_down && !flight.shape().down.empty();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (i + kFetchAhead < packets.size()) __builtin_prefetch(&packets[i + kFetchAhead], 1);
    __builtin_prefetch(findings.findings + i * findings.bytes);  // needed when the burst is settled
    Verdict& verdict = packets[i].verdict;
    const bool punted_before = verdict.kind == VerdictKind::punt;
    if (punted_before) {
      verdict = flight.set_aside[i];
    } else if (!verdict.alive()) {
      continue;
    } else if (results.verdicts[i].kind != VerdictKind::punt) {
      pass_left();
      verdict = results.verdicts[i];
      any_ended |= !verdict.alive();
      bytes += packets[i].length;
      burst[count] = view_before(i);
      if (writes_headers) __builtin_prefetch(burst[count].frame, 1);  // needed when the burst is settled
      if (++count == function::kBurst) settle_those();
      continue;
    } else {
      counters_.device.punted.add(1);
      flight.punted.push_back(static_cast<std::uint32_t>(i));
    }
    settle_those();
    // The segment's changes to this packet are only on the device, so the twins start from the first function.
    if (flight.listed) flight.frames[i] = view_before(i).frame;
    left_to_twins[left_count++] = static_cast<std::uint32_t>(i);
    if (left_count == function::kBurst) pass_left();
  }
  settle_those();
  pass_left();
}

namespace {

/// For a packet in a segment, whose verdict names the function that decided: whether the packet reached this function …
bool reached(Verdict verdict, std::size_t function) noexcept { return verdict.alive() || verdict.nf >= function; }
/// … and whether it ended there.
bool ended_at(Verdict verdict, std::size_t function) noexcept { return !verdict.alive() && verdict.nf == function; }

}  // namespace

/// Counts as the CPU twins do. All packets of the burst were processed on the device, and have its verdicts.
void Settlement::settle_burst(Flight& flight, const ring::SegmentResults& results, Returned& next,
                              Settled burst) noexcept {
  const ring::SegmentShape& shape = flight.shape();
  report::TrafficSum reaching{burst.packets.size(), burst.bytes};
  Waits waits{};
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    const std::size_t function = shape.stages[s].function;
    FunctionCounters& counters = counters_.functions[function];
    counters.in.add(reaching.packets, reaching.bytes);
    if (flight.finish_waits && finish_[function].waits) {
      put_off(flight, s, results, burst, waits);
    } else if (flight.epoch->finish[function] != nullptr) {
      burst.any_ended |= finish(flight, s, results, burst);
    }
    if (results.lengths[s] != nullptr) reaching.bytes = set_lengths(flight, s, results, burst);
    if (s + 1 == shape.stages.size()) take_back(flight, results, next, burst, waits);
    if (finish_[function].takes_back) {
      burst.any_ended |= change_returned(flight, function, burst.packets);
      reaching.bytes = 0;
      for (const PacketView& packet : burst.packets) {
        if (reached(packet.packet->verdict, function)) reaching.bytes += packet.length();
      }
    }
    if (burst.any_ended) count_ended(function, burst.packets, reaching);
    counters.forwarded.add(reaching.packets, reaching.bytes);
  }
}

/// Sets the lengths that frames have after the stage. Returns the bytes of all frames that reached it.
std::uint64_t Settlement::set_lengths(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                                      const Settled& burst) noexcept {
  const std::size_t function = flight.shape().stages[stage].function;
  const std::uint32_t* const lengths = results.lengths[stage];
  std::uint64_t bytes = 0;
  for (const PacketView& packet : burst.packets) {
    PacketDescriptor& descriptor = *packet.packet;
    const std::size_t i = flight.index_of(packet);
    if (burst.any_ended && !reached(descriptor.verdict, function)) continue;
    // A packet that the finish stage dropped keeps the length that it had before the function.
    if (!burst.any_ended || !ended_at(descriptor.verdict, function) || ended_at(results.verdicts[i], function)) {
      descriptor.wire_length += lengths[i] - descriptor.length;  // modulo 2^32
      descriptor.length = lengths[i];
    }
    bytes += descriptor.length;
  }
  return bytes;
}

/// Whether finish stages may wait: they see the same after the batch was sent, and no packet goes to the twins, so the
/// order is kept too.
bool Settlement::may_wait(const Flight& flight, const ring::SegmentResults& results) const noexcept {
  const auto waits = [&](const ring::SegmentShape::Stage& stage) { return finish_[stage.function].waits; };
  return flight.run + 1 == flight.plan->runs.size() && std::ranges::any_of(flight.shape().stages, waits) &&
         flight.punted.empty() &&
         std::ranges::none_of(results.verdicts, [](Verdict verdict) { return verdict.kind == VerdictKind::punt; });
}

/// Finds the packets of the burst that reached the stage, and their findings.
void Settlement::find_worked_on(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                                const Settled& burst, WorkedOn& those) const noexcept {
  const ring::SegmentShape::Stage& shape = flight.shape().stages[stage];
  const std::byte* const findings = results.findings[stage];
  if (!burst.any_ended) {
    those.packets = burst.packets;
    const std::size_t first = flight.index_of(burst.packets.front());
    if (flight.index_of(burst.packets.back()) - first + 1 == burst.packets.size()) {  // adjacent in the batch
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
    those.of_each[count] = findings + flight.index_of(packet) * shape.findings_bytes;
    those.some[count] = packet;
    those.at[count++] = static_cast<std::uint8_t>(n);
  }
  if (burst.any_ended) those.packets = std::span(those.some).first(count);
}

namespace {

/// Whose tables the findings are that the finish stage sees next.
void tell_grant(const Flight& flight, std::size_t segment, std::size_t stage) noexcept {
  function::HandingStage* const hands_over =
      flight.epoch->handing[flight.plan->segments[segment].stages[stage].function];
  if (hands_over != nullptr) hands_over->take_grant(flight.grant(segment, stage));
}

}  // namespace

/// Tells the finish stage of which tables the findings are that it sees next, and gives it the states that were sent
/// with these packets.
void Settlement::prepare_finish(const Flight& flight, std::size_t segment, std::size_t stage,
                                std::span<const PacketView> packets) noexcept {
  const ring::SegmentShape::Stage& shape = flight.plan->segments[segment].stages[stage];
  tell_grant(flight, segment, stage);
  if (shape.state_bytes == 0) return;
  const std::byte* const states = flight.lane->lane->states(segment, stage);
  for (std::size_t i = 0; i < packets.size(); ++i)
    states_[i] = states + flight.index_of(packets[i]) * shape.state_bytes;
  flight.epoch->finish[shape.function]->take_states(std::span(states_).first(packets.size()));
}

void Settlement::put_off(Flight& flight, std::size_t stage, const ring::SegmentResults& results, const Settled& burst,
                         Waits& waits) noexcept {
  WorkedOn those;
  find_worked_on(flight, stage, results, burst, those);
  if (those.packets.empty()) return;
  std::array<std::uint8_t, function::kBurst> chosen;
  tell_grant(flight, flight.current().segment, stage);
  const std::size_t count =
      flight.epoch->finish[flight.shape().stages[stage].function]->choose(those.packets, those.findings(), chosen);
  for (const std::uint8_t n : std::span(chosen).first(count)) {
    const PacketView packet = those.packets[n];
    flight.waiting.push_back({packet, packet.length(), packet.packet->wire_length, stage});
    waits[burst.any_ended ? those.at[n] : n] = true;
  }
}

/// Restores the packets as they were before the segment, and runs the finish stages that waited.
void Settlement::finish_sent(Flight& flight) noexcept {
  if (flight.waiting.empty()) return;
  const plan::DevicePlan::Run& run = flight.plan->runs.back();
  const ring::SegmentShape& shape = flight.plan->segments[run.segment];
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
      findings[count] = results.findings[stage] + flight.index_of(next->packet) * shape.stages[stage].findings_bytes;
      burst[count++] = next->packet;
    }
    prepare_finish(flight, run.segment, stage, std::span(burst).first(count));
    const std::size_t function = shape.stages[stage].function;
    const auto packets = std::span(burst).first(count);
    const auto of_each = std::span(findings).first(count);
    if (function::HandingStage* const hands_over = flight.epoch->handing[function]) {
      hands_over->begin_finish(packets, of_each);
    } else {
      flight.epoch->finish[function]->finish(packets, of_each);
    }
  }
  for (const ring::SegmentShape::Stage& stage : shape.stages) {
    function::HandingStage* const hands_over =
        finish_[stage.function].waits ? flight.epoch->handing[stage.function] : nullptr;
    if (hands_over != nullptr) hands_over->end_finish();
  }
}

/// Returns whether the finish stage dropped any packet.
bool Settlement::finish(const Flight& flight, std::size_t stage, const ring::SegmentResults& results,
                        const Settled& burst) noexcept {
  const std::uint8_t function = flight.shape().stages[stage].function;
  const bool drops = finish_[function].drops;
  WorkedOn those;
  find_worked_on(flight, stage, results, burst, those);
  const std::span<const PacketView> packets = those.packets;
  if (packets.empty()) return false;
  if (drops && burst.any_ended) {
    for (const PacketView& packet : packets) {
      Verdict& verdict = packet.packet->verdict;
      if (!verdict.alive() && verdict.nf > function) verdict = Verdict::forward();
    }
  }
  prepare_finish(flight, flight.current().segment, stage, packets);
  // They are as they were before the segment.
  emitter_.set_unchanged(&flight.current() == &flight.plan->runs.front());
  flight.epoch->finish[function]->finish(packets, those.findings());
  emitter_.set_unchanged(false);
  stages_.settle_flows(function);
  if (!drops) return false;
  bool any_dropped = false;
  for (const PacketView& packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    const Verdict of_device = results.verdicts[flight.index_of(packet)];
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

/// Takes back frames and records of the packets that the device forwards, including those that a finish stage has
/// dropped since.
void Settlement::take_back(Flight& flight, const ring::SegmentResults& results, Returned& next, const Settled& burst,
                           const Waits& waits) noexcept {
  const std::size_t segment = flight.current().segment;
  const ring::SegmentShape& shape = flight.plan->segments[segment];
  if (!shape.frames_down && shape.down.empty()) return;
  if (!burst.any_ended && shape.down.empty()) {
    for (PacketView& packet : burst.packets) {
      flight.frames[flight.index_of(packet)] = packet.frame = next.frame;
      next.frame += aligned_frame(packet.length());
    }
    return;
  }
  const std::uint32_t* const lengths = results.last_lengths();
  for (std::size_t n = 0; n < burst.packets.size(); ++n) {
    PacketView& packet = burst.packets[n];
    const std::size_t i = flight.index_of(packet);
    if (!results.verdicts[i].alive()) continue;
    const bool goes_on = packet.packet->verdict.alive();
    if (shape.frames_down) {
      if (goes_on) flight.frames[i] = packet.frame = next.frame;
      next.frame += aligned_frame(lengths != nullptr ? lengths[i] : packet.length());
    }
    if (!shape.down.empty()) {
      if (goes_on && waits[n]) {
        // The stage reads the frame in one piece, so keeping the original would mean copying all of it: more than twice
        // the time of a packet of 1518 bytes (settle_bench, NidsRouter).
        scatter_[segment].exchange(next.record, packet);
        flight.exchanged.emplace_back(packet, next.record);
      } else if (goes_on) {
        scatter_[segment](next.record, packet);
      }
      next.record += shape.down.bytes;
    }
  }
}

/// Lets the finish stage of the segment's last function change the frames that came back. Returns whether it dropped
/// any.
bool Settlement::change_returned(const Flight& flight, std::size_t function,
                                 std::span<const PacketView> packets) noexcept {
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
  flight.epoch->finish[function]->take_back(std::span(alive).first(count));
  bool any_dropped = false;
  for (std::size_t n = 0; n < count; ++n) {
    PacketDescriptor& packet = *alive[n].packet;
    if (packet.length > lengths[n])
      broken_invariant(chain_.functions[function].name, worker_, packet, "its finish stage makes a frame longer");
    packet.wire_length = wire_lengths[n] + packet.length - lengths[n];  // whether or not the stage has set it
    if (packet.verdict.alive()) continue;
    if (packet.verdict.kind != VerdictKind::drop)
      broken_invariant(chain_.functions[function].name, worker_, packet, "its finish stage does more than drop");
    packet.verdict.nf = static_cast<std::uint8_t>(function);
    any_dropped = true;
  }
  return any_dropped;
}

/// Whether the function's twin holds a packet that its device stage has dropped.
bool Settlement::holds(std::size_t function, PacketView packet) noexcept {
  if (!finish_[function].host_has_frame || !stages_.may_hold(function, packet.packet->verdict)) return false;
  stages_.parse({&packet, 1}, false);
  return stages_.hold(function, packet);
}

void Settlement::count_ended(std::size_t function, std::span<const PacketView> packets,
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
    } else if (!holds(function, packet)) {
      if (verdict.value >= counters.dropped.size())
        broken_invariant(chain_.functions[function].name, worker_, *packet.packet,
                         "drops for a reason that it does not declare");
      counters.dropped[verdict.value].add(1, length);
    }
  }
}

}  // namespace penstock::run
