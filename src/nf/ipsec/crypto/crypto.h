// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The ciphers on a device: kernels that process an array of jobs in device memory. Users need no CUDA header. A batch's
// jobs are sorted first (crypto_order_core.h), and all kernels follow that order. Nothing waits or allocates, and the
// enqueued work can be captured in a CUDA graph.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/crypto/crypto_order_core.h"
#include "nf/ipsec/crypto/keys.h"

namespace penstock::ipsec {

/// Which kernels the SAs need; the others are not launched.
struct CryptoNeeds {
  bool cbc = false;
  bool counter = false;  // CTR and GCM
  bool sha1 = false;
  bool sha256 = false;
  bool ghash = false;
};
[[nodiscard]] CryptoNeeds needs_of(std::span<const SaKeys> keys) noexcept;

/// The keys of a set of SAs in the memory of the device that was current at construction; wiped on destruction. Batches
/// that use them must have finished by then.
class DeviceKeys {
 public:
  /// Throws CudaError.
  explicit DeviceKeys(std::span<const SaKeys> keys) : keys_(keys), needs_(needs_of(keys)) {}
  DeviceKeys(DeviceKeys&&) = default;
  DeviceKeys& operator=(DeviceKeys&&) = delete;
  ~DeviceKeys();

  [[nodiscard]] const SaKeys* data() const noexcept { return keys_.data(); }
  [[nodiscard]] const CryptoNeeds& needs() const noexcept { return needs_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return keys_.size_bytes(); }

 private:
  gpu::DeviceBuffer<SaKeys> keys_;
  CryptoNeeds needs_;
};

/// Scratch memory for one batch in flight, on the device that was current at construction.
class CryptoScratch {
 public:
  /// For batches of at most `packets`. Kernels fill at most `multiprocessors`, as in StageUse. Throws CudaError.
  explicit CryptoScratch(std::size_t packets, std::uint32_t multiprocessors = 0);

  /// Device pointers for kernels.
  struct View {
    std::uint32_t* order;  // job indices, sorted
    std::uint32_t* ranks;  // by job: its bin, and its position within the bin
    ClassBounds* bounds;
  };
  [[nodiscard]] View view() noexcept { return {order_.data(), ranks_.data(), bounds_.data()}; }
  [[nodiscard]] std::size_t packets() const noexcept { return order_.size(); }

  /// Limits on the blocks per launch.
  struct MostBlocks {
    std::uint32_t multiprocessors = 0;  // for ciphers: their tables limit the number of blocks per multiprocessor
    std::uint32_t sha1 = 0;
    std::uint32_t sha256 = 0;
    std::uint32_t ghash = 0;
  };
  [[nodiscard]] const MostBlocks& most_blocks() const noexcept { return most_blocks_; }

 private:
  gpu::DeviceBuffer<std::uint32_t> order_;
  gpu::DeviceBuffer<std::uint32_t> ranks_;
  gpu::DeviceBuffer<ClassBounds> bounds_;
  MostBlocks most_blocks_;
};

/// The most packets in a batch: positions within a bin have 20 bits.
inline constexpr std::size_t kMostCryptoJobs = std::size_t{1} << 20;

/// `jobs`, `base` and `results` are device memory. A job's packet must not be accessed by others meanwhile; up to 15
/// bytes before and after it are read too. Jobs with kNoSa are skipped. `count` is at most the scratch's packets. Each
/// batch in flight needs a scratch of its own.

/// Same result as `seal` of crypto_core.h, byte for byte. False if the driver refuses the work.
[[nodiscard]] bool enqueue_seal(const CryptoJob* jobs, std::uint32_t count, const DeviceKeys& keys, std::uint8_t* base,
                                CryptoScratch& scratch, const gpu::Stream& stream) noexcept;

/// Same result as `open`: results[i] is 1 if job i was opened, and 0 if it was refused or skipped.
[[nodiscard]] bool enqueue_open(const CryptoJob* jobs, std::uint32_t count, const DeviceKeys& keys, std::uint8_t* base,
                                std::uint8_t* results, CryptoScratch& scratch, const gpu::Stream& stream) noexcept;

}  // namespace penstock::ipsec
