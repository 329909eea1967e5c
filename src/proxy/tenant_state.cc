// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/tenant_state.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::proxy {

/// What it has on the device.
StagePool::Stage StagePool::release(Stage& stage) noexcept {
  Stage ended;
  ended.reserved = std::move(stage.reserved);
  ended.tables = std::move(stage.tables);
  ended.stage = std::move(stage.stage);
  return ended;
}

std::uint32_t StagePool::add(Stage made) {
  Stage ended;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const std::uint32_t id = ids_.next();
  Stage& stage = stages_[id] = std::move(made);
  // The tables may have ended while the stage was made, when `release_ended` could not find it.
  if (stage.has_ended()) ended = release(stage);
  return id;
}

std::size_t StagePool::size() const {
  const std::lock_guard lock(mutex_);
  return stages_.size();
}

StagePool::Taken StagePool::take(std::uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto found = stages_.find(id);
  if (found == stages_.end() || found->second.in_lane) return {};
  Stage& stage = found->second;
  if (stage.has_ended()) return {.has_ended = true};
  stage.in_lane = true;
  return {std::move(stage.stage), stage.use, stage.needs, stage.grant};
}

void StagePool::give_back(std::uint32_t id, std::unique_ptr<DeviceStage> stage) {
  Stage ended;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  const auto found = stages_.find(id);
  if (found == stages_.end()) return;
  found->second.stage = std::move(stage);
  found->second.in_lane = false;
  if (found->second.dropped) {
    ended = std::move(found->second);
    stages_.erase(found);
  } else if (found->second.has_ended()) {
    ended = release(found->second);
  }
}

void StagePool::drop(std::uint32_t id) {
  Stage ended;
  const std::lock_guard lock(mutex_);
  const auto found = stages_.find(id);
  if (found == stages_.end()) return;
  found->second.dropped = true;
  if (found->second.in_lane) return;
  ended = std::move(found->second);
  stages_.erase(found);
}

void StagePool::pass_boundaries() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [id, stage] : stages_) {
    if (stage.stage != nullptr) stage.stage->begin_batch();
  }
}

void StagePool::release_ended() noexcept {
  const auto is_ended = [](const auto& entry) {
    return entry.second.has_ended() && !entry.second.in_lane && entry.second.tables != nullptr;
  };
  for (bool found = true; found;) {
    Stage ended;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    const auto next = std::ranges::find_if(stages_, is_ended);
    found = next != stages_.end();
    if (found) ended = release(next->second);
  }
}

void StagePool::clear() noexcept {
  const std::lock_guard lock(mutex_);
  stages_.clear();
}

std::uint32_t TenantState::add_memory(std::shared_ptr<const TenantMemory> memory) {
  const std::lock_guard lock(memories_mutex_);
  const auto free = std::ranges::find(memories_, nullptr);
  if (free == memories_.end()) return kMostMemories;
  *free = std::move(memory);
  return static_cast<std::uint32_t>(free - memories_.begin());
}

void TenantState::remove_memory(std::uint32_t id) {
  if (id >= kMostMemories) return;
  {
    const std::lock_guard lock(memories_mutex_);
    if (memories_[id] != nullptr) removed_.push_back(std::exchange(memories_[id], nullptr));
  }
  end_removed();
}

void TenantState::end_removed() {
  std::vector<std::shared_ptr<const TenantMemory>> ended;  // destroyed without the lock
  const std::lock_guard lock(memories_mutex_);
  const auto unused =
      std::partition(removed_.begin(), removed_.end(), [](const auto& memory) { return memory.use_count() > 1; });
  ended.assign(std::move_iterator(unused), std::move_iterator(removed_.end()));
  removed_.erase(unused, removed_.end());
}

void TenantState::note_batch(Scheduler::Time now) noexcept {
  if (counters.attach_ns.load(std::memory_order_relaxed) != 0) return;
  std::uint64_t none = 0;
  const auto took = static_cast<std::uint64_t>(std::max(now - hello_at, Scheduler::Time{1}).count());
  counters.attach_ns.compare_exchange_strong(none, took);
}

void TenantState::end(std::string why) {
  const std::lock_guard lock(why_mutex_);
  if (why_.empty()) why_ = std::move(why);
  ends_.store(true);
}

std::string TenantState::why() const {
  const std::lock_guard lock(why_mutex_);
  return why_;
}

const char* why_not_fit(const function::StageNeeds& needs, const ring::LaneShape& shape, std::size_t segment,
                        std::size_t stage) noexcept {
  // Only headers cross without these, and frames keep their layout.
  constexpr FieldSet kBeyondHeaders{Field::tcp_options, Field::payload, Field::trailer};
  const ring::SegmentShape::Stage& place = shape.segments[segment].stages[stage];
  if (needs.findings_bytes > place.findings_bytes) return "a stage that writes more findings than its lane has";
  if (needs.state_bytes > place.state_bytes) return "a stage that reads more states than its lane has";
  if (needs.growth.head > shape.room.head || needs.growth.tail > shape.room.tail)
    return "a stage that needs more room around frames than its lane has";
  if (needs.access.writes.has(Field::frame_shape) && !place.changes_shape)
    return "a stage that changes lengths, in a lane that does not expect it";
  const bool whole = needs.access.writes.has(Field::frame_shape) ||
                     !((needs.access.reads | needs.access.writes) & kBeyondHeaders).empty();
  if (!whole) return nullptr;
  std::size_t sends = segment;  // the segment that sent the packets
  while (!shape.segments[sends].sends_packets) --sends;
  return shape.segments[sends].frames_up ? nullptr : "a stage that needs whole frames, in a lane with headers";
}

}  // namespace penstock::proxy
