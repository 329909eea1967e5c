// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/frame_scratch.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>

namespace penstock::run {

FrameScratch::FrameScratch(std::size_t batch_bytes, std::size_t batch_packets, FrameRoom growth, bool shared)
    : memory_(bytes_for(batch_bytes, batch_packets, growth), shared), growth_(growth), slots_(batch_packets) {}

void FrameScratch::reset() noexcept {
  if (used_ == 0) return;
  std::ranges::fill(slots_, nullptr);
  used_ = 0;
}

void FrameScratch::reserve(std::size_t packet, std::uint32_t length) noexcept {
  if (slots_[packet] != nullptr) return;
  // Large enough for the rest of the chain: the frame may have to be copied here again after a segment, but it does not
  // outgrow `growth_`.
  slots_[packet] = memory().data() + used_;
  used_ += aligned_frame(growth_.head) + aligned_frame(length + growth_.head + growth_.tail);
  assert(used_ <= memory().size());
}

std::uint8_t* FrameScratch::with_room(std::size_t packet, std::uint8_t* frame, std::uint32_t length) noexcept {
  const std::span<std::uint8_t> all = memory();
  const std::less<const std::uint8_t*> lies_before;
  if (!lies_before(frame, all.data()) && lies_before(frame, all.data() + all.size())) return frame;
  reserve(packet, length);
  std::uint8_t* const copy = slots_[packet] + aligned_frame(growth_.head);
  std::memcpy(copy, frame, length);
  return copy;
}

}  // namespace penstock::run
