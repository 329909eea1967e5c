// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a device's threads share the jobs of a batch. A counting sort puts the jobs in order, first by their algorithms
// and then by their length, the longest first: so the threads of a warp do the same for as long, and small packets do
// not wait for large ones. A kernel's warps then take packets in that order, so many each as its algorithm gives
// threads to a packet.

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/ipsec/crypto/algorithms.h"
#include "nf/ipsec/crypto/crypto_job.h"

namespace penstock::ipsec {

/// What an ICV costs.
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

/// The classes of jobs are the pairs of cipher and proof, in this order: null, CBC and CTR with each proof but GHASH,
/// and GCM.
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

/// Steps of 64 bytes, what a hash takes at once, up to 2 KiB, and of 2 KiB from there on; the longest first.
inline constexpr std::uint32_t kLengthBins = 64;
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t length_bin(std::uint32_t bytes) noexcept {
  const std::uint32_t fine = bytes / 64;
  const std::uint32_t coarse = 31 + bytes / 2048;
  const std::uint32_t bin = fine < 32 ? fine : coarse;
  return bin < kLengthBins ? kLengthBins - 1 - bin : 0;
}

/// By what a job is sorted.
inline constexpr std::uint32_t kSortBins = kJobClasses * kLengthBins;
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t sort_bin(const CryptoJob& job, Cipher cipher,
                                                                    Integrity integrity) noexcept {
  return job_class(cipher, integrity) * kLengthBins + length_bin(job.authenticated_bytes());
}

/// Where each class begins in the order, and behind the last, where the order ends.
struct ClassBounds {
  std::uint32_t begin[kJobClasses + 1];
};

/// A warp's packets: places `first` to `end` of the order, all of one class; none where `first` is `end`.
struct WarpWork {
  std::uint32_t job_class;
  std::uint32_t first;
  std::uint32_t end;
};

/// Of warp 0, 1, … of a kernel. `packets_per_warp` says how many packets of a class a warp takes: 0 where the class is
/// another kernel's.
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
