// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/per_packet.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace penstock::function {
namespace {

using Bytes = std::vector<std::uint8_t>;

enum class DropReason : std::uint16_t { odd };

/// Drops frames of odd length, and adds `step` to the marks of the others.
struct EvenCore {
  std::uint32_t step;
  Verdict operator()(PacketView packet) const noexcept {
    if (packet.length() % 2 != 0) return Verdict::drop(DropReason::odd);
    packet.packet->mark += step;
    return packet.packet->verdict;
  }
};

const NfTraits kTraits{.name = "even", .summary = "drops what is odd"};

std::string explain(const EvenCore& core, PacketView packet) {
  return std::to_string(packet.length()) + ", step " + std::to_string(core.step);
}

TEST(PerPacketFunction, DecidesAboutEachPacketByItsCore) {
  const auto function = per_packet_function<EvenCore>({.core = {7}, .traits = kTraits, .description = "even"});
  std::vector<Bytes> frames{Bytes(60), Bytes(61), Bytes(62)};
  std::vector<PacketDescriptor> descriptors(3);
  std::vector<PacketView> packets;
  for (std::size_t i = 0; i < 3; ++i) {
    descriptors[i].length = static_cast<std::uint32_t>(frames[i].size());
    descriptors[i].verdict = Verdict::forward(static_cast<PortIndex>(i));
    packets.push_back({frames[i].data(), &descriptors[i]});
  }
  function->make_cpu_stage()->process(packets);
  EXPECT_EQ(descriptors[0].verdict, Verdict::forward(0));
  EXPECT_EQ(descriptors[1].verdict, Verdict::drop(DropReason::odd));
  EXPECT_EQ(descriptors[2].verdict, Verdict::forward(2));
  EXPECT_EQ(descriptors[0].mark, 7U);
  EXPECT_EQ(descriptors[1].mark, 0U);
}

TEST(PerPacketFunction, ReturnsItsTraitsAndDescription) {
  const auto function =
      per_packet_function<EvenCore>({.core = {7}, .traits = kTraits, .description = "steps of 7", .explain = &explain});
  PacketDescriptor descriptor;
  descriptor.length = 60;
  EXPECT_EQ(function->traits().name, "even");
  EXPECT_EQ(function->description(), "steps of 7");
  EXPECT_EQ(function->make_cpu_stage()->explain({nullptr, &descriptor}), "60, step 7");
}

TEST(PerPacketFunction, HasOnlyTheGivenGpuStage) {
  struct Stage final : gpu::GpuStage {
    bool enqueue(const gpu::DevicePackets&, const gpu::Stream&) noexcept override { return true; }
  };
  PerPacket<EvenCore> parts{.core = {7}, .traits = kTraits, .description = ""};
  EXPECT_EQ(per_packet_function<EvenCore>(parts)->make_device_stage(Processor::gpu, {}), nullptr);
  EXPECT_EQ(per_packet_function<EvenCore>(parts)->make_cpu_stage()->explain({}), "");
  parts.make_gpu_stage = [](const EvenCore& core) -> std::unique_ptr<gpu::GpuStage> {
    return core.step == 7 ? std::make_unique<Stage>() : nullptr;
  };
  EXPECT_NE(per_packet_function<EvenCore>(parts)->make_device_stage(Processor::gpu, {}), nullptr);
}

}  // namespace
}  // namespace penstock::function
