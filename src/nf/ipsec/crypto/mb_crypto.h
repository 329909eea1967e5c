// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// CryptoJobs on the CPU: intel-ipsec-mb works on the packets of a burst side by side in the lanes of vector registers.
// The same bytes as crypto_core.h's seal and open.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/crypto/keys.h"

namespace penstock::ipsec {

/// The keys of all SAs in the form that intel-ipsec-mb wants them in on this machine. Immutable while packets come;
/// shared by all workers; wiped when it goes.
class MbKeys {
 public:
  struct Key;
  /// Of material that fits, by SA.
  explicit MbKeys(std::span<const KeyMaterial> sas);
  MbKeys(const MbKeys&) = delete;
  MbKeys& operator=(const MbKeys&) = delete;
  ~MbKeys();

  [[nodiscard]] const Key& operator[](std::uint32_t sa) const noexcept;
  void set_iv_base(std::uint32_t sa, std::uint64_t iv_base) noexcept;

 private:
  std::vector<Key> keys_;
};

/// "AVX-512": what of the processor the library uses.
[[nodiscard]] std::string_view mb_processor_features();

/// One worker's.
class MbCrypto {
 public:
  static constexpr std::size_t kMostJobs = 128;

  /// Borrows the keys.
  explicit MbCrypto(const MbKeys& keys);
  MbCrypto(const MbCrypto&) = delete;
  MbCrypto& operator=(const MbCrypto&) = delete;
  ~MbCrypto();

  /// A packet's job, and what its offsets count from.
  struct Work {
    CryptoJob job;
    std::uint8_t* base;
  };
  /// At most kMostJobs. Encrypts and authenticates in place.
  void seal(std::span<const Work> work) noexcept;
  /// At most kMostJobs. `authentic[i]`: the ICV is right, and the text deciphered. Where it is not, the text is of no
  /// use any more.
  void open(std::span<const Work> work, std::span<bool> authentic) noexcept;

 private:
  struct Slot;
  struct Manager;
  void run(std::span<const Work> work, bool seals) noexcept;
  void prepare_gcm(const Work& work, Slot& slot, bool seals) noexcept;
  void run_gcm(const Work& work, Slot& slot, bool seals) noexcept;
  void run_burst(std::span<const Work> work, std::span<const std::uint32_t> which, bool seals) noexcept;

  const MbKeys& keys_;
  std::unique_ptr<Manager> manager_;
  std::unique_ptr<Slot[]> slots_;  // by job of a burst
};

}  // namespace penstock::ipsec
