// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/device_numbers.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <span>
#include <vector>

#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/ipsec/numbers/number_kernel.cuh"

namespace penstock::ipsec {

namespace {

struct Answer {
  unsigned long long before;
  std::uint32_t taken;
};

__global__ void take_for_host(NumberCell* cell, const unsigned* closed, std::uint32_t count, Answer* answer) {
  const bool is_closed = *static_cast<const volatile unsigned*>(closed) != 0;
  answer->taken = is_closed ? 0 : kernels::take_numbers(*cell, count, answer->before);
}

/// Temporarily makes a device current, because the calling worker's thread may use another one.
class Current {
 public:
  explicit Current(int device) noexcept
      : is_set_(cudaGetDevice(&before_) == cudaSuccess && (before_ == device || cudaSetDevice(device) == cudaSuccess)) {
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    if (is_set_) static_cast<void>(cudaSetDevice(before_));
  }
  [[nodiscard]] bool is_set() const noexcept { return is_set_; }

 private:
  int before_ = 0;
  bool is_set_;
};

class OnDevice final : public DeviceNumbers {
 public:
  OnDevice() : device_(gpu::current_device()), closed_(1), answer_(1) { closed_[0] = 0; }

  int device() const noexcept override { return device_; }

  void add(std::span<const NumberCell> cells) override {
    if (cells.empty()) return;
    const Current current(device_);  // all stages can reach its memory
    gpu::DeviceBuffer<NumberCell>& chunk = chunks_.emplace_back(cells);
    gpu::PinnedBuffer<unsigned long long>& reserved = reserved_.emplace_back(cells.size());
    gpu::PinnedBuffer<unsigned long long>& taken = host_published_.emplace_back(cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      reserved[i] = cells[i].reserved;
      taken[i] = cells[i].sent;
      cells_.push_back({chunk.data() + i, &reserved[i], &taken[i], {&taken[i]}});
    }
  }

  View join(std::span<const std::uint32_t> cells) override {
    const Current current(device_);
    std::vector<NumberCell*> pointers;
    gpu::PinnedBuffer<unsigned long long>& published = published_.emplace_back(cells.size());
    for (std::size_t sa = 0; sa < cells.size(); ++sa) {
      published[sa] = 0;
      pointers.push_back(cells[sa] == kNoCell ? nullptr : cells_[cells[sa]].on_device);
      if (cells[sa] != kNoCell) cells_[cells[sa]].published.push_back(&published[sa]);
    }
    const auto& of_stage = pointers_.emplace_back(std::span<NumberCell* const>(pointers));
    return {of_stage.data(), published.data(), closed_.data(), static_cast<std::uint32_t>(cells.size())};
  }

  void close() noexcept override { *static_cast<volatile unsigned*>(closed_.data()) = 1; }

  bool take(std::uint32_t cell, std::uint32_t count, SequenceRange& taken) noexcept override {
    const Current current(device_);
    if (!current.is_set() || !ask(cells_[cell], count)) return false;
    taken = {answer_[0].before + 1, answer_[0].taken};
    if (answer_[0].taken != 0) *cells_[cell].taken_by_host = answer_[0].before + answer_[0].taken;
    return true;
  }

  void reserve(std::uint32_t cell, std::uint64_t end) noexcept override {
    Cell& to = cells_[cell];
    *to.reserved = end;
    const Current current(device_);
    // If the copy fails, so does everything else on the device.
    static_cast<void>(gpu::copy_async(&to.on_device->reserved, to.reserved, sizeof *to.reserved, stream_));
  }

  std::uint64_t published(std::uint32_t cell) const noexcept override {
    unsigned long long last = 0;
    for (const unsigned long long* const by_stage : cells_[cell].published) {
      const unsigned long long taken = *static_cast<const volatile unsigned long long*>(by_stage);
      last = std::max(last, taken);
    }
    return last;
  }

 private:
  struct Cell {
    NumberCell* on_device;
    unsigned long long* reserved;                      // pinned source of the copy to the device
    unsigned long long* taken_by_host;                 // last number that `take` returned
    std::vector<const unsigned long long*> published;  // by stage, and by `take`
  };

  bool ask(const Cell& cell, std::uint32_t count) noexcept {
    constexpr auto kMostTime = std::chrono::seconds{5};
    cudaLaunchConfig_t one{};
    one.gridDim = one.blockDim = 1;
    one.stream = stream_.get();
    if (cudaLaunchKernelEx(&one, take_for_host, cell.on_device, static_cast<const unsigned*>(closed_.data()), count,
                           answer_.data()) != cudaSuccess ||
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
  std::deque<gpu::DeviceBuffer<NumberCell>> chunks_;
  std::deque<gpu::PinnedBuffer<unsigned long long>> reserved_, host_published_;  // by chunk
  std::deque<gpu::DeviceBuffer<NumberCell*>> pointers_;                          // by view
  std::deque<gpu::PinnedBuffer<unsigned long long>> published_;                  // by view, then by SA
  std::vector<Cell> cells_;
  gpu::PinnedBuffer<unsigned> closed_;
  gpu::PinnedBuffer<Answer> answer_;
};

}  // namespace

std::unique_ptr<DeviceNumbers> make_device_numbers() { return std::make_unique<OnDevice>(); }

}  // namespace penstock::ipsec
