// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/shared_memory.h"
#include "packet/batch.h"
#include "port/port.h"
#include "run/testing/fakes.h"

namespace penstock::proxy::testing {

/// Lends numbered frames, from memory that the proxy can map or from other memory, at any alignment.
class Lender {
 public:
  Lender(std::size_t frames, bool shared) : frames_(frames), memory_(kSlots * kSlotBytes, shared) {}
  /// Every third frame is copied.
  port::RxStatus poll(Batch& batch, PacketMemory& memory) {
    if (!region_) region_ = memory.add(memory_.bytes());
    for (std::size_t n = 0; n < 40; ++n, ++made_) {
      if (made_ == frames_) return port::RxStatus::end;
      if (lent_ - back == kSlots) return port::RxStatus::starved;
      const run::testing::Bytes frame = run::testing::numbered(made_);
      const auto length = static_cast<std::uint32_t>(frame.size());
      const Arrival arrival{1, length, 0, LinkType::ethernet};
      if (!*region_ || made_ % 3 == 0) {
        if (!batch.append(frame, arrival)) return port::RxStatus::more;
        continue;
      }
      const std::size_t at = lent_ % kSlots * kSlotBytes + lent_ % 29;
      if (!batch.lend(region_->value(), static_cast<std::uint32_t>(at), length, arrival)) return port::RxStatus::more;
      std::ranges::copy(frame, memory_.bytes().begin() + static_cast<std::ptrdiff_t>(at));
      ++lent_;
    }
    return port::RxStatus::idle;
  }
  [[nodiscard]] std::size_t lent() const { return lent_; }

  std::size_t back = 0;

 private:
  static constexpr std::size_t kSlots = 300;
  static constexpr std::size_t kSlotBytes = 256;
  const std::size_t frames_;
  MappedMemory memory_;
  std::optional<Result<PacketMemory::Region>> region_;
  std::size_t made_ = 0, lent_ = 0;
};

}  // namespace penstock::proxy::testing
