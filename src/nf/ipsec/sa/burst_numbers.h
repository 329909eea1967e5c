// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sequence numbers for the packets of one burst, which may belong to several SAs in any order. An SA's numbers are
// taken together, since workers that share an SA contend for its counter, and are handed out in packet order.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "nf/ipsec/sa/sa_state.h"

namespace penstock::ipsec {

class BurstNumbers {
 public:
  /// Of an SA that has one among the others.
  using Lot = std::uint8_t;

  /// Begins a burst. Numbers of the last one that nobody has asked for are lost.
  void clear() noexcept { count_ = 0; }

  /// Announces a packet of this SA. Packets of an SA that are announced before its first number have adjacent numbers,
  /// unless they run short.
  [[nodiscard]] Lot announce(std::uint32_t sa) noexcept {
    const Lot lot = lot_of(sa);
    if (lot != kNoLot) ++lots_[lot].announced;
    return lot;
  }

  /// The next number, for a packet that was announced; to be called in packet order. False: there is none now, and all
  /// that were announced so far have to be announced again. `state` is that of the lot's SA.
  [[nodiscard]] bool next(Lot lot, SaState& state, std::uint64_t& number) noexcept {
    if (lot == kNoLot) {
      const SequenceRange taken = state.take(1);
      number = taken.first;
      return taken.count != 0;
    }
    Entry& entry = lots_[lot];
    if (entry.left.count == 0) {
      entry.left = state.take(std::max(entry.announced, 1U));
      if (entry.left.count == 0) {
        entry.announced = 0;
        return false;
      }
      entry.announced -= std::min(entry.announced, entry.left.count);
    }
    number = entry.left.first++;
    --entry.left.count;
    return true;
  }

 private:
  static constexpr std::size_t kMostLots = 128;
  static constexpr unsigned kSlotBits = 8;  // of a hash table, at most half full
  static constexpr std::uint32_t kSlots = 1U << kSlotBits;
  static constexpr Lot kNoLot = 255;  // of SAs beyond kMostLots, whose packets take one number each

  struct Entry {
    std::uint32_t sa;
    std::uint32_t slot;
    std::uint32_t announced;  // packets without a number
    SequenceRange left;       // taken, and not handed out yet
  };

  [[nodiscard]] Lot lot_of(std::uint32_t sa) noexcept {
    // A slot is in use if its lot says so too, so that nothing need be cleared.
    for (std::uint32_t slot = sa * 0x9e37'79b1U >> (32 - kSlotBits);; slot = (slot + 1) % kSlots) {
      const Lot lot = slots_[slot];
      if (lot < count_ && lots_[lot].slot == slot) {
        if (lots_[lot].sa == sa) return lot;
        continue;
      }
      if (count_ == kMostLots) return kNoLot;
      slots_[slot] = static_cast<Lot>(count_);
      lots_[count_] = {sa, slot, 0, {}};
      return static_cast<Lot>(count_++);
    }
  }

  std::array<Lot, kSlots> slots_{};
  std::array<Entry, kMostLots> lots_;
  std::uint32_t count_ = 0;
};

}  // namespace penstock::ipsec
