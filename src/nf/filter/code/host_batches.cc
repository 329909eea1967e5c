// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/code/host_batches.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "gpu/cuda_error.h"
#include "gpu/memory.h"
#include "gpu/stream.h"

namespace penstock::filter {
namespace {

/// As they cross PCIe, one for each packet.
struct Record {
  std::uint32_t offset;
  std::uint32_t length;
  std::uint32_t wire_length;
};

/// Generated code reads aligned words.
constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 3) / 4 * 4; }

void require(bool accepted) {
  if (!accepted) throw gpu::CudaError(0, "the driver refuses work for the filters");
}

}  // namespace

struct HostBatches::Slot {
  Slot(const HostBatchLimits& limits, std::uint32_t row_words)
      : frames(aligned(limits.bytes)),
        records(limits.packets),
        words(limits.packets * row_words),
        device_frames(frames.size()),
        device_records(records.size()),
        device_words(words.size()) {}

  gpu::Stream stream;
  gpu::Event done;
  gpu::PinnedBuffer<std::uint8_t> frames;
  gpu::PinnedBuffer<Record> records;
  gpu::PinnedBuffer<std::uint32_t> words;
  gpu::DeviceBuffer<std::uint8_t> device_frames;
  gpu::DeviceBuffer<Record> device_records;
  gpu::DeviceBuffer<std::uint32_t> device_words;
  std::size_t packets = 0;
};

HostBatches::HostBatches(const DeviceMatcher& matcher, MatchOutput output, const HostBatchLimits& limits)
    : matcher_(matcher),
      output_(output),
      limits_(limits),
      row_words_(output == MatchOutput::bitmap ? matcher.words() : static_cast<std::uint32_t>(matcher.programs())) {
  for (std::size_t i = 0; i < std::max<std::size_t>(1, limits.batches); ++i) {
    slots_.push_back(std::make_unique<Slot>(limits_, row_words_));
  }
}

HostBatches::~HostBatches() {
  // The memory must outlive the work in flight.
  for (; in_flight_ > 0; --in_flight_) {
    const Slot& slot = *slots_[(next_ + slots_.size() - in_flight_) % slots_.size()];
    while (slot.done.progress() == gpu::Progress::kRunning) continue;
  }
}

std::size_t HostBatches::submit(std::span<const PacketBytes> packets) {
  Slot& slot = *slots_[next_];
  const std::uint32_t reach = matcher_.reach();
  std::uint8_t* const frames = slot.frames.data();
  Record* const records = slot.records.data();
  const std::size_t most = std::min(packets.size(), limits_.packets);
  const std::size_t capacity = slot.frames.size();
  std::size_t used = 0;
  std::size_t count = 0;
  for (; count < most; ++count) {
    const PacketBytes& packet = packets[count];
    const std::size_t bytes = std::min(packet.length, reach);
    if (used + aligned(bytes) > capacity) break;
    if (bytes > 0) std::memcpy(frames + used, packet.data, bytes);
    records[count] = {static_cast<std::uint32_t>(used), packet.length, packet.wire_length};
    used += aligned(bytes);
  }
  if (count == 0) return 0;
  require(gpu::copy_async(slot.device_records.data(), records, count * sizeof(Record), slot.stream));
  if (used > 0) require(gpu::copy_async(slot.device_frames.data(), frames, used, slot.stream));
  MatchBatch batch{};
  batch.packets.frames = slot.device_frames.data();
  batch.packets.records = reinterpret_cast<const std::uint8_t*>(slot.device_records.data());
  batch.packets.count = static_cast<std::uint32_t>(count);
  batch.packets.stride = sizeof(Record);
  batch.packets.offset_at = offsetof(Record, offset);
  batch.packets.length_at = offsetof(Record, length);
  batch.packets.wire_length_at = offsetof(Record, wire_length);
  batch.packets.alive_at = kAllAlive;
  batch.packets.most_available = reach;
  batch.words = slot.device_words.data();
  batch.row_words = row_words_;
  require(output_ == MatchOutput::bitmap ? matcher_.match(batch, slot.stream) : matcher_.returns(batch, slot.stream));
  const std::size_t result_bytes = count * row_words_ * sizeof(std::uint32_t);
  if (result_bytes > 0) {
    require(gpu::copy_async(slot.words.data(), slot.device_words.data(), result_bytes, slot.stream));
  }
  require(slot.done.record(slot.stream));
  slot.packets = count;
  bytes_up_ += count * sizeof(Record) + used;
  bytes_down_ += result_bytes;
  next_ = (next_ + 1) % slots_.size();
  ++in_flight_;
  return count;
}

HostBatches::Results HostBatches::take() {
  Slot& slot = *slots_[(next_ + slots_.size() - in_flight_) % slots_.size()];
  slot.done.wait();
  --in_flight_;
  return {slot.packets, row_words_, std::span<const std::uint32_t>(slot.words.data(), slot.packets * row_words_)};
}

}  // namespace penstock::filter
