// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// HMAC (RFC 2104) over the input of an ESP ICV: the packet from the ESP header up to the ICV, followed with ESN by the
// upper half of the sequence number (RFC 4303 §2.2.1). Starts from the SA's precomputed states after the two padded
// keys.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/block_core.h"
#include "nf/ipsec/crypto/sha1_core.h"
#include "nf/ipsec/crypto/sha256_core.h"

namespace penstock::ipsec {

inline constexpr std::uint32_t kShaBlockBytes = 64;

/// Reads a message 64 bytes at a time, as big-endian words. Bytes after the message's end are unspecified.
class MessageBytes {
 public:
  PENSTOCK_HOST_DEVICE MessageBytes(const std::uint8_t* message, std::uint32_t bytes) noexcept
      : at_(message), left_(bytes) {}

  PENSTOCK_HOST_DEVICE void next(std::uint32_t (&words)[16]) noexcept {
    for (unsigned i = 0; i < 16; i += 4) {
      const std::uint32_t bytes = left_ < kBlockBytes ? left_ : kBlockBytes;
      const Block block = swap_bytes(load_block(at_, bytes));
      for (unsigned k = 0; k < 4; ++k) words[i + k] = block.w[k];
      at_ += bytes;
      left_ -= bytes;
    }
  }

 private:
  const std::uint8_t* at_;
  std::uint32_t left_;
};

/// What follows the message, as eight bytes before zeros: with ESN the upper half of the sequence number, then the end
/// bit.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint64_t message_tail(bool esn, std::uint64_t sequence) noexcept {
  constexpr std::uint64_t kEnd = 0x80;
  return esn ? (sequence >> 32) << 32 | kEnd << 24 : kEnd << 56;
}

/// The big-endian word at `offset` of the message followed by `tail`. The message has `bytes` bytes; `word` is what the
/// reader gave for that offset.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t word_with_tail(std::uint32_t word, std::uint32_t offset,
                                                                          std::uint32_t bytes,
                                                                          std::uint64_t tail) noexcept {
  if (offset + 4 <= bytes) return word;
  if (offset < bytes) {
    const std::uint32_t shared = 8 * (bytes - offset);  // bits that belong to the message: 8, 16 or 24
    return (word & ~(0xffffffffU >> shared)) | static_cast<std::uint32_t>(tail >> 32) >> shared;
  }
  const std::uint32_t behind = offset - bytes;
  return behind >= 8 ? 0 : static_cast<std::uint32_t>(tail << (8 * behind) >> 32);
}

/// The digest, in big-endian words. `Reader` is MessageBytes or has the same interface.
template <typename Hash, typename Reader>
PENSTOCK_HOST_DEVICE typename Hash::State hmac(Reader reader, std::uint32_t bytes, bool esn, std::uint64_t sequence,
                                               const typename Hash::State& inner,
                                               const typename Hash::State& outer) noexcept {
  const std::uint64_t tail = message_tail(esn, sequence);
  const std::uint32_t hashed = bytes + (esn ? 4 : 0);
  // After the message come one byte with the end bit, and eight with the length in bits, which includes the padded
  // key's block.
  const std::uint32_t blocks = (hashed + 9 + kShaBlockBytes - 1) / kShaBlockBytes;
  typename Hash::State state = inner;
  std::uint32_t message[16];
  for (std::uint32_t b = 0; b < blocks; ++b) {
    reader.next(message);
    const std::uint32_t offset = b * kShaBlockBytes;
    if (offset + kShaBlockBytes > bytes) {
      unrolled<16>([&](auto i) { message[i] = word_with_tail(message[i], offset + 4 * i, bytes, tail); });
      if (b == blocks - 1) message[15] = 8 * (kShaBlockBytes + hashed);
    }
    Hash::compress(state, message);
  }
  for (int i = 0; i < 16; ++i) {
    message[i] = i < Hash::kStateWords ? state.w[i < Hash::kStateWords ? i : 0] : 0;
  }
  message[Hash::kStateWords] = 0x80000000;
  message[15] = 8 * (kShaBlockBytes + 4 * Hash::kStateWords);
  state = outer;
  Hash::compress(state, message);
  return state;
}

/// The first sixteen bytes of a digest, in packet byte order.
template <typename State>
[[nodiscard]] PENSTOCK_HOST_DEVICE Block digest_bytes(const State& digest) noexcept {
  return swap_bytes(Block{{digest.w[0], digest.w[1], digest.w[2], digest.w[3]}});
}

}  // namespace penstock::ipsec
