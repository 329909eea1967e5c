// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// CryptoJobs on the CPU: intel-ipsec-mb processes the packets of a burst side by side in the lanes of vector registers.
// Produces the same bytes as `seal` and `open` of crypto_core.h.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nf/ipsec/crypto/crypto_job.h"
#include "nf/ipsec/crypto/keys.h"

namespace penstock::ipsec {

/// The keys of all SAs in the form that intel-ipsec-mb needs on this machine. Immutable while packets flow; shared by
/// all workers; wiped on destruction.
class MbKeys {
 public:
  struct Key;
  /// By SA. Requires material that `fits`.
  explicit MbKeys(std::span<const KeyMaterial> sas);
  MbKeys(const MbKeys&) = delete;
  MbKeys& operator=(const MbKeys&) = delete;
  ~MbKeys();

  [[nodiscard]] const Key& operator[](std::uint32_t sa) const noexcept;
  void set_iv_base(std::uint32_t sa, std::uint64_t iv_base) noexcept;

 private:
  std::vector<Key> keys_;
};

/// The processor features that the library uses: "AVX-512".
[[nodiscard]] std::string_view mb_processor_features();

/// Owned by one worker.
class MbCrypto {
 public:
  static constexpr std::size_t kMostJobs = 128;

  /// Borrows the keys.
  explicit MbCrypto(const MbKeys& keys);
  MbCrypto(const MbCrypto&) = delete;
  MbCrypto& operator=(const MbCrypto&) = delete;
  ~MbCrypto();

  /// A packet's job, and the base that its offsets count from.
  struct Work {
    CryptoJob job;
    std::uint8_t* base;
  };
  /// At most kMostJobs. Encrypts and authenticates in place.
  void seal(std::span<const Work> work) noexcept;
  /// At most kMostJobs. `authentic[i]`: the ICV is correct and the text is decrypted. Otherwise the text is unusable.
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
  std::unique_ptr<Slot[]> slots_;  // by job of the burst
};

}  // namespace penstock::ipsec
