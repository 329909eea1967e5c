// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network function whose packets do not work together: all that is its own is what happens to one of them, the core.
// The CPU twin made here runs it packet by packet; gpu/per_packet.cuh makes the GPU stage of the same core.

#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "function/network_function.h"

namespace penstock::function {

/// Decides about one packet, on host and device, by values that never change. One that borrows tables, or finds
/// something for a finish stage, makes a NetworkFunction of its own.
template <typename Core>
concept PerPacketCore =
    std::is_trivially_copyable_v<Core> && std::is_nothrow_invocable_r_v<Verdict, const Core&, PacketView>;

template <PerPacketCore Core>
struct PerPacket {
  Core core;
  NfTraits traits;
  std::string description;                                                // NetworkFunction::description
  std::string (*explain)(const Core& core, PacketView packet) = nullptr;  // CpuStage::explain; none: nothing is told
  /// NetworkFunction::make_gpu_stage, from the function's .cu file; none: the traits have no access for it either.
  std::unique_ptr<gpu::GpuStage> (*make_gpu_stage)(const Core& core) = nullptr;
};

template <PerPacketCore Core>
class PerPacketFunction final : public NetworkFunction {
 public:
  explicit PerPacketFunction(PerPacket<Core> parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const NfTraits& traits() const noexcept override { return parts_.traits; }
  [[nodiscard]] std::string description() const override { return parts_.description; }
  [[nodiscard]] std::unique_ptr<CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(parts_); }
  [[nodiscard]] std::unique_ptr<gpu::GpuStage> make_gpu_stage(const gpu::StageUse&) override {
    return parts_.make_gpu_stage == nullptr ? nullptr : parts_.make_gpu_stage(parts_.core);
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

/// The function: per_packet_function<MyCore>({.core = …, .traits = …, .description = …}).
template <PerPacketCore Core>
[[nodiscard]] std::unique_ptr<NetworkFunction> per_packet_function(PerPacket<Core> parts) {
  return std::make_unique<PerPacketFunction<Core>>(std::move(parts));
}

}  // namespace penstock::function
