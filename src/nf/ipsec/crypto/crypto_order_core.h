// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a device's threads share the jobs of a batch. A counting sort orders the jobs first by algorithm and then by
// length, longest first. So the threads of a warp do the same work for about as long, and small packets do not wait for
// large ones. The warps of a kernel then take packets in that order. How many a warp takes depends on how many threads
// its algorithm uses per packet.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/algorithms.h"
#include "nf/ipsec/crypto/crypto_job.h"

namespace penstock::ipsec {

/// How a packet's ICV is computed.
enum class Proof : std::uint8_t { none, null_icv, sha1, sha256, ghash };

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Proof proof_of(Cipher cipher, Integrity integrity) noexcept {
  if (cipher == Cipher::aes_gcm) return Proof::ghash;
  switch (integrity) {
    case Integrity::digest_null: return Proof::null_icv;
    case Integrity::hmac_sha1_96: return Proof::sha1;
    case Integrity::hmac_sha256_128:
    case Integrity::hmac_sha256_96: return Proof::sha256;
    case Integrity::none: break;
  }
  return Proof::none;
}

/// A job class is a pair of cipher and proof, in this order: null, CBC and CTR with each proof except GHASH, then GCM.
inline constexpr std::uint32_t kProofsOfClass = 4;
inline constexpr std::uint32_t kGcmClass = 3 * kProofsOfClass;
inline constexpr std::uint32_t kJobClasses = kGcmClass + 1;

[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t job_class(Cipher cipher, Integrity integrity) noexcept {
  if (cipher == Cipher::aes_gcm) return kGcmClass;
  return static_cast<std::uint32_t>(cipher) * kProofsOfClass + static_cast<std::uint32_t>(proof_of(cipher, integrity));
}
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Cipher cipher_of_class(std::uint32_t job_class) noexcept {
  return static_cast<Cipher>(job_class / kProofsOfClass);
}
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr Proof proof_of_class(std::uint32_t job_class) noexcept {
  return job_class == kGcmClass ? Proof::ghash : static_cast<Proof>(job_class % kProofsOfClass);
}

/// Bins of 64 bytes, a hash's block size, up to 2 KiB, then of 2 KiB; the longest jobs come first.
inline constexpr std::uint32_t kLengthBins = 64;
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t length_bin(std::uint32_t bytes) noexcept {
  const std::uint32_t fine = bytes / 64;
  const std::uint32_t coarse = 31 + bytes / 2048;
  const std::uint32_t bin = fine < 32 ? fine : coarse;
  return bin < kLengthBins ? kLengthBins - 1 - bin : 0;
}

/// The sort key of a job.
inline constexpr std::uint32_t kSortBins = kJobClasses * kLengthBins;
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t sort_bin(const CryptoJob& job, Cipher cipher,
                                                                    Integrity integrity) noexcept {
  return job_class(cipher, integrity) * kLengthBins + length_bin(job.authenticated_bytes());
}

/// Where each class begins in the sorted order; the last entry is the end.
struct ClassBounds {
  std::uint32_t begin[kJobClasses + 1];
};

/// A warp's packets: positions `first` to `end` in the sorted order, all of one class; empty if `first` equals `end`.
struct WarpWork {
  std::uint32_t job_class;
  std::uint32_t first;
  std::uint32_t end;
};

/// The work of a kernel's warp 0, 1, …. `packets_per_warp` gives the packets that a warp takes of a class, or 0 if
/// another kernel handles the class.
template <typename PacketsPerWarp>
[[nodiscard]] PENSTOCK_HOST_DEVICE WarpWork work_of_warp(const ClassBounds& bounds, std::uint32_t warp,
                                                         const PacketsPerWarp& packets_per_warp) noexcept {
  for (std::uint32_t c = 0; c < kJobClasses; ++c) {
    const std::uint32_t packets = packets_per_warp(c);
    if (packets == 0) continue;
    const std::uint32_t end = bounds.begin[c + 1];
    const std::uint32_t warps = (end - bounds.begin[c] + packets - 1) / packets;
    if (warp < warps) {
      const std::uint32_t first = bounds.begin[c] + warp * packets;
      return {c, first, first + packets < end ? first + packets : end};
    }
    warp -= warps;
  }
  return {kJobClasses, 0, 0};
}

}  // namespace penstock::ipsec
