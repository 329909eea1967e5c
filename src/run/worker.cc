// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/worker.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "base/thread_time.h"
#include "plan/device_plan.h"
#include "run/cpu_executor.h"
#include "run/device_run.h"
#include "run/packet_sharing.h"

namespace penstock::run {

namespace {

constexpr std::chrono::milliseconds kLongestRest{20};
constexpr std::chrono::milliseconds kLongestRestWhileHolding{2};
constexpr std::chrono::microseconds kLaneSleep{50};  // between looks at lanes, with a shared queue

ring::RingShape shape_for(const Chain& chain, unsigned worker) {
  const RunSettings& settings = chain.settings;
  const bool on_device = is_device(settings.processor);
  ring::RingShape shape;
  shape.room = on_device ? room_in_batches(chain) : plan::growth_of(chain.traits());
  shape.shared = (on_device && settings.remote) || shares_packets(chain);
  if (on_device) shape.most_lent_bytes = most_lent_bytes(chain);
  shape.batch_bytes = settings.batch_bytes;
  // Not more descriptors than the smallest frames that fit.
  shape.batch_packets = std::clamp<std::size_t>(settings.batch_bytes / kFrameAlignment, 1, settings.batch_packets);
  // Enough batches to fill the queue with the smallest frames. On the CPU, memory is only used once it is filled; for a
  // device, all of it is pinned, so the number is that of full batches.
  const std::size_t least = std::min(shape.batch_bytes, shape.batch_packets * ring::kSmallestFrame);
  shape.waiting_bytes = settings.queue_bytes;
  shape.waiting_batches = std::max<std::size_t>(1, settings.queue_bytes / (on_device ? shape.batch_bytes : least));
  // If all sources can wait, they are not polled while a batch waits, so a longer queue would only waste address space.
  const bool all_wait = std::ranges::all_of(
      chain.ports, [](const NamedPort& named) { return !named.port->reads() || named.port->lossless(); });
  if (!on_device && all_wait) shape.waiting_batches = std::min<std::size_t>(shape.waiting_batches, 2);
  // Packets wait in the shared queue instead.
  if (settings.queueing == Queueing::shared) shape.waiting_batches = 1;
  shape.taken_batches = on_device ? lanes_of(settings, worker) + 1 : 1;
  return shape;
}

std::unique_ptr<Executor> make_executor(const Chain& chain, unsigned worker, ring::PacketRing& ring,
                                        WorkerCounters& counters, Taps* taps, HandOver* hand_over) {
  if (is_device(chain.settings.processor)) return make_executor_on_device(chain, worker, ring, counters, taps);
  return std::make_unique<CpuExecutor>(chain, worker, counters, taps, hand_over);
}

}  // namespace

Worker::Worker(const Chain& chain, const PacketMemory& memory, unsigned index, Taps* taps, SharedQueue* shared,
               HandOver* hand_over)
    : chain_(chain),
      index_(index),
      shared_(shared),
      hand_over_(hand_over),
      counters_(chain),
      ring_(shape_for(chain, index), &memory),
      executor_(make_executor(chain, index, ring_, counters_, taps, hand_over)),
      lending_({}, {}, 0) {}

void Worker::begin() noexcept {
  std::vector<port::RxQueue*> sources;
  std::vector<port::TxQueue*> exits;
  if (shared_ != nullptr) {
    // It waits while this worker has a closed batch, so it is lossless for the worker.
    sources.push_back(shared_);
    sources_.push_back({shared_, kNoPort, true, false});
  }
  for (std::size_t p = 0; p < chain_.ports.size(); ++p) {
    port::Port& port = *chain_.ports[p].port;
    if (port::TxQueue* const queue = port.tx(index_)) exits.push_back(queue);
    port::RxQueue* const queue = port.rx(index_);
    if (queue == nullptr || shared_ != nullptr) continue;
    sources.push_back(queue);
    sources_.push_back({queue, static_cast<PortIndex>(p), port.lossless(), queue->next_time_ns().has_value()});
    all_lossless_ &= port.lossless();
  }
  if (hand_over_ != nullptr) {
    port::RxQueue& inbox = hand_over_->inbox(index_);
    sources.push_back(&inbox);
    // Its packets wait in the rings while there is no room for them.
    sources_.push_back({.queue = &inbox, .port = kNoPort, .lossless = true, .timed = false, .is_inbox = true});
  }
  can_sleep_ = !sources_.empty() && collect_wake_ups();
  lending_ = Lending(std::move(sources), std::move(exits), ring_.most_batches());
  executor_->begin();
}

void Worker::run(const std::atomic<bool>& stop) noexcept {
  const std::chrono::nanoseconds before = thread_time();
  run_until(stop);
  if (epochs_.changes()) change_epoch();
  if (lane_sets_.changes()) change_lanes();
  executor_->end();
  done_.store(true);
  counters_.cpu_time_ns.add(static_cast<std::uint64_t>((thread_time() - before).count()));
  ended_at_ = Clock::now();
  executor_->release();
}

void Worker::run_until(const std::atomic<bool>& stop) noexcept {
  unsigned idle_rounds = 0;
  round_began_ = Clock::now();
  for (;;) {
    if (epochs_.is_due()) change_epoch();
    if (lane_sets_.is_due()) change_lanes();
    if (!may_hold_.load(std::memory_order_relaxed)) executor_->give_up_held();
    const bool stopping = stop.load(std::memory_order_relaxed);
    const bool received = receive(stopping);
    if (filling_ != nullptr && !filling_->empty() && !copy_waits_) {
      if (stopping || all_ended()) {
        close(counters_.closed_by_end);
      } else if (!any_waits()) {  // else it would not be processed sooner
        // Interfaces that are quiet now, so that waiting for more packets would only add latency. Under load, batches
        // fill while the former ones are executed.
        const bool quiet = !received && can_sleep_ && !is_device(chain_.settings.processor);
        if (closes_early() && (executor_->takes_early(*filling_) || quiet)) {
          close(counters_.closed_by_idleness);
        } else if (Clock::now() >= batch_due()) {
          close(counters_.closed_by_time);
        }
      }
    }
    const bool executed = execute();
    // Receiving alone is no progress: packets may only be dropped because the queue is full.
    if (executed || (in_flight_ == 0 && !any_waits())) pulse_.add(1);
    if (executed || received) {
      idle_rounds = 0;
      round_began_ = Clock::now();
      continue;
    }
    if (in_flight_ == 0) {
      executor_->pass_boundary();  // tables change even when no packets come
      if (stopping || (all_ended() && !copy_waits_)) {
        executor_->give_up_held();
        const bool is_last = hand_over_ == nullptr || hand_over_->is_over(index_);
        if (is_last && !lending_.any_leaving() && lending_.all_left()) return;
      }
    }
    rest(++idle_rounds);
    count_idle_round();
  }
}

void Worker::count_idle_round() noexcept {
  const Clock::time_point now = Clock::now();
  counters_.idle_time_ns.add(static_cast<std::uint64_t>((now - round_began_).count()));
  round_began_ = now;
}

bool Worker::collect_wake_ups() noexcept {
  wake_ups_.clear();
  return std::ranges::all_of(
      sources_, [this](const Source& source) { return source.ended || source.queue->add_wake_ups(wake_ups_); });
}

/// After rounds without anything to do.
void Worker::rest(unsigned idle_rounds) noexcept {
  if (shared_ != nullptr) return rest_at_shared_queue();
  constexpr unsigned kPolls = 64, kYields = 128;
  if (idle_rounds <= kPolls) return;
  const bool may_sleep = chain_.settings.polling == Polling::adaptive && can_sleep_ && in_flight_ == 0 &&
                         !any_waits() && !lending_.any_leaving();
  if (!may_sleep || idle_rounds <= kYields || !collect_wake_ups()) {
    if (chain_.settings.polling == Polling::adaptive) return yielder_.yield();
    return std::this_thread::yield();
  }
  // Until packets come. The time bounds how late the worker notices that it is to stop or that tables have changed, and
  // when the open batch is due.
  std::chrono::nanoseconds most = longest_rest();
  if (filling_ != nullptr && !filling_->empty())
    most = std::clamp(batch_due() - Clock::now(), Clock::duration(0), Clock::duration(most));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec time{static_cast<time_t>(seconds.count()), static_cast<long>((most - seconds).count())};
  static_cast<void>(::ppoll(wake_ups_.data(), wake_ups_.size(), &time, nullptr));
}

/// Held packets leave soon after what they lacked is known.
Worker::Clock::duration Worker::longest_rest() const noexcept {
  return executor_->holds_packets() ? kLongestRestWhileHolding : kLongestRest;
}

/// Until there are packets or the open batch is due. While lanes are in flight or packets have not left, the worker
/// looks at them now and then.
void Worker::rest_at_shared_queue() noexcept {
  const bool waits_for_work = in_flight_ > 0 || any_waits() || lending_.any_leaving();
  if (any_waits() || all_ended()) return std::this_thread::sleep_for(kLaneSleep);
  Clock::time_point until = Clock::now() + (waits_for_work ? Clock::duration(kLaneSleep) : longest_rest());
  if (filling_ != nullptr && !filling_->empty()) until = std::min(until, batch_due());
  shared_->wait(until);
}

/// `only_inbox`: what other workers hand over, since the run is ending.
bool Worker::receive(bool only_inbox) noexcept {
  if (only_inbox && hand_over_ == nullptr) return false;
  if (copy_waits_) return observe_copy();
  bool received = false;
  // Each round begins with another source, so that none starves.
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[(next_source_ + i) % sources_.size()];
    if (only_inbox && !source.is_inbox) continue;
    if (!source.ended && !copy_waits_) received |= receive_from(source);
  }
  if (!sources_.empty()) next_source_ = (next_source_ + 1) % sources_.size();
  return received;
}

bool Worker::receive_from(Source& source) noexcept {
  // If all sources can wait, they are not polled while batches wait: packets would only leave the caches. Packets of
  // other sources are received at once, into the queue or, when it is full, to be dropped and counted; otherwise the
  // losses would happen unseen. The number of rounds is bounded, so that queued packets are processed under any
  // overload.
  if (all_lossless_ && any_waits()) return false;
  constexpr unsigned kMostRounds = 16;
  bool received = false;
  for (unsigned round = 0; round < (source.lossless ? 1 : kMostRounds); ++round) {
    filling_ = ring_.filling();
    if (filling_ == nullptr && source.lossless) return received;
    port::RxStatus status = filling_ != nullptr ? take_in(source) : lose(source);
    if (status == port::RxStatus::starved) status = pass_starved(source);
    received |= status != port::RxStatus::idle;
    source.ended = status == port::RxStatus::end;
    if (status != port::RxStatus::more || copy_waits_) break;
  }
  return received;
}

port::RxStatus Worker::take_in(Source& source) noexcept {
  const std::size_t had = filling_->size();
  const std::size_t had_lent = filling_->lent();
  const std::uint64_t had_bytes = filling_->frame_bytes();
  const port::RxStatus status =
      source.timed ? source.queue->poll_until(*filling_, others_come_at(source)) : source.queue->poll(*filling_);
  if (status == port::RxStatus::copy) {
    copy_waits_ = true;
    return status;
  }
  if (filling_->size() > had) {
    lending_.lend(static_cast<std::size_t>(&source - sources_.data()), filling_->lent() - had_lent);
    const Clock::time_point now = Clock::now();
    if (had == 0) opened_ = now;
    if (shared_ == nullptr) {  // else the receiver did it
      filling_->mark_arrivals(now, arrivals_to_clock(source));
      if (!source.is_inbox) count_arrivals(source, filling_->size() - had, filling_->frame_bytes() - had_bytes);
    }
  }
  if (status == port::RxStatus::more && !filling_->empty()) close(counters_.closed_by_size);
  return status;
}

/// Waits until all packets before the copy are done.
bool Worker::observe_copy() noexcept {
  if (in_flight_ > 0 || any_waits()) return false;
  executor_->observe(filling_->view(0));
  filling_->reset(filling_->packets().front().sequence);
  copy_waits_ = false;
  return true;
}

/// The source has no memory to lend until batches have left. So the open batch must not wait for more packets.
port::RxStatus Worker::pass_starved(Source& source) noexcept {
  if (!filling_->empty()) {
    close(counters_.closed_by_size);
  } else if (!source.lossless) {
    return lose(source);
  }
  return port::RxStatus::idle;
}

/// The capture time of the next packet among the other sources with timestamps.
std::uint64_t Worker::others_come_at(const Source& source) noexcept {
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  for (const Source& other : sources_) {
    if (&other == &source || other.ended) continue;
    if (const auto time = other.timed ? other.queue->next_time_ns() : std::nullopt) first = std::min(first, *time);
  }
  return first;
}

void Worker::count_arrivals(const Source& source, std::uint64_t packets, std::uint64_t bytes) noexcept {
  counters_.in.add(packets, bytes);
  counters_.port_in[source.port].add(packets, bytes);
}

port::RxStatus Worker::lose(Source& source) noexcept {
  const port::RxQueue::Discarded lost = source.queue->discard(ring_.shape().batch_packets);
  count_arrivals(source, lost.packets, lost.bytes);
  counters_.dropped_by_chain[static_cast<std::size_t>(ChainDrop::queue_full)].add(lost.packets, lost.bytes);
  return lost.status;
}

void Worker::close(report::Counter& cause) noexcept {
  cause.add(1);
  counters_.batches.add(1);
  const std::size_t fill = std::max(filling_->used_bytes() * 1000 / filling_->capacity_bytes(),
                                    filling_->size() * 1000 / filling_->capacity_packets());
  counters_.batch_fill_permille.add(fill);
  ring_.close_filling();
  counters_.waiting_bytes.store(ring_.waiting_bytes(), std::memory_order_relaxed);
  lending_.close();
  filling_ = nullptr;
}

/// Submits a batch if the executor accepts one, and retires finished batches.
bool Worker::execute() noexcept {
  if (next_ == nullptr && ring_.waiting() > 0) {
    next_ = ring_.take();
    counters_.waiting_bytes.store(ring_.waiting_bytes(), std::memory_order_relaxed);
  }
  const bool submitted = next_ != nullptr && executor_->submit(*next_);
  if (submitted) {
    next_ = nullptr;
    ++in_flight_;
  }
  return retire() || submitted;
}

bool Worker::retire() noexcept {
  bool retired = false;
  while (Batch* done = executor_->retire()) {
    lending_.done(*done);
    --in_flight_;
    retired = true;
  }
  while (Batch* gone = lending_.next_gone()) {
    ring_.release(gone);
    retired = true;
  }
  return retired;
}

std::unique_ptr<StageSet> Worker::make_stages(std::span<const NamedFunction> functions,
                                              const plan::DevicePlan* plan) const {
  if (plan == nullptr) return make_host_stages(functions, nullptr);
  return make_device_stages(chain_, functions, *plan, index_, ring_.shape().batch_packets);
}

void Worker::change_epoch() noexcept {
  epochs_.advance([this](std::unique_ptr<StageSet> next) { executor_->begin_epoch(std::move(next)); },
                  [this] { return executor_->take_ended(); });
}

void Worker::change_lanes() noexcept {
  lane_sets_.advance([this](std::unique_ptr<LaneSet> next) { executor_->begin_lanes(std::move(next)); },
                     [this] { return executor_->take_ended_lanes(); });
}

/// Of interfaces, packets that are handed over keep the times of their arrival.
std::optional<std::chrono::nanoseconds> Worker::arrivals_to_clock(const Source& source) const noexcept {
  if (!source.is_inbox) return source.queue->arrivals_to_clock();
  return can_sleep_ && sources_.size() > 1 ? sources_.front().queue->arrivals_to_clock() : std::nullopt;
}

bool Worker::all_ended() const noexcept {
  return std::ranges::all_of(sources_, [](const Source& source) { return source.ended || source.is_inbox; });
}

}  // namespace penstock::run
