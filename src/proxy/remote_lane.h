// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A lane that the proxy runs. Belongs to one thread, like every lane.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "function/granted_stage.h"
#include "port/live/file_descriptor.h"
#include "proxy/connection.h"
#include "proxy/lane_pages.h"
#include "proxy/shared_mapping.h"
#include "proxy/standstill.h"
#include "ring/lane.h"

namespace penstock::proxy {

/// The memory of a worker that the proxy has open; those that are null have ended.
using RemoteMemories = std::vector<std::weak_ptr<const RemoteMemory>>;

/// All memory of a run that the proxy has open. Thread-safe.
class OpenMemories {
 public:
  /// Opens it, unless it is open. Throws gpu::CudaError.
  [[nodiscard]] std::shared_ptr<RemoteMemory> open(const std::shared_ptr<Connection>& connection,
                                                   std::span<std::uint8_t> memory, MemoryUser user);
  /// Null: it is not open.
  [[nodiscard]] std::shared_ptr<const RemoteMemory> find(const void* memory) const;

 private:
  mutable std::mutex mutex_;  // guards `memories_`
  std::vector<std::weak_ptr<RemoteMemory>> memories_;
};

class RemoteLane final : public ring::Lane, public function::GrantingLane {
 public:
  /// All stages are RemoteStages. `memories` is the worker's and outlives the lane; `of_run` also has the memory that
  /// ports lend. Throws gpu::CudaError.
  RemoteLane(std::shared_ptr<Connection> connection, const ring::LaneShape& shape, ring::LaneStages stages,
             unsigned worker, const RemoteMemories& memories, std::shared_ptr<const OpenMemories> of_run);
  RemoteLane(const RemoteLane&) = delete;
  RemoteLane& operator=(const RemoteLane&) = delete;
  ~RemoteLane() override;

  std::uint64_t grant(std::size_t segment, std::size_t stage) const noexcept override;
  void exchange_stages(ring::LaneStages& stages) noexcept override;
  std::byte* states(std::size_t segment, std::size_t stage) noexcept override;
  bool start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept override;
  gpu::Progress progress() noexcept override;
  const ring::SegmentResults& results() const noexcept override { return results_; }
  void abandon() noexcept override;
  void take_pictures(std::span<const std::uint32_t> packets) noexcept override;
  ring::Picture picture(std::size_t stages, std::size_t packet) const noexcept override;
  std::uint32_t fetch(std::size_t packet, PacketDescriptor& descriptor, std::span<std::uint8_t> to) noexcept override;
  void begin_batch() noexcept override {}
  Crossed crossed() const noexcept override { return crossed_; }

 private:
  struct Place {
    std::uint32_t memory = 0;
    std::uint64_t offset = 0;
  };
  [[nodiscard]] bool find(const void* memory, Place& place) const noexcept;
  [[nodiscard]] bool find_lent(const PacketMemory& lent) noexcept;
  [[nodiscard]] bool list_frames(const Batch& batch, std::span<std::uint8_t* const> frames,
                                 const Place& of_batch) noexcept;
  [[nodiscard]] OrderSlot& slot() const noexcept { return *reinterpret_cast<OrderSlot*>(of_tenant_.at(0)); }
  [[nodiscard]] const Completion& completion() const noexcept {
    return *reinterpret_cast<const Completion*>(of_proxy_.at(0));
  }
  [[nodiscard]] bool is_over() const noexcept { return completion().done.load(std::memory_order_acquire) == number_; }
  [[nodiscard]] bool is_lost() noexcept;
  void submit(const Order& order) noexcept;
  [[nodiscard]] bool take_results() noexcept;
  [[nodiscard]] bool are_possible(std::span<const Verdict> verdicts) const noexcept;

  const std::shared_ptr<Connection> connection_;
  const ring::LaneShape shape_;
  const LaneLayout layout_;
  ring::LaneStages stages_;
  const RemoteMemories& memories_;
  const std::shared_ptr<const OpenMemories> of_run_;
  struct Lent {
    std::span<const std::uint8_t> memory;
    Place place;
  };
  std::array<Lent, PacketMemory::kMostRegions> lent_;  // by region, as far as batches have had frames there
  std::uint32_t id_ = 0;
  SharedMapping of_proxy_;
  SharedMapping of_tenant_;
  port::FileDescriptor wake_;

  Order order_;               // the last one
  std::uint32_t number_ = 0;  // its number
  Standstill standstill_;     // of the proxy, while it has that order
  std::uint32_t looks_ = 0;   // for it
  bool busy_ = false;
  bool failed_ = false;  // nothing was submitted
  std::uint32_t stages_version_ = 0;
  std::vector<std::uint32_t> pictured_;  // of the next segment
  ring::SegmentResults results_;
  Crossed crossed_;
};

}  // namespace penstock::proxy
