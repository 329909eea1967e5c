// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rings that an AF_XDP socket shares with the kernel (Documentation/networking/af_xdp), and the constants that are
// newer than the system's headers may be. A ring has one producer and one consumer, whose positions count on and on.
// One of these is here: it has a position of its own, which the kernel sees when it is published.
//
//     fill, receive:     chunks to receive into ──▶ kernel ──▶ frames
//     send, completion:  frames ──▶ kernel ──▶ chunks whose frames have left

#pragma once

#include <linux/if_xdp.h>

#include <atomic>
#include <cstdint>

namespace penstock::port {

/// linux/if_xdp.h of Linux 6.6: frames may have several chunks, all but the last of which have the option.
inline constexpr std::uint16_t kXdpUseSg = 1U << 4;
inline constexpr std::uint32_t kXdpContinues = 1U << 0;
/// linux/bpf.h of Linux 5.18: the program accepts frames of several chunks.
inline constexpr std::uint32_t kXdpHasFrags = 1U << 5;

template <typename Entry>
class XdpRing {
 public:
  XdpRing() = default;
  /// `memory`: the ring's mapping. `size`: a power of two.
  XdpRing(std::uint8_t* memory, const xdp_ring_offset& offsets, std::uint32_t size) noexcept
      : producer_(reinterpret_cast<std::uint32_t*>(memory + offsets.producer)),
        consumer_(reinterpret_cast<std::uint32_t*>(memory + offsets.consumer)),
        flags_(reinterpret_cast<std::uint32_t*>(memory + offsets.flags)),
        entries_(reinterpret_cast<Entry*>(memory + offsets.desc)),
        size_(size) {}

  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

  // As the producer:
  [[nodiscard]] std::uint32_t room() const noexcept { return size_ - in_use(); }
  /// Entries that the kernel has not consumed, or not said so.
  [[nodiscard]] std::uint32_t in_use() const noexcept { return own_ - read(consumer_); }
  /// Requires room.
  void put(const Entry& entry) noexcept { entries_[own_++ & (size_ - 1)] = entry; }
  void publish() noexcept { write(producer_, own_); }
  /// Up to where the kernel has consumed.
  [[nodiscard]] std::uint32_t consumed() const noexcept { return read(consumer_); }
  /// An entry that was put there, and not yet overwritten.
  [[nodiscard]] const Entry& at(std::uint32_t position) const noexcept { return entries_[position & (size_ - 1)]; }
  /// The kernel waits for a system call before it goes on.
  [[nodiscard]] bool needs_wakeup() const noexcept { return (read(flags_) & XDP_RING_NEED_WAKEUP) != 0; }

  // As the consumer:
  [[nodiscard]] std::uint32_t available() const noexcept { return read(producer_) - own_; }
  /// Requires `ahead` < `available()`.
  [[nodiscard]] const Entry& peek(std::uint32_t ahead = 0) const noexcept { return at(own_ + ahead); }
  void pop(std::uint32_t entries = 1) noexcept { own_ += entries; }
  void release() noexcept { write(consumer_, own_); }

 private:
  [[nodiscard]] static std::uint32_t read(std::uint32_t* word) noexcept {
    return std::atomic_ref(*word).load(std::memory_order_acquire);
  }
  static void write(std::uint32_t* word, std::uint32_t value) noexcept {
    std::atomic_ref(*word).store(value, std::memory_order_release);
  }

  std::uint32_t* producer_ = nullptr;
  std::uint32_t* consumer_ = nullptr;
  std::uint32_t* flags_ = nullptr;
  Entry* entries_ = nullptr;
  std::uint32_t size_ = 0;
  std::uint32_t own_ = 0;
};

/// Chunks are numbers of bytes from the start of the UMEM.
using XdpChunkRing = XdpRing<std::uint64_t>;
using XdpFrameRing = XdpRing<xdp_desc>;

}  // namespace penstock::port
