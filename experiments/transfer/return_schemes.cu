// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/transfer/return_schemes.h"

#include <chrono>
#include <cstdint>
#include <cstring>

#include "gpu/check.cuh"
#include "gpu/devices.h"
#include "gpu/memory.h"
#include "gpu/per_packet.cuh"
#include "gpu/stream.h"
#include "ring/lane_kernels.cuh"

namespace penstock::experiments {
namespace {

using gpu::blocks_for;
using gpu::kThreadsPerBlock;

/// A buffer on the device, and the memory to which it is copied back.
class Buffer {
 public:
  Buffer(const ReturnCase& the_case, const std::vector<bool>& dropped)
      : case_(the_case),
        dropped_(dropped),
        count_(static_cast<std::uint32_t>(dropped.size())),
        host_(case_.buffer_bytes) {
    std::vector<std::uint8_t> bytes(case_.buffer_bytes);
    std::vector<PacketDescriptor> packets(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      packets[i].offset = static_cast<std::uint32_t>(i * case_.packet_bytes);
      packets[i].length = static_cast<std::uint32_t>(case_.packet_bytes);
      packets[i].verdict = dropped[i] ? Verdict::drop(0) : Verdict::forward();
      for (std::size_t b = 0; b < case_.packet_bytes; ++b) bytes[packets[i].offset + b] = byte_of(i, b);
      kept_ += dropped[i] ? 0 : 1;
    }
    frames_ = gpu::DeviceBuffer<std::uint8_t>(std::span<const std::uint8_t>(bytes));
    packets_ = gpu::DeviceBuffer<PacketDescriptor>(std::span<const PacketDescriptor>(packets));
    packed_ = gpu::DeviceBuffer<std::uint8_t>(case_.buffer_bytes);
    verdicts_ = gpu::DeviceBuffer<Verdict>(count_);
    sums_ = gpu::DeviceBuffer<ring::kernels::Sum>(blocks_for(count_));
    places_ = gpu::DeviceBuffer<std::uint32_t>(count_);
  }

  void bring_back() {
    if (case_.scheme == "all") {
      copy(0, count_);
    } else if (case_.scheme == "selective") {
      for (std::uint32_t first = 0; first < count_;) {
        std::uint32_t last = first;
        while (last < count_ && !dropped_[last]) ++last;
        if (last > first) copy(first, last);
        first = last + 1;
      }
    } else {
      pack(case_.scheme == "pack_zero" ? host_.data() : packed_.data());
      if (case_.scheme == "pack")
        take(gpu::copy_async(host_.data(), packed_.data(), kept_ * case_.packet_bytes, stream_));
    }
    stream_.wait();
    if (!sent_) gpu::check_launch();
  }

  /// Returns 0 if everything arrived, else the number, from 1, of the first packet that did not.
  [[nodiscard]] std::uint32_t first_wrong() const {
    const bool in_place = case_.scheme == "all" || case_.scheme == "selective";
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (in_place) at = i * case_.packet_bytes;
      if (dropped_[i]) continue;
      for (std::size_t b = 0; b < case_.packet_bytes; ++b) {
        if (host_.data()[at + b] != byte_of(i, b)) return i + 1;
      }
      at += case_.packet_bytes;
    }
    return 0;
  }
  void forget() { std::memset(host_.data(), 0xff, case_.buffer_bytes); }

 private:
  static std::uint8_t byte_of(std::uint32_t packet, std::size_t byte) {
    return static_cast<std::uint8_t>((packet * 31 + byte) % 251);
  }
  void take(bool sent) { sent_ &= sent; }
  void copy(std::uint32_t first, std::uint32_t last) {
    const std::size_t at = first * case_.packet_bytes;
    take(gpu::copy_async(host_.data() + at, frames_.data() + at, (last - first) * case_.packet_bytes, stream_));
  }
  void pack(std::uint8_t* to) {
    using namespace ring::kernels;
    measure<<<blocks_for(count_), kThreadsPerBlock, 0, stream_.get()>>>(packets_.data(), verdicts_.data(), sums_.data(),
                                                                        count_);
    pack_records<<<blocks_for(count_), kThreadsPerBlock, 0, stream_.get()>>>(
        frames_.data(), packets_.data(), sums_.data(), ring::RecordLayout{}, nullptr, places_.data(), count_);
    pack_frames<<<blocks_for(std::size_t{count_} * kCopyGroup), kThreadsPerBlock, 0, stream_.get()>>>(
        frames_.data(), packets_.data(), places_.data(), to, count_);
    gpu::check_launch();
  }

  const ReturnCase& case_;
  const std::vector<bool>& dropped_;
  const std::uint32_t count_;
  std::size_t kept_ = 0;
  bool sent_ = true;
  gpu::Stream stream_;
  gpu::PinnedBuffer<std::uint8_t> host_;
  gpu::DeviceBuffer<std::uint8_t> frames_, packed_;
  gpu::DeviceBuffer<PacketDescriptor> packets_;
  gpu::DeviceBuffer<Verdict> verdicts_;
  gpu::DeviceBuffer<ring::kernels::Sum> sums_;
  gpu::DeviceBuffer<std::uint32_t> places_;
};

}  // namespace

ReturnTime time_return(int device, const ReturnCase& the_case, unsigned times) {
  gpu::use_device(device);
  const std::vector<bool> dropped =
      dropped_packets(the_case.buffer_bytes / the_case.packet_bytes, the_case.dropped_percent, the_case.spread);
  Buffer buffer(the_case, dropped);
  buffer.bring_back();  // loads the kernels
  buffer.forget();
  const auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < times; ++i) buffer.bring_back();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {elapsed.count() / times, buffer.first_wrong()};
}

}  // namespace penstock::experiments
