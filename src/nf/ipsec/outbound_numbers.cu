// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/outbound_numbers.h"

#include <cuda_runtime.h>

#include <chrono>

#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/ipsec/number_kernel.cuh"

namespace penstock::ipsec {

namespace {

struct Answer {
  unsigned long long before;
  std::uint32_t taken;
};

__global__ void take_for_host(DeviceNumbers::View numbers, std::uint32_t sa, std::uint32_t count, Answer* answer) {
  answer->taken = kernels::take_numbers(numbers, sa, count, answer->before);
}

class OnDevice final : public DeviceNumbers {
 public:
  explicit OnDevice(std::span<const std::shared_ptr<SaState>> sas)
      : device_(gpu::current_device()), published_(sas.size()), closed_(1), answer_(1) {
    closed_[0] = 0;
    std::vector<unsigned long long> sent;
    std::vector<unsigned long long> most;
    for (const auto& sa : sas) {
      published_[sent.size()] = sa->numbers.sent();
      sent.push_back(sa->numbers.sent());
      most.push_back(sa->numbers.most());
    }
    sent_ = gpu::DeviceBuffer<unsigned long long>(std::span<const unsigned long long>(sent));
    most_ = gpu::DeviceBuffer<unsigned long long>(std::span<const unsigned long long>(most));
  }

  View view() const noexcept override {
    return {const_cast<unsigned long long*>(sent_.data()), most_.data(),
            const_cast<unsigned long long*>(published_.data()), closed_.data(),
            static_cast<std::uint32_t>(published_.size())};
  }
  int device() const noexcept override { return device_; }
  void close() noexcept override { *static_cast<volatile unsigned*>(closed_.data()) = 1; }

  bool take(std::uint32_t sa, std::uint32_t count, SequenceRange& taken) noexcept override {
    // The thread may be a worker's of another device.
    int before = 0;
    if (cudaGetDevice(&before) != cudaSuccess || cudaSetDevice(device_) != cudaSuccess) return false;
    const bool done = ask(sa, count);
    if (before != device_) static_cast<void>(cudaSetDevice(before));
    if (done) taken = {answer_.data()->before + 1, answer_.data()->taken};
    return done;
  }

  std::uint64_t published(std::uint32_t sa) const noexcept override {
    return *const_cast<const volatile unsigned long long*>(published_.data() + sa);
  }

 private:
  bool ask(std::uint32_t sa, std::uint32_t count) noexcept {
    constexpr auto kMostTime = std::chrono::seconds{5};
    cudaLaunchConfig_t one{};
    one.gridDim = one.blockDim = 1;
    one.stream = stream_.get();
    if (cudaLaunchKernelEx(&one, take_for_host, view(), sa, count, answer_.data()) != cudaSuccess ||
        !answered_.record(stream_)) {
      return false;
    }
    const auto start = std::chrono::steady_clock::now();
    gpu::Progress progress = gpu::Progress::kRunning;
    while ((progress = answered_.progress()) == gpu::Progress::kRunning) {
      if (std::chrono::steady_clock::now() - start > kMostTime) return false;
    }
    return progress == gpu::Progress::kDone;
  }

  const int device_;
  gpu::Stream stream_;
  gpu::Event answered_;
  gpu::DeviceBuffer<unsigned long long> sent_;
  gpu::DeviceBuffer<unsigned long long> most_;
  gpu::PinnedBuffer<unsigned long long> published_;
  gpu::PinnedBuffer<unsigned> closed_;
  gpu::PinnedBuffer<Answer> answer_;
};

}  // namespace

std::unique_ptr<DeviceNumbers> make_device_numbers(std::span<const std::shared_ptr<SaState>> sas) {
  return std::make_unique<OnDevice>(sas);
}

}  // namespace penstock::ipsec
