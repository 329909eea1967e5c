// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/device_matches.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "experiments/filter/many_filters.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stream.h"
#include "nf/filter/code/device_matcher.h"

namespace penstock::experiments {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = std::size_t{1} << 16;  // frames
constexpr std::size_t kLanes = 4;

/// What a matcher has to know of a frame. All frames have the same length, so the records of a batch are the same for
/// every batch, and stay on the device.
struct FrameRecord {
  std::uint32_t offset = 0;
  std::uint32_t length = kFrameBytes;
  std::uint32_t wire_length = kFrameBytes;
};

/// Not on the packet path: if the driver refuses something, the run ends.
void require(bool taken) {
  if (!taken) throw gpu::CudaError(0, "the CUDA driver refuses work: the device's context is lost");
}

/// A stream with device memory for one batch.
struct MatchLane {
  explicit MatchLane(std::size_t words) : frames(kBatch * kFrameBytes), words_there(kBatch * words) {}
  gpu::Stream stream;
  gpu::DeviceBuffer<std::uint8_t> frames;
  gpu::DeviceBuffer<std::uint32_t> words_there;
};

std::vector<FrameRecord> records_of_batch() {
  std::vector<FrameRecord> records(kBatch);
  for (std::size_t i = 0; i < kBatch; ++i) records[i].offset = static_cast<std::uint32_t>(i * kFrameBytes);
  return records;
}

class MatcherRates final : public DeviceMatches {
 public:
  MatcherRates(std::unique_ptr<filter::DeviceMatcher> matcher, std::span<const std::uint8_t> frames)
      : matcher_(std::move(matcher)),
        count_(frames.size() / kFrameBytes),
        frames_(frames.size()),
        words_(count_ * matcher_->words()),
        device_frames_(frames),
        device_words_(count_ * matcher_->words()),
        records_(std::span<const FrameRecord>(records_of_batch())) {
    std::memcpy(frames_.data(), frames.data(), frames.size());
    for (std::size_t i = 0; i < kLanes; ++i) lanes_.push_back(std::make_unique<MatchLane>(matcher_->words()));
  }

  Result<std::vector<double>> rates(bool only_kernel, const Timing& timing) override {
    std::fill(words_.span().begin(), words_.span().end(), 0xdeadbeef);
    if (only_kernel) gpu::copy_to_device(device_words_.data(), words_.data(), words_.size_bytes());
    const auto run_for = [&](std::chrono::nanoseconds duration) {
      const auto start = Clock::now();
      std::size_t frames = 0;
      do {
        frames += pass(only_kernel, *timing.stop);
      } while (Clock::now() - start < duration && !timing.stop->load());
      return static_cast<double>(frames) / std::chrono::duration<double>(Clock::now() - start).count();
    };
    static_cast<void>(run_for(timing.duration / 5));
    std::vector<double> rates;
    for (unsigned repeat = 0; repeat < timing.repeats; ++repeat) rates.push_back(run_for(timing.duration));
    if (only_kernel) gpu::copy_to_host(words_.data(), device_words_.data(), words_.size_bytes());
    return rates;
  }

  std::span<const std::uint32_t> words() const noexcept override { return words_.span(); }

 private:
  /// All frames once; returns their number.
  std::size_t pass(bool only_kernel, const std::atomic<bool>& stop) {
    const std::size_t per_frame = matcher_->words();
    std::size_t done = 0;
    for (std::size_t number = 0; done < count_ && !stop.load(std::memory_order_relaxed); ++number) {
      const std::size_t some = std::min(kBatch, count_ - done);
      if (only_kernel) {
        require(match(device_frames_.data() + done * kFrameBytes, some, device_words_.data() + done * per_frame,
                      lanes_[0]->stream));
      } else {
        MatchLane& lane = *lanes_[number % lanes_.size()];
        require(
            gpu::copy_async(lane.frames.data(), frames_.data() + done * kFrameBytes, some * kFrameBytes, lane.stream) &&
            match(lane.frames.data(), some, lane.words_there.data(), lane.stream) &&
            gpu::copy_async(words_.data() + done * per_frame, lane.words_there.data(),
                            some * per_frame * sizeof(std::uint32_t), lane.stream));
      }
      done += some;
    }
    for (const auto& lane : lanes_) lane->stream.wait();
    return done;
  }

  bool match(const std::uint8_t* frames, std::size_t count, std::uint32_t* words, const gpu::Stream& stream) const {
    filter::MatchBatch batch{};
    batch.packets.frames = frames;
    batch.packets.records = reinterpret_cast<const std::uint8_t*>(records_.data());
    batch.packets.count = static_cast<std::uint32_t>(count);
    batch.packets.stride = sizeof(FrameRecord);
    batch.packets.offset_at = offsetof(FrameRecord, offset);
    batch.packets.length_at = offsetof(FrameRecord, length);
    batch.packets.wire_length_at = offsetof(FrameRecord, wire_length);
    batch.packets.alive_at = filter::kAllAlive;
    batch.packets.most_available = kFrameBytes;
    batch.words = words;
    batch.row_words = matcher_->words();
    return matcher_->match(batch, stream);
  }

  std::unique_ptr<filter::DeviceMatcher> matcher_;
  std::size_t count_;
  gpu::PinnedBuffer<std::uint8_t> frames_;
  gpu::PinnedBuffer<std::uint32_t> words_;
  gpu::DeviceBuffer<std::uint8_t> device_frames_;
  gpu::DeviceBuffer<std::uint32_t> device_words_;
  gpu::DeviceBuffer<FrameRecord> records_;
  std::vector<std::unique_ptr<MatchLane>> lanes_;
};

}  // namespace

Result<std::unique_ptr<DeviceMatches>> DeviceMatches::make(int device, const std::string& engine,
                                                           const std::vector<filter::Program>& programs,
                                                           std::span<const std::uint8_t> frames) {
  gpu::use_device(device);
  auto matcher = filter::make_device_matcher(
      engine == "interpreter" ? filter::DeviceEngine::interpreter : filter::DeviceEngine::generated, programs);
  if (!matcher) return tl::unexpected(std::move(matcher.error()));
  return std::make_unique<MatcherRates>(std::move(*matcher), frames);
}

}  // namespace penstock::experiments
