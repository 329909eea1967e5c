// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/kernel/kernel.h"

#include <algorithm>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

#include "function/offloaded_stage.h"
#include "function/own_process.h"
#include "nf/kernel/batch_packing.h"

namespace penstock::kernel {

namespace {

/// What a kernel gets of each packet beside its frame.
constexpr FieldSet kMetadata{Field::frame_shape, Field::wire_length, Field::timestamp, Field::in_port,
                             Field::verdict,     Field::mark,        Field::flow_hash};

class Stage final : public function::CpuStage, public function::OffloadedStage {
 public:
  Stage(const Access& access, std::unique_ptr<Launcher> launcher) : access_(access), launcher_(std::move(launcher)) {}

  void process(std::span<PacketView> packets) noexcept override {
    while (!packets.empty() && failure().empty()) {
      const Launcher::Room& room = launcher_->room();
      const Packed packed = pack(packets, access_, room);
      if (!launcher_->run(packed.packets, packed.frames_bytes)) return;
      const std::span<PacketView> done = packets.first(packed.packets);
      std::copy_n(room.verdicts.begin(), done.size(), verdicts_.begin());
      const std::span<const penstock_verdict> verdicts = std::span(verdicts_).first(done.size());
      if (!is_sound(verdicts)) return;
      take_results(done, access_, verdicts, room);
      packets = packets.subspan(done.size());
    }
  }
  std::size_t most_packets() const noexcept override { return kMostPackets; }
  std::string_view failure() const noexcept override {
    return launcher_->failure().empty() ? std::string_view(wrong_) : launcher_->failure();
  }

 private:
  bool is_sound(std::span<const penstock_verdict> verdicts) noexcept {
    try {
      wrong_ = check_verdicts(verdicts, access_);
    } catch (const std::exception&) {
      wrong_ = "no memory";  // fits in the string itself
    }
    return wrong_.empty();
  }

  const Access& access_;
  const std::unique_ptr<Launcher> launcher_;
  std::vector<penstock_verdict> verdicts_ = std::vector<penstock_verdict>(kMostPackets);  // of the last launch
  std::string wrong_;
};

class Kernel final : public function::NetworkFunction, public function::OwnProcess {
 public:
  Kernel(Declaration declaration, MakeDevice make_device)
      : declaration_(std::move(declaration)), make_device_(std::move(make_device)) {
    reasons_.assign(declaration_.drops.begin(), declaration_.drops.end());
    traits_.name = "kernel";
    traits_.summary = kernel_kind().summary;
    traits_.cpu = {declaration_.reads | declaration_.writes | kParsedFields | kMetadata, declaration_.writes};
    if (!reasons_.empty()) traits_.cpu.writes |= FieldSet{Field::verdict};
    // So that a file may say `processor: gpu`. To its own process, it is a CPU stage.
    traits_.devices[function::Processor::gpu] = traits_.cpu;
    traits_.drop_reasons = reasons_;
    access_.sees_payload = traits_.cpu.reads.has(Field::payload) || traits_.cpu.reads.has(Field::trailer);
    access_.writes_mark = declaration_.writes.has(Field::mark);
    for (unsigned f = 0; f < kByteFieldCount; ++f) {
      if (declaration_.writes.has(static_cast<Field>(f))) access_.writes.push_back(static_cast<Field>(f));
    }
    access_.reasons = reasons_.size();
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() override = default;

  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::string description() const override { return declaration_.what; }
  Result<void> begin_run() override {
    auto device = make_device_();
    if (!device) return failure(std::move(device.error()));
    device_ = std::move(*device);
    return {};
  }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override {
    return std::make_unique<Stage>(access_, device_->make_launcher(!access_.writes.empty()));
  }

 private:
  const Declaration declaration_;
  const MakeDevice make_device_;
  std::unique_ptr<Device> device_;  // during a run
  std::vector<std::string_view> reasons_;
  function::NfTraits traits_;
  Access access_;
};

}  // namespace

std::unique_ptr<function::NetworkFunction> make_kernel(Declaration declaration, MakeDevice make_device) {
  return std::make_unique<Kernel>(std::move(declaration), std::move(make_device));
}

}  // namespace penstock::kernel
