// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The function's side of a queue: a thread with a stage of the function, which processes the bursts that a worker of
// the chain submits. It trusts the chain's process no more than that one trusts it.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

#include "function/network_function.h"
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
  /// `memory` is of kQueueBytes. `ports`: how many the chain has. `wrong` is called by the thread, once, when the other
  /// process breaks the protocol. Borrows the function. Throws std::system_error if there are no threads.
  ServedQueue(function::NetworkFunction& function, unsigned worker, std::unique_ptr<const MappedFile> memory,
              std::size_t ports, std::function<void(const char* why)> wrong);
  ServedQueue(const ServedQueue&) = delete;
  ServedQueue& operator=(const ServedQueue&) = delete;
  ~ServedQueue();

  /// The number by which bursts name it. Empty: there are too many.
  [[nodiscard]] std::optional<std::uint64_t> add(std::unique_ptr<const MappedFile> frames);
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] BurstPage& page() const noexcept { return *reinterpret_cast<BurstPage*>(memory_->bytes().data()); }
  void run() noexcept;
  [[nodiscard]] const char* serve() noexcept;
  [[nodiscard]] const char* take(const BurstSlot& slot, std::size_t packets) noexcept;
  [[nodiscard]] std::span<std::uint8_t> memory_named(std::uint64_t number) const noexcept;

  const std::unique_ptr<const MappedFile> memory_;
  const std::size_t ports_;
  const std::function<void(const char*)> wrong_;
  stack::SharedStack stack_;
  const std::unique_ptr<function::CpuStage> stage_;
  // Written once each, before their number is known to the chain.
  std::array<std::unique_ptr<const MappedFile>, kMostMemories> frames_;
  std::atomic<std::size_t> frame_count_{0};
  std::uint32_t number_ = 0;  // of the last burst
  std::array<PacketDescriptor, function::kBurst> descriptors_;
  std::array<PacketView, function::kBurst> views_;
  std::atomic<std::uint64_t> packets_{0};
  std::atomic<bool> stops_{false};
  std::thread thread_;  // last: uses all others
};

}  // namespace penstock::process
