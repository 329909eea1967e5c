// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network function whose GPU stage misbehaves from a certain batch on. Its effect on a packet is visible, also if it
// is applied twice. Its CPU twin works correctly.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/host_device.h"
#include "function/network_function.h"
#include "gpu/stage.h"

namespace penstock::on_gpu {

enum class Fault : std::uint8_t {
  none,
  now_and_then_refused,  // every fifth launch fails
  refused,               // every launch fails
  trapped,               // the kernel traps, which also ends the process's CUDA context
  stray_write,           // the kernel writes to an invalid address: likewise
};

/// State shared by all stages of a function.
struct FaultPlan {
  Fault fault = Fault::none;
  unsigned from = 0;  // the first batch, counted over all stages, that may be affected
  std::atomic<unsigned> batches{0};
  std::atomic<unsigned> hit{0};

  /// Whether the next batch is affected.
  [[nodiscard]] bool strikes() noexcept {
    const unsigned batch = batches.fetch_add(1);
    if (fault == Fault::none || batch < from) return false;
    if (fault == Fault::now_and_then_refused && batch % 5 != 0) return false;
    hit.fetch_add(1);
    return true;
  }
};

/// Increments the source address of an Ethernet frame.
struct CountUpCore {
  PENSTOCK_HOST_DEVICE Verdict operator()(PacketView packet) const noexcept {
    if (packet.packet->link_type == LinkType::ethernet && packet.layout().network_offset >= 14) {
      ++packet.ethernet().source.bytes[5];
    }
    return packet.packet->verdict;
  }
};

/// Borrows the plan.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_faulty_stage(FaultPlan& plan);

class FaultyFunction final : public function::NetworkFunction {
 public:
  FaultyFunction(Fault fault, unsigned from) {
    plan.fault = fault;
    plan.from = from;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Twin>(); }
  std::unique_ptr<DeviceStage> make_device_stage(function::Processor /*processor*/, const StageUse& /*use*/) override {
    return make_faulty_stage(plan);
  }
  std::string description() const override { return "misbehaves on a GPU"; }

  FaultPlan plan;

 private:
  class Twin final : public function::CpuStage {
   public:
    void process(std::span<PacketView> packets) noexcept override {
      for (const PacketView packet : packets) packet.packet->verdict = CountUpCore{}(packet);
    }
  };
  static constexpr Access kAccess{kParsedFields | FieldSet{Field::eth_src, Field::verdict},
                                  {Field::eth_src, Field::verdict}};
  const function::NfTraits traits_{
      .name = "faulty", .summary = "", .cpu = kAccess, .devices = {{function::Processor::gpu, kAccess}}, .finish = {}};
};

}  // namespace penstock::on_gpu
