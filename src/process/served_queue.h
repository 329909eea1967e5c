// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The function's side of a queue: a thread with a stage of the function, which processes the bursts that a worker of
// the chain submits. It trusts the chain's process no more than that one trusts it. A stage that leaves its work to a
// device (function/offloaded_stage.h) gets all bursts that wait at once.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "conntrack/packet_connection.h"
#include "function/confirming_stage.h"
#include "function/connection_reader.h"
#include "function/network_function.h"
#include "function/offloaded_stage.h"
#include "packet/packet.h"
#include "process/burst_page.h"
#include "process/protocol.h"
#include "stack/shared_stack.h"

namespace penstock::process {

/// A file of the chain's process, as a whole. It is sealed, so that it stays in place (base/shared_memory.h).
class MappedFile {
 public:
  /// Throws std::bad_alloc.
  MappedFile(int file, std::size_t bytes, bool writes);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();
  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::uint8_t> bytes_;
};

class ServedQueue {
 public:
  /// Why a queue ends by itself.
  enum class End : std::uint8_t { chain_is_wrong, function_has_failed };
  using Ended = std::function<void(End end, std::string_view why)>;
  /// `memory` is of kQueueBytes. `ports`: how many the chain has. `ended` is called by the thread, once, when the other
  /// process breaks the protocol, or when the function's stage fails. Borrows the function. Throws std::system_error if
  /// there are no threads.
  ServedQueue(function::NetworkFunction& function, unsigned worker, std::unique_ptr<const MappedFile> memory,
              std::size_t ports, Ended ended);
  ServedQueue(const ServedQueue&) = delete;
  ServedQueue& operator=(const ServedQueue&) = delete;
  ~ServedQueue();

  /// The number by which bursts name it. Empty: there are too many.
  [[nodiscard]] std::optional<std::uint64_t> add(std::unique_ptr<const MappedFile> frames);
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_.load(std::memory_order_relaxed); }

 private:
  /// What is copied from its slot.
  struct Burst {
    std::uint32_t kind = BurstSlot::kProcess;
    bool begins_batch = false;
    function::PassedOver passed_over;
    std::size_t first = 0, packets = 0;  // in `descriptors_`
  };
  [[nodiscard]] BurstPage& page() const noexcept { return *reinterpret_cast<BurstPage*>(memory_->bytes().data()); }
  void run() noexcept;
  [[nodiscard]] std::uint32_t waiting() const noexcept {
    return page().submitted.load(std::memory_order_acquire) - number_;
  }
  [[nodiscard]] bool serve() noexcept;
  [[nodiscard]] std::uint32_t wait_for_more(std::uint32_t bursts) const noexcept;
  [[nodiscard]] const char* take(std::uint32_t most) noexcept;
  [[nodiscard]] const char* take_packets(const BurstSlot& slot, const Burst& burst) noexcept;
  [[nodiscard]] const char* take_findings(const BurstSlot& slot, const Burst& burst) noexcept;
  [[nodiscard]] const char* take_connections(const BurstSlot& slot, const Burst& burst) noexcept;
  void confirm(std::span<const PacketView> packets) noexcept;
  void decide(std::span<const PacketView> packets) noexcept;
  [[nodiscard]] const char* take_frame(const Burst& burst, std::size_t packet, FramePlace place) noexcept;
  void give_frame(std::size_t packet) noexcept;
  void finish() noexcept;
  [[nodiscard]] std::span<std::uint8_t> memory_named(std::uint64_t number) const noexcept;

  const std::unique_ptr<const MappedFile> memory_;
  const std::size_t ports_;
  const Ended ended_;
  stack::SharedStack stack_;
  const std::unique_ptr<function::CpuStage> stage_;
  function::OffloadedStage* const offloaded_;            // the stage, if it is one; otherwise null
  const std::unique_ptr<function::FinishStage> finish_;  // null: the function confirms nothing
  function::ConfirmingStage* const confirming_;          // the same
  const std::size_t findings_bytes_;                     // of a packet
  const std::unique_ptr<function::StateStage> states_;   // null: the function makes none
  const std::size_t state_bytes_;                        // of a packet
  const std::optional<FrameRoom> growth_;                // empty: the function does not change lengths
  function::ConnectionReadingStage* const reading_;      // the stage, if it is one; otherwise null
  // Written once each, before their number is known to the chain.
  std::array<std::unique_ptr<const MappedFile>, kMostMemories> frames_;
  std::atomic<std::size_t> frame_count_{0};
  std::uint32_t number_ = 0;  // of the last burst that is done
  std::chrono::steady_clock::time_point batch_began_;
  // Of the bursts that are taken, which follow it:
  std::array<Burst, kSlots> bursts_;
  std::uint32_t taken_ = 0;
  std::size_t taken_packets_ = 0;
  std::vector<PacketDescriptor> descriptors_;
  std::vector<PacketView> views_;
  // Of a function that changes lengths: the frames themselves, which the other process cannot change meanwhile, each
  // with room around it; and where they came from.
  struct OwnFrame {
    std::uint8_t* frame;
    FramePlace from;
  };
  std::vector<std::uint8_t> own_memory_;
  std::size_t own_bytes_ = 0;  // that are used, of the last burst
  std::vector<OwnFrame> own_frames_;
  alignas(64) std::array<std::byte, function::kBurst * kMostFindings> findings_{};  // of the burst that is taken
  alignas(64) std::array<std::byte, function::kBurst * kMostStates> states_of_burst_{};
  std::array<conntrack::PacketConnection, function::kBurst> connections_{};  // of the burst that is taken
  std::atomic<std::uint64_t> packets_{0};
  std::atomic<bool> stops_{false};
  std::thread thread_;  // last: uses all others
};

}  // namespace penstock::process
