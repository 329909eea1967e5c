// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What needs no CUDA compiler: the generated engine, and how packets are found.

#include "nf/filter/code/device_matcher.h"

#include <cstddef>
#include <string>

#include "gpu/devices.h"
#include "gpu/module.h"
#include "packet/packet.h"

namespace penstock::filter {
namespace {

class GeneratedMatcher final : public DeviceMatcher {
 public:
  GeneratedMatcher(const MachineCode& code, std::span<const char> machine_code)
      : DeviceMatcher(code.programs(), code.reach()),
        module_(machine_code),
        match_(module_.kernel(kMatchKernel)),
        parts_(code.generated().parts) {
    if (code.options().returns) returns_ = module_.kernel(kReturnsKernel);
    has_returns_ = code.options().returns;
  }

  bool match(const MatchBatch& batch, const gpu::Stream& stream) const noexcept override {
    return match_.launch(batch.packets.count, kGeneratedBlock, stream, batch, parts_);
  }
  bool returns(const MatchBatch& batch, const gpu::Stream& stream) const noexcept override {
    return has_returns_ && returns_.launch(batch.packets.count, kGeneratedBlock, stream, batch);
  }
  DeviceEngine engine() const noexcept override { return DeviceEngine::generated; }

 private:
  gpu::Module module_;
  gpu::ModuleKernel match_;
  std::uint32_t parts_;
  gpu::ModuleKernel returns_;
  bool has_returns_ = false;
};

}  // namespace

std::string_view to_string(DeviceEngine engine) noexcept {
  return engine == DeviceEngine::interpreter ? "gpu" : "gpu-generated";
}

Result<std::unique_ptr<DeviceMatcher>> make_generated_matcher(MachineCode& code) {
  const gpu::Device device = gpu::list_devices().devices.at(static_cast<std::size_t>(gpu::current_device()));
  const auto machine_code = code.for_devices(device.compute_major, device.compute_minor);
  if (!machine_code) return tl::unexpected(machine_code.error());
  return std::make_unique<GeneratedMatcher>(code, *machine_code);
}

Result<std::unique_ptr<DeviceMatcher>> make_device_matcher(DeviceEngine engine, std::span<const Program> programs,
                                                           const GenerateOptions& options) {
  if (programs.size() > kMostPrograms) {
    return failure(Error{{},
                         "too many programs for one pass",
                         std::to_string(programs.size()),
                         "at most " + std::to_string(kMostPrograms)});
  }
  if (engine == DeviceEngine::interpreter) return make_interpreting_matcher(programs);
  MachineCode code(programs, options);
  return make_generated_matcher(code);
}

PacketRecords records_of(const gpu::DevicePackets& packets, std::uint32_t available) noexcept {
  PacketRecords records{};
  records.frames = packets.frames;
  records.records = reinterpret_cast<const std::uint8_t*>(packets.packets);
  records.count = packets.count;
  records.stride = sizeof(PacketDescriptor);
  records.offset_at = offsetof(PacketDescriptor, offset);
  records.length_at = offsetof(PacketDescriptor, length);
  records.wire_length_at = offsetof(PacketDescriptor, wire_length);
  records.alive_at = offsetof(PacketDescriptor, verdict) + offsetof(Verdict, kind);
  static_assert(static_cast<int>(VerdictKind::forward) == 0);
  records.most_available = available;
  return records;
}

}  // namespace penstock::filter
