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
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/shared_memory.h"
#include "function/granted_stage.h"
#include "ipc/foreign_descriptor.h"
#include "ipc/message_socket.h"
#include "packet/packet.h"
#include "process/burst_page.h"
#include "process/protocol.h"

namespace penstock::process {

/// Why a link is lost.
inline constexpr const char* kHasEnded = "has ended, or has closed the connection";

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
  ~Link() { ipc::close_foreign(std::move(socket_)); }

  [[nodiscard]] bool is_lost() const noexcept { return why_lost_.load(std::memory_order_relaxed) != nullptr; }
  /// From now on it is lost. The reason continues "the process", and lasts as long as the program. Only the first one
  /// counts.
  void lose(const char* why) noexcept;
  /// Why it was lost, to be reported: for the first caller only. Null for others, and if it is not lost. Thread-safe.
  [[nodiscard]] const char* take_loss() noexcept;
  /// Whether the other process has gone. Asks the system.
  [[nodiscard]] bool has_gone() const noexcept { return ipc::has_gone(socket_.get()); }

  /// The id of what has been made. Empty: refused, or the link is lost. Thread-safe.
  template <typename Message>
  [[nodiscard]] std::optional<std::uint32_t> request(const Message& message, int file) {
    return request_bytes(bytes_of(message), file);
  }
  void end_queue(std::uint32_t queue) noexcept;
  /// Of the function's tables at the proxy. Waits until they are loaded there, or until `gives_up` returns true; the
  /// link is lost then. Thread-safe.
  [[nodiscard]] Result<function::GrantToken> ask_token(const std::function<bool()>& gives_up);
  /// Of the tables whose token was asked for last; 0: none yet. Thread-safe.
  [[nodiscard]] std::uint64_t grant() const noexcept { return grant_.load(std::memory_order_acquire); }

 private:
  explicit Link(ipc::FileDescriptor socket) : socket_(std::move(socket)) {}
  std::optional<std::uint32_t> request_bytes(std::span<const std::byte> message, int file);
  /// After a request that failed: replies would not match requests any more.
  void lose_after_request() noexcept;

  ipc::FileDescriptor socket_;
  std::mutex mutex_;                            // held from a request to its reply
  std::atomic<const char*> why_lost_{nullptr};  // null: it is not
  std::atomic<bool> is_loss_taken_{false};
  std::atomic<std::uint64_t> grant_{0};  // function::grant_number
};

/// Of one worker, in one link. Except for `open`, it belongs to the worker.
class Queue {
 public:
  /// Null: the process refuses, or the link is lost. Throws std::bad_alloc.
  /// `growth`: room around copied frames.
  [[nodiscard]] static std::unique_ptr<Queue> make(const std::shared_ptr<Link>& link, unsigned worker,
                                                   FrameRoom growth = {});
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

  // A burst is filled, then submitted. Bursts that have been submitted are taken in the same order.

  /// How many are submitted and not taken.
  [[nodiscard]] std::uint32_t under_way() const noexcept { return submitted_ - taken_; }
  /// Begins to fill a burst. False: all slots are in use.
  [[nodiscard]] bool begin() noexcept;
  enum class Added : std::uint8_t { no, in_place, copied };
  /// Adds a packet to it, as long as there is room: where it is, if its frame lies in memory that is used, and `copies`
  /// is false. `finding`: what a device stage has found in it; the same size for all packets of a burst.
  [[nodiscard]] Added add(PacketView packet, bool copies, std::span<const std::byte> finding = {}) noexcept;
  /// Of the packet that was added last: a state that goes back, or what is known of its connection. The same size for
  /// all packets of a burst.
  void add_state(std::span<const std::byte> state) noexcept;
  void submit(BurstSlot::Kind kind, bool begins_batch, const function::PassedOver& passed_over) noexcept;

  enum class State : std::uint8_t { running, done, lost, gone, silent };
  /// Of the first burst under way. silent: for longer than `longest`. lost: the link is. To be called again and again
  /// while it is running.
  [[nodiscard]] State state(std::chrono::nanoseconds longest) noexcept;
  /// Takes the first burst under way. If it is done, `results` has its results, copied once: the other process may
  /// change them at any time. Returns how many packets it has.
  std::size_t take(std::span<PacketResult> results) noexcept;
  /// The same for what it has of states, by packet; call it before.
  void take_states(std::span<std::byte* const> states, std::size_t bytes_of_each) const noexcept;
  /// The copied frame of a packet of the burst that was taken last, in memory that the other process may change. Null:
  /// it was not copied.
  [[nodiscard]] const std::uint8_t* copy(std::size_t packet) const noexcept;

 private:
  Queue(std::shared_ptr<Link> link, std::span<std::uint8_t> memory, FrameRoom growth)
      : link_(std::move(link)), memory_(memory), growth_(growth) {}
  [[nodiscard]] BurstPage& page() const noexcept { return *reinterpret_cast<BurstPage*>(memory_.data()); }
  [[nodiscard]] std::optional<FramePlace> find(PacketView packet) const noexcept;
  [[nodiscard]] State look(std::chrono::nanoseconds longest) noexcept;
  /// Another burst is the first one.
  void expect_next() noexcept { state_ = State::running, polls_ = 0; }

  const std::shared_ptr<Link> link_;
  const std::span<std::uint8_t> memory_;
  const FrameRoom growth_;
  std::uint32_t id_ = 0;
  std::array<Frames, kMostMemories> frames_{};
  std::size_t frame_count_ = 0;
  /// What this process knows of a slot.
  struct Burst {
    std::size_t packets = 0;
    std::array<FramePlace, function::kBurst> places{};
  };
  std::array<Burst, kSlots> bursts_{};
  std::uint32_t submitted_ = 0;   // the number of the last burst
  std::uint32_t taken_ = 0;       // ditto
  std::size_t copied_bytes_ = 0;  // of the burst that is being filled
  // Of the first burst under way:
  State state_ = State::running;
  std::uint32_t polls_ = 0;
  std::chrono::steady_clock::time_point since_, next_look_;
};

}  // namespace penstock::process
