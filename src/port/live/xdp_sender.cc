// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/xdp_sender.h"

#include <sys/socket.h>

#include <cerrno>

namespace penstock::port {

XdpSender::XdpSender(int socket, XdpFrameRing ring, XdpChunkRing completion, std::span<std::uint8_t> memory,
                     const Shape& shape)
    : socket_(socket), ring_(ring), completion_(completion), memory_(memory), shape_(shape) {
  free_.reserve(shape.chunks);
  for (std::uint32_t i = shape.chunks; i > 0; --i)
    free_.push_back(std::uint64_t{shape.first_chunk + i - 1} * shape.chunk_bytes);
}

bool XdpSender::put(std::span<const std::uint8_t> frame) noexcept {
  const std::size_t chunks = (frame.size() + shape_.chunk_bytes - 1) / shape_.chunk_bytes;
  if (free_.size() < chunks) reclaim();
  if (free_.size() < chunks || ring_.room() < chunks) return false;
  for (std::size_t done = 0; done < frame.size();) {
    const std::size_t length = std::min<std::size_t>(shape_.chunk_bytes, frame.size() - done);
    const std::uint64_t chunk = free_.back();
    free_.pop_back();
    std::memcpy(memory_.data() + chunk, frame.data() + done, length);
    done += length;
    ring_.put({chunk, static_cast<std::uint32_t>(length), done < frame.size() ? kXdpContinues : 0});
  }
  return true;
}

Lost XdpSender::offer() noexcept {
  Lost lost;
  ring_.publish();
  // Each call takes a frame at least, unless it is the last.
  for (std::uint32_t calls = ring_.in_use() + 1; calls > 0 && ring_.in_use() > 0 && ring_.needs_wakeup(); --calls) {
    const std::uint32_t before = ring_.consumed();
    const bool worked = ::sendto(socket_, nullptr, 0, MSG_DONTWAIT, nullptr, 0) >= 0;
    const int error = worked ? 0 : errno;
    const bool went_on = ring_.consumed() != before;
    if (error == EBUSY && !shape_.is_zero_copy) {
      count_dropped(before, lost);  // the call ends at each dropped frame
      continue;
    }
    if (went_on) hidden_ = 0;
    // EAGAIN: one call takes a limited number of frames, or the driver's queue is full.
    if (error != EAGAIN || !went_on) break;
  }
  reclaim();
  return lost;
}

/// The kernel shows what it has consumed if it has sent a frame by the call, or finds no more frames.
void XdpSender::count_dropped(std::uint32_t consumed_before, Lost& lost) noexcept {
  std::uint32_t at = ring_.consumed();
  if (at != consumed_before) {
    hidden_ = 0;
    --at;  // the last part of the dropped frame
    while ((ring_.at(at - 1).options & kXdpContinues) != 0) --at;
  } else {
    at += hidden_;
  }
  ++lost.packets;
  for (bool more = true; more; ++at) {
    lost.bytes += ring_.at(at).len;
    more = (ring_.at(at).options & kXdpContinues) != 0;
    if (ring_.consumed() == consumed_before) ++hidden_;
  }
}

void XdpSender::reclaim() noexcept {
  const std::uint32_t available = completion_.available();
  if (available == 0) return;
  for (std::uint32_t i = 0; i < available; ++i) {
    free_.push_back(completion_.peek() & ~std::uint64_t{shape_.chunk_bytes - 1});
    completion_.pop();
  }
  completion_.release();
}

}  // namespace penstock::port
