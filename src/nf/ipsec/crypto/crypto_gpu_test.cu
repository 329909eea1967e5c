// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The kernels must match `seal` and `open` on the host byte for byte, including the bytes between packets.

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "gpu/launch_graph.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/ipsec/crypto/crypto.h"
#include "nf/ipsec/crypto/crypto_core.h"
#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

/// SAs and their packets, one after another, with and without gaps.
class CryptoBatch {
 public:
  explicit CryptoBatch(std::uint64_t seed) : draw_(seed) {
    for (const KeyMaterial& material : draw_.every_algorithm()) keys_.push_back(expanded(material));
  }

  [[nodiscard]] const std::vector<SaKeys>& keys() const { return keys_; }
  [[nodiscard]] const std::vector<CryptoJob>& jobs() const { return jobs_; }
  [[nodiscard]] RandomCrypto& draw() { return draw_; }

  void add(std::uint32_t sa, std::uint32_t text_bytes, std::uint32_t gap) {
    const SaKeys& keys = keys_[sa];
    if (keys.cipher == Cipher::aes_cbc) text_bytes = text_bytes / kBlockBytes * kBlockBytes;
    jobs_.push_back(job_of(keys, sa, end_ + gap, text_bytes, draw_.number()));
    end_ = jobs_.back().esp + packet_bytes(jobs_.back());
  }
  void add_none() { jobs_.emplace_back(); }
  void shuffle() {
    for (std::size_t i = jobs_.size(); i > 1; --i) {
      std::swap(jobs_[i - 1], jobs_[draw_.below(static_cast<std::uint32_t>(i))]);
    }
  }
  [[nodiscard]] Bytes frames() { return draw_.bytes(end_ + 64); }

 private:
  RandomCrypto draw_;
  std::vector<SaKeys> keys_;
  std::vector<CryptoJob> jobs_;
  std::uint32_t end_ = 32;
};

class Device {
 public:
  Device(const std::vector<SaKeys>& keys, const std::vector<CryptoJob>& jobs, std::uint32_t multiprocessors = 0)
      : keys_(keys), jobs_(std::span(jobs)), scratch_(jobs.size(), multiprocessors) {}

  Bytes seal(const Bytes& frames) {
    gpu::DeviceBuffer<std::uint8_t> device{std::span(frames)};
    EXPECT_TRUE(
        enqueue_seal(jobs_.data(), static_cast<std::uint32_t>(jobs_.size()), keys_, device.data(), scratch_, stream_));
    stream_.wait();
    return device.to_host();
  }

  Bytes open(const Bytes& frames, Bytes& results) {
    gpu::DeviceBuffer<std::uint8_t> device{std::span(frames)};
    const Bytes unwritten(jobs_.size(), 7);
    gpu::DeviceBuffer<std::uint8_t> opened{std::span(unwritten)};
    EXPECT_TRUE(enqueue_open(jobs_.data(), static_cast<std::uint32_t>(jobs_.size()), keys_, device.data(),
                             opened.data(), scratch_, stream_));
    stream_.wait();
    results = opened.to_host();
    return device.to_host();
  }

 private:
  gpu::Stream stream_;
  DeviceKeys keys_;
  gpu::DeviceBuffer<CryptoJob> jobs_;
  CryptoScratch scratch_;
};

Bytes sealed_on_host(const CryptoBatch& batch, Bytes frames) {
  for (const CryptoJob& job : batch.jobs()) {
    if (job.sa != kNoSa) seal(job, batch.keys()[job.sa], frames.data());
  }
  return frames;
}

Bytes opened_on_host(const CryptoBatch& batch, Bytes frames, Bytes& results) {
  results.clear();
  for (const CryptoJob& job : batch.jobs()) {
    results.push_back(job.sa != kNoSa && open(job, batch.keys()[job.sa], frames.data()) ? 1 : 0);
  }
  return frames;
}

/// The first position at which two batches differ, for failure messages.
std::string difference(const CryptoBatch& batch, const Bytes& device, const Bytes& host) {
  const auto [at, unused] = std::ranges::mismatch(device, host);
  if (at == device.end()) return "";
  const auto offset = static_cast<std::uint32_t>(at - device.begin());
  for (const CryptoJob& job : batch.jobs()) {
    if (job.sa == kNoSa || offset < job.esp || offset >= job.esp + packet_bytes(job)) continue;
    const SaKeys& keys = batch.keys()[job.sa];
    return "byte " + std::to_string(offset - job.esp) + " of a packet at " + std::to_string(job.esp) + " with " +
           std::to_string(job.text_bytes) + " bytes of text, cipher " + std::to_string(static_cast<int>(keys.cipher)) +
           " of " + std::to_string(keys.rounds) + " rounds, integrity " +
           std::to_string(static_cast<int>(keys.integrity)) + (keys.esn ? ", ESN" : "");
  }
  return "byte " + std::to_string(offset) + ", of no packet";
}

/// Seals and opens on both sides; then opens again with some packets modified.
void compare(CryptoBatch& batch, std::uint32_t multiprocessors = 0) {
  Device device(batch.keys(), batch.jobs(), multiprocessors);
  const Bytes frames = batch.frames();
  const Bytes sealed = sealed_on_host(batch, frames);
  ASSERT_EQ(difference(batch, device.seal(frames), sealed), "");

  Bytes changed = sealed;
  for (const CryptoJob& job : batch.jobs()) {
    if (job.sa == kNoSa || batch.draw().below(4) != 0) continue;
    const std::uint32_t bit = batch.draw().below(8 * packet_bytes(job));
    std::uint8_t& byte = changed[job.esp + bit / 8];
    byte = static_cast<std::uint8_t>(byte ^ 1U << (bit % 8));
  }
  for (const Bytes& received : {sealed, changed}) {
    Bytes results;
    Bytes expected_results;
    const Bytes expected = opened_on_host(batch, received, expected_results);
    ASSERT_EQ(difference(batch, device.open(received, results), expected), "");
    ASSERT_EQ(results, expected_results);
  }
}

TEST(CryptoOnDevice, IsThatOfTheHostAtEveryLength) {
  for (std::uint32_t first = 0; first < 2000; first += 250) {
    CryptoBatch batch(first + 1);
    for (std::uint32_t bytes = first; bytes < first + 250; ++bytes) {
      for (std::uint32_t sa = 0; sa < batch.keys().size(); sa += 1 + batch.draw().below(5)) {
        batch.add(sa, bytes, batch.draw().below(20));
      }
    }
    compare(batch);
    if (HasFatalFailure()) return;
  }
}

TEST(CryptoOnDevice, IsThatOfTheHostAtEveryAlignmentWithEveryAlgorithm) {
  CryptoBatch batch(10);
  for (std::uint32_t sa = 0; sa < batch.keys().size(); ++sa) {
    for (std::uint32_t gap = 0; gap < 16; ++gap) {
      for (const std::uint32_t bytes : {0U, 1U, 15U, 16U, 31U, 47U, 64U, 130U, 255U, 513U}) batch.add(sa, bytes, gap);
    }
  }
  compare(batch);
}

TEST(CryptoOnDevice, IsThatOfTheHostWithAllSasAndSizesMixed) {
  CryptoBatch batch(11);
  for (int i = 0; i < 6000; ++i) {
    const auto sa = batch.draw().below(static_cast<std::uint32_t>(batch.keys().size()));
    switch (batch.draw().below(8)) {
      case 0: batch.add_none(); break;
      case 1: batch.add(sa, batch.draw().below(9000), batch.draw().below(40)); break;
      case 2:
      case 3: batch.add(sa, batch.draw().below(100), batch.draw().below(40)); break;
      default: batch.add(sa, batch.draw().below(1500), 2); break;
    }
  }
  batch.shuffle();
  compare(batch);
}

TEST(CryptoOnDevice, IsThatOfTheHostInBatchesOfEverySize) {
  for (const int packets : {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025}) {
    for (const bool alike : {true, false}) {
      CryptoBatch batch(static_cast<std::uint64_t>(packets));
      const auto sas = static_cast<std::uint32_t>(batch.keys().size());
      const std::uint32_t one = batch.draw().below(sas);
      for (int i = 0; i < packets; ++i)
        batch.add(alike ? one : batch.draw().below(sas), 100 + batch.draw().below(200), 2);
      compare(batch);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CryptoOnDevice, IsThatOfTheHostWithAnyShareOfTheDevice) {
  for (const std::uint32_t multiprocessors : {1U, 2U, 7U, 33U, 10'000U}) {
    CryptoBatch batch(multiprocessors);
    for (int i = 0; i < 5000; ++i) {  // more than the proofs' threads on one multiprocessor, of each kind
      const auto sa = batch.draw().below(static_cast<std::uint32_t>(batch.keys().size()));
      if (batch.draw().below(20) == 0) batch.add_none();
      batch.add(sa, batch.draw().below(600), 2);
    }
    compare(batch, multiprocessors);
    if (HasFatalFailure()) return;
  }
}

TEST(CryptoOnDevice, LeavesABatchWithoutWorkAsItIs) {
  CryptoBatch batch(12);
  for (int i = 0; i < 40; ++i) batch.add_none();
  compare(batch);
  Device device(batch.keys(), {});
  const Bytes frames = batch.frames();
  EXPECT_EQ(device.seal(frames), frames);
}

TEST(CryptoOnDevice, TakesPacketsAsLongAsThereAre) {
  CryptoBatch batch(13);
  for (std::uint32_t sa = 0; sa < batch.keys().size(); ++sa) batch.add(sa, 65'000, 2);
  compare(batch);
}

TEST(CryptoOnDevice, MayBeCollectedIntoAGraph) {
  CryptoBatch batch(14);
  for (std::uint32_t sa = 0; sa < batch.keys().size(); ++sa) batch.add(sa, 200, 2);
  const Bytes frames = batch.frames();
  const DeviceKeys keys(batch.keys());
  const gpu::DeviceBuffer<CryptoJob> jobs{std::span(batch.jobs())};
  CryptoScratch scratch(batch.jobs().size());
  gpu::DeviceBuffer<std::uint8_t> device{std::span(frames)};
  gpu::DeviceBuffer<std::uint8_t> results(batch.jobs().size());
  const gpu::Stream stream;
  gpu::LaunchGraph graph;
  const auto count = static_cast<std::uint32_t>(batch.jobs().size());
  ASSERT_TRUE(gpu::collect_launches(stream));
  EXPECT_TRUE(enqueue_seal(jobs.data(), count, keys, device.data(), scratch, stream));
  EXPECT_TRUE(enqueue_open(jobs.data(), count, keys, device.data(), results.data(), scratch, stream));
  ASSERT_TRUE(graph.launch(stream));
  stream.wait();
  Bytes expected_results;
  const Bytes expected = opened_on_host(batch, sealed_on_host(batch, frames), expected_results);
  EXPECT_EQ(difference(batch, device.to_host(), expected), "");
  EXPECT_EQ(results.to_host(), expected_results);
}

TEST(DeviceKeys, NeedNoKernelThatNoSaHas) {
  KeyMaterial material;
  material.cipher = Cipher::aes_ctr;
  material.cipher_key = Secret{Bytes(16)};
  material.integrity = Integrity::hmac_sha1_96;
  const DeviceKeys keys(std::vector{expanded(material)});
  EXPECT_TRUE(keys.needs().counter && keys.needs().sha1);
  EXPECT_FALSE(keys.needs().cbc || keys.needs().sha256 || keys.needs().ghash);
}

}  // namespace
}  // namespace penstock::ipsec
