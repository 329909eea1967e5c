// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/device_numbers.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
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

  void add(std::uint32_t count) override {
    const Current current(device_);  // all stages can reach its memory
    auto chunk = std::make_unique<Chunk>(count);
    const std::lock_guard lock(mutex_);
    for (std::uint32_t i = 0; i < count; ++i) {
      cells_.push_back({{chunk->on_device.data() + i, &chunk->on_host[i], &chunk->taken_by_host[i]}, {}});
    }
    chunks_.push_back(std::move(chunk));
  }

  View join(std::span<const std::uint32_t> cells) override {
    const Current current(device_);
    std::vector<NumberCell*> pointers;
    {
      const std::lock_guard lock(mutex_);
      for (const std::uint32_t cell : cells) {
        pointers.push_back(cell == kNoCell ? nullptr : cells_[cell].at.on_device);
      }
    }
    auto stage = std::make_unique<Stage>(cells, pointers);
    const std::lock_guard lock(mutex_);
    for (std::size_t sa = 0; sa < cells.size(); ++sa) {
      if (cells[sa] != kNoCell) cells_[cells[sa]].published.push_back(&stage->published[sa]);
    }
    const View view{stage->pointers.data(), stage->published.data(), closed_.data(),
                    static_cast<std::uint32_t>(cells.size())};
    stages_.push_back(std::move(stage));
    return view;
  }

  void leave(const View& view) noexcept override {
    std::unique_ptr<Stage> stage;  // freed after the lock is released
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(stages_.begin(), stages_.end(), [&](const std::unique_ptr<Stage>& there) {
      return there->pointers.data() == view.cells && there->published.data() == view.published;
    });
    if (found == stages_.end()) return;
    stage = std::move(*found);
    stages_.erase(found);
    for (std::size_t sa = 0; sa < stage->cells.size(); ++sa) {
      if (stage->cells[sa] == kNoCell) continue;
      Cell& cell = cells_[stage->cells[sa]];
      const unsigned long long* const published = &stage->published[sa];
      *cell.at.taken_by_host = std::max(*cell.at.taken_by_host, *published);
      cell.published.erase(std::find(cell.published.begin(), cell.published.end(), published));
    }
  }

  void settle() override {
    const Current current(device_);
    stream_.wait();
  }

  void start(std::uint32_t cell, const NumberCell& numbers) noexcept override {
    const Addresses at = addresses_of(cell);
    *at.on_host = numbers;
    *at.taken_by_host = numbers.sent;
    const Current current(device_);
    // If the copy fails, so does everything else on the device.
    static_cast<void>(gpu::copy_async(at.on_device, at.on_host, sizeof *at.on_host, stream_));
  }

  void close() noexcept override { *static_cast<volatile unsigned*>(closed_.data()) = 1; }

  bool take(std::uint32_t cell, std::uint32_t count, SequenceRange& taken) noexcept override {
    const Addresses at = addresses_of(cell);
    const Current current(device_);
    if (!current.is_set() || !ask(at.on_device, count)) return false;
    taken = {answer_[0].before + 1, answer_[0].taken};
    if (answer_[0].taken != 0) {
      const std::lock_guard lock(mutex_);
      *at.taken_by_host = std::max(*at.taken_by_host, answer_[0].before + answer_[0].taken);
    }
    return true;
  }

  void reserve(std::uint32_t cell, std::uint64_t end) noexcept override {
    const Addresses at = addresses_of(cell);
    at.on_host->reserved = end;
    const Current current(device_);
    // If the copy fails, so does everything else on the device.
    static_cast<void>(
        gpu::copy_async(&at.on_device->reserved, &at.on_host->reserved, sizeof at.on_host->reserved, stream_));
  }

  std::uint64_t published(std::uint32_t cell) const noexcept override {
    const std::lock_guard lock(mutex_);
    const Cell& of = cells_[cell];
    unsigned long long last = *of.at.taken_by_host;
    for (const unsigned long long* const by_stage : of.published) {
      const unsigned long long taken = *static_cast<const volatile unsigned long long*>(by_stage);
      last = std::max(last, taken);
    }
    return last;
  }

 private:
  struct Addresses {
    NumberCell* on_device;
    NumberCell* on_host;                // pinned source of the copies to the device; `sent` is only its first value
    unsigned long long* taken_by_host;  // last number known from `start`, `take` and stages that have ended
  };
  struct Cell {
    Addresses at;
    std::vector<const unsigned long long*> published;  // by stage
  };
  /// The memory of counters that were added together.
  struct Chunk {
    explicit Chunk(std::uint32_t count)
        : on_device(std::span<const NumberCell>(std::vector<NumberCell>(count))),
          on_host(count),
          taken_by_host(count, 0) {}
    gpu::DeviceBuffer<NumberCell> on_device;
    gpu::PinnedBuffer<NumberCell> on_host;
    std::vector<unsigned long long> taken_by_host;
  };
  /// The memory of a view.
  struct Stage {
    Stage(std::span<const std::uint32_t> of_sas, const std::vector<NumberCell*>& addresses)
        : cells(of_sas.begin(), of_sas.end()),
          pointers(std::span<NumberCell* const>(addresses)),
          published(of_sas.size()) {
      for (unsigned long long& number : published.span()) number = 0;
    }
    const std::vector<std::uint32_t> cells;  // by SA
    gpu::DeviceBuffer<NumberCell*> pointers;
    gpu::PinnedBuffer<unsigned long long> published;  // by SA
  };

  Addresses addresses_of(std::uint32_t cell) const noexcept {
    const std::lock_guard lock(mutex_);
    return cells_[cell].at;
  }

  bool ask(NumberCell* cell, std::uint32_t count) noexcept {
    constexpr auto kMostTime = std::chrono::seconds{5};
    cudaLaunchConfig_t one{};
    one.gridDim = one.blockDim = 1;
    one.stream = stream_.get();
    if (cudaLaunchKernelEx(&one, take_for_host, cell, static_cast<const unsigned*>(closed_.data()), count,
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
  mutable std::mutex mutex_;  // guards the three vectors, but not the memory that kernels use; held briefly
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<Cell> cells_;
  gpu::PinnedBuffer<unsigned> closed_;
  gpu::PinnedBuffer<Answer> answer_;
};

}  // namespace

std::unique_ptr<DeviceNumbers> make_device_numbers() { return std::make_unique<OnDevice>(); }

}  // namespace penstock::ipsec
