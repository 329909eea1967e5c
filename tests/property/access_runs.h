// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The stages of a network function as runs of the access check: the CPU twin, the GPU stage's core on the host, and the
// finish stage with the findings of the GPU stage.

#pragma once

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "function/emitter.h"
#include "function/network_function.h"
#include "function/testing/attached_stage.h"
#include "property/access_check.h"
#include "report/event_log.h"

namespace penstock::property {

/// A function whose run has begun, and the log that it writes.
struct MadeFunction {
  std::unique_ptr<report::EventLog> log;
  std::unique_ptr<function::NetworkFunction> function;
};
using MakeFunction = std::function<MadeFunction()>;

/// Emitted packets, log lines and the report, as text.
class RunOutput {
 public:
  explicit RunOutput(MadeFunction& made) : made_(made), emissions_(1 << 22, 4096) {
    if (made.function->traits().replaces_frames) emissions_.make_room_for_frames(1 << 22, {});
  }

  void begin_batch(const Batch& batch, function::Emitter& emitter) {
    emissions_.begin(batch);
    emitter.go_into(&emissions_);
  }
  [[nodiscard]] bool has_frame(PacketView packet) const { return emissions_.has_frame(packet.frame); }
  void end_batch() {
    emissions_.arrange();
    while (!emissions_.none_left()) {
      const std::uint32_t cause = emissions_.next_cause();
      const PacketView packet = emissions_.take();
      text_ += fmt::format("packet {} emits to port {}: ", cause, packet.packet->verdict.value);
      for (std::uint32_t i = 0; i < packet.length(); ++i) text_ += fmt::format("{:02x}", packet.frame[i]);
      text_ += '\n';
    }
  }
  /// Called after the stages have ended.
  std::string end() {
    if (made_.log != nullptr) {
      EXPECT_TRUE(made_.log->close().empty());
      std::ifstream file(made_.log->path());
      text_.append(std::istreambuf_iterator<char>(file), {});
    }
    nlohmann::json report;
    made_.function->report(report);
    return text_ + report.dump(1);
  }

 private:
  MadeFunction& made_;
  function::Emissions emissions_;
  std::string text_;
};

class CpuRun final : public StageRun {
 public:
  explicit CpuRun(MadeFunction made) : made_(std::move(made)), stage_(*made_.function) {
    stage_->set_emitter(emitter_);
  }
  FrameRoom room() const override { return made_.function->traits().growth; }
  void begin_batch(const Batch& batch) override {
    output_.begin_batch(batch, emitter_);
    stage_->begin_batch();
  }
  void process(std::span<PacketView> packets, std::span<std::byte* const> /*findings*/,
               std::size_t /*first*/) override {
    stage_.process(packets);
  }
  bool has_replaced(PacketView packet) const override { return output_.has_frame(packet); }
  void end_batch() override { output_.end_batch(); }
  std::string end() override {
    stage_.reset();
    return output_.end();
  }

 private:
  MadeFunction made_;
  RunOutput output_{made_};
  function::Emitter emitter_;
  function::testing::AttachedStage stage_;
};

/// What a GPU stage does to one packet, run on the host: writes the verdict and the finding. The last argument is what
/// the state stage has written; null: what a stage without flow state would do.
using DeviceCore = std::function<void(PacketView&, std::byte*, const std::byte*)>;

class DeviceRun final : public StageRun {
 public:
  DeviceRun(MadeFunction made, const std::function<DeviceCore(function::NetworkFunction&)>& make_core)
      : made_(std::move(made)), core_(make_core(*made_.function)) {}
  FrameRoom room() const override { return made_.function->traits().growth; }
  std::size_t findings_bytes() const override { return made_.function->traits().findings_bytes; }
  void process(std::span<PacketView> packets, std::span<std::byte* const> findings, std::size_t /*first*/) override {
    for (std::size_t i = 0; i < packets.size(); ++i) core_(packets[i], findings[i], nullptr);
  }

 private:
  MadeFunction made_;
  DeviceCore core_;
};

/// Runs over packets as they were before the GPU stage, with the verdicts that the stage gave.
class FinishRun final : public StageRun {
 public:
  /// `device`: the GPU stage's outcome for the same packets. Borrowed.
  FinishRun(MadeFunction made, const Outcome& device)
      : made_(std::move(made)),
        device_(device),
        twin_(*made_.function),
        stage_(made_.function->make_finish_stage(*twin_)) {
    stage_->set_emitter(emitter_);
  }
  FrameRoom room() const override { return made_.function->traits().growth; }
  void begin_batch(const Batch& batch) override {
    output_.begin_batch(batch, emitter_);
    twin_->begin_batch();
  }
  void process(std::span<PacketView> packets, std::span<std::byte* const> /*findings*/, std::size_t first) override {
    std::vector<PacketView> views(packets.begin(), packets.end());
    std::vector<const std::byte*> findings;
    for (std::size_t i = 0; i < packets.size(); ++i) findings.push_back(device_.findings[first + i].data());
    if (made_.function->traits().finish_waits) {
      std::vector<std::uint8_t> chosen(views.size());
      chosen.resize(stage_->choose(views, findings, chosen));
      for (std::size_t i = 0; i < chosen.size(); ++i) {
        views[i] = views[chosen[i]];
        findings[i] = findings[chosen[i]];
      }
      views.resize(chosen.size());
      findings.resize(chosen.size());
    }
    if (!views.empty()) stage_->finish(views, findings);
    if (made_.function->traits().finish->writes.has(Field::frame_shape)) take_back(packets, first);
  }
  void end_batch() override { output_.end_batch(); }
  std::string end() override {
    stage_.reset();
    twin_.reset();
    return output_.end();
  }

 private:
  /// The packets that are still forwarded come back as the GPU stage left them.
  void take_back(std::span<PacketView> packets, std::size_t first) {
    std::vector<PacketView> returned;
    for (std::size_t i = 0; i < packets.size(); ++i) {
      const Packet& packet = device_.packets[first + i];
      if (!packets[i].packet->verdict.alive()) continue;
      packets[i].frame += static_cast<std::int32_t>(packet.descriptor.offset);
      packets[i].packet->offset += packet.descriptor.offset;
      packets[i].packet->length = packet.descriptor.length;
      packets[i].packet->wire_length = packet.descriptor.wire_length;
      if (!packet.bytes.empty()) std::memcpy(packets[i].frame, packet.bytes.data(), packet.bytes.size());
      returned.push_back(packets[i]);
    }
    if (!returned.empty()) stage_->take_back(returned);
  }

  MadeFunction made_;
  const Outcome& device_;
  RunOutput output_{made_};
  function::Emitter emitter_;
  function::testing::AttachedStage twin_;
  std::unique_ptr<function::FinishStage> stage_;
};

}  // namespace penstock::property
