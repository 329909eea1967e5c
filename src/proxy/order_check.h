// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks an order of a tenant, and makes the batch of it that a lane gets. Everything that is checked lies in memory of
// the proxy; frames, which the tenant may change at any time, are only read by the device, or as bytes of records.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/shared_memory.h"
#include "packet/batch.h"
#include "proxy/lane_pages.h"
#include "ring/lane.h"

namespace penstock::proxy {

/// Memory of a tenant that the proxy has mapped: whole pages.
class TenantMemory {
 public:
  /// Maps the file, which is sealed. Throws std::bad_alloc.
  TenantMemory(int file, std::size_t bytes);
  TenantMemory(const TenantMemory&) = delete;
  TenantMemory& operator=(const TenantMemory&) = delete;
  ~TenantMemory();

  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return bytes_; }
  /// Whether [offset, offset + bytes) is inside.
  [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return offset <= bytes_.size() && bytes <= bytes_.size() - offset;
  }
  /// Keeps the memory open to the device, which must not access it before.
  void set_opening(std::shared_ptr<void> opening) { opening_ = std::move(opening); }
  [[nodiscard]] bool is_for_device() const noexcept { return opening_ != nullptr; }
  /// Its size is subtracted there when it ends, which may be after the tenant has closed it.
  void set_counter(std::atomic<std::uint64_t>& bytes) noexcept { counter_ = &bytes; }

 private:
  std::span<std::uint8_t> bytes_;
  std::shared_ptr<void> opening_;
  std::atomic<std::uint64_t>* counter_ = nullptr;
};

/// By id; null: none.
using TenantMemories = std::array<std::shared_ptr<const TenantMemory>, kMostMemories>;

/// For one lane.
class OrderCheck {
 public:
  explicit OrderCheck(const ring::LaneShape& shape);
  /// In bytes, for a lane of this shape.
  [[nodiscard]] static std::size_t memory_for(const ring::LaneShape& shape) noexcept {
    return shape.batch_packets * (sizeof(PacketDescriptor) + sizeof(std::uint8_t*));
  }

  /// Copies the descriptors and checks everything. Null: `batch()` and `frames()` can be given to the lane; else why
  /// not. `list`: of the lane, in memory that the tenant may change. `packed`: the packed part of the lane's memory.
  [[nodiscard]] const char* check(const Order& order, const TenantMemories& memories, const std::uint64_t* list,
                                  std::span<std::uint8_t> packed) noexcept;
  /// The order's segment has been done, or has failed: later segments of its batch may follow, or not.
  void end(bool done) noexcept { follows_ = done; }

  /// Valid until the next check.
  [[nodiscard]] Batch& batch() noexcept { return batch_; }
  /// For the scheduler: at least half of what can cross in either direction, apart from what stages add to frames. Of
  /// the batch or of its frames wherever they are, if all else that each packet has is less, such as states and
  /// findings. Whole frames count even if only headers are sent.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::span<std::uint8_t* const> frames() const noexcept {
    return {frames_.data(), lists_frames_ ? batch_.size() : 0};
  }

 private:
  [[nodiscard]] PacketDescriptor& without_frame(std::size_t i) noexcept;
  [[nodiscard]] const char* check_listed(const ring::SegmentShape& segment, const TenantMemories& memories,
                                         const std::uint64_t* list, std::span<std::uint8_t> packed) noexcept;
  [[nodiscard]] const char* gather_frames(const ring::SegmentShape& segment, const TenantMemories& memories,
                                          const std::uint64_t* list, std::span<std::uint8_t> packed) noexcept;
  [[nodiscard]] const char* check_frames(const Order& order) noexcept;
  [[nodiscard]] bool records_fit(const ring::SegmentShape& segment) const noexcept;

  const ring::LaneShape shape_;
  const std::size_t most_frame_bytes_;
  const std::uint32_t most_counted_;  // a longer frame that is gathered takes no more room than one of this length
  MappedMemory descriptors_;          // of many, most batches use few: pages that are not used are not allocated
  std::span<PacketDescriptor> packets_;
  std::vector<std::uint8_t*> frames_;
  bool lists_frames_ = false;
  PacketMemory gathered_;  // of the batch
  Batch batch_;
  bool follows_ = false;  // a later segment of the batch may follow
  std::uint32_t segment_ = 0;
  std::uint32_t sent_by_ = 0;  // the last segment that has sent the packets
  std::uint32_t count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace penstock::proxy
