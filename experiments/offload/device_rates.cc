// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "experiments/offload/rates.h"
#include "gpu/cuda_error.h"
#include "gpu/devices.h"

namespace penstock::experiments {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kSpoiled = 0xdeadbeef;  // not a value of any engine

/// Not on the packet path: if the driver refuses something, the run ends.
void require(bool taken) {
  if (!taken) throw gpu::CudaError(0, "the CUDA driver refuses work: the device's context is lost");
}

}  // namespace

DeviceRates::DeviceRates(int device, const LookupWork& work)
    : work_((gpu::use_device(device), work)),
      keys_(work.keys().size()),
      values_(kKeys),
      device_keys_(work.keys()),
      device_values_(kKeys) {
  std::memcpy(keys_.data(), work.keys().data(), work.keys().size());
}

void DeviceRates::spoil(std::span<std::uint32_t> values) const noexcept {
  for (std::size_t i = 0; i < values.size(); i += kSampleStep) values[i] = kSpoiled;
}

Result<void> DeviceRates::check(std::span<const std::uint32_t> values, std::size_t covered) const {
  for (std::size_t i = 0; i < std::min(values.size(), covered); i += kSampleStep) {
    if (values[i] == work_.expected(i)) continue;
    return failure({{},
                    fmt::format("the GPU's result for key {} is wrong", i),
                    values[i] == kSpoiled ? "none" : std::to_string(values[i]),
                    std::to_string(work_.expected(i))});
  }
  return {};
}

DeviceRates::Sent DeviceRates::send_for(const DeviceTable& table, std::size_t batch,
                                        std::vector<std::unique_ptr<Lane>>& lanes, const Timing& timing,
                                        std::chrono::nanoseconds duration) {
  const std::size_t key_bytes = work_.key_bytes();
  const auto start = Clock::now();
  Sent sent;
  do {
    Lane& lane = *lanes[sent.batches % lanes.size()];
    const std::size_t at = sent.batches * batch % kKeys;
    gpu::Event& done = lane.done[lane.batches % kInFlight];
    if (lane.batches >= kInFlight) done.wait();
    require(gpu::copy_async(lane.keys.data(), keys_.data() + at * key_bytes, batch * key_bytes, lane.stream) &&
            enqueue_lookups(table.view, lane.keys.data(), lane.values.data(), batch, lane.stream) &&
            gpu::copy_async(values_.data() + at, lane.values.data(), batch * sizeof(std::uint32_t), lane.stream) &&
            done.record(lane.stream));
    ++lane.batches;
    ++sent.batches;
  } while (Clock::now() - start < duration && !timing.stop->load(std::memory_order_relaxed));
  for (const auto& lane : lanes) lane->stream.wait();
  sent.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return sent;
}

Result<std::vector<double>> DeviceRates::end_to_end(const DeviceTable& table, std::size_t batch, unsigned streams,
                                                    const Timing& timing) {
  std::vector<std::unique_ptr<Lane>> lanes;
  for (unsigned i = 0; i < streams; ++i) lanes.push_back(std::make_unique<Lane>(batch, work_.key_bytes()));
  static_cast<void>(send_for(table, batch, lanes, timing, timing.duration / 5));
  spoil(values_.span());
  std::vector<double> rates;
  std::size_t covered = 0;
  for (unsigned repeat = 0; repeat < timing.repeats; ++repeat) {
    const Sent sent = send_for(table, batch, lanes, timing, timing.duration);
    rates.push_back(static_cast<double>(sent.batches * batch) / sent.seconds);
    covered = std::max(covered, sent.batches * batch);
  }
  if (const auto right = check(values_.span(), covered); !right) return tl::unexpected(right.error());
  return rates;
}

Result<std::vector<double>> DeviceRates::kernel(const DeviceTable& table, std::size_t batch, const Timing& timing) {
  constexpr std::size_t kMostLaunches = 256;  // between two checks of the clock
  const std::size_t key_bytes = work_.key_bytes();
  spoil(values_.span());
  gpu::copy_to_device(device_values_.data(), values_.data(), values_.size_bytes());
  const gpu::Stream stream;
  const gpu::Event start(gpu::Event::Timing::kOn);
  const gpu::Event end(gpu::Event::Timing::kOn);
  std::size_t batches = 0;
  const auto run_for = [&](std::chrono::nanoseconds duration) {
    double seconds = 0;
    std::size_t looked_up = 0;
    do {
      const std::size_t launches = std::min(kMostLaunches, kKeys / batch);
      require(start.record(stream));
      for (std::size_t i = 0; i < launches; ++i, ++batches) {
        const std::size_t at = batches * batch % kKeys;
        require(enqueue_lookups(table.view, device_keys_.data() + at * key_bytes, device_values_.data() + at, batch,
                                stream));
      }
      require(end.record(stream));
      end.wait();
      seconds += end.milliseconds_since(start) * 1e-3;
      looked_up += launches * batch;
    } while (seconds < std::chrono::duration<double>(duration).count() &&
             !timing.stop->load(std::memory_order_relaxed));
    return static_cast<double>(looked_up) / seconds;
  };
  static_cast<void>(run_for(timing.duration / 5));
  std::vector<double> rates;
  for (unsigned repeat = 0; repeat < timing.repeats; ++repeat) rates.push_back(run_for(timing.duration));
  gpu::copy_to_host(values_.data(), device_values_.data(), values_.size_bytes());
  if (const auto right = check(values_.span(), batches * batch); !right) return tl::unexpected(right.error());
  return rates;
}

}  // namespace penstock::experiments
