// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Outbound batch:  order_jobs, seal_texts (IVs and ciphers), prove (ICVs, a kernel for each kind).
// Inbound batch:   order_jobs, prove (which compares), open_by_counter, open_cbc.
// Kernels that no SA of the set needs are not launched.
//
// The AES tables are stored in shared memory once per bank (32), so that the lanes of a warp, which look up different
// entries, never conflict. With two tables, of entries and of entries rotated by a byte, an entry takes 256 bytes. So
// an address has the lane's bank in its lowest byte and the looked-up byte above it, which a single instruction
// combines.

#include <cuda_runtime.h>

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "gpu/check.cuh"
#include "gpu/share.cuh"
#include "nf/ipsec/crypto/crypto.h"
#include "nf/ipsec/crypto/crypto_lanes_core.h"

namespace penstock::ipsec {

namespace {

constexpr unsigned kWarp = 32;
constexpr unsigned kOrderThreads = 1024;
constexpr unsigned kCipherThreads = 256;
constexpr unsigned kCipherBlocks = 3;   // per multiprocessor, limited by the tables' size
constexpr unsigned kProofThreads = 64;  // few, so that a small batch spreads over the device

constexpr std::uint32_t kPacketsTogether = kWarp / kLanes;  // packets per warp in kernels whose lanes share packets

constexpr unsigned kRankBits = 20;
static_assert(kMostCryptoJobs == std::size_t{1} << kRankBits && kSortBins <= 1U << (32 - kRankBits));
static_assert(kSortBins <= kOrderThreads);

__device__ const AesTables device_aes_tables = detail::make_aes_tables();

// ---- Tables in shared memory

constexpr unsigned kEntries = 256;
constexpr unsigned kEntryQuads =
    2 * kWarp / 4;  // quads of copies per entry: first those of one table, then the other's
constexpr std::size_t kTableBytes = kEntries * kEntryQuads * sizeof(uint4);

extern __shared__ uint4 shared_table[];

/// Each thread writes the copies of one entry, starting at a different one than its neighbours, to avoid bank
/// conflicts.
__device__ void fill_shared_table(const std::array<std::uint32_t, kEntries>& table) {
  static_assert(kCipherThreads == kEntries);
  const std::uint32_t entry = table.data()[threadIdx.x];
  const std::uint32_t rotated = __byte_perm(entry, 0, 0x2103);
  const auto write = [](std::uint32_t word, unsigned first) {
#pragma unroll
    for (unsigned i = 0; i < kEntryQuads / 2; ++i) {
      const unsigned quad = first + (threadIdx.x + i) % (kEntryQuads / 2);
      shared_table[threadIdx.x * kEntryQuads + quad] = {word, word, word, word};
    }
  };
  write(entry, 0);
  write(rotated, kEntryQuads / 2);
  __syncthreads();
}

/// Byte offset in the table of the entry for byte k of a word, in this lane's bank.
template <int k>
__device__ std::uint32_t entry_offset(std::uint32_t word, std::uint32_t bank) {
  return __byte_perm(word, bank, 0x5504 + (k << 4));
}
constexpr std::uint32_t kSecondTable = kWarp * sizeof(std::uint32_t);

/// Keeps the table's address in a register and adds it before each lookup.
struct AddressedTable {
  std::uint32_t bank;
  std::uint32_t address;

  template <int k>
  __device__ std::uint32_t first(std::uint32_t word) const {
    return load(address + entry_offset<k>(word, bank));
  }
  template <int k>
  __device__ std::uint32_t second(std::uint32_t word) const {
    return load(address + kSecondTable + entry_offset<k>(word, bank));
  }

 private:
  static __device__ std::uint32_t load(std::uint32_t shared_address) {
    std::uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(shared_address));
    return word;
  }
};

/// Makes the table's address part of the lookup instruction. The compiler does this only if the lookups in a loop are
/// the only ones of their kind. If those before the loop were written the same way, it would keep the address in a
/// register for all of them, and each lookup in a round would take one more instruction, a quarter more in total. So
/// lookups before the loop use an address that is opaque to the compiler.
struct SharedTable {
  std::uint32_t bank;

  template <int k>
  __device__ std::uint32_t first(std::uint32_t word) const {
    return *reinterpret_cast<const std::uint32_t*>(table() + entry_offset<k>(word, bank));
  }
  template <int k>
  __device__ std::uint32_t second(std::uint32_t word) const {
    return *reinterpret_cast<const std::uint32_t*>(table() + kSecondTable + entry_offset<k>(word, bank));
  }
  __device__ AddressedTable outside_rounds() const {
    auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared_table));
    asm volatile("" : "+r"(address));
    return {bank, address};
  }

 private:
  static __device__ const char* table() { return reinterpret_cast<const char*>(shared_table); }
};

__device__ SharedTable my_table() { return {static_cast<std::uint32_t>(threadIdx.x % kWarp * sizeof(std::uint32_t))}; }

// ---- Distribution of work

struct Batch {
  const CryptoJob* jobs;
  const SaKeys* keys;
  std::uint8_t* base;
  std::uint8_t* results;  // null when sealing
  CryptoScratch::View scratch;
  std::uint32_t count;
};

/// Calls `packet(job index, lane within the packet)` for this thread's share of the kernel. Consecutive warps are in
/// different blocks, so that a small number of warps spreads over the device.
template <typename PacketsPerWarp, typename Packet>
__device__ void for_my_packets(const Batch& batch, const PacketsPerWarp& packets_per_warp, const Packet& packet) {
  const unsigned lane = threadIdx.x % kWarp;
  for (std::uint32_t warp = blockIdx.x + gridDim.x * (threadIdx.x / kWarp);; warp += gridDim.x * (blockDim.x / kWarp)) {
    const WarpWork work = work_of_warp(*batch.scratch.bounds, warp, packets_per_warp);
    if (work.first == work.end) return;
    const bool together = packets_per_warp(work.job_class) == kPacketsTogether;
    const std::uint32_t place = work.first + (together ? lane / kLanes : lane);
    if (place < work.end) packet(work.job_class, batch.scratch.order[place], lane % kLanes);
    __syncwarp();
  }
}

/// Mask of the threads that share this thread's packet.
__device__ unsigned packet_mask() { return 0xffU << (threadIdx.x % kWarp / kLanes * kLanes); }
static_assert(kLanes == 8);

// ---- Sorting

/// A single block, so that no sums cross launches; its threads loop over the jobs.
__global__ void __launch_bounds__(kOrderThreads) order_jobs(const Batch batch) {
  __shared__ std::uint32_t bins[kSortBins];
  using Scan = cub::BlockScan<std::uint32_t, kOrderThreads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ Scan::TempStorage scan_storage;
  const unsigned lane = threadIdx.x % kWarp;
  if (threadIdx.x < kSortBins) bins[threadIdx.x] = 0;
  __syncthreads();

  for (std::uint32_t first = 0; first < batch.count; first += kOrderThreads) {
    const std::uint32_t i = first + threadIdx.x;
    std::uint32_t bin = kSortBins;
    if (i < batch.count) {
      const CryptoJob job = batch.jobs[i];
      bool opened = false;
      if (job.sa != kNoSa) {
        const SaKeys& keys = batch.keys[job.sa];
        bin = sort_bin(job, keys.cipher, keys.integrity);
        if (!has_proof(keys)) {
          if (batch.results == nullptr) write_null_icv(job, batch.base);
          opened = keys.cipher != Cipher::aes_cbc || job.text_bytes % kBlockBytes == 0;
        }
      }
      if (batch.results != nullptr) batch.results[i] = opened ? 1 : 0;
    }
    // Most packets of a batch are alike: threads of a warp with the same bin are counted with one addition.
    const unsigned alike = __match_any_sync(~0U, bin);
    const unsigned before = __popc(alike & ((1U << lane) - 1));
    std::uint32_t rank = 0;
    if (before == 0 && bin < kSortBins) rank = atomicAdd(&bins[bin], __popc(alike));
    rank = __shfl_sync(~0U, rank, __ffs(static_cast<int>(alike)) - 1) + before;
    if (i < batch.count) batch.scratch.ranks[i] = bin << kRankBits | rank;
  }
  __syncthreads();

  // Start of each bin: the sum of the bins before it.
  const std::uint32_t mine = threadIdx.x < kSortBins ? bins[threadIdx.x] : 0;
  std::uint32_t begin = 0;
  Scan(scan_storage).ExclusiveSum(mine, begin);
  if (threadIdx.x < kSortBins) bins[threadIdx.x] = begin;
  if (threadIdx.x < kSortBins && threadIdx.x % kLengthBins == 0) {
    batch.scratch.bounds->begin[threadIdx.x / kLengthBins] = begin;
  }
  if (threadIdx.x == kSortBins - 1) batch.scratch.bounds->begin[kJobClasses] = begin + mine;
  __syncthreads();

  for (std::uint32_t i = threadIdx.x; i < batch.count; i += kOrderThreads) {
    const std::uint32_t rank = batch.scratch.ranks[i];
    const std::uint32_t bin = rank >> kRankBits;
    if (bin < kSortBins) batch.scratch.order[bins[bin] + (rank & ((1U << kRankBits) - 1))] = i;
  }
}

// ---- Ciphers

__global__ void __launch_bounds__(kCipherThreads, kCipherBlocks) seal_texts(const Batch batch) {
  fill_shared_table(device_aes_tables.encryption);
  const SharedTable table = my_table();
  const auto packets_per_warp = [](std::uint32_t job_class) -> std::uint32_t {
    switch (cipher_of_class(job_class)) {
      case Cipher::aes_cbc: return kWarp;
      case Cipher::aes_ctr:
      case Cipher::aes_gcm: return kPacketsTogether;
      case Cipher::null: break;
    }
    return 0;
  };
  for_my_packets(batch, packets_per_warp, [&](std::uint32_t job_class, std::uint32_t i, std::uint32_t lane) {
    const CryptoJob job = batch.jobs[i];
    const SaKeys& keys = batch.keys[job.sa];
    if (cipher_of_class(job_class) == Cipher::aes_cbc) {
      store_block(batch.base + job.iv(), make_cbc_iv(table, job, keys));
      encrypt_cbc(table, job, keys, batch.base);
    } else {
      const Block iv = make_counter_iv(job, keys);
      if (lane == 0) store_block(batch.base + job.iv(), iv, 8);
      crypt_by_counter_lane(table, job, keys, batch.base, iv, lane);
    }
  });
}

__global__ void __launch_bounds__(kCipherThreads, kCipherBlocks) open_by_counter(const Batch batch) {
  fill_shared_table(device_aes_tables.encryption);
  const SharedTable table = my_table();
  const auto packets_per_warp = [](std::uint32_t job_class) -> std::uint32_t {
    const Cipher cipher = cipher_of_class(job_class);
    return cipher == Cipher::aes_ctr || cipher == Cipher::aes_gcm ? kPacketsTogether : 0;
  };
  for_my_packets(batch, packets_per_warp, [&](std::uint32_t, std::uint32_t i, std::uint32_t lane) {
    if (batch.results[i] == 0) return;
    const CryptoJob job = batch.jobs[i];
    const Block iv = load_block(batch.base + job.iv(), 8);
    crypt_by_counter_lane(table, job, batch.keys[job.sa], batch.base, iv, lane);
  });
}

__global__ void __launch_bounds__(kCipherThreads, kCipherBlocks) open_cbc(const Batch batch) {
  fill_shared_table(device_aes_tables.decryption);
  const SharedTable table = my_table();
  const auto packets_per_warp = [](std::uint32_t job_class) -> std::uint32_t {
    return cipher_of_class(job_class) == Cipher::aes_cbc ? kPacketsTogether : 0;
  };
  for_my_packets(batch, packets_per_warp, [&](std::uint32_t, std::uint32_t i, std::uint32_t lane) {
    if (batch.results[i] == 0) return;
    const CryptoJob job = batch.jobs[i];
    const SaKeys& keys = batch.keys[job.sa];
    CbcLane mine(job, lane);
    for (std::uint32_t stripe = mine.stripes(); stripe-- > 0;) {
      mine.read(table, job, keys, batch.base, stripe);
      __syncwarp(packet_mask());
      mine.write(job, batch.base, stripe);
    }
  });
}

// ---- ICVs

/// Outbound, writes the packet's ICV; inbound, compares it.
__device__ void settle(const Batch& batch, std::uint32_t i, const CryptoJob& job, const SaKeys& keys,
                       const Block& icv) {
  if (batch.results == nullptr) {
    store_block(batch.base + job.icv(), icv, job.icv_bytes);
  } else if (keys.cipher != Cipher::aes_cbc || job.text_bytes % kBlockBytes == 0) {
    batch.results[i] = same_icv(job, batch.base, icv) ? 1 : 0;
  }
}

template <typename Hash, Proof proof>
__global__ void __launch_bounds__(kProofThreads) prove_by_hmac(const Batch batch) {
  const auto packets_per_warp = [](std::uint32_t job_class) -> std::uint32_t {
    return proof_of_class(job_class) == proof ? kWarp : 0;
  };
  for_my_packets(batch, packets_per_warp, [&](std::uint32_t, std::uint32_t i, std::uint32_t) {
    const CryptoJob job = batch.jobs[i];
    const SaKeys& keys = batch.keys[job.sa];
    settle(batch, i, job, keys, hmac_icv<Hash, AlignedMessageBytes>(job, keys, batch.base));
  });
}

__global__ void __launch_bounds__(kProofThreads) prove_by_ghash(const Batch batch) {
  // For a single block per packet, which all lanes of the packet encrypt: they look up the same entries.
  __shared__ std::uint32_t table[256];
  for (unsigned i = threadIdx.x; i < 256; i += kProofThreads) table[i] = device_aes_tables.encryption.data()[i];
  __syncthreads();
  const auto packets_per_warp = [](std::uint32_t job_class) -> std::uint32_t {
    return proof_of_class(job_class) == Proof::ghash ? kPacketsTogether : 0;
  };
  for_my_packets(batch, packets_per_warp, [&](std::uint32_t, std::uint32_t i, std::uint32_t lane) {
    const CryptoJob job = batch.jobs[i];
    const SaKeys& keys = batch.keys[job.sa];
    Block hash = ghash_lane(job, keys, batch.base, lane);
    const unsigned together = packet_mask();
    for (unsigned other = 1; other < kLanes; other *= 2) {
      for (std::uint32_t& word : hash.w) word ^= __shfl_xor_sync(together, word, other);
    }
    const Block tag = gcm_tag(AesTableView{table}, job, keys, batch.base, hash);
    if (lane == 0) settle(batch, i, job, keys, tag);
  });
}

// ---- Launches

struct Launcher {
  const Batch& batch;
  const gpu::Stream& stream;
  CryptoScratch::MostBlocks most;
  bool good = true;

  void operator()(void (*kernel)(Batch), unsigned blocks, unsigned threads, std::size_t shared = 0) noexcept {
    if (!good) return;
    cudaLaunchConfig_t launch{};
    launch.gridDim = blocks;
    launch.blockDim = threads;
    launch.dynamicSmemBytes = shared;
    launch.stream = stream.get();
    good = cudaLaunchKernelEx(&launch, kernel, batch) == cudaSuccess;
  }

  void order() noexcept { (*this)(order_jobs, 1, kOrderThreads); }

  /// One block per warp of work, up to one per multiprocessor of the share. If there is enough work to fill these
  /// blocks, more, up to as many as can be resident.
  void cipher(void (*kernel)(Batch), std::uint32_t packets_per_warp) noexcept {
    const std::uint32_t warps = batch.count / packets_per_warp + kJobClasses;
    const std::uint32_t spread = std::min(warps, most.multiprocessors);
    const std::uint32_t filled = std::min(warps / (kCipherThreads / kWarp), kCipherBlocks * most.multiprocessors);
    (*this)(kernel, std::max(spread, filled), kCipherThreads, kTableBytes);
  }

  void proofs(const CryptoNeeds& needs) noexcept {
    constexpr unsigned kWarps = kProofThreads / kWarp;
    const auto blocks = [&](std::uint32_t packets_per_warp, std::uint32_t most_blocks) {
      return std::min((batch.count / packets_per_warp + kJobClasses) / kWarps + 1, most_blocks);
    };
    if (needs.sha1) (*this)(prove_by_hmac<Sha1, Proof::sha1>, blocks(kWarp, most.sha1), kProofThreads);
    if (needs.sha256) (*this)(prove_by_hmac<Sha256, Proof::sha256>, blocks(kWarp, most.sha256), kProofThreads);
    if (needs.ghash) (*this)(prove_by_ghash, blocks(kPacketsTogether, most.ghash), kProofThreads);
  }
};

}  // namespace

CryptoScratch::CryptoScratch(std::size_t packets, std::uint32_t multiprocessors)
    : order_(packets),
      ranks_(packets),
      bounds_(1),
      most_blocks_{
          gpu::multiprocessors_of_share(multiprocessors),
          gpu::most_blocks_of_share(multiprocessors, prove_by_hmac<Sha1, Proof::sha1>, kProofThreads),
          gpu::most_blocks_of_share(multiprocessors, prove_by_hmac<Sha256, Proof::sha256>, kProofThreads),
          gpu::most_blocks_of_share(multiprocessors, prove_by_ghash, kProofThreads),
      } {
  for (const auto kernel : {seal_texts, open_by_counter, open_cbc}) {
    gpu::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kTableBytes));
  }
}

bool enqueue_seal(const CryptoJob* jobs, std::uint32_t count, const DeviceKeys& keys, std::uint8_t* base,
                  CryptoScratch& scratch, const gpu::Stream& stream) noexcept {
  if (count == 0) return true;
  const Batch batch{jobs, keys.data(), base, nullptr, scratch.view(), count};
  Launcher launch{batch, stream, scratch.most_blocks()};
  launch.order();
  if (keys.needs().counter) {
    launch.cipher(seal_texts, kPacketsTogether);
  } else if (keys.needs().cbc) {
    launch.cipher(seal_texts, kWarp);
  }
  launch.proofs(keys.needs());
  return launch.good;
}

bool enqueue_open(const CryptoJob* jobs, std::uint32_t count, const DeviceKeys& keys, std::uint8_t* base,
                  std::uint8_t* results, CryptoScratch& scratch, const gpu::Stream& stream) noexcept {
  if (count == 0) return true;
  const Batch batch{jobs, keys.data(), base, results, scratch.view(), count};
  Launcher launch{batch, stream, scratch.most_blocks()};
  launch.order();
  launch.proofs(keys.needs());
  if (keys.needs().counter) launch.cipher(open_by_counter, kPacketsTogether);
  if (keys.needs().cbc) launch.cipher(open_cbc, kPacketsTogether);
  return launch.good;
}

}  // namespace penstock::ipsec
