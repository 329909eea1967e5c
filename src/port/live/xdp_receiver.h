// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The receive side of one AF_XDP socket. Every chunk is in one place: with the kernel, to receive into; in the receive
// ring, with a frame; or lent. Frames of several chunks are joined in a buffer, since functions need them in one piece.

#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "packet/ethernet.h"
#include "port/live/xdp_rings.h"

namespace penstock::port {

class XdpReceiver {
 public:
  /// Borrows the rings' mappings and the memory, of which the first `chunks` are to receive into.
  XdpReceiver(XdpChunkRing fill, XdpFrameRing ring, std::span<std::uint8_t> memory, std::uint32_t chunk_bytes,
              std::uint32_t chunks)
      : fill_(fill), ring_(ring), memory_(memory), chunk_bytes_(chunk_bytes), chunks_(chunks), joined_(kLongestFrame) {
    for (std::uint32_t i = 0; i < chunks; ++i) fill_.put(std::uint64_t{i} * chunk_bytes);
    fill_.publish();
  }

  struct Frame {
    std::span<std::uint8_t> bytes;  // empty: there is none now
    std::uint64_t at = 0;           // where it is in the memory
    std::uint32_t tailroom = 0;     // after it, in its chunk
    bool is_joined = false;         // it is a copy, in a buffer that the next frame may use
  };
  /// The frame to take next, whole.
  [[nodiscard]] Frame front() noexcept {
    const std::uint32_t available = ring_.available();
    std::uint32_t entries = 0;
    std::size_t length = 0;
    do {
      if (entries == available) return {};  // the rest of the frame is still to come
      length += ring_.peek(entries).len;
    } while ((ring_.peek(entries++).options & kXdpContinues) != 0);
    entries_ = entries;
    if (length > kLongestFrame || length < sizeof(EthernetHeader)) {
      ++wrong_length_;
      pop(false);
      return front();
    }
    if (entries == 1) {
      const std::uint64_t at = ring_.peek().addr;
      const std::uint64_t end = at + length;
      return {memory_.subspan(at, length), at, static_cast<std::uint32_t>(chunk_of(at) + chunk_bytes_ - end), false};
    }
    std::size_t used = 0;
    for (std::uint32_t i = 0; i < entries; ++i) {
      const xdp_desc& part = ring_.peek(i);
      std::memcpy(joined_.data() + used, memory_.data() + part.addr, part.len);
      used += part.len;
    }
    return {std::span(joined_).first(used), 0, 0, true};
  }
  /// The frame of `front` has been taken. Its chunk is in use until `take_back`, if it is lent.
  void pop(bool lent) noexcept {
    if (lent) {
      ++lent_;
    } else {
      for (std::uint32_t i = 0; i < entries_; ++i) fill_.put(chunk_of(ring_.peek(i).addr));
    }
    ring_.pop(entries_);
  }
  /// A lent frame, which was at this place, is back.
  void take_back(std::uint64_t at) noexcept {
    --lent_;
    fill_.put(chunk_of(at));
  }
  /// Shows the kernel what `pop` and `take_back` have done.
  void publish() noexcept {
    ring_.release();
    fill_.publish();
  }

  [[nodiscard]] std::uint32_t available() const noexcept { return ring_.available(); }
  /// Frames cannot come until lent ones are back.
  [[nodiscard]] bool starved() const noexcept { return lent_ == chunks_; }
  /// The driver waits for a system call to go on.
  [[nodiscard]] bool needs_wakeup() const noexcept { return fill_.needs_wakeup(); }
  /// Frames that were left out since the last call: too long to be joined, or shorter than their header.
  [[nodiscard]] std::uint64_t take_wrong_length() noexcept { return std::exchange(wrong_length_, 0); }

 private:
  /// More than a TCP segment that the sender has left to be split, in generic mode.
  static constexpr std::size_t kLongestFrame = std::size_t{128} << 10;

  [[nodiscard]] std::uint64_t chunk_of(std::uint64_t at) const noexcept {
    return at & ~std::uint64_t{chunk_bytes_ - 1};
  }

  XdpChunkRing fill_;
  XdpFrameRing ring_;
  std::span<std::uint8_t> memory_;
  std::uint32_t chunk_bytes_, chunks_;
  std::uint32_t lent_ = 0;
  std::uint32_t entries_ = 0;  // of the frame of `front`
  std::vector<std::uint8_t> joined_;
  std::uint64_t wrong_length_ = 0;
};

}  // namespace penstock::port
