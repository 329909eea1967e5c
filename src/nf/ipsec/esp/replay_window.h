// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Anti-replay window of an SA (RFC 4303 §3.4.3), with the blocks of RFC 6479 instead of a shifted bitmap. Lock-free,
// for any number of workers at once: sequential calls behave as the RFC says, and of concurrent calls with the same
// number exactly one succeeds.
//
// A ring of words. Each word holds the received bits of a block of 32 numbers and the round that the block belongs to,
// so a word left from an older block is recognized and need not be cleared:
//
//     | round of the ring (32 bits) | received (32 bits) |

#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "nf/ipsec/reasons.h"

namespace penstock::ipsec {

class ReplayWindow {
 public:
  /// `packets` is the window size, any number; 0 disables the check. RFC 4303 requires receivers to support 32 and
  /// prefers 64, but smaller windows are honoured if the user configures them, as in Linux. `top` is the highest number
  /// received so far, 0 if none; numbers below it count as not received until they are passed to `accept`.
  explicit ReplayWindow(std::uint32_t packets, std::uint64_t top = 0) : packets_(packets) {
    // A block that leaves the window must not share a word with one that enters it.
    const std::size_t blocks = std::bit_ceil((std::size_t{packets} + kBlock - 1) / kBlock + 1);
    ring_bits_ = static_cast<unsigned>(std::countr_zero(blocks));
    ring_ = std::make_unique<std::atomic<std::uint64_t>[]>(blocks);
    if (top != 0) static_cast<void>(accept(top));
  }

  /// Whether a packet with this number would be accepted. Checked before the ICV is computed, to save that work.
  [[nodiscard]] Reason check(std::uint64_t sequence) const noexcept {
    if (packets_ == 0) return Reason::none;
    const Place place = place_of(sequence);
    const std::uint64_t word = ring_[place.index].load(std::memory_order_acquire);
    if (lies_before(sequence)) return Reason::too_old;
    return word >> 32 == place.round && (word & place.bit) != 0 ? Reason::replayed : Reason::none;
  }

  /// Records the number of an authenticated packet. Returns `none` only once for each number.
  [[nodiscard]] Reason accept(std::uint64_t sequence) noexcept {
    if (packets_ != 0 && lies_before(sequence)) return Reason::too_old;
    // Updated before the word: a caller that sees a word of a later round must also see by `top_` that its own block
    // has expired.
    std::uint64_t top = top_.load(std::memory_order_relaxed);
    while (top < sequence && !top_.compare_exchange_weak(top, sequence, std::memory_order_acq_rel)) {
    }
    if (packets_ == 0) return Reason::none;
    const Place place = place_of(sequence);
    std::atomic<std::uint64_t>& shared = ring_[place.index];
    std::uint64_t word = shared.load(std::memory_order_acquire);
    for (;;) {
      std::uint64_t received = 0;
      if (word >> 32 == place.round) {
        received = word & kBits;
        if ((received & place.bit) != 0) return Reason::replayed;
      } else if (lies_before(sequence)) {
        return Reason::too_old;
      }
      const std::uint64_t with = place.round << 32 | received | place.bit;
      if (shared.compare_exchange_weak(word, with, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return Reason::none;
      }
    }
  }

  /// The highest number received, from which `infer_sequence` starts.
  [[nodiscard]] std::uint64_t top() const noexcept { return top_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint32_t packets() const noexcept { return packets_; }

 private:
  static constexpr std::uint64_t kBlock = 32;  // numbers in a word
  static constexpr std::uint64_t kBits = 0xffff'ffff;

  struct Place {
    std::size_t index;
    std::uint64_t round;  // modulo 2^32: wraps after at least 2^37 numbers, depending on the ring
    std::uint64_t bit;
  };
  [[nodiscard]] Place place_of(std::uint64_t sequence) const noexcept {
    const std::uint64_t block = sequence / kBlock;
    return {static_cast<std::size_t>(block & ((std::uint64_t{1} << ring_bits_) - 1)), block >> ring_bits_ & kBits,
            std::uint64_t{1} << sequence % kBlock};
  }
  /// The first packet of an SA has number 1 (RFC 4303 §2.2), so 0 is never valid.
  [[nodiscard]] bool lies_before(std::uint64_t sequence) const noexcept {
    const std::uint64_t top = top_.load(std::memory_order_acquire);
    return sequence == 0 || (sequence < top && top - sequence >= packets_);
  }

  std::uint32_t packets_;
  unsigned ring_bits_ = 0;
  std::unique_ptr<std::atomic<std::uint64_t>[]> ring_;
  std::atomic<std::uint64_t> top_ = 0;
};

}  // namespace penstock::ipsec
