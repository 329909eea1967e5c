// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of GPU stages: batches that run over a lane, and the same packets through a CPU twin. Both sides are
// network functions of their own, made alike, so that what they count can be compared too.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "function/network_function.h"
#include "function/testing/attached_stage.h"
#include "gpu/memory.h"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/random_frames.h"
#include "plan/device_plan.h"
#include "ring/lane.h"

namespace penstock::testing {

/// How batches cross.
struct Way {
  std::string name;
  ring::Crossing crossing;
  plan::WholeFrames whole;
};
inline void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
inline const Way kWays[] = {
    {"HeadersThereRecordsBack", ring::Crossing::copy, plan::WholeFrames::where_needed},
    {"FramesThereAndBack", ring::Crossing::copy, plan::WholeFrames::always},
    {"ZeroCopyHeadersThereRecordsBack", ring::Crossing::zero_copy, plan::WholeFrames::where_needed},
    {"ZeroCopyFramesThereAndBack", ring::Crossing::zero_copy, plan::WholeFrames::always},
};

/// A lane for one function, on the current device, with a batch of its own in pinned memory.
class OwnLane {
 public:
  static constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
  static constexpr std::size_t kBatchPackets = 4096;

  OwnLane(function::NetworkFunction& function, const Way& way) {
    const auto plan = plan::plan_device({&function.traits(), 1}, {function::Processor::gpu}, way.whole);
    EXPECT_TRUE(plan);
    EXPECT_EQ(plan->segments.size(), 1U);
    shape_ = plan->segments.at(0);
    ring::LaneStages stages(1);
    stages[0].push_back(function.make_device_stage(function::Processor::gpu, {0, kBatchPackets}));
    const FrameRoom room = plan::room_on_device({&function.traits(), 1}, *plan);
    lane_ = ring::make_device_lane({kBatchBytes, kBatchPackets, room, plan->hash_flows, way.crossing, plan->segments},
                                   std::move(stages));
  }

  [[nodiscard]] Batch& batch() noexcept { return batch_; }
  [[nodiscard]] ring::Lane& lane() noexcept { return *lane_; }
  [[nodiscard]] const ring::SegmentShape& shape() const noexcept { return shape_; }

  /// False when the batch is full.
  bool append(const Frame& frame, PortIndex in_port = 0) {
    return batch_.append(
        frame.bytes,
        {.timestamp_ns = 0, .wire_length = frame.wire_length, .in_port = in_port, .link_type = frame.link_type});
  }
  [[nodiscard]] bool start() noexcept { return lane_->start(batch_, 0, {}); }
  [[nodiscard]] gpu::Progress wait() {
    gpu::Progress progress;
    while ((progress = lane_->progress()) == gpu::Progress::kRunning) continue;
    return progress;
  }

 private:
  gpu::PinnedBuffer<std::uint8_t> bytes_{kBatchBytes};
  std::vector<PacketDescriptor> descriptors_{kBatchPackets};
  Batch batch_{bytes_.span(), descriptors_, {}};
  ring::SegmentShape shape_;
  std::unique_ptr<ring::Lane> lane_;
};

/// A function whose device stages are made from its recipe, as another process would. Borrows the function; all else is
/// its own.
class FromRecipe final : public function::NetworkFunction {
 public:
  FromRecipe(function::NetworkFunction& own, const function::RemoteKernel& kernel) : own_(own), kernel_(kernel) {}

  [[nodiscard]] const function::NfTraits& traits() const noexcept override { return own_.traits(); }
  [[nodiscard]] std::string description() const override { return own_.description(); }
  [[nodiscard]] std::unique_ptr<function::CpuStage> make_cpu_stage() override { return own_.make_cpu_stage(); }
  [[nodiscard]] std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& twin) override {
    return own_.make_state_stage(twin);
  }
  [[nodiscard]] std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override {
    return own_.make_finish_stage(twin);
  }
  [[nodiscard]] std::unique_ptr<DeviceStage> make_device_stage(function::Processor processor,
                                                               const StageUse& use) override {
    if (loaded_ == nullptr) {
      const auto recipe = own_.stage_recipe(processor);
      EXPECT_TRUE(recipe);
      if (!recipe) return nullptr;
      EXPECT_EQ(recipe->kernel, kernel_.name);
      const auto checked = kernel_.check(*recipe);
      EXPECT_TRUE(checked) << to_string(checked.error());
      loaded_ = kernel_.load(*recipe);
      recipe_ = *recipe;
      EXPECT_GT(loaded_->bytes(), 0U);
    }
    return loaded_->make_stage(use);
  }
  /// From which the stages were made.
  [[nodiscard]] const function::StageRecipe& recipe() const noexcept { return recipe_; }
  /// Exchanges the tables for those of its newest recipe. `meanwhile`: its stages pass a batch boundary.
  void replace_tables(const std::function<void()>& meanwhile) {
    const auto recipe = own_.stage_recipe(function::Processor::gpu);
    ASSERT_TRUE(recipe);
    const auto checked = kernel_.check(*recipe);
    ASSERT_TRUE(checked) << to_string(checked.error());
    EXPECT_TRUE(loaded_->replace(*recipe, meanwhile));
  }

 private:
  function::NetworkFunction& own_;
  const function::RemoteKernel kernel_;
  function::StageRecipe recipe_;
  std::unique_ptr<function::LoadedTables> loaded_;
};

/// A frame that came as it is.
inline Frame whole_frame(const PacketBuilder& packet, LinkType link_type = LinkType::ethernet) {
  Frame frame{packet.bytes(), 0, link_type};
  frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
  return frame;
}

class StageTwins {
 public:
  /// Borrows the functions, which were made alike.
  StageTwins(function::NetworkFunction& on_device, function::NetworkFunction& on_host, const Way& way)
      : own_(on_device, way), punts_(on_device), finish_(on_device.make_finish_stage(*punts_)), twin_(on_host) {}

  [[nodiscard]] OwnLane& lane() { return own_; }

  /// Runs the lane's batch on both sides, compares all packets, and empties the batch.
  void run() {
    Batch& batch = own_.batch();
    punts_->begin_batch();
    twin_->begin_batch();
    ASSERT_TRUE(own_.start());
    expect_twins_results();
    batch.reset(0);
  }

  /// A batch boundary on both sides, without a batch.
  void at_boundary() {
    own_.lane().begin_batch();
    punts_->begin_batch();
    twin_->begin_batch();
  }

  [[nodiscard]] std::size_t packets() const { return packets_; }
  [[nodiscard]] std::size_t forwarded() const { return forwarded_; }
  [[nodiscard]] std::size_t punted() const { return punted_; }

 private:
  /// The batch's packets, each with its bytes, as the host parses them.
  struct Copies {
    explicit Copies(Batch& batch) : descriptors(batch.packets().begin(), batch.packets().end()), bytes(batch.size()) {
      for (std::size_t i = 0; i < batch.size(); ++i) {
        bytes[i].resize(descriptors[i].length + 64);
        std::memcpy(bytes[i].data(), batch.view(i).frame, descriptors[i].length);
        views.push_back({bytes[i].data(), &descriptors[i]});
        parse(views[i]);
        descriptors[i].flow_hash = flow_hash(views[i]);
      }
    }
    std::vector<PacketDescriptor> descriptors;
    std::vector<Bytes> bytes;
    std::vector<PacketView> views;
  };

  void expect_twins_results() {
    Batch& batch = own_.batch();
    Copies expected(batch);
    for (std::size_t i = 0; i < batch.size(); i += 64) {
      twin_.process(std::span(expected.views).subspan(i, std::min<std::size_t>(64, batch.size() - i)));
    }
    Copies merged(batch);
    ASSERT_EQ(own_.wait(), gpu::Progress::kDone);
    const ring::SegmentResults& results = own_.lane().results();
    ASSERT_EQ(results.verdicts.size(), batch.size());

    std::vector<PacketView> worked_on;
    std::vector<const std::byte*> findings;
    const std::uint8_t* record = results.records;
    const std::uint8_t* frame = results.frames;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      SCOPED_TRACE("packet " + std::to_string(i));
      const PacketView packet = merged.views[i];
      packet.packet->verdict = results.verdicts[i];
      ++packets_;
      if (packet.packet->verdict.kind == VerdictKind::punt) {
        ASSERT_FALSE(own_.shape().frames_up);
        ++punted_;
        packet.packet->verdict = Verdict::forward();
        PacketView one = packet;
        punts_.process({&one, 1});
      } else {
        worked_on.push_back(packet);
        if (finish_ != nullptr) {
          findings.push_back(results.findings.at(0) + i * own_.shape().stages.at(0).findings_bytes);
        }
        if (packet.packet->verdict.alive() && own_.shape().frames_down) {
          std::memcpy(packet.frame, frame, packet.length());
          frame += aligned_frame(packet.length());
        } else if (packet.packet->verdict.alive() && !own_.shape().down.empty()) {
          PacketDescriptor unparsed = batch.packets()[i];  // the host has not parsed what went straight to the device
          ring::take_layout(record, {packet.frame, &unparsed});
          ring::scatter(own_.shape().down, record, {packet.frame, &unparsed});
          record += own_.shape().down.bytes;
        }
      }
      ASSERT_EQ(packet.packet->verdict, expected.descriptors[i].verdict)
          << "kind " << int(packet.packet->verdict.kind) << " of " << int(expected.descriptors[i].verdict.kind)
          << ", value " << packet.packet->verdict.value << " of " << expected.descriptors[i].verdict.value;
      ASSERT_EQ(merged.bytes[i], expected.bytes[i]);
      forwarded_ += packet.packet->verdict.alive() ? 1 : 0;
    }
    if (finish_ != nullptr && !worked_on.empty()) finish_->finish(worked_on, findings);
  }

  OwnLane own_;
  function::testing::AttachedStage punts_;
  std::unique_ptr<function::FinishStage> finish_;
  function::testing::AttachedStage twin_;
  std::size_t packets_ = 0;
  std::size_t forwarded_ = 0;
  std::size_t punted_ = 0;
};

}  // namespace penstock::testing
