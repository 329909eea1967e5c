// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/device_passes.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "experiments/filter/random_packets.h"
#include "experiments/filter/result_form.h"
#include "gpu/check.cuh"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/green_context.h"
#include "gpu/memory.h"
#include "gpu/share.cuh"

namespace penstock::experiments {
namespace {

using Clock = std::chrono::steady_clock;
using gpu::check;

constexpr std::size_t kMostResultBytes = 4;
constexpr unsigned kWhole = 100;

/// Not on the packet path: if the driver refuses something, the run ends.
void require(bool taken) {
  if (!taken) throw gpu::CudaError(0, "the CUDA driver refuses work: the device's context is lost");
}

tl::unexpected<Errors> refusal(const gpu::CudaError& error) {
  Errors errors(1);
  errors.front().message = error.what();
  return tl::unexpected(std::move(errors));
}

struct StreamDestroyer {
  void operator()(CUstream_st* stream) const noexcept { static_cast<void>(cudaStreamDestroy(stream)); }
};
using OwnedStream = std::unique_ptr<CUstream_st, StreamDestroyer>;

/// Textures of an array of keys: several, if it has more elements than a linear texture can have.
class KeyTextures {
 public:
  KeyTextures(const TupleKey* keys, std::size_t count) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<uint4>();
    check(cudaDeviceGetTexture1DLinearMaxWidth(&most_, &format, gpu::current_device()));
    most_ = most_ / kMostPiece > 0 ? most_ / kMostPiece * kMostPiece : most_ / kWarp * kWarp;
    for (std::size_t first = 0; first < count; first += most_) {
      cudaResourceDesc resource{};
      resource.resType = cudaResourceTypeLinear;
      resource.res.linear.devPtr = const_cast<TupleKey*>(keys + first);
      resource.res.linear.desc = format;
      resource.res.linear.sizeInBytes = std::min(most_, count - first) * sizeof(TupleKey);
      cudaTextureDesc description{};
      description.readMode = cudaReadModeElementType;
      cudaTextureObject_t texture = 0;
      const cudaError_t status = cudaCreateTextureObject(&texture, &resource, &description, nullptr);
      if (status != cudaSuccess) static_cast<void>(cudaGetLastError());  // the caller may go on without textures
      check(status);
      textures_.push_back(texture);
    }
  }
  KeyTextures(const KeyTextures&) = delete;
  KeyTextures& operator=(const KeyTextures&) = delete;
  ~KeyTextures() {
    for (const cudaTextureObject_t texture : textures_) static_cast<void>(cudaDestroyTextureObject(texture));
  }

  [[nodiscard]] std::size_t most() const noexcept { return most_; }  // elements of one texture
  [[nodiscard]] cudaTextureObject_t of(std::size_t first) const noexcept { return textures_[first / most_]; }

 private:
  static constexpr std::size_t kMostPiece = std::size_t{1} << 20;
  std::size_t most_ = 0;
  std::vector<cudaTextureObject_t> textures_;
};

/// Launches on `count` keys at `keys`, one for each texture.
bool enqueue_all(const KeyFilter& filter, const TupleKey* keys, const KeyTextures* textures, std::size_t count,
                 const ResultsAt& results, unsigned block, CUstream_st* stream) noexcept {
  const std::size_t piece = textures != nullptr ? textures->most() : count;
  for (std::size_t first = 0; first < count; first += piece) {
    const KeysAt at{keys + first, textures != nullptr ? textures->of(first) : 0};
    const ResultsAt to{static_cast<std::byte*>(results.memory) + result_bytes(first, results.bits), results.bits};
    const auto some = static_cast<std::uint32_t>(std::min(piece, count - first));
    if (!filter.enqueue(at, some, to, block, stream)) return false;
  }
  return true;
}

/// A stream with device memory for one chunk.
struct Lane {
  Lane(std::size_t chunk, bool texture)
      : keys(chunk),
        results(chunk * kMostResultBytes),
        textures(texture ? std::make_unique<KeyTextures>(keys.data(), chunk) : nullptr) {}
  gpu::DeviceBuffer<TupleKey> keys;
  gpu::DeviceBuffer<std::byte> results;
  std::unique_ptr<KeyTextures> textures;
  OwnedStream stream;
};

}  // namespace

Transfer transfer_of(std::string_view name) {
  if (name == "none") return Transfer::none;
  if (name == "direct") return Transfer::direct;
  return name == "zero_copy" ? Transfer::zero_copy : Transfer::streamed;
}

class DevicePasses::Memory {
 public:
  Memory(int device, std::size_t count)
      : count_((gpu::use_device(device), count)),
        keys_(count),
        results_(count * kMostResultBytes),
        device_keys_(count),
        device_results_(count * kMostResultBytes) {}

  [[nodiscard]] std::span<TupleKey> keys() noexcept { return keys_.span(); }
  void send_keys() { gpu::copy_to_device(device_keys_.data(), keys_.data(), keys_.size_bytes()); }

  Result<void> prepare(const PassOptions& options) {
    bits_ = options.result_bits;
    result_bytes_ = result_bytes(count_, bits_);
    lanes_.clear();
    stream_ = nullptr;
    auto stream = make_stream(options.share);
    if (!stream) return tl::unexpected(std::move(stream.error()));
    stream_ = std::move(*stream);
    textures_ = nullptr;
    if (options.texture && options.transfer != Transfer::streamed) {
      const bool from_host = options.transfer == Transfer::zero_copy;
      textures_ = std::make_unique<KeyTextures>(from_host ? keys_.data() : device_keys_.data(), count_);
    }
    for (unsigned i = 0; options.transfer == Transfer::streamed && i < options.streams; ++i) {
      lanes_.push_back(std::make_unique<Lane>(std::min(options.chunk, count_), options.texture));
      auto own = make_stream(options.share);
      if (!own) return tl::unexpected(std::move(own.error()));
      lanes_.back()->stream = std::move(*own);
    }
    return {};
  }

  /// One pass. Returns early after a stop.
  void pass(const KeyFilter* filter, const PassOptions& options, const std::atomic<bool>& stop) {
    switch (options.transfer) {
      case Transfer::none: filter_there(filter, options); break;
      case Transfer::direct:
        copy(device_keys_.data(), keys_.data(), keys_.size_bytes(), stream_.get());
        filter_there(filter, options);
        copy(results_.data(), device_results_.data(), result_bytes_, stream_.get());
        break;
      case Transfer::zero_copy:
        require(filter == nullptr || enqueue_all(*filter, keys_.data(), textures_.get(), count_,
                                                 {results_.data(), bits_}, options.block, stream_.get()));
        break;
      case Transfer::streamed: pass_in_chunks(filter, options, stop); break;
    }
    check(cudaStreamSynchronize(stream_.get()));
    for (const auto& lane : lanes_) check(cudaStreamSynchronize(lane->stream.get()));
  }

  void spoil(const PassOptions& options, std::span<const std::uint32_t> expected) {
    spoil_results(results_.span(), bits_, expected);
    if (options.transfer == Transfer::none || options.transfer == Transfer::direct) {
      copy(device_results_.data(), results_.data(), result_bytes_, stream_.get());
      check(cudaStreamSynchronize(stream_.get()));
    }
  }

  Result<void> verify(const PassOptions& options, std::span<const std::uint32_t> expected) {
    if (options.transfer == Transfer::none) {
      copy(results_.data(), device_results_.data(), result_bytes_, stream_.get());
      check(cudaStreamSynchronize(stream_.get()));
    }
    return check_results(results_.span(), bits_, expected, "the GPU's");
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  /// Fails if the driver refuses, with the function's name and CUDA's reason.
  Result<const gpu::GreenContext*> share(unsigned percent) {
    auto found = shares_.find(percent);
    if (found == shares_.end()) {
      try {
        found = shares_.emplace(percent, gpu::GreenContext::of_percent(percent)).first;
      } catch (const gpu::CudaError& error) {
        return refusal(error);
      }
    }
    return &found->second;
  }

 private:
  static void copy(void* to, const void* from, std::size_t bytes, CUstream_st* stream) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }

  void filter_there(const KeyFilter* filter, const PassOptions& options) {
    if (filter == nullptr) return;
    require(enqueue_all(*filter, device_keys_.data(), textures_.get(), count_, {device_results_.data(), bits_},
                        options.block, stream_.get()));
  }

  void pass_in_chunks(const KeyFilter* filter, const PassOptions& options, const std::atomic<bool>& stop) {
    std::size_t number = 0;
    for (std::size_t first = 0; first < count_ && !stop.load(std::memory_order_relaxed); first += options.chunk) {
      Lane& lane = *lanes_[number++ % lanes_.size()];
      CUstream_st* const stream = lane.stream.get();
      const std::size_t some = std::min(options.chunk, count_ - first);
      copy(lane.keys.data(), keys_.data() + first, some * sizeof(TupleKey), stream);
      if (filter != nullptr) {
        require(enqueue_all(*filter, lane.keys.data(), lane.textures.get(), some, {lane.results.data(), bits_},
                            options.block, stream));
      }
      copy(results_.data() + result_bytes(first, bits_), lane.results.data(), result_bytes(some, bits_), stream);
    }
  }

  Result<OwnedStream> make_stream(unsigned percent) {
    if (percent == kWhole) {
      CUstream_st* stream = nullptr;
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      return OwnedStream(stream);
    }
    const auto part = share(percent);
    if (!part) return tl::unexpected(part.error());
    try {
      return OwnedStream((*part)->make_stream());
    } catch (const gpu::CudaError& error) {
      return refusal(error);
    }
  }

  std::size_t count_;
  gpu::PinnedBuffer<TupleKey> keys_;
  gpu::PinnedBuffer<std::byte> results_;
  gpu::DeviceBuffer<TupleKey> device_keys_;
  gpu::DeviceBuffer<std::byte> device_results_;
  unsigned bits_ = 0;
  std::size_t result_bytes_ = 0;
  std::map<unsigned, gpu::GreenContext> shares_;  // by percent; outlive the streams
  OwnedStream stream_;
  std::unique_ptr<KeyTextures> textures_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

DevicePasses::DevicePasses(int device, std::size_t count) : memory_(std::make_unique<Memory>(device, count)) {}
DevicePasses::~DevicePasses() = default;

std::span<TupleKey> DevicePasses::keys() noexcept { return memory_->keys(); }
void DevicePasses::send_keys() { memory_->send_keys(); }

Result<std::vector<double>> DevicePasses::rates(const KeyFilter* filter, const PassOptions& options,
                                                std::span<const std::uint32_t> expected, const Timing& timing) {
  if (auto ready = memory_->prepare(options); !ready) return tl::unexpected(std::move(ready.error()));
  if (filter != nullptr) memory_->spoil(options, expected);
  memory_->pass(filter, options, *timing.stop);
  std::vector<double> rates;
  for (unsigned repeat = 0; repeat < timing.repeats; ++repeat) {
    const auto start = Clock::now();
    std::size_t passes = 0;
    double seconds = 0;
    do {
      memory_->pass(filter, options, *timing.stop);
      ++passes;
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } while (seconds < std::chrono::duration<double>(timing.duration).count() && !timing.stop->load());
    rates.push_back(static_cast<double>(passes * memory_->count()) / seconds);
  }
  if (filter != nullptr && !timing.stop->load()) {
    if (auto right = memory_->verify(options, expected); !right) return tl::unexpected(std::move(right.error()));
  }
  return rates;
}

Result<unsigned> DevicePasses::multiprocessors(unsigned share) {
  if (share == kWhole) return gpu::multiprocessors_of_device();
  const auto part = memory_->share(share);
  if (!part) return tl::unexpected(part.error());
  return (*part)->multiprocessors();
}

}  // namespace penstock::experiments
