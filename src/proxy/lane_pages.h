// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory that a tenant and the proxy share for a lane, in two files that the proxy makes:
//
//     the proxy's, which tenants can only read          the tenant's, which both write
//     Completion: what has become of the last order     OrderSlot: the order, for one segment of a batch
//     results: verdicts, findings, lengths              list of frames that are outside the batch
//     pictures                                          states; packed records and frames
//
// The tenant writes an order, then its number to `submitted`. The proxy copies the order before it checks it, and
// writes the number to `done` when the order is over. Nothing else in the tenant's file is read by the proxy.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "proxy/protocol.h"
#include "ring/lane.h"
#include "ring/lane_memory.h"

namespace penstock::proxy {

/// A segment of a batch. Offsets count from the start of an open memory.
struct Order {
  enum class Kind : std::uint32_t { segment, fetch };
  /// Where its frames are.
  enum class Frames : std::uint32_t {
    in_batch,  // where descriptors say
    listed,    // where the list says; if they are sent, in order in one memory
    gathered,  // where the list says, anywhere in open memory: frames that ports lend
  };
  Kind kind = Kind::segment;
  std::uint32_t segment = 0;
  std::uint32_t packets = 0;
  std::uint32_t used_bytes = 0;  // of the batch
  std::uint64_t frames_at = 0;   // the batch's memory
  std::uint64_t packets_at = 0;  // its descriptors
  std::uint32_t frame_memory = 0;
  std::uint32_t packet_memory = 0;
  Frames frames = Frames::in_batch;
  std::uint32_t fetched = 0;  // fetch: the packet
  std::uint32_t pictured = 0;
  std::uint32_t stages_version = 0;  // grows with each exchange of stages
  std::array<std::uint32_t, ring::kMostPictured> pictures{};
  std::array<std::uint32_t, kMostLaneStages> stages{};  // ids, segment by segment
};
static_assert(kIsMessage<Order> && sizeof(Order) % sizeof(std::uint64_t) == 0);

/// A frame in the list: the memory's id in the upper 16 bits, the offset below. kPackedMemory: the packed part of the
/// lane's own memory, in which frames have come back.
inline constexpr std::uint32_t kPackedMemory = kMostMemories;
[[nodiscard]] constexpr std::uint64_t listed_frame(std::uint32_t memory, std::uint64_t offset) noexcept {
  return std::uint64_t{memory} << 48 | offset;
}

struct OrderSlot {
  alignas(64) std::atomic<std::uint32_t> submitted;  // the number of the last order, from 1
  std::atomic<std::uint32_t> cancelled;              // the number of the order that need not be done any more
  alignas(64) std::array<std::uint64_t, sizeof(Order) / sizeof(std::uint64_t)> order;

  /// Reads each word once.
  [[nodiscard]] Order read_order() const noexcept {
    std::array<std::uint64_t, sizeof(Order) / sizeof(std::uint64_t)> words;
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = __atomic_load_n(&order[i], __ATOMIC_RELAXED);
    return std::bit_cast<Order>(words);
  }
  void write_order(const Order& next) noexcept {
    const auto words = std::bit_cast<std::array<std::uint64_t, sizeof(Order) / sizeof(std::uint64_t)>>(next);
    for (std::size_t i = 0; i < words.size(); ++i) __atomic_store_n(&order[i], words[i], __ATOMIC_RELAXED);
  }
};

struct Completion {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  static constexpr std::uint32_t kDone = 0, kFailed = 1, kTablesEnded = 2;
  alignas(64) std::atomic<std::uint32_t> done;  // the number of the last order that is over
  std::atomic<std::uint32_t> sleeping;          // the proxy looks for orders again once the eventfd is written
  // Of that order:
  alignas(64) std::uint32_t failed;  // kTablesEnded: the tables of a stage, which another tenant had granted, have gone
  std::uint32_t fetched_length;
  std::uint64_t to_device;
  std::uint64_t to_host;
  std::uint64_t verdicts_at;                           // in the results
  std::uint64_t records_at;                            // in the packed part
  std::uint64_t frames_at;                             // ditto
  std::array<std::uint64_t, kMostStages> findings_at;  // in the results
  std::array<std::uint64_t, kMostStages> lengths_at;   // ditto
};

/// A picture, or the packet that was fetched.
struct SharedPicture {
  PacketDescriptor packet;
  std::uint32_t bytes;
  std::uint32_t length;  // of the fetched frame
  std::array<std::uint8_t, ring::kPictureBytes> frame;
};

/// Where everything lies, by the lane's shape. Sizes in bytes, multiples of a page.
struct LaneLayout {
  explicit LaneLayout(const ring::LaneShape& shape) : sizes(shape) {
    std::size_t most_stages = 0;
    for (const ring::SegmentShape& segment : shape.segments) most_stages = std::max(most_stages, segment.stages.size());
    results_at = kPage;
    pictures_at = results_at + pages(sizes.results);
    proxy_bytes = pictures_at + pages((most_stages + 1) * ring::kMostPictured * sizeof(SharedPicture));
    list_at = kPage;
    states_at = list_at + pages(shape.batch_packets * sizeof(std::uint64_t));
    packed_at = states_at + pages(sizes.states);
    tenant_bytes = packed_at + pages(sizes.packed);
  }

  static constexpr std::size_t kPage = 4096;
  [[nodiscard]] static constexpr std::size_t pages(std::size_t bytes) noexcept {
    return (bytes + kPage - 1) / kPage * kPage;
  }

  ring::LaneSizes sizes;
  std::size_t results_at, pictures_at, proxy_bytes;
  std::size_t list_at, states_at, packed_at, tenant_bytes;
};
static_assert(sizeof(Completion) <= LaneLayout::kPage && sizeof(OrderSlot) <= LaneLayout::kPage);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace penstock::proxy
