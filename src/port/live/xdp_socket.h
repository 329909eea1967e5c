// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An AF_XDP socket for one queue of an interface: its memory for frames (UMEM), which is divided into chunks of one
// size, and its four rings. The memory belongs to the caller, and must outlive the socket.
//
//     memory:  ┌─ chunk 0 ─┬─ chunk 1 ─┬─ … ─┬───────── … ─┐    a chunk: 256 bytes, headroom, frame, tailroom
//              └──────── to receive into ────┴── to send ──┘

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "port/live/file_descriptor.h"
#include "port/live/interface.h"
#include "port/live/packet_rings.h"
#include "port/live/xdp_rings.h"

namespace penstock::port {

enum class XdpCopies : std::uint8_t {
  automatic,  // zero-copy, or else copies
  never,      // zero-copy, or refused
  always,
};

struct XdpShape {
  /// XDP_PACKET_HEADROOM (linux/bpf.h): bytes before each received frame that the kernel reserves for programs, and
  /// that the chain may use once it has the frame.
  static constexpr std::uint32_t kLeastHeadroom = 256;

  std::uint32_t chunk_bytes = 2048;  // a power of two, from 2048 to the page size
  std::uint32_t headroom = 0;        // before each received frame, in addition to kLeastHeadroom
  std::uint32_t receive_chunks = 0;
  std::uint32_t send_chunks = 0;
  bool reads = true, writes = true;
  bool needs_several_chunks = false;  // the longest frame does not fit into a chunk
  unsigned busy_poll_budget = 0;      // 0: no busy polling

  [[nodiscard]] std::size_t bytes() const noexcept { return std::size_t{chunk_bytes} * (receive_chunks + send_chunks); }
};

struct XdpStatistics {
  std::uint64_t dropped = 0;            // no chunk for a frame, or the frame is too long
  std::uint64_t receive_ring_full = 0;  // frames
  std::uint64_t fill_ring_empty = 0;    // how often the kernel found no chunk
  std::uint64_t invalid_chunks = 0;     // of the fill ring
  std::uint64_t invalid_send_frames = 0;
};

class XdpSocket {
 public:
  /// In the calling thread's network namespace. `memory`: of `shape.bytes()`, at a page.
  [[nodiscard]] static Result<XdpSocket> open(const std::string& name, const Interface& interface, std::uint32_t queue,
                                              std::span<std::uint8_t> memory, const XdpShape& shape, XdpCopies copies);
  /// Whether the interface has a queue of this number, which no other socket uses.
  [[nodiscard]] static bool has_queue(const std::string& name, const Interface& interface, std::uint32_t queue);

  [[nodiscard]] const FileDescriptor& fd() const noexcept { return socket_; }
  [[nodiscard]] bool is_zero_copy() const noexcept { return is_zero_copy_; }
  /// Whether frames may have several chunks.
  [[nodiscard]] bool has_frags() const noexcept { return has_frags_; }
  [[nodiscard]] XdpStatistics statistics() const noexcept;

  // Views of the rings, with their positions; each is for one user.
  [[nodiscard]] XdpChunkRing fill() const noexcept { return fill_; }
  [[nodiscard]] XdpFrameRing receive() const noexcept { return receive_; }
  [[nodiscard]] XdpFrameRing send() const noexcept { return send_; }
  [[nodiscard]] XdpChunkRing completion() const noexcept { return completion_; }

 private:
  XdpSocket() = default;
  [[nodiscard]] bool make_rings(const XdpShape& shape) noexcept;
  [[nodiscard]] bool bind(const Interface& interface, std::uint32_t queue, const XdpShape& shape,
                          XdpCopies copies) noexcept;

  FileDescriptor socket_;
  std::array<RingMapping, 4> mappings_;
  XdpChunkRing fill_, completion_;
  XdpFrameRing receive_, send_;
  bool is_zero_copy_ = false, has_frags_ = false;
};

}  // namespace penstock::port
