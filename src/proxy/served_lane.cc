// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/served_lane.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/shared_memory.h"

namespace penstock::proxy {

namespace {

/// What a batch costs at least, in bytes that cross: the device is also busy with launches.
constexpr std::uint64_t kLeastCost = std::uint64_t{64} << 10;

/// No fault of the lane's tenant.
constexpr const char* kTablesEnded = "a stage whose tables have gone with the tenant that granted them";

}  // namespace

SharedFile::SharedFile(std::size_t bytes, bool sealed) : file_(make_shared_file("penstock-lane", bytes)) {
  const auto fail = [](const char* what) { throw std::system_error(errno, std::system_category(), what); };
  if (!file_) fail("cannot make the memory of a lane");
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_.get(), 0);
  if (memory == MAP_FAILED) fail("cannot map the memory of a lane");
  bytes_ = {static_cast<std::uint8_t*>(memory), bytes};
  if (!sealed || seal_writes(file_.get())) return;
  ::munmap(memory, bytes);
  fail("cannot protect the memory of a lane against its tenant");
}

SharedFile::~SharedFile() {
  // The kernel refuses it if the file is sealed.
  if (given_up_) {
    static_cast<void>(
        ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes_.size())));
  }
  ::munmap(bytes_.data(), bytes_.size());
}

ServedLane::ServedLane(TenantState& tenant, const ring::LaneShape& shape, std::uint32_t worker)
    : tenant_(tenant),
      worker_(worker),
      shape_(shape),
      layout_(shape_),
      of_proxy_(layout_.proxy_bytes, /*sealed=*/true),
      of_tenant_(layout_.tenant_bytes, /*sealed=*/false),
      check_(shape_) {}

Result<std::unique_ptr<ServedLane>> ServedLane::make(TenantState& tenant, const ring::LaneShape& shape,
                                                     std::uint32_t worker, std::span<const std::uint32_t> stages) {
  std::unique_ptr<ServedLane> lane(new ServedLane(tenant, shape, worker));
  if (const char* const why = lane->take_stages(stages); why != nullptr)
    return failure(Error{{}, "a lane: it cannot have these stages", why, "stages that are made for it"});
  const LaneLayout& at = lane->layout_;
  const ring::LaneMemory memory{lane->of_proxy_.part(at.results_at, LaneLayout::pages(at.sizes.results)),
                                lane->of_tenant_.part(at.packed_at, LaneLayout::pages(at.sizes.packed)),
                                lane->of_tenant_.part(at.states_at, LaneLayout::pages(at.sizes.states))};
  for (const std::span<std::uint8_t> part : {memory.results, memory.packed, memory.states}) {
    if (!part.empty()) lane->openings_.push_back(tenant.backend.open(part));
  }
  lane->lane_ = tenant.backend.make_lane(shape, std::move(lane->stages_), memory, tenant.part.get());
  lane->stages_.clear();
  return lane;
}

ServedLane::~ServedLane() {
  if (state_ == State::waits) give_up();
  if (lane_ != nullptr) {
    lane_->abandon();
    leave_device(/*done=*/false);
    give_back_stages();
  } else {
    give_back_taken();
  }
  lane_.reset();
}

/// Null: they fit. What was taken is given back by the destructor.
const char* ServedLane::take_stages(std::span<const std::uint32_t> ids) {
  stage_ids_.clear();
  stages_.clear();
  grants_.clear();
  FrameRoom growth;
  std::size_t i = 0;
  for (std::size_t s = 0; s < shape_.segments.size(); ++s) {
    stages_.emplace_back();
    for (std::size_t t = 0; t < shape_.segments[s].stages.size(); ++t, ++i) {
      if (i == ids.size()) return "too few stages";
      StagePool::Taken taken = tenant_.stages.take(ids[i]);
      if (taken.has_ended) return kTablesEnded;
      if (taken.stage == nullptr) return "a stage that is not there, or in another lane";
      stages_.back().push_back(std::move(taken.stage));
      stage_ids_.push_back(ids[i]);
      if (taken.grant != nullptr) grants_.push_back(std::move(taken.grant));
      if (taken.use.batch_packets < shape_.batch_packets) return "a stage for smaller batches";
      if (taken.use.worker != worker_) return "a stage of another worker";
      if (const char* const why = why_not_fit(taken.needs, shape_, s, t); why != nullptr) return why;
      growth.head += taken.needs.growth.head;
      growth.tail += taken.needs.growth.tail;
    }
  }
  if (growth.head > shape_.room.head || growth.tail > shape_.room.tail)
    return "stages that together need more room around frames than the lane has";
  return nullptr;
}

/// Those that no lane has got.
void ServedLane::give_back_taken() noexcept {
  std::size_t i = 0;
  for (auto& of_segment : stages_) {
    for (auto& stage : of_segment) tenant_.stages.give_back(stage_ids_[i++], std::move(stage));
  }
  stages_.clear();
}

/// The lane keeps none.
void ServedLane::give_back_stages() noexcept {
  if (std::exchange(lacks_stages_, true)) return;
  grants_.clear();
  for (const ring::SegmentShape& segment : shape_.segments) stages_.emplace_back(segment.stages.size());
  lane_->exchange_stages(stages_);
  give_back_taken();
}

/// To those of the order.
const char* ServedLane::exchange_stages() noexcept {
  give_back_stages();
  const std::size_t count = stage_ids_.size();
  const char* const why = take_stages(std::span(order_.stages).first(count));
  if (why != nullptr) {
    give_back_taken();
    grants_.clear();
    stage_ids_.resize(count);
    return why;
  }
  lane_->exchange_stages(stages_);
  stages_.clear();
  lacks_stages_ = false;
  stages_version_ = order_.stages_version;
  return nullptr;
}

/// Of a stage that the lane has.
bool ServedLane::has_ended_tables() const noexcept {
  return std::ranges::any_of(grants_, [](const auto& grant) { return grant->has_ended(); });
}

bool ServedLane::poll() noexcept {
  switch (state_) {
    case State::idle:
      // Also if the tenant orders nothing: the owner of the tables waits for them.
      if (has_ended_tables()) give_back_stages();
      return take_order();
    case State::waits: return start();
    case State::runs: return advance();
  }
  return false;
}

bool ServedLane::take_order() noexcept {
  const std::uint32_t submitted = slot().submitted.load(std::memory_order_acquire);
  if (submitted == last_) return false;
  last_ = submitted;
  order_ = slot().read_order();
  if (order_.kind == Order::Kind::fetch) {
    fetch();
    return true;
  }
  if (order_.kind != Order::Kind::segment) return refuse("an unknown order"), true;
  memories_ = tenant_.memories();
  const auto* const list = reinterpret_cast<const std::uint64_t*>(
      of_tenant_.part(layout_.list_at, shape_.batch_packets * sizeof(std::uint64_t)).data());
  const std::span<std::uint8_t> packed = of_tenant_.part(layout_.packed_at, LaneLayout::pages(layout_.sizes.packed));
  if (const char* const why = check_.check(order_, memories_, list, packed); why != nullptr) return refuse(why), true;
  if (order_.stages_version != stages_version_) {
    if (order_.segment != 0) return refuse("other stages within a batch"), true;
    const char* const why = exchange_stages();
    if (why == kTablesEnded) return complete(Completion::kTablesEnded), true;
    if (why != nullptr) return refuse(why), true;
  }
  if (lacks_stages_) return complete(Completion::kTablesEnded), true;
  // Before it counts as on the device, and while it may have to wait.
  lane_->prepare(check_.batch(), order_.segment, check_.frames());
  batch_ = tenant_.arbiter.with([&](Scheduler& scheduler) {
    return scheduler.order(tenant_.scheduled, std::max(check_.bytes(), kLeastCost), order_.segment, Arbiter::now());
  });
  state_ = State::waits;
  asked_at_ = {};
  static_cast<void>(start());
  return true;
}

bool ServedLane::start() noexcept {
  if (is_cancelled() || tenant_.ends()) {
    give_up();
    complete(Completion::kFailed);
    return true;
  }
  if (has_ended_tables()) {
    give_up();
    complete(Completion::kTablesEnded);
    return true;
  }
  const auto now = Arbiter::now();
  const std::uint64_t changes = tenant_.arbiter.changes();
  if (changes == asked_after_ && now - asked_at_ < Scheduler::kAskAgain) return false;
  asked_at_ = now;
  asked_after_ = changes;
  if (!tenant_.arbiter.try_start(batch_)) return false;
  on_device_ = true;
  tenant_.counters.in_flight.fetch_add(1, std::memory_order_relaxed);
  state_ = State::runs;
  choose_timed();
  if (order_.pictured > 0) lane_->take_pictures(std::span(order_.pictures).first(order_.pictured));
  if (!lane_->start(check_.batch(), order_.segment, check_.frames())) {
    lane_->abandon();
    complete(Completion::kFailed);
  }
  return true;
}

bool ServedLane::advance() noexcept {
  const gpu::Progress progress = lane_->progress();
  if (progress == gpu::Progress::kRunning && !is_cancelled() && !tenant_.ends()) return false;
  if (progress != gpu::Progress::kDone) {
    lane_->abandon();
    complete(Completion::kFailed);
    return true;
  }
  publish_results();
  tenant_.note_batch(Arbiter::now());
  count_times();
  complete(Completion::kDone);
  return true;
}

/// Rare: for traces.
void ServedLane::fetch() noexcept {
  Completion& completed = completion();
  SharedPicture& picture = *pictures();
  completed.fetched_length = 0;
  const bool there = order_.fetched < check_.batch().size() && lane_->results().verdicts.size() > order_.fetched;
  if (there) completed.fetched_length = lane_->fetch(order_.fetched, picture.packet, picture.frame);
  completed.failed = completed.fetched_length == 0 ? Completion::kFailed : Completion::kDone;
  completed.done.store(last_, std::memory_order_release);
}

/// The tenant breaks the protocol.
void ServedLane::refuse(const char* why) noexcept {
  tenant_.end(fmt::format("an order with {}", why));
  complete(Completion::kFailed);
}

void ServedLane::publish_results() noexcept {
  Completion& completed = completion();
  const ring::SegmentResults& results = lane_->results();
  const std::uint8_t* const in_results = of_proxy_.part(layout_.results_at, 1).data();
  const std::uint8_t* const in_packed = of_tenant_.part(layout_.packed_at, 1).data();
  const auto place = [](const void* of, const std::uint8_t* in) {
    return of == nullptr ? Completion::kNone : static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(of) - in);
  };
  completed.verdicts_at = place(results.verdicts.data(), in_results);
  completed.records_at = place(results.records, in_packed);
  completed.frames_at = place(results.frames, in_packed);
  for (std::size_t s = 0; s < results.findings.size(); ++s)
    completed.findings_at[s] = place(results.findings[s], in_results);
  for (std::size_t s = 0; s < results.lengths.size(); ++s)
    completed.lengths_at[s] = place(results.lengths[s], in_results);
  const ring::Lane::Crossed crossed = lane_->crossed();
  completed.to_device = crossed.to_device;
  completed.to_host = crossed.to_host;
  TenantCounters& counters = tenant_.counters;
  counters.packets.fetch_add(order_.packets, std::memory_order_relaxed);
  counters.to_device.fetch_add(crossed.to_device, std::memory_order_relaxed);
  counters.to_host.fetch_add(crossed.to_host, std::memory_order_relaxed);
  if (order_.pictured > 0) publish_pictures();
}

void ServedLane::choose_timed() noexcept {
  stands_for_ = 0;
  if (--until_timed_ > 0) return;
  stands_for_ = interval_;
  until_timed_ = interval_ = std::uniform_int_distribution<std::uint32_t>(1, 2 * kTimedInterval - 1)(random_);
  lane_->take_times();
}

void ServedLane::count_times() noexcept {
  if (stands_for_ == 0) return;
  const auto times = lane_->times();
  if (!times) return;
  const auto add = [&](std::atomic<std::uint64_t>& to, std::chrono::nanoseconds time) {
    to.fetch_add(static_cast<std::uint64_t>(time.count()) * stands_for_, std::memory_order_relaxed);
  };
  add(tenant_.counters.transfer_ns, times->to_device + times->to_host);
  add(tenant_.counters.kernel_ns, times->kernels);
}

void ServedLane::publish_pictures() noexcept {
  for (std::size_t stages = 0; stages <= shape_.segments[order_.segment].stages.size(); ++stages) {
    for (std::size_t p = 0; p < order_.pictured; ++p) {
      const ring::Picture from = lane_->picture(stages, p);
      SharedPicture& to = pictures()[stages * ring::kMostPictured + p];
      to.packet = *from.packet;
      to.bytes = static_cast<std::uint32_t>(std::min(from.bytes.size(), to.frame.size()));
      std::copy_n(from.bytes.begin(), to.bytes, to.frame.begin());
    }
  }
}

void ServedLane::give_up() noexcept {
  tenant_.arbiter.with([&](Scheduler& scheduler) { scheduler.give_up(batch_, Arbiter::now()); });
}

/// `done`: the device has done the batch.
void ServedLane::leave_device(bool done) noexcept {
  if (!std::exchange(on_device_, false)) return;
  const ring::Lane::Crossed crossed = lane_->crossed();
  const std::uint64_t cost = std::max(crossed.to_device + crossed.to_host, kLeastCost);
  const auto now = Arbiter::now();
  TenantCounters& counters = tenant_.counters;
  const Scheduler::Done times = tenant_.arbiter.with([&](Scheduler& scheduler) {
    const Scheduler::Done finished = scheduler.finish(batch_, cost, now);
    if (!done) return finished;
    counters.latencies.record(finished.took);
    counters.batches.fetch_add(1, std::memory_order_relaxed);
    if (finished.late) counters.late.fetch_add(1, std::memory_order_relaxed);
    return finished;
  });
  const auto add = [](std::atomic<std::uint64_t>& to, Scheduler::Time time) {
    to.fetch_add(static_cast<std::uint64_t>(std::max(time, {}).count()), std::memory_order_relaxed);
  };
  add(counters.waiting_ns, times.waited);
  add(counters.device_ns, times.took - times.waited);
  add(counters.charged_ns, times.charged);
  counters.in_flight.fetch_sub(1, std::memory_order_relaxed);
}

void ServedLane::complete(std::uint32_t failed) noexcept {
  if (on_device_ && failed != Completion::kDone) tenant_.counters.failures.fetch_add(1, std::memory_order_relaxed);
  leave_device(failed == Completion::kDone);
  check_.end(failed == Completion::kDone);
  memories_ = {};
  state_ = State::idle;
  completion().failed = failed;
  completion().done.store(last_, std::memory_order_release);
}

}  // namespace penstock::proxy
