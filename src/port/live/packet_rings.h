// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The two rings of AF_PACKET that the kernel shares with a process (packet(7), Documentation/networking/packet_mmap):
// for receiving, blocks of frames that it fills and hands over whole (TPACKET_V3); for sending, slots of one frame.

#pragma once

#include <linux/if_packet.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "port/live/file_descriptor.h"
#include "port/live/interface.h"

namespace penstock::port {

/// A mapping of a socket's ring. Owns it.
class RingMapping {
 public:
  RingMapping() = default;
  RingMapping(RingMapping&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  RingMapping& operator=(RingMapping&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~RingMapping();
  /// `at`: null, or memory that the caller has reserved and that this replaces. False, with errno set, on an error.
  [[nodiscard]] bool map(const FileDescriptor& socket, std::size_t bytes, std::uint8_t* at,
                         std::uint64_t offset = 0) noexcept;
  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::uint8_t> bytes_;
};

struct ReceiveShape {
  std::size_t block_bytes = std::size_t{1} << 18;  // a multiple of the page size, and more than the longest frame
  std::size_t blocks = 32;
  unsigned block_timeout_ms = 1;  // a block with any frames is handed over after this time
  std::uint32_t headroom = 0;     // bytes before each frame that the chain may use
  bool promiscuous = true;
};

/// How the frames of an interface are spread to several sockets.
struct Fanout {
  std::uint16_t group = 0;
  std::uint32_t type = PACKET_FANOUT_HASH;  // or PACKET_FANOUT_EBPF, with
  int program = -1;
};

/// The receive side of one worker. Frames are taken in order. Memory goes back to the kernel by blocks, once all lent
/// frames of a block are back.
class ReceiveRing {
 public:
  /// None.
  ReceiveRing() = default;
  /// Opens a socket in the calling thread's network namespace, which receives nothing before `start`; `memory`: where
  /// to map its ring, or null.
  [[nodiscard]] static Result<ReceiveRing> open(const std::string& name, const Interface& interface,
                                                const ReceiveShape& shape, const Fanout* fanout, std::uint8_t* memory);

  /// Where another process continues to read.
  struct Position {
    std::uint64_t block = 0;   // the block that is being read, or will be next
    std::uint64_t left = 0;    // frames of it that have not been read; 0: it has not been begun
    std::uint64_t offset = 0;  // of the first of these, in the block
  };
  /// Maps the ring of another process, whose shape is the same, and which lends no frames.
  [[nodiscard]] static Result<ReceiveRing> continue_at(const std::string& name, FileDescriptor socket,
                                                       const Position& position, const ReceiveShape& shape,
                                                       std::uint8_t* memory);
  /// While no frames are lent.
  [[nodiscard]] Position position() noexcept;

  /// Lets frames in.
  [[nodiscard]] bool start() noexcept;
  /// Lets no more frames in. What is in the ring stays there.
  void stop() noexcept;

  /// The frame to take next; null: there is none now.
  [[nodiscard]] tpacket3_hdr* front() noexcept;
  /// The frame of `front` has been taken; its memory is in use until `take_back`, if it is lent.
  void pop(bool lent) noexcept;
  /// The oldest `frames` lent frames are back.
  void take_back(std::size_t frames) noexcept;
  /// All blocks hold frames that are lent.
  [[nodiscard]] bool starved() const noexcept { return held_ == shape_.blocks; }
  [[nodiscard]] std::size_t lent() const noexcept { return lent_; }

  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] FileDescriptor duplicate() const noexcept { return socket_.duplicate(); }
  [[nodiscard]] std::uint8_t* memory() const noexcept { return mapping_.bytes().data(); }
  struct Arrivals {
    std::uint64_t frames = 0;   // that came for this socket
    std::uint64_t dropped = 0;  // of these, by the kernel, because there was no room
  };
  /// Since the last call.
  [[nodiscard]] Arrivals arrivals() const noexcept;

 private:
  [[nodiscard]] tpacket_block_desc& block(std::size_t number) const noexcept {
    return *reinterpret_cast<tpacket_block_desc*>(mapping_.bytes().data() + number * shape_.block_bytes);
  }
  void end_block() noexcept;
  void give_blocks_back() noexcept;

  struct Block {
    std::uint32_t lent = 0, back = 0;
  };
  FileDescriptor socket_;
  RingMapping mapping_;
  ReceiveShape shape_;
  std::vector<Block> blocks_;
  std::size_t current_ = 0;  // the block that is being read, or will be next
  std::size_t oldest_ = 0;   // the first of the `held_` blocks before it, which have been read and hold lent frames
  std::size_t held_ = 0;
  std::size_t lent_ = 0;
  bool reading_ = false;
  std::uint32_t left_ = 0;  // frames of the current block
  std::uint8_t* next_ = nullptr;
};

/// The send side of one worker. Frames are copied into slots.
class SendRing {
 public:
  [[nodiscard]] static Result<SendRing> open(const std::string& name, const Interface& interface, std::size_t slots,
                                             std::uint32_t longest_frame, bool bypass_qdisc);
  /// Whether there is one on this interface, or a socket like one, of any process in the calling thread's network
  /// namespace. Programs that only listen, such as tcpdump, have none.
  [[nodiscard]] static bool exists_on(const Interface& interface);

  [[nodiscard]] std::uint32_t longest_frame() const noexcept { return longest_frame_; }
  /// False: the ring is full.
  [[nodiscard]] bool put(std::span<const std::uint8_t> frame) noexcept;
  /// Frames that `put` has accepted and the kernel has not yet.
  [[nodiscard]] std::size_t pending() const noexcept { return pending_; }

  enum class Refused : std::uint8_t { none, too_long, down };
  struct Sent {
    std::uint64_t lost = 0;  // frames that the kernel has refused
    std::uint64_t lost_bytes = 0;
    Refused reason = Refused::none;
  };
  /// Offers the pending frames to the kernel, which may leave some pending if its queues are full.
  Sent send() noexcept;
  /// Forgets the pending frames.
  Sent discard(Refused reason) noexcept;

 private:
  SendRing() = default;
  [[nodiscard]] tpacket3_hdr& slot(std::size_t number) const noexcept {
    return *reinterpret_cast<tpacket3_hdr*>(mapping_.bytes().data() + number * slot_bytes_);
  }
  [[nodiscard]] std::uint8_t* frame_of(tpacket3_hdr& slot) const noexcept;
  void note_sent() noexcept;
  void remove_first(Sent& sent) noexcept;

  FileDescriptor socket_;
  RingMapping mapping_;
  std::size_t slots_ = 0, slot_bytes_ = 0;
  std::uint32_t longest_frame_ = 0;
  std::size_t next_ = 0;     // the slot for the next frame
  std::size_t pending_ = 0;  // slots before it whose frames the kernel has not taken
};

}  // namespace penstock::port
