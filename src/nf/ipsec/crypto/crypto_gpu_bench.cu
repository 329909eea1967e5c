// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Throughput of the crypto kernels for packets that stay in device memory. A packet is the text between IV and ICV; the
// rate counts that text. Batches of `packets` rotate over several streams, as in a chain. Time is measured on the host,
// from the first launch to the end of the last.
//
//   seal/ALGORITHM, open/ALGORITHM   axes: bytes of a packet's text, packets of a batch, batches at once
//   seal/mixed, open/mixed           the same with SAs of all the algorithms, and sizes from 40 bytes to the axis's

#include <benchmark/benchmark.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/ipsec/crypto/crypto.h"
#include "nf/ipsec/crypto/random_crypto_for_test.h"

namespace penstock::ipsec {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 8;  // passes over all batches per measurement

struct Algorithm {
  const char* name;
  Cipher cipher;
  std::size_t key_bytes;
  Integrity integrity;
};

constexpr Algorithm kAlgorithms[] = {
    {"aes128_ctr_sha1", Cipher::aes_ctr, 16, Integrity::hmac_sha1_96},
    {"aes128_ctr_sha256", Cipher::aes_ctr, 16, Integrity::hmac_sha256_128},
    {"aes128_ctr", Cipher::aes_ctr, 16, Integrity::none},
    {"aes256_ctr_sha1", Cipher::aes_ctr, 32, Integrity::hmac_sha1_96},
    {"aes128_cbc_sha1", Cipher::aes_cbc, 16, Integrity::hmac_sha1_96},
    {"aes128_cbc", Cipher::aes_cbc, 16, Integrity::none},
    {"aes256_cbc_sha256", Cipher::aes_cbc, 32, Integrity::hmac_sha256_128},
    {"aes128_gcm", Cipher::aes_gcm, 16, Integrity::none},
    {"aes256_gcm", Cipher::aes_gcm, 32, Integrity::none},
    {"null_sha1", Cipher::null, 0, Integrity::hmac_sha1_96},
    {"null_sha256", Cipher::null, 0, Integrity::hmac_sha256_128},
};

SaKeys keys_of(const Algorithm& algorithm, RandomCrypto& draw) {
  KeyMaterial material;
  material.cipher = algorithm.cipher;
  material.cipher_key = Secret{draw.bytes(algorithm.key_bytes)};
  material.integrity = algorithm.integrity;
  if (icv_bytes(algorithm.integrity) != 0) material.integrity_key = Secret{draw.bytes(20)};
  material.icv_bytes = 16;
  return expanded(material);
}

bool no_gpu(benchmark::State& state) {
  static const gpu::DeviceList devices = gpu::list_devices();
  if (devices.availability == gpu::Availability::kUsable) return false;
  state.SkipWithError(devices.reason.c_str());
  return true;
}

/// A batch in flight: packets aligned as in a chain, the ESP header two bytes after a multiple of sixteen.
struct InFlight {
  explicit InFlight(std::span<const CryptoJob> host_jobs, std::size_t bytes)
      : jobs(host_jobs), frames(bytes), results(host_jobs.size()), scratch(host_jobs.size()) {
    gpu::check(cudaMemset(frames.data(), 0x5a, bytes));
  }

  gpu::Stream stream;
  gpu::DeviceBuffer<CryptoJob> jobs;
  gpu::DeviceBuffer<std::uint8_t> frames;
  gpu::DeviceBuffer<std::uint8_t> results;
  CryptoScratch scratch;
};

/// 64 SAs in rotation, each algorithm in turn.
void protect(benchmark::State& state, std::span<const Algorithm> algorithms, bool out, bool mixed_sizes) {
  if (no_gpu(state)) return;
  const auto text = static_cast<std::uint32_t>(state.range(0));
  const auto packets = static_cast<std::uint32_t>(state.range(1));
  const auto at_once = static_cast<std::size_t>(state.range(2));
  RandomCrypto draw(1);
  std::vector<SaKeys> sas;
  for (int i = 0; i < 64; ++i)
    sas.push_back(keys_of(algorithms[static_cast<std::size_t>(i) % algorithms.size()], draw));

  std::vector<CryptoJob> jobs;
  std::uint64_t text_bytes = 0;
  std::uint32_t at = 2;
  for (std::uint32_t i = 0; i < packets; ++i) {
    const std::uint32_t sa = mixed_sizes ? draw.below(64) : i / 8 % 64;
    std::uint32_t bytes = mixed_sizes ? 40 + draw.below(text - 39) : text;
    bytes = bytes / 16 * 16;
    jobs.push_back(job_of(sas[sa], sa, at, bytes, i));
    text_bytes += bytes;
    at = (at + packet_bytes(jobs.back()) + 15) / 16 * 16 + 2;
  }
  const DeviceKeys keys(sas);
  std::vector<std::unique_ptr<InFlight>> batches;
  for (std::size_t i = 0; i < at_once; ++i) batches.push_back(std::make_unique<InFlight>(jobs, at + 64));

  const auto enqueue = [&](InFlight& batch, bool seals) {
    return seals ? enqueue_seal(batch.jobs.data(), packets, keys, batch.frames.data(), batch.scratch, batch.stream)
                 : enqueue_open(batch.jobs.data(), packets, keys, batch.frames.data(), batch.results.data(),
                                batch.scratch, batch.stream);
  };
  const auto wait = [&] {
    for (const auto& batch : batches) batch->stream.wait();
  };
  // A packet can be opened only once, so each round starts from a copy of the sealed packets, made on the device.
  std::vector<gpu::DeviceBuffer<std::uint8_t>> sealed;
  for (const auto& batch : batches) {
    if (out) break;
    if (!enqueue(*batch, true)) return state.SkipWithError("the driver refuses the work");
    batch->stream.wait();
    sealed.emplace_back(batch->frames.size());
    static_cast<void>(gpu::copy_async(sealed.back().data(), batch->frames.data(), batch->frames.size(), batch->stream));
    batch->stream.wait();
  }

  for (auto _ : state) {
    double seconds = 0;
    for (int round = 0; round < kRounds; ++round) {
      if (!out) {
        for (std::size_t i = 0; i < at_once; ++i) {
          static_cast<void>(
              gpu::copy_async(batches[i]->frames.data(), sealed[i].data(), sealed[i].size(), batches[i]->stream));
        }
        wait();
      }
      const auto start = Clock::now();
      for (const auto& batch : batches) {
        if (!enqueue(*batch, out)) return state.SkipWithError("the driver refuses the work");
      }
      wait();
      seconds += std::chrono::duration<double>(Clock::now() - start).count();
    }
    state.SetIterationTime(seconds);
  }
  gpu::check_launch();
  if (!out) {
    for (const auto& batch : batches) {
      const auto results = batch->results.to_host();
      for (std::uint32_t i = 0; i < packets; ++i) {
        if (results[i] == 0) return state.SkipWithError("a packet was refused");
      }
    }
  }
  const double rounds = static_cast<double>(state.iterations()) * kRounds * static_cast<double>(at_once);
  state.counters["bits_per_second"] =
      benchmark::Counter(8 * rounds * static_cast<double>(text_bytes), benchmark::Counter::kIsRate);
  state.counters["packets_per_second"] = benchmark::Counter(rounds * packets, benchmark::Counter::kIsRate);
}

void add(const std::string& name, std::span<const Algorithm> algorithms, bool out, bool mixed) {
  auto* bench =
      benchmark::RegisterBenchmark(((out ? "seal/" : "open/") + name).c_str(), protect, algorithms, out, mixed)
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond)
          ->ArgNames({"bytes", "packets", "at_once"});
  if (mixed) {
    bench->Args({1472, 4096, 1})->Args({1472, 4096, 16});
    return;
  }
  for (const int bytes : {64, 512, 1472}) bench->Args({bytes, 4096, 16});
  bench->Args({1472, 2048, 1});   // a single batch
  bench->Args({1472, 65536, 8});  // the maximum throughput
}

}  // namespace
}  // namespace penstock::ipsec

int main(int argc, char** argv) {
  using namespace penstock::ipsec;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const bool out : {true, false}) {
    for (const Algorithm& algorithm : kAlgorithms) add(algorithm.name, {&algorithm, 1}, out, false);
    add("mixed", kAlgorithms, out, true);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
