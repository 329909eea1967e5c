// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/device_executor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "function/burst.h"
#include "function/granted_stage.h"
#include "packet/batch.h"
#include "run/epoch.h"
#include "run/flight_capture.h"

namespace penstock::run {

DeviceExecutor::DeviceExecutor(const Chain& chain, plan::DevicePlan plan, LaneSet lanes, unsigned worker,
                               WorkerCounters& counters, Taps* taps)
    : chain_(chain),
      plan_(std::move(plan)),
      counters_(counters),
      taps_(taps),
      traits_(chain.traits()),
      emits_(chain.emits()),
      twins_(chain, plan_.runs, worker, counters, emitter_, std::max<std::size_t>(1, lanes.lanes.size()), taps),
      current_(make_host_stages(chain.functions, &plan_)),
      flight_twins_(chain, plan_, twins_),
      own_stacks_(chain, plan_, counters),
      settlement_(chain, plan_, worker, counters, twins_, emitter_, flight_twins_, *current_),
      outlet_(chain, worker, counters),
      flights_(std::max<std::size_t>(1, lanes.lanes.size())),
      lane_set_(std::move(lanes)) {
  settlement_.begin_epoch(*current_);
  twins_.begin_epoch(*current_);
  const std::size_t waiting = settlement_.waiting_stages();
  for (auto& lane : lane_set_.lanes) {
    const unsigned failures = lane == nullptr ? kMostFailures : 0;
    lanes_.push_back({std::move(lane), current_.get(), failures});
  }
  current_->lanes.resize(lanes_.size());
  for (Flight& flight : flights_) {
    flight.plan = &plan_;
    flight.frames.resize(chain.settings.batch_packets);
    // A packet is noted once by the segment that leaves it to the CPU, and by each run after its frame was replaced.
    flight.punted.reserve(chain.settings.batch_packets * (chain.replaces_frames() ? plan_.runs.size() + 1 : 1));
    flight.set_aside.resize(chain.settings.batch_packets);
    if (!chain.forks.empty()) flight.arms.resize(chain.settings.batch_packets);
    flight.waiting.reserve(waiting * chain.settings.batch_packets);
    if (waiting > 0) flight.exchanged.reserve(chain.settings.batch_packets);
    if (emits_) flight.emissions = chain.make_emissions();
    if (plan_.runs.size() > 1 && std::ranges::any_of(traits_, &function::NfTraits::asks_for_arrivals))
      flight.arrivals = std::make_unique<function::Arrivals>(chain.settings.batch_packets);
    own_stacks_.make_buffers(flight);
    flight.gathers = gathers();
    if (flight.gathers || flight_twins_.need_room(0, traits_.size())) {
      flight.scratch = FrameScratch(chain.settings.batch_bytes, chain.settings.batch_packets, plan::growth_of(traits_),
                                    static_cast<bool>(chain.settings.remote));
    }
  }
}

DeviceExecutor::~DeviceExecutor() {
  for (LaneState& state : lanes_) {
    if (state.lane != nullptr) state.lane->abandon();
  }
}

WarmUp DeviceExecutor::warm_up(Batch& batch, std::chrono::nanoseconds limit) noexcept {
  std::vector<ring::Lane*> lanes;
  for (const LaneState& state : lanes_) lanes.push_back(state.lane.get());
  return run::warm_up(lanes, plan_, batch, limit);
}

std::vector<std::span<std::uint8_t>> DeviceExecutor::memory_sent_again() const {
  bool grown = gathers();
  bool sent_again = grown;
  for (const plan::DevicePlan::Run& run : plan_.runs) {
    grown |= !is_device(run.processor) && flight_twins_.need_room(run.first, run.last);
    sent_again |= grown && is_device(run.processor) && plan_.segments[run.segment].sends_packets;
  }
  std::vector<std::span<std::uint8_t>> memory;
  for (const Flight& flight : flights_) {
    if (sent_again) memory.push_back(flight.scratch.memory());
    for (const FrameScratch& buffer : flight.own_buffers) {
      if (!buffer.memory().empty()) memory.push_back(buffer.memory());
    }
  }
  return memory;
}

LaneState* DeviceExecutor::free_lane() noexcept {
  // Round robin, so that every lane passes a batch boundary, and switches to new tables, now and then.
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
  if (count_ == flights_.size() || next_lanes_ != nullptr) return false;
  LaneState* const lane = free_lane();
  const bool lost = all_lost();
  if (lane == nullptr && !lost) return false;
  twins_.use(*current_);
  twins_.begin_batch();
  Flight& flight = flights_[(first_ + count_) % flights_.size()];
  ++count_;
  flight.begin(batch, lane, *current_);
  flight.number = ++begun_;
  twins_.begin_numbered(flight.number);
  if (taps_ != nullptr && taps_->trace.wants_more()) {
    if (const auto trace = taps_->trace.join()) flight.trace.begin(chain_, trace, batch);
  }
  ++current_->flights;
  if (emits_) flight.emissions.begin(batch);
  make_for(flight);
  if (flight.arrivals != nullptr) flight_twins_.remember(flight);
  begin_run(flight);
  if (!flight.on_device) return true;  // its turn comes in `retire`
  flight.lane->busy = true;
  while (!is_device(flight.current().processor)) {
    flight_twins_.run(flight);
    ++flight.run;
    begin_run(flight);
  }
  if (!start_segment(flight)) fail(flight);
  return true;
}

/// A second batch starts while the first one is on the device. But a device takes only so many batches in a second,
/// however small they are, so many workers with two small ones each only make each other wait.
bool DeviceExecutor::takes_early(const Batch& open) const noexcept {
  constexpr std::size_t kMany = 4;
  const bool crowd = chain_.settings.workers_of_device() >= kMany && open.bytes().size() < ring::kCollectFromOfSeveral;
  return count_ < (crowd ? 1U : 2U) && !all_lost();
}

void DeviceExecutor::begin_epoch(std::unique_ptr<StageSet> next) noexcept {
  twins_.use(*current_);
  settlement_.begin_epoch(*next);
  twins_.begin_epoch(*next);
  former_ = std::exchange(current_, std::move(next));
  if (current_->lanes.empty()) give_up_device();
  for (LaneState& state : lanes_) {
    if (!state.busy) update_lane(state);
  }
  end_former_epoch();
}

/// The epoch has no stages for lanes. Those that are busy keep the former ones until their batch is done, or has
/// failed.
void DeviceExecutor::give_up_device() noexcept {
  gave_up_ = true;
  for (LaneState& state : lanes_) {
    if (state.failures < kMostFailures) counters_.device.lanes_lost.add(1);
    state.failures = kMostFailures;
    if (!state.busy) state.lane.reset();
  }
}

bool DeviceExecutor::has_lost_remote_device() const noexcept {
  return lane_set_.factory != nullptr && lane_set_.factory->is_remote() && lane_set_.factory->is_lost();
}

void DeviceExecutor::begin_lanes(std::unique_ptr<LaneSet> next) noexcept {
  next_lanes_ = std::move(next);
  if (count_ == 0) renew_lanes();
}

/// No batch is in flight: one that began without a lane must not be overtaken by the state stages of the next one.
void DeviceExecutor::renew_lanes() noexcept {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].lane.swap(next_lanes_->lanes[i]);
    lanes_[i].epoch = current_.get();
    lanes_[i].failures = 0;
  }
  next_lanes_->unused = std::exchange(current_->lanes, std::vector<ring::LaneStages>(lanes_.size()));
  std::swap(lane_set_.factory, next_lanes_->factory);
  lane_set_.memory.swap(next_lanes_->memory);
  gave_up_ = false;
  ended_lanes_ = std::move(next_lanes_);
}

/// Gives the lane the stages of the newest epoch. It must not be busy.
void DeviceExecutor::update_lane(LaneState& state) noexcept {
  if (state.lane == nullptr || state.epoch == current_.get()) return;
  const auto lane = static_cast<std::size_t>(&state - lanes_.data());
  state.lane->exchange_stages(current_->lanes[lane]);
  former_->lanes[lane].swap(current_->lanes[lane]);
  state.epoch = current_.get();
}

/// The former stages have ended once no batch and no lane uses them.
void DeviceExecutor::end_former_epoch() noexcept {
  if (former_ == nullptr || former_->flights > 0) return;
  for (const LaneState& state : lanes_) {
    if (state.lane != nullptr && state.epoch != current_.get()) return;
  }
  twins_.use(*current_);
  ended_ = std::move(former_);
}

void DeviceExecutor::pass_boundary() noexcept {
  twins_.use(*current_);
  twins_.begin_batch();
  for (LaneState& state : lanes_) {
    if (!state.busy && state.lane != nullptr) state.lane->begin_batch();
  }
  pass_held();
}

/// Where batches up to `last_sent` have been sent, and no later ones: held packets keep their place between others of
/// their flow. No functions follow, and none makes packets.
void DeviceExecutor::pass_held() noexcept {
  twins_.use(*current_);
  twins_.pass_held(outlet_, nullptr, last_sent());
}

void DeviceExecutor::give_up_held() noexcept {
  twins_.use(*current_);
  twins_.give_up_held(outlet_, nullptr, last_sent());
}

void DeviceExecutor::end() noexcept {
  current_->finish.clear();
  current_->states.clear();
  twins_.use(*current_);
  twins_.end();
  own_stacks_.end();
  current_->twins.clear();
}

void DeviceExecutor::release() noexcept { lanes_.clear(); }

Batch* DeviceExecutor::retire() noexcept {
  std::size_t run_before = plan_.runs.size();  // where the previous batch is: this one must not pass it
  for (std::size_t i = 0; i < count_; ++i) {
    Flight& flight = flights_[(first_ + i) % flights_.size()];
    advance(flight, run_before);
    run_before = flight.run;
    // Finish stages that wait for this batch to be sent must see its packets before those of the next one.
    if (!flight.waiting.empty()) break;
  }
  if (count_ == 0) return nullptr;
  Flight& flight = flights_[first_];
  if (!flight.done()) return nullptr;
  if (twins_.holds_packets()) pass_held();
  twins_.use(*flight.epoch);
  twins_.settle_connections(flight.number);
  send(flight);
  settlement_.finish_sent(flight);
  if (flight.lane != nullptr) {
    flight.lane->busy = false;
    if (flight.on_device && !gave_up_) flight.lane->failures = 0;  // it has completed a batch
    // A disabled lane is destroyed with its stages, which would never release their tables otherwise.
    if (flight.lane->failures >= kMostFailures) flight.lane->lane.reset();
    update_lane(*flight.lane);
  }
  --flight.epoch->flights;
  end_former_epoch();
  first_ = (first_ + 1) % flights_.size();
  --count_;
  if (count_ == 0 && next_lanes_ != nullptr) renew_lanes();
  return flight.batch;
}

void DeviceExecutor::advance(Flight& flight, std::size_t limit) noexcept {
  twins_.use(*flight.epoch);
  twins_.begin_numbered(flight.number);
  make_for(flight);
  while (flight.run < limit) {
    const plan::DevicePlan::Run& run = flight.current();
    if (is_device(run.processor) && flight.on_device) {
      const gpu::Progress progress = flight.lane->lane->progress();
      if (progress == gpu::Progress::kRunning) return;
      if (progress == gpu::Progress::kDone) {
        settle(flight);
      } else {
        fail(flight);
        continue;
      }
    } else {
      flight_twins_.run(flight);
    }
    ++flight.run;
    begin_run(flight);
    const bool starts_segment = !flight.done() && is_device(flight.current().processor);
    if (starts_segment && flight.on_device && !start_segment(flight)) fail(flight);
  }
}

void DeviceExecutor::settle(Flight& flight) noexcept {
  const bool were_listed = flight.listed;
  if (!flight.trace.empty()) flight.trace.add_segment(flight, chain_, traits_);
  settlement_.settle(flight);
  if (!flight.trace.empty()) flight.trace.add_settlement(flight, chain_, traits_);
  if (taps_ != nullptr) {
    if (const std::size_t function = taps_->capture.wanted(); function != Capture::kNone) {
      if (const auto capture = taps_->capture.join()) capture_dropped(flight, traits_, function, were_listed, *capture);
    }
  }
  flight.restore_other_arms();
}

/// Called before the next run, if any: a fork may begin with it.
void DeviceExecutor::begin_run(Flight& flight) noexcept {
  if (!flight.done() && flight.current().fork) flight_twins_.choose_arms(flight, chain_.forks[*flight.current().fork]);
}

bool DeviceExecutor::start_segment(Flight& flight) noexcept {
  // The first segment sends the packets of all arms, unless their frames are listed: then only those that it works on.
  // They are listed this early only if a function has replaced one of them, which is rare.
  const bool sends_first = flight.current().segment == 0;
  if (flight.listed && flight.current().arm && sends_first) {
    flight.on_device = false;
    return true;
  }
  flight.set_other_arms_aside();
  flight.set_punted_aside();
  const bool into_own_buffer = plan_.own_stacks && flight.shape().frames_up;  // which gathers them as well
  if (flight.shape().sends_packets && !sends_first && !into_own_buffer) flight.gather();
  if (flight.current().parses) flight_twins_.parse(flight);
  if (plan_.own_stacks) own_stacks_.take_in(flight);
  fill_states(flight);
  flight.started = Batch::Clock::now();
  if (!flight.trace.empty()) flight.lane->lane->take_pictures(flight.trace.packets());
  const bool started = flight.lane->lane->start(*flight.batch, flight.current().segment, flight.listed_frames());
  counters_.device.segments.add(1);
  return started;
}

/// Batches start their segments in order, so state stages see packets in order. All of them see a burst before the next
/// one, as twins do.
void DeviceExecutor::fill_states(Flight& flight) noexcept {
  const std::vector<ring::SegmentShape::Stage>& stages = flight.shape().stages;
  if (std::ranges::none_of(stages, [](const auto& stage) { return stage.state_bytes > 0; })) return;
  const std::size_t segment = flight.current().segment;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    function::StatesOfGrant* const states = flight.epoch->granted_states[stages[s].function];
    if (states != nullptr) states->take_grant(flight.grant(segment, s));
  }
  std::array<std::byte*, function::kBurst> of_each;
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return flight.view(i); },
      [&](std::span<PacketView> burst) {
        for (std::size_t s = 0; s < stages.size(); ++s) {
          const std::uint32_t bytes = stages[s].state_bytes;
          if (bytes == 0) continue;
          std::byte* const states = flight.lane->lane->states(segment, s);
          for (std::size_t i = 0; i < burst.size(); ++i) of_each[i] = states + flight.index_of(burst[i]) * bytes;
          flight.epoch->states[stages[s].function]->fill(burst, std::span(of_each).first(burst.size()));
        }
      });
  for (std::size_t s = 0; s < stages.size(); ++s) {
    if (function::StatesOfGrant* const states = flight.epoch->granted_states[stages[s].function]) states->end_states();
    const std::uint32_t bytes = stages[s].state_bytes;
    for (const std::uint32_t unseen : flight.punted) {
      if (bytes > 0) std::memset(flight.lane->lane->states(segment, s) + std::size_t{unseen} * bytes, 0, bytes);
    }
  }
  flight.filled_run = flight.run;
}

/// The device has failed this batch. The CPU continues from the current run: on the host, the batch is as it was when
/// that run began.
void DeviceExecutor::fail(Flight& flight) noexcept {
  flight.lane->lane->abandon();
  flight.restore_punted();
  flight.restore_other_arms();
  counters_.device.failures.add(1);
  flight.on_device = false;
  // Whoever connects again reports that (lane_keeper.h).
  if (has_lost_remote_device()) return give_up_device();
  log_warning("a GPU has failed a batch; the CPU finishes it");
  if (++flight.lane->failures == kMostFailures) {
    counters_.device.lanes_lost.add(1);
    log_error("a stream of a GPU has failed {} times in a row and is not used any more{}", kMostFailures,
              all_lost() ? ": the CPU does all work of this worker" : "");
  }
}

void DeviceExecutor::send(Flight& flight) noexcept {
  if (!flight.trace.empty()) flight.trace.before_sending(flight);
  function::for_each_burst(
      *flight.batch, [&](std::size_t i) { return flight.view(i); },
      [&](std::span<PacketView> burst) { outlet_.send(burst, emissions_of(flight)); });
  outlet_.end_batch(*flight.batch, emissions_of(flight));
  if (!flight.trace.empty()) flight.trace.end(flight);
}

}  // namespace penstock::run
