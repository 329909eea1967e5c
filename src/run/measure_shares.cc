// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/measure_shares.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gpu/cuda_error.h"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/stage.h"
#include "gpu/stream.h"
#include "packet/batch.h"
#include "packet/parse_core.h"
#include "plan/device_plan.h"
#include "run/device_run.h"

namespace penstock::run {

namespace {

constexpr std::uint32_t kFrameBytes = 1514;
constexpr std::size_t kSlack = 16;  // kernels read beyond both ends of the frames
constexpr int kRounds = 3;          // the fastest counts: the first one may load kernels
constexpr int kTogether = 4;        // launches per round, back to back, to hide the time of the launch itself

/// TCP from 10.0.0.1 to 10.0.0.2, with a text that matches no rule.
std::array<std::uint8_t, kFrameBytes> large_frame() {
  constexpr std::uint8_t kHeaders[] = {
      0x02, 0,    0,    0,    0, 1, 0x02, 0, 0,  0, 0, 2, 0x08, 0x00,                            // Ethernet
      0x45, 0,    0x05, 0xdc, 0, 0, 0x40, 0, 64, 6, 0, 0, 10,   0,    0,    1,    10, 0, 0, 2,   // IPv4, 1,500 bytes
      0x27, 0x10, 0,    80,   0, 0, 0,    1, 0,  0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0,  0, 0, 0};  // TCP
  std::array<std::uint8_t, kFrameBytes> frame{};
  std::ranges::copy(kHeaders, frame.begin());
  std::uint32_t random = 1;
  for (std::uint8_t& byte : std::span(frame).subspan(sizeof(kHeaders))) {
    random = random * 1664525 + 1013904223;  // Knuth, The Art of Computer Programming 2, §3.3.4
    byte = static_cast<std::uint8_t>(' ' + (random >> 24) % 95);
  }
  return frame;
}

/// A full batch on the current device.
class FullBatch {
 public:
  FullBatch(const RunSettings& settings, std::uint32_t findings_bytes, const gpu::Stream& stream)
      : memory_(settings.batch_bytes),
        descriptors_(settings.batch_packets),
        batch_(memory_.span(), descriptors_, {}),
        frames_(settings.batch_bytes + 2 * kSlack) {
    const auto frame = large_frame();
    while (batch_.append(frame, {0, kFrameBytes, 0, LinkType::ethernet})) continue;
    for (std::size_t i = 0; i < batch_.size(); ++i) parse(batch_.view(i));
    packets_ = gpu::DeviceBuffer<PacketDescriptor>(batch_.size());
    findings_ = gpu::DeviceBuffer<std::byte>(batch_.size() * findings_bytes);
    // Kernels read the slack, but ignore its contents.
    if (!gpu::zero_async(frames_.data(), frames_.size(), stream))
      throw gpu::CudaError(0, "cannot zero memory on the GPU");
    stream.wait();
  }

  /// Restores the batch on the device, for the next stage.
  [[nodiscard]] gpu::DevicePackets put_on_device() {
    gpu::copy_to_device(frames(), memory_.data(), batch_.bytes().size());
    gpu::copy_to_device(packets_.data(), descriptors_.data(), batch_.size() * sizeof(PacketDescriptor));
    return {frames(), packets_.data(), static_cast<std::uint32_t>(batch_.size()), 0, findings_.data()};
  }
  [[nodiscard]] bool copy_up(const gpu::Stream& stream) noexcept {
    return gpu::copy_async(frames(), memory_.data(), batch_.bytes().size(), stream);
  }
  [[nodiscard]] bool copy_down(const gpu::Stream& stream) noexcept {
    return gpu::copy_async(memory_.data(), frames(), batch_.bytes().size(), stream);
  }
  [[nodiscard]] std::size_t size() const noexcept { return batch_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return batch_.bytes().size(); }

 private:
  [[nodiscard]] std::uint8_t* frames() noexcept { return frames_.data() + kSlack; }

  gpu::PinnedBuffer<std::uint8_t> memory_;
  std::vector<PacketDescriptor> descriptors_;
  Batch batch_;
  gpu::DeviceBuffer<std::uint8_t> frames_;
  gpu::DeviceBuffer<PacketDescriptor> packets_;
  gpu::DeviceBuffer<std::byte> findings_;
};

/// Time of what `enqueue()` enqueues; it returns false if the driver refuses. Throws CudaError.
template <typename Enqueue>
double time_us(const gpu::Stream& stream, const Enqueue& enqueue) {
  const gpu::Event begin(gpu::Event::Timing::kOn);
  const gpu::Event end(gpu::Event::Timing::kOn);
  const auto must = [](bool enqueued) {
    if (!enqueued) throw gpu::CudaError(0, "cannot enqueue the work to be timed");
  };
  double least_ms = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    must(begin.record(stream));
    for (int i = 0; i < kTogether; ++i) must(enqueue());
    must(end.record(stream));
    end.wait();
    least_ms = std::min(least_ms, end.milliseconds_since(begin));
  }
  return least_ms * 1e3 / kTogether;
}

/// Time of one batch's transfers, by the bytes that the plan transfers per packet.
double transfer_us(FullBatch& batch, const plan::DevicePlan& plan, const gpu::Stream& stream) {
  const double up_us = time_us(stream, [&] { return batch.copy_up(stream); });
  const double down_us = time_us(stream, [&] { return batch.copy_down(stream); });
  const plan::CrossingBytes crossing = plan::crossing_bytes(plan, kFrameBytes);
  const double each = static_cast<double>(batch.bytes()) / static_cast<double>(batch.size());
  return up_us * crossing.to_device / each + down_us * crossing.to_host / each;
}

std::uint32_t multiprocessors_of(int device) {
  const gpu::DeviceList list = gpu::list_devices();
  const auto found = std::ranges::find(list.devices, device, &gpu::Device::index);
  if (found == list.devices.end()) throw gpu::CudaError(0, "no such GPU");
  return static_cast<std::uint32_t>(found->multiprocessors);
}

}  // namespace

void choose_gpu_shares(Chain& chain) {
  RunSettings& settings = chain.settings;
  const std::vector<function::NfTraits> traits = chain.traits();
  const plan::Processors processors = chain.processors();
  const auto plan = chain.device_plan();
  if (!plan) throw gpu::CudaError(0, to_string(plan.error()));  // the configuration was checked
  gpu::use_device(settings.gpus.front());
  const std::uint32_t multiprocessors = multiprocessors_of(settings.gpus.front());
  const gpu::Stream stream;
  FullBatch batch(settings, std::ranges::max(traits, {}, &function::NfTraits::findings_bytes).findings_bytes, stream);
  if (batch.size() == 0) return;  // batches are too small for large frames
  std::vector<plan::GpuShares::Share>& shares = settings.gpu_shares.functions;
  shares.assign(chain.functions.size(), {});
  for (std::size_t f = 0; f < chain.functions.size(); ++f) {
    if (!traits[f].fills_gpu || processors[f] != function::Processor::gpu) continue;
    for (const std::uint32_t share : plan::shares_to_measure(multiprocessors)) {
      const auto made = chain.functions[f].function->make_device_stage(
          function::Processor::gpu, {0, static_cast<std::uint32_t>(settings.batch_packets), share});
      if (made == nullptr) throw gpu::CudaError(0, chain.functions[f].name + " has no GPU stage in this program");
      auto* const stage = static_cast<gpu::GpuStage*>(made.get());
      gpu::DevicePackets packets = batch.put_on_device();
      packets.function = static_cast<std::uint8_t>(f);
      if (!stage->rehearse(packets, stream)) break;  // nothing to measure, for example no SA
      shares[f].times.push_back({share, time_us(stream, [&] { return stage->rehearse(packets, stream); })});
    }
  }
  const auto gpus = static_cast<unsigned>(settings.gpus.size());
  const unsigned workers = (settings.workers + gpus - 1) / gpus;
  plan::choose_by_times(settings.gpu_shares, multiprocessors,
                        {.bits_per_second = settings.wished_bits_per_second() / gpus,
                         .batch_bytes = batch.bytes(),
                         .workers = workers,
                         .batches_in_flight = workers * lanes_of(settings, 0),
                         .latency = settings.latency,
                         .transfer_us = transfer_us(batch, *plan, stream)});
}

}  // namespace penstock::run
