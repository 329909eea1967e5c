// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The ciphers on a device: kernels over an array of jobs there. No CUDA header is needed here. A batch's jobs are put
// in order first (crypto_order_core.h), all else follows that order; nothing waits, nothing is allocated, and what is
// enqueued may be collected into a CUDA graph.

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

/// Which kernels the SAs need: the others are not launched.
struct CryptoNeeds {
  bool cbc = false;
  bool counter = false;  // CTR and GCM
  bool sha1 = false;
  bool sha256 = false;
  bool ghash = false;
};
[[nodiscard]] CryptoNeeds needs_of(std::span<const SaKeys> keys) noexcept;

/// The keys of a set of SAs in the memory of the device that is current when they are put there; wiped when destroyed.
/// Batches that use them must be over by then.
class DeviceKeys {
 public:
  /// Throws CudaError.
  explicit DeviceKeys(std::span<const SaKeys> keys) : keys_(keys), needs_(needs_of(keys)) {}
  DeviceKeys(DeviceKeys&&) = default;
  DeviceKeys& operator=(DeviceKeys&&) = delete;
  ~DeviceKeys();

  [[nodiscard]] const SaKeys* data() const noexcept { return keys_.data(); }
  [[nodiscard]] const CryptoNeeds& needs() const noexcept { return needs_; }

 private:
  gpu::DeviceBuffer<SaKeys> keys_;
  CryptoNeeds needs_;
};

/// What one batch in flight needs beside its packets, on the device that was current when it was made.
class CryptoScratch {
 public:
  /// For batches of at most `packets`, by kernels that fill at most `multiprocessors`, as StageUse has it. Throws
  /// CudaError.
  explicit CryptoScratch(std::size_t packets, std::uint32_t multiprocessors = 0);

  /// Pointers that kernels take.
  struct View {
    std::uint32_t* order;  // places of the jobs
    std::uint32_t* ranks;  // of each job: its bin, and how many of the bin come before
    ClassBounds* bounds;
  };
  [[nodiscard]] View view() noexcept { return {order_.data(), ranks_.data(), bounds_.data()}; }
  [[nodiscard]] std::size_t packets() const noexcept { return order_.size(); }

  /// That launches may have.
  struct MostBlocks {
    std::uint32_t multiprocessors = 0;  // of ciphers, whose tables say how many a multiprocessor holds
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

/// The most packets of a batch: a rank has 20 bits.
inline constexpr std::size_t kMostCryptoJobs = std::size_t{1} << 20;

/// What is at `jobs`, `base` and `results` lies on the device. Each job is its SA's, and its packet's bytes are nobody
/// else's; up to 15 bytes before and behind are read with it. Jobs with kNoSa are left out. `count` is at most the
/// scratch's packets, of which there is one for each batch in flight.

/// As `seal` of crypto_core.h does, byte for byte. False when the driver refuses the work.
[[nodiscard]] bool enqueue_seal(const CryptoJob* jobs, std::uint32_t count, const DeviceKeys& keys, std::uint8_t* base,
                                CryptoScratch& scratch, const gpu::Stream& stream) noexcept;

/// As `open` does. results[i] is 1 where job i was opened and 0 where it was refused or left out.
[[nodiscard]] bool enqueue_open(const CryptoJob* jobs, std::uint32_t count, const DeviceKeys& keys, std::uint8_t* base,
                                std::uint8_t* results, CryptoScratch& scratch, const gpu::Stream& stream) noexcept;

}  // namespace penstock::ipsec
