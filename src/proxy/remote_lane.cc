// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/remote_lane.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
#include "gpu/cuda_error.h"
#include "proxy/shape_message.h"

namespace penstock::proxy {

namespace {

void list_stages(const ring::LaneStages& stages, std::array<std::uint32_t, kMostLaneStages>& ids) noexcept {
  std::size_t i = 0;
  for (const auto& of_segment : stages) {
    for (const auto& stage : of_segment) ids[i++] = static_cast<const RemoteStage&>(*stage).id();
  }
}

}  // namespace

std::shared_ptr<RemoteMemory> OpenMemories::open(const std::shared_ptr<Connection>& connection,
                                                 std::span<std::uint8_t> memory, MemoryUser user) {
  const std::lock_guard lock(mutex_);
  std::erase_if(memories_, [](const auto& entry) { return entry.expired(); });
  for (const auto& entry : memories_) {
    if (auto open = entry.lock(); open != nullptr && open->is(memory, user)) return open;
  }
  auto opened = std::make_shared<RemoteMemory>(connection, memory, user);
  memories_.push_back(opened);
  return opened;
}

std::shared_ptr<const RemoteMemory> OpenMemories::find(const void* memory) const {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : memories_) {
    if (auto open = entry.lock(); open != nullptr && open->offset_of(memory)) return open;
  }
  return nullptr;
}

RemoteLane::RemoteLane(std::shared_ptr<Connection> connection, const ring::LaneShape& shape, ring::LaneStages stages,
                       unsigned worker, const RemoteMemories& memories, std::shared_ptr<const OpenMemories> of_run)
    : connection_(std::move(connection)),
      shape_(shape),
      layout_(shape_),
      stages_(std::move(stages)),
      memories_(memories),
      of_run_(std::move(of_run)) {
  auto message = to_message(shape_);
  if (!message) throw gpu::CudaError(0, to_string(message.error()));
  message->worker = worker;
  list_stages(stages_, message->stages);
  Connection::Made made = connection_->request(*message);
  if (made.descriptors.size() != 3) throw gpu::CudaError(0, connection_->path() + ": not a lane of a proxy");
  id_ = made.id;
  of_proxy_ = SharedMapping(made.descriptors[0].get(), layout_.proxy_bytes, /*writes=*/false);
  of_tenant_ = SharedMapping(made.descriptors[1].get(), layout_.tenant_bytes, /*writes=*/true);
  wake_ = std::move(made.descriptors[2]);
  pictured_.reserve(ring::kMostPictured);
  results_.findings.reserve(kMostStages);
  results_.lengths.reserve(kMostStages);
}

RemoteLane::~RemoteLane() {
  abandon();
  connection_->release(MessageType::end_lane, id_);
}

std::uint64_t RemoteLane::grant(std::size_t segment, std::size_t stage) const noexcept {
  return static_cast<const RemoteStage&>(*stages_[segment][stage]).grant();
}

void RemoteLane::exchange_stages(ring::LaneStages& stages) noexcept {
  stages_.swap(stages);
  ++stages_version_;
}

std::byte* RemoteLane::states(std::size_t segment, std::size_t stage) noexcept {
  if (shape_.segments[segment].stages[stage].state_bytes == 0) return nullptr;
  const std::size_t place = ring::state_place(shape_.segments[segment], stage, shape_.batch_packets);
  return reinterpret_cast<std::byte*>(of_tenant_.at(layout_.states_at + place));
}

bool RemoteLane::find(const void* memory, Place& place) const noexcept {
  for (const auto& entry : memories_) {
    const auto open = entry.lock();
    if (open == nullptr) continue;
    if (const auto offset = open->offset_of(memory)) {
      place = {open->id(), *offset};
      return true;
    }
  }
  const auto* const packed = of_tenant_.at(layout_.packed_at);
  const auto* const at = static_cast<const std::uint8_t*>(memory);
  const std::less<const std::uint8_t*> lies_before;
  for (const Lent& lent : lent_) {
    if (lent.memory.empty() || lies_before(at, lent.memory.data()) ||
        !lies_before(at, lent.memory.data() + lent.memory.size()))
      continue;
    place = {lent.place.memory, lent.place.offset + static_cast<std::uint64_t>(at - lent.memory.data())};
    return true;
  }
  if (lies_before(at, packed) || !lies_before(at, packed + layout_.sizes.packed)) return false;
  place = {kPackedMemory, static_cast<std::uint64_t>(at - packed)};
  return true;
}

/// Regions stay as they are while packets flow, so each is looked for once.
bool RemoteLane::find_lent(const PacketMemory& lent) noexcept {
  for (std::size_t r = PacketMemory::kBatch + 1; r < lent.regions(); ++r) {
    const std::span<std::uint8_t> memory = lent.memory(static_cast<PacketMemory::Region>(r));
    if (lent_[r].memory.data() == memory.data()) continue;
    const auto open = of_run_->find(memory.data());
    if (open == nullptr) return false;  // of a port, for which no proxy was there when it opened
    lent_[r] = {memory, {open->id(), *open->offset_of(memory.data())}};
  }
  return true;
}

/// Where they are, for the proxy. `frames`: empty: where the batch has them.
bool RemoteLane::list_frames(const Batch& batch, std::span<std::uint8_t* const> frames,
                             const Place& of_batch) noexcept {
  auto* const list = reinterpret_cast<std::uint64_t*>(of_tenant_.at(layout_.list_at));
  lent_[PacketMemory::kBatch].place = of_batch;
  const std::span<const PacketDescriptor> packets = batch.packets();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    Place place;
    if (frames.empty()) {
      place = lent_[packets[i].region].place;
      place.offset += packets[i].offset;
    } else if (packets[i].verdict.alive() && !find(frames[i], place)) {
      return false;
    }
    list[i] = listed_frame(place.memory, place.offset);
  }
  return true;
}

bool RemoteLane::start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept {
  busy_ = true;
  failed_ = true;
  if (connection_->is_lost()) return false;
  Place of_frames, of_packets;
  if (!find(batch.memory(), of_frames) || !find(batch.packets().data(), of_packets)) return false;
  order_.kind = Order::Kind::segment;
  order_.segment = static_cast<std::uint32_t>(segment);
  order_.packets = static_cast<std::uint32_t>(batch.size());
  order_.used_bytes = static_cast<std::uint32_t>(batch.bytes().size());
  order_.frames_at = of_frames.offset;
  order_.packets_at = of_packets.offset;
  order_.frame_memory = of_frames.memory;
  order_.packet_memory = of_packets.memory;
  const bool has_lent = batch.lent() > 0;
  if (has_lent && !find_lent(*batch.lent_memory())) return false;
  order_.frames = has_lent ? Order::Frames::gathered : frames.empty() ? Order::Frames::in_batch : Order::Frames::listed;
  if (order_.frames != Order::Frames::in_batch && !list_frames(batch, frames, of_frames)) return false;
  order_.pictured = static_cast<std::uint32_t>(pictured_.size());
  std::ranges::copy(pictured_, order_.pictures.begin());
  pictured_.clear();
  order_.stages_version = stages_version_;
  list_stages(stages_, order_.stages);
  failed_ = false;
  submit(order_);
  return true;
}

void RemoteLane::submit(const Order& order) noexcept {
  standstill_.begin(Standstill::Clock::now());
  slot().write_order(order);
  // In one order with what the proxy's thread does before it sleeps: one of both sees what the other one has written.
  slot().submitted.store(++number_, std::memory_order_seq_cst);
  if (completion().sleeping.load(std::memory_order_seq_cst) != 0) static_cast<void>(::eventfd_write(wake_.get(), 1));
}

/// While an order is not over. What the device writes for a proxy that goes on later is memory of this lane only, which
/// nobody uses any more then.
bool RemoteLane::is_lost() noexcept {
  constexpr std::uint32_t kInterval = 64;  // lanes are polled millions of times in a second
  if (++looks_ % kInterval == 0 && standstill_.look(connection_->beats(), Standstill::Clock::now()))
    connection_->end(Connection::Loss::hangs);
  return connection_->is_lost();
}

gpu::Progress RemoteLane::progress() noexcept {
  if (failed_) return gpu::Progress::kFailed;
  if (!busy_) return gpu::Progress::kDone;
  if (is_over()) {
    busy_ = false;
    const std::uint32_t failed = completion().failed;
    if (failed == Completion::kDone && take_results()) return gpu::Progress::kDone;
    // The lanes need other tables, and are made anew as if the proxy had gone.
    if (failed == Completion::kTablesEnded) connection_->end(Connection::Loss::tables_gone);
    failed_ = true;
    return gpu::Progress::kFailed;
  }
  return is_lost() ? gpu::Progress::kFailed : gpu::Progress::kRunning;
}

/// Whether stages of granted tables have decided as their functions can.
bool RemoteLane::are_possible(std::span<const Verdict> verdicts) const noexcept {
  const ring::SegmentShape& segment = shape_.segments[order_.segment];
  for (std::size_t s = 0; s < segment.stages.size(); ++s) {
    const auto& stage = static_cast<const RemoteStage&>(*stages_[order_.segment][s]);
    const function::GrantedStage* const granted = stage.granted();
    if (granted == nullptr) continue;
    const std::uint8_t function = segment.stages[s].function;
    const bool are = std::ranges::all_of(verdicts, [&](Verdict verdict) {
      return (!verdict.alive() && verdict.nf != function) || granted->can_give(verdict);
    });
    if (are) continue;
    log_warning(
        "{}: tables of function {} of the chain, which another process has granted, give verdicts that this "
        "function cannot have",
        connection_->path(), function + 1);
    return false;
  }
  return true;
}

/// False if they are outside the lane's memory, which a proxy never says, or if a stage of granted tables has decided
/// what its function cannot.
bool RemoteLane::take_results() noexcept {
  const Completion& completed = completion();
  const ring::SegmentShape& segment = shape_.segments[order_.segment];
  const auto place = [](const SharedMapping& in, std::size_t first, std::size_t bytes, std::uint64_t at,
                        std::size_t needed, std::uint8_t*& result) {
    result = nullptr;
    if (at == Completion::kNone) return true;
    if (at > bytes || needed > bytes - at) return false;
    result = in.at(first + at);
    return true;
  };
  std::uint8_t* found = nullptr;
  const auto in_results = [&](std::uint64_t at, std::size_t needed) {
    return place(of_proxy_, layout_.results_at, layout_.sizes.results, at, needed, found);
  };
  const std::size_t count = order_.packets;
  if (!in_results(completed.verdicts_at, count * ring::kVerdictBytes) || (found == nullptr && count > 0)) return false;
  results_.verdicts = {reinterpret_cast<const Verdict*>(found), found == nullptr ? 0 : count};
  if (!are_possible(results_.verdicts)) return false;
  results_.findings.clear();  // keeps the capacity
  results_.lengths.clear();
  for (std::size_t s = 0; s < segment.stages.size(); ++s) {
    if (!in_results(completed.findings_at[s], count * segment.stages[s].findings_bytes)) return false;
    results_.findings.push_back(reinterpret_cast<const std::byte*>(found));
    if (!in_results(completed.lengths_at[s], count * ring::kLengthBytes)) return false;
    results_.lengths.push_back(reinterpret_cast<const std::uint32_t*>(found));
  }
  const auto in_packed = [&](std::uint64_t at, std::uint8_t*& result) {
    return place(of_tenant_, layout_.packed_at, layout_.sizes.packed, at, 0, result);
  };
  crossed_ = {completed.to_device, completed.to_host};
  return in_packed(completed.records_at, results_.records) && in_packed(completed.frames_at, results_.frames);
}

void RemoteLane::abandon() noexcept {
  if (std::exchange(busy_, false) && !failed_) {
    slot().cancelled.store(number_);
    static_cast<void>(::eventfd_write(wake_.get(), 1));
    // Once the proxy has gone, its device does not use the memory either.
    while (!is_over() && !is_lost()) std::this_thread::yield();
  }
  failed_ = false;
}

void RemoteLane::take_pictures(std::span<const std::uint32_t> packets) noexcept {
  pictured_.assign(packets.begin(),
                   packets.begin() + static_cast<std::ptrdiff_t>(std::min(packets.size(), ring::kMostPictured)));
}

ring::Picture RemoteLane::picture(std::size_t stages, std::size_t packet) const noexcept {
  const auto& shared =
      reinterpret_cast<const SharedPicture*>(of_proxy_.at(layout_.pictures_at))[stages * ring::kMostPictured + packet];
  return {&shared.packet, std::span(shared.frame).first(std::min<std::size_t>(shared.bytes, shared.frame.size()))};
}

std::uint32_t RemoteLane::fetch(std::size_t packet, PacketDescriptor& descriptor, std::span<std::uint8_t> to) noexcept {
  Order order;
  order.kind = Order::Kind::fetch;
  order.fetched = static_cast<std::uint32_t>(packet);
  submit(order);
  while (!is_over()) {
    if (is_lost()) return 0;
    std::this_thread::yield();
  }
  const auto& fetched = *reinterpret_cast<const SharedPicture*>(of_proxy_.at(layout_.pictures_at));
  if (completion().failed != Completion::kDone) return 0;
  descriptor = fetched.packet;
  const std::uint32_t length = completion().fetched_length;
  std::copy_n(fetched.frame.begin(), std::min<std::size_t>({to.size(), length, fetched.frame.size()}), to.begin());
  return length;
}

}  // namespace penstock::proxy
