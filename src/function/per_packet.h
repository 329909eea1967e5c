// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network function that processes each packet independently, so that only the per-packet code, its core, is specific
// to it. This file makes the CPU twin from the core; gpu/per_packet.cuh makes the GPU stage from the same core.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "function/network_function.h"
#include "gpu/stage.h"

namespace penstock::function {

/// Decides a packet's verdict on host and device, from values that never change. A function that borrows tables, or has
/// findings for a finish stage, implements NetworkFunction itself.
template <typename Core>
concept PerPacketCore =
    std::is_trivially_copyable_v<Core> && std::is_nothrow_invocable_r_v<Verdict, const Core&, PacketView>;

template <PerPacketCore Core>
struct PerPacket {
  Core core;
  NfTraits traits;
  std::string description;                                                // NetworkFunction::description
  std::string (*explain)(const Core& core, PacketView packet) = nullptr;  // CpuStage::explain; null: no explanation
  /// The stage on a GPU, made in the function's .cu file. Null if the traits have no access for it.
  std::unique_ptr<gpu::GpuStage> (*make_gpu_stage)(const Core& core) = nullptr;
};

template <PerPacketCore Core>
class PerPacketFunction final : public NetworkFunction {
 public:
  explicit PerPacketFunction(PerPacket<Core> parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const NfTraits& traits() const noexcept override { return parts_.traits; }
  [[nodiscard]] std::string description() const override { return parts_.description; }
  [[nodiscard]] std::optional<Explanation> explain(PacketView packet) const override {
    Explanation explanation;
    if (parts_.explain != nullptr) explanation.decided_by = parts_.explain(parts_.core, packet);
    packet.packet->verdict = parts_.core(packet);
    return explanation;
  }
  [[nodiscard]] std::unique_ptr<CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(parts_); }
  [[nodiscard]] std::unique_ptr<DeviceStage> make_device_stage(Processor processor, const StageUse& /*use*/) override {
    if (processor != Processor::gpu || parts_.make_gpu_stage == nullptr) return nullptr;
    return parts_.make_gpu_stage(parts_.core);
  }

 private:
  class Stage final : public CpuStage {
   public:
    explicit Stage(const PerPacket<Core>& parts) noexcept : core_(parts.core), explain_(parts.explain) {}
    void process(std::span<PacketView> packets) noexcept override {
      for (const PacketView packet : packets) packet.packet->verdict = core_(packet);
    }
    [[nodiscard]] std::string explain(PacketView packet) const override {
      return explain_ == nullptr ? std::string() : explain_(core_, packet);
    }

   private:
    const Core core_;
    std::string (*const explain_)(const Core&, PacketView);
  };

  const PerPacket<Core> parts_;
};

/// Makes the function: per_packet_function<MyCore>({.core = …, .traits = …, .description = …}).
template <PerPacketCore Core>
[[nodiscard]] std::unique_ptr<NetworkFunction> per_packet_function(PerPacket<Core> parts) {
  return std::make_unique<PerPacketFunction<Core>>(std::move(parts));
}

}  // namespace penstock::function
