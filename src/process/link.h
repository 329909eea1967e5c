// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The chain's side of a connection to a function's process, and the queues by which its workers give packets. A link
// that is lost stays so; another one takes its place (remote_function.h).

#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "base/shared_memory.h"
#include "ipc/message_socket.h"
#include "packet/packet.h"
#include "process/burst_page.h"
#include "process/protocol.h"

namespace penstock::process {

class Link {
 public:
  struct Opened {
    std::shared_ptr<Link> link;
    Description description;
  };
  /// Connects, and waits until the function is made. `stop`: gives up early.
  [[nodiscard]] static Result<Opened> open(const std::string& path, const Hello& hello,
                                           const std::atomic<bool>* stop = nullptr);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  [[nodiscard]] bool is_lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  /// From now on it is lost. True for the first caller only.
  bool lose() noexcept;
  /// Whether the other process has gone. Asks the system.
  [[nodiscard]] bool has_gone() const noexcept { return ipc::has_gone(socket_.get()); }

  /// The id of what has been made. Empty: refused, or the link is lost. Thread-safe.
  template <typename Message>
  [[nodiscard]] std::optional<std::uint32_t> request(const Message& message, int file) {
    return request_bytes(bytes_of(message), file);
  }
  void end_queue(std::uint32_t queue) noexcept;

 private:
  explicit Link(ipc::FileDescriptor socket) : socket_(std::move(socket)) {}
  std::optional<std::uint32_t> request_bytes(std::span<const std::byte> message, int file);

  const ipc::FileDescriptor socket_;
  std::mutex mutex_;  // held from a request to its reply
  std::atomic<bool> lost_{false};
};

/// Of one worker, in one link. Except for `open`, it belongs to the worker.
class Queue {
 public:
  /// Null: the process refuses, or the link is lost. Throws std::bad_alloc.
  [[nodiscard]] static std::unique_ptr<Queue> make(const std::shared_ptr<Link>& link, unsigned worker);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();

  [[nodiscard]] Link& link() const noexcept { return *link_; }

  /// A file in which frames lie, as this process has mapped it.
  struct Frames {
    std::uint64_t number = 0;  // in FramePlace
    std::span<const std::uint8_t> memory;
  };
  /// Lets the function's process map the whole file, from which this process has mapped `memory`. `writes`: it may
  /// write there. Thread-safe. Empty: it cannot.
  [[nodiscard]] std::optional<Frames> open(int file, std::span<const std::uint8_t> memory, bool writes);
  /// Bursts may name frames there from now on.
  void use(const Frames& frames) noexcept;

  /// Begins a burst. It takes frames as long as there is room.
  void begin() noexcept { packets_ = 0, copied_bytes_ = 0; }
  enum class Taken : std::uint8_t { no, in_place, copied };
  /// Adds a packet to the burst: where it is, if its frame lies in memory that is used, and `copies` is false.
  [[nodiscard]] Taken add(PacketView packet, bool copies) noexcept;

  enum class Outcome : std::uint8_t { done, lost, gone, silent };
  /// Gives the burst to the function, and waits for the results. `lost`: the link is.
  [[nodiscard]] Outcome run(BurstPage::Kind kind, bool begins_batch, std::chrono::nanoseconds longest) noexcept;
  /// Copied once: the other process may change them at any time.
  [[nodiscard]] std::span<const PacketResult> results() const noexcept { return std::span(results_).first(packets_); }
  /// The copied frame of a packet of the burst, in memory that the other process may change.
  [[nodiscard]] const std::uint8_t* copy(std::size_t packet) const noexcept {
    return memory_.data() + kCopiesAt + offset_of(places_[packet]);
  }

 private:
  Queue(std::shared_ptr<Link> link, std::span<std::uint8_t> memory) : link_(std::move(link)), memory_(memory) {}
  [[nodiscard]] BurstPage& page() const noexcept { return *reinterpret_cast<BurstPage*>(memory_.data()); }
  [[nodiscard]] std::optional<FramePlace> find(PacketView packet) const noexcept;

  const std::shared_ptr<Link> link_;
  const std::span<std::uint8_t> memory_;
  std::uint32_t id_ = 0;
  std::array<Frames, kMostMemories> frames_{};
  std::size_t frame_count_ = 0;
  std::uint32_t number_ = 0;  // of the last burst
  std::size_t packets_ = 0;
  std::size_t copied_bytes_ = 0;
  std::array<FramePlace, function::kBurst> places_{};
  std::array<PacketResult, function::kBurst> results_{};
};

}  // namespace penstock::process
