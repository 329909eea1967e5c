// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory by which a worker of a chain gives bursts to a function in another process, several at a time and in
// order. Burst n is in slot n % kSlots:
//
//     chain's process                                       function's process
//     writes descriptors and where the frames are
//     submitted: n ────────────────────────────────────────▶ copies and checks them, processes the packets
//     copies and checks the results ◀──────────────────────── results; done: n
//
// Both processes can write all of it at any time, and each believes only what it has copied. The function's process
// sleeps on `submitted` (futex(2)) if there is nothing to do for a while. Nobody can block the other one by that.

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "function/burst.h"
#include "function/confirming_stage.h"
#include "packet/packet.h"
#include "packet/verdict.h"
#include "process/protocol.h"

namespace penstock::process {

/// Where a frame is: the memory's number in the upper 16 bits, the offset there below.
using FramePlace = std::uint64_t;
inline constexpr unsigned kOffsetBits = 48;
[[nodiscard]] constexpr FramePlace frame_place(std::uint64_t memory, std::uint64_t offset) noexcept {
  return memory << kOffsetBits | offset;
}
[[nodiscard]] constexpr std::uint64_t memory_of(FramePlace place) noexcept { return place >> kOffsetBits; }
[[nodiscard]] constexpr std::uint64_t offset_of(FramePlace place) noexcept {
  return place & ((std::uint64_t{1} << kOffsetBits) - 1);
}
/// The number of the queue's own memory, for copied frames. Those of memory that is opened follow.
inline constexpr std::uint64_t kCopies = 0;

/// Around a copied frame is the room that the function may need. Frames begin with a cache line.
[[nodiscard]] constexpr std::size_t in_lines(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
[[nodiscard]] constexpr std::size_t room_before_copy(FrameRoom growth) noexcept { return in_lines(growth.head); }
[[nodiscard]] constexpr std::size_t room_of_copy(std::size_t length, FrameRoom growth) noexcept {
  return room_before_copy(growth) + in_lines(length + growth.tail);
}

struct PacketResult {
  Verdict verdict;
  std::uint32_t mark;
  // Of a function that changes the length of frames:
  std::int32_t head = 0;     // how many bytes the frame begins before where it began
  std::uint32_t length = 0;  // of the frame
};

struct BurstSlot {
  /// observe: one fragment of another worker, about which nothing is decided. confirm: packets with what a device stage
  /// has found in them, or no packets. decide: packets for which a device stage needs states.
  enum Kind : std::uint32_t { kProcess, kObserve, kConfirm, kDecide };

  alignas(64) std::uint32_t kind;
  std::uint32_t packets;
  std::uint32_t begins_batch;
  function::PassedOver passed_over;  // since the burst before
  std::array<FramePlace, function::kBurst> frames;
  std::array<PacketDescriptor, function::kBurst> descriptors;
  alignas(64) std::array<std::byte, function::kBurst * kMostFindings> findings;  // of each packet, in sequence
  alignas(64) std::array<PacketResult, function::kBurst> results;
  // Of each packet, in sequence: with `decide`, states, from the function's process; with `confirm`, the same states
  // back, if there are any; with `process`, if the function reads connections, what is known of the packet's
  // (conntrack::PacketConnection), from the chain's.
  alignas(64) std::array<std::byte, function::kBurst * kMostStates> states;
};

inline constexpr std::uint32_t kSlots = 8;

struct BurstPage {
  alignas(64) std::atomic<std::uint32_t> submitted;  // the number of the last burst; by the chain
  alignas(64) std::atomic<std::uint32_t> done;       // the number of the last burst that is done; by the function
  std::atomic<std::uint32_t> sleeping;               // 1: is to be woken
  std::array<BurstSlot, kSlots> slots;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

inline constexpr std::size_t kPageBytes = 4096;
/// Where the room for copied frames begins in a queue's memory, and its size for each slot. A longer frame cannot be
/// processed.
inline constexpr std::size_t kCopiesAt = (sizeof(BurstPage) + kPageBytes - 1) / kPageBytes * kPageBytes;
inline constexpr std::size_t kCopiesBytes = std::size_t{512} << 10;
inline constexpr std::size_t kQueueBytes = kCopiesAt + kSlots * kCopiesBytes;

/// For so long, who waits for the other process yields. Beyond, it sleeps: threads that yield on a machine without a
/// core for each wait for whole slices of all others, again and again.
inline constexpr std::chrono::milliseconds kYieldTime{1};
inline constexpr std::chrono::microseconds kShortSleep{20};

/// Waits until the word is not `value` any more, is woken, or a time is over.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept;
/// Wakes the process that sleeps on the word.
void wake(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace penstock::process
