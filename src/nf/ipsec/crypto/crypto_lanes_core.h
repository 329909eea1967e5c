// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The work of one of the kLanes threads that protect a packet together. The lanes process adjacent blocks, so that
// their loads are coalesced. A function ends where the lanes must synchronize.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/crypto_core.h"

namespace penstock::ipsec {

inline constexpr std::uint32_t kLanes = kGhashLanes;

/// A stripe is what the lanes process at once: kRows rows of kLanes consecutive blocks, one block per lane in each row.
inline constexpr std::uint32_t kRows = 4;
inline constexpr std::uint32_t kStripeBlocks = kLanes * kRows;

namespace detail {

/// Processes this lane's blocks of `rows` rows of a stripe; `first` is its block in the first row.
template <int rows, typename Table, typename OutsideRounds>
PENSTOCK_HOST_DEVICE void crypt_rows(const Table& encryption, const OutsideRounds& outside_rounds,
                                     const AesCounter& counter, const CryptoJob& job, const SaKeys& keys,
                                     std::uint8_t* base, std::uint32_t first) noexcept {
  Block pads[rows];
  unrolled<rows>([&](auto row) {
    pads[row] = counter.after_two_rounds(outside_rounds, first_count(keys.cipher) + first + row * kLanes);
  });
  aes_encrypt_from(encryption, keys.encryption, 3, keys.rounds, pads);
  const std::uint32_t blocks = blocks_of(job.text_bytes);
  unrolled<rows>([&](auto row) {
    const std::uint32_t b = first + row * kLanes;
    if (b >= blocks) return;
    std::uint8_t* at = base + job.text() + b * kBlockBytes;
    const std::uint32_t bytes = bytes_of_block(job, b);
    store_block(at, load_block(at, bytes) ^ pads[row], bytes);
  });
}

}  // namespace detail

/// Encrypts or decrypts with AES-CTR, also as part of AES-GCM. The text's block count must fit in two bytes.
template <typename Table>
PENSTOCK_HOST_DEVICE void crypt_by_counter_lane(const Table& encryption, const CryptoJob& job, const SaKeys& keys,
                                                std::uint8_t* base, const Block& iv, std::uint32_t lane) noexcept {
  const std::uint32_t blocks = blocks_of(job.text_bytes);
  const auto outside_rounds = encryption.outside_rounds();
  const AesCounter counter(outside_rounds, keys.encryption, counter_block(keys, iv, 0));
  for (std::uint32_t stripe = 0; stripe < blocks; stripe += kStripeBlocks) {
    const std::uint32_t left = blocks - stripe;
    if (left > 2 * kLanes) {
      detail::crypt_rows<4>(encryption, outside_rounds, counter, job, keys, base, stripe + lane);
    } else if (left > kLanes) {
      detail::crypt_rows<2>(encryption, outside_rounds, counter, job, keys, base, stripe + lane);
    } else {
      detail::crypt_rows<1>(encryption, outside_rounds, counter, job, keys, base, stripe + lane);
    }
  }
}

/// AES-CBC decryption in two steps per stripe, from the last stripe to the first, because each block needs the previous
/// ciphertext block. All lanes must have finished `read` before any of them calls `write`.
class CbcLane {
 public:
  PENSTOCK_HOST_DEVICE CbcLane(const CryptoJob& job, std::uint32_t lane) noexcept : lane_(lane) {
    blocks_ = job.text_bytes / kBlockBytes;
  }

  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t stripes() const noexcept {
    return (blocks_ + kStripeBlocks - 1) / kStripeBlocks;
  }

  template <typename Table>
  PENSTOCK_HOST_DEVICE void read(const Table& decryption, const CryptoJob& job, const SaKeys& keys,
                                 const std::uint8_t* base, std::uint32_t stripe) noexcept {
    const std::uint8_t* text = base + job.text();
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const std::uint32_t b = block(stripe, row);
      plain_[row] = b < blocks_ ? load_block(text + b * kBlockBytes) : Block{};
    }
    aes_decrypt(decryption, keys.decryption, keys.rounds, plain_);
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const std::uint32_t b = block(stripe, row);
      // The IV directly precedes the text, so this also works for the first block.
      if (b < blocks_) plain_[row] = plain_[row] ^ load_block(text + b * kBlockBytes - kBlockBytes);
    }
  }

  PENSTOCK_HOST_DEVICE void write(const CryptoJob& job, std::uint8_t* base, std::uint32_t stripe) const noexcept {
    for (std::uint32_t row = 0; row < kRows; ++row) {
      const std::uint32_t b = block(stripe, row);
      if (b < blocks_) store_block(base + job.text() + b * kBlockBytes, plain_[row]);
    }
  }

 private:
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t block(std::uint32_t stripe, std::uint32_t row) const noexcept {
    return stripe * kStripeBlocks + row * kLanes + lane_;
  }

  std::uint32_t lane_;
  std::uint32_t blocks_;
  Block plain_[kRows];
};

/// A lane's share of GHASH; the XOR of all lanes' shares is the hash. The blocks are aligned to end at the last lane,
/// with zeros before the first. A lane's blocks are kLanes apart, so it multiplies by the power kLanes of the hash key,
/// except for its last block.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Block ghash_lane(const CryptoJob& job, const SaKeys& keys,
                                                           const std::uint8_t* base, std::uint32_t lane) noexcept {
  const std::uint32_t blocks = ghash_blocks(job);
  const std::uint32_t steps = (blocks + kLanes - 1) / kLanes;
  const std::uint32_t zeros = steps * kLanes - blocks;
  const Block last = load_constant(keys.ghash[kLanes - 1 - lane]);
  Block power = load_constant(keys.ghash[kLanes - 1]);
  Block share{};
  for (std::uint32_t step = 0; step < steps; ++step) {
    const std::uint32_t place = step * kLanes + lane;
    if (place >= zeros) share = share ^ ghash_block(job, keys.esn, base, place - zeros);
    if (step == steps - 1) power = last;
    share = ghash_times(share, power);
  }
  return share;
}

/// Like MessageBytes, but with aligned 16-byte loads, which are issued while the previous bytes are hashed. For threads
/// that each process a packet of their own, whose loads cannot be coalesced. Also reads the bytes that share an aligned
/// 16-byte unit with the message's ends.
class AlignedMessageBytes {
 public:
  PENSTOCK_HOST_DEVICE AlignedMessageBytes(const std::uint8_t* message, std::uint32_t bytes) noexcept
      : end_(message + bytes) {
    skipped_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(message) % kBlockBytes);
    next_ = message - skipped_;
    carried_ = take();
    unrolled<4>([&](auto i) { ahead_[i] = take(); });
  }

  PENSTOCK_HOST_DEVICE void next(std::uint32_t (&words)[16]) noexcept {
    std::uint32_t x[20];
    unrolled<4>([&](auto k) { x[k] = carried_.w[k]; });
    unrolled<16>([&](auto k) { x[4 + k] = ahead_[k / 4].w[k % 4]; });
    carried_ = ahead_[3];
    unrolled<4>([&](auto i) { ahead_[i] = take(); });
    // All indices must be constants, or the array would not stay in registers.
    if ((skipped_ & 8) != 0) unrolled<18>([&](auto i) { x[i] = x[i + 2]; });
    if ((skipped_ & 4) != 0) unrolled<17>([&](auto i) { x[i] = x[i + 1]; });
    const std::uint32_t selector = 0x0123 + 0x1111 * (skipped_ & 3);
    unrolled<16>([&](auto i) { words[i] = select_bytes(x[i], x[i + 1], selector); });
  }

 private:
  PENSTOCK_HOST_DEVICE Block take() noexcept {
    const Block block = next_ < end_ ? load_aligned(next_) : Block{};
    next_ += kBlockBytes;
    return block;
  }

  const std::uint8_t* next_;
  const std::uint8_t* end_;
  std::uint32_t skipped_;
  Block carried_;
  Block ahead_[4];
};

}  // namespace penstock::ipsec
