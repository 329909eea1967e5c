// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/outbound_numbers.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <span>
#include <vector>

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
  const bool closed = *static_cast<const volatile unsigned*>(numbers.closed) != 0;
  answer->taken = closed ? 0 : kernels::take_numbers(numbers, sa, count, answer->before);
}

class OnDevice final : public DeviceNumbers {
 public:
  explicit OnDevice(std::span<const std::shared_ptr<SaState>> sas)
      : device_(gpu::current_device()), closed_(1), answer_(1) {
    closed_[0] = 0;
    std::vector<unsigned long long> most;
    for (const auto& sa : sas) {
      before_.push_back(sa->numbers.sent());
      most.push_back(sa->numbers.most());
    }
    sent_ = gpu::DeviceBuffer<unsigned long long>(std::span<const unsigned long long>(before_));
    most_ = gpu::DeviceBuffer<unsigned long long>(std::span<const unsigned long long>(most));
    host_ = join();
  }

  View join() override {
    gpu::PinnedBuffer<unsigned long long>& published = published_.emplace_back(before_.size());
    std::ranges::copy(before_, published.data());
    return {sent_.data(), most_.data(), published.data(), closed_.data(), static_cast<std::uint32_t>(before_.size())};
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
    unsigned long long last = 0;
    for (const auto& by_stage : published_) {
      const unsigned long long taken = *static_cast<const volatile unsigned long long*>(by_stage.data() + sa);
      last = std::max(last, taken);
    }
    return last;
  }

 private:
  bool ask(std::uint32_t sa, std::uint32_t count) noexcept {
    constexpr auto kMostTime = std::chrono::seconds{5};
    cudaLaunchConfig_t one{};
    one.gridDim = one.blockDim = 1;
    one.stream = stream_.get();
    if (cudaLaunchKernelEx(&one, take_for_host, host_, sa, count, answer_.data()) != cudaSuccess ||
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
  std::vector<unsigned long long> before_;                       // by SA: the last number that was sent elsewhere
  std::deque<gpu::PinnedBuffer<unsigned long long>> published_;  // by view, then by SA
  View host_;
  gpu::PinnedBuffer<unsigned> closed_;
  gpu::PinnedBuffer<Answer> answer_;
};

}  // namespace

std::unique_ptr<DeviceNumbers> make_device_numbers(std::span<const std::shared_ptr<SaState>> sas) {
  return std::make_unique<OnDevice>(sas);
}

}  // namespace penstock::ipsec
