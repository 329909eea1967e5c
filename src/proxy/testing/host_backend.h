// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A device of a proxy, for tests without a GPU: stages run on the host, on simulated lanes that leave their results in
// the memory that the tenant maps. It can be slow, fail or be lost.

#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "function/snapshot.h"
#include "gpu/cuda_error.h"
#include "proxy/backend.h"
#include "ring/lane_memory.h"
#include "ring/testing/simulated_lane.h"

namespace penstock::proxy::testing {

/// How the device behaves; a test may change it at any time.
struct HostDevice {
  std::atomic<unsigned> polls{1};  // until a segment is done
  std::atomic<bool> fails{false};
  std::atomic<bool> hangs{false};  // no batch ends, and whoever waits for one waits
  std::atomic<bool> lost{false};
  std::atomic<std::uint64_t> memory{std::uint64_t{16} << 30};
  std::atomic<std::uint32_t> multiprocessors{132};
  std::atomic<int> lanes{0};  // that exist now
  std::atomic<int> timed{0};  // segments that have taken times: each 1 us to the device, 10 us there, 2 us back

  std::atomic<bool> has_green_contexts{true};  // which divide multiprocessors

  /// How many multiprocessors each lane has been made with; 0: all, as all others.
  [[nodiscard]] std::set<std::uint32_t> lane_parts() const {
    const std::lock_guard lock(mutex_);
    return lane_parts_;
  }
  void note(const MultiprocessorPart* part) {
    const std::lock_guard lock(mutex_);
    lane_parts_.insert(part == nullptr ? 0 : part->multiprocessors());
  }
  /// Of the multiprocessors, those that parts have now.
  std::atomic<unsigned> sixteenths_taken{0};

  /// What StageUse::multiprocessors has been, of all stages that lanes have had.
  [[nodiscard]] std::set<std::uint32_t> stage_limits() const {
    const std::lock_guard lock(mutex_);
    return stage_limits_;
  }
  void note(const ring::LaneStages& stages);

 private:
  mutable std::mutex mutex_;  // guards the following members
  std::set<std::uint32_t> lane_parts_;
  std::set<std::uint32_t> stage_limits_;
};

/// Knows what it was made for.
class HostStage final : public ring::testing::SimulatedStage {
 public:
  HostStage(const StageUse& of_lane, Work does, std::function<void()> passes)
      : SimulatedStage(std::move(does), std::move(passes)), use(of_lane) {}
  const StageUse use;
};

inline void HostDevice::note(const ring::LaneStages& stages) {
  const std::lock_guard lock(mutex_);
  for (const auto& segment : stages) {
    for (const auto& stage : segment) {
      if (const auto* const made = dynamic_cast<const HostStage*>(stage.get()))
        stage_limits_.insert(made->use.multiprocessors);
    }
  }
}

/// All stages are SimulatedStages.
class HostLane final : public ring::Lane {
 public:
  HostLane(HostDevice& device, const ring::LaneShape& shape, ring::LaneStages stages, const ring::LaneMemory& memory)
      : device_(device), shape_(shape), memory_(memory), sizes_(shape_), inner_(shape_, std::move(stages), behaviour_) {
    behaviour_.polls_until_done = [this] { return device_.polls.load(); };
    behaviour_.fails = [this] { return device_.fails.load() || device_.lost.load(); };
    ++device_.lanes;
  }
  HostLane(const HostLane&) = delete;
  HostLane& operator=(const HostLane&) = delete;
  ~HostLane() override { --device_.lanes; }

  void exchange_stages(ring::LaneStages& stages) noexcept override {
    device_.note(stages);
    inner_.exchange_stages(stages);
  }
  std::byte* states(std::size_t segment, std::size_t stage) noexcept override {
    return reinterpret_cast<std::byte*>(memory_.states.data()) +
           ring::state_place(shape_.segments[segment], stage, shape_.batch_packets);
  }
  bool start(const Batch& batch, std::size_t segment, std::span<std::uint8_t* const> frames) noexcept override {
    segment_ = segment;
    times_.reset();
    if (std::exchange(timed_, false)) {
      ++device_.timed;
      times_ = {std::chrono::microseconds{1}, std::chrono::microseconds{10}, std::chrono::microseconds{2}};
    }
    const auto& stages = shape_.segments[segment].stages;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (stages[s].state_bytes > 0)
        std::memcpy(inner_.states(segment, s), states(segment, s), batch.size() * stages[s].state_bytes);
    }
    runs_ = inner_.start(batch, segment, frames);
    return runs_;
  }
  gpu::Progress progress() noexcept override {
    if (device_.hangs) return gpu::Progress::kRunning;
    const gpu::Progress progress = device_.lost ? gpu::Progress::kFailed : inner_.progress();
    if (progress == gpu::Progress::kDone) copy_results();
    runs_ = progress == gpu::Progress::kRunning;
    return progress;
  }
  const ring::SegmentResults& results() const noexcept override { return results_; }
  void abandon() noexcept override {
    while (runs_ && device_.hangs) std::this_thread::sleep_for(std::chrono::milliseconds{1});
    runs_ = false;
    inner_.abandon();
  }
  void take_pictures(std::span<const std::uint32_t> packets) noexcept override { inner_.take_pictures(packets); }
  ring::Picture picture(std::size_t stages, std::size_t packet) const noexcept override {
    return inner_.picture(stages, packet);
  }
  std::uint32_t fetch(std::size_t packet, PacketDescriptor& descriptor, std::span<std::uint8_t> to) noexcept override {
    return inner_.fetch(packet, descriptor, to);
  }
  void take_times() noexcept override { timed_ = true; }
  std::optional<Times> times() const noexcept override { return times_; }
  void begin_batch() noexcept override { inner_.begin_batch(); }
  Crossed crossed() const noexcept override { return inner_.crossed(); }

 private:
  void copy_results() {
    const ring::SegmentShape& shape = shape_.segments[segment_];
    const ring::SegmentResults& from = inner_.results();
    const std::size_t count = from.verdicts.size();
    const std::uint32_t* const lengths = from.last_lengths();
    places_.lay_out(shape, count);
    std::uint8_t* const results = memory_.results.data();
    const auto copy = [](void* to, const void* what, std::size_t bytes) {
      if (bytes > 0) std::memcpy(to, what, bytes);
    };
    copy(results, from.verdicts.data(), count * ring::kVerdictBytes);
    results_ = {};
    results_.verdicts = {reinterpret_cast<const Verdict*>(results), count};
    std::size_t alive = 0, frame_bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (!from.verdicts[i].alive()) continue;
      ++alive;
      frame_bytes += aligned_frame(lengths != nullptr ? lengths[i] : inner_.length_of(i));
    }
    for (std::size_t s = 0; s < shape.stages.size(); ++s) {
      const std::size_t findings = count * shape.stages[s].findings_bytes;
      copy(results + places_.findings[s], from.findings[s], findings);
      results_.findings.push_back(findings == 0 ? nullptr
                                                : reinterpret_cast<const std::byte*>(results + places_.findings[s]));
      if (shape.stages[s].changes_shape)
        copy(results + places_.lengths[s], from.lengths[s], count * ring::kLengthBytes);
      results_.lengths.push_back(shape.stages[s].changes_shape
                                     ? reinterpret_cast<const std::uint32_t*>(results + places_.lengths[s])
                                     : nullptr);
    }
    std::uint8_t* const packed = memory_.packed.data() + sizes_.packed_places[segment_];
    std::uint8_t* const frames = packed + aligned_frame(count * shape.down.bytes);
    if (!shape.down.empty()) {
      copy(packed, from.records, alive * shape.down.bytes);
      results_.records = packed;
    }
    if (shape.frames_down) {
      copy(frames, from.frames, frame_bytes);
      results_.frames = frames;
    }
  }

  HostDevice& device_;
  const ring::LaneShape shape_;
  const ring::LaneMemory memory_;
  const ring::LaneSizes sizes_;
  ring::testing::Behaviour behaviour_;
  ring::testing::SimulatedLane inner_;
  std::size_t segment_ = 0;
  bool runs_ = false;
  bool timed_ = false;  // the next segment
  std::optional<Times> times_;
  ring::ResultPlaces places_;
  ring::SegmentResults results_;
};

/// Throws if there are not so many sixteenths.
class HostPart final : public MultiprocessorPart {
 public:
  HostPart(HostDevice& device, Profile profile)
      : device_(device),
        units_(profile.units),
        multiprocessors_(device.multiprocessors / Profile::kWhole * profile.units) {
    if (device_.sixteenths_taken.fetch_add(units_) + units_ <= Profile::kWhole) return;
    device_.sixteenths_taken -= units_;
    throw gpu::CudaError(0, "there are not so many multiprocessors");
  }
  HostPart(const HostPart&) = delete;
  HostPart& operator=(const HostPart&) = delete;
  ~HostPart() override { device_.sixteenths_taken -= units_; }
  std::uint32_t multiprocessors() const noexcept override { return multiprocessors_; }

 private:
  HostDevice& device_;
  const unsigned units_;
  const std::uint32_t multiprocessors_;
};

class HostBackend final : public Backend {
 public:
  HostBackend(HostDevice& device, std::span<const function::RemoteKernel> kernels)
      : device_(device), kernels_(kernels) {}

  std::string device() const override { return "a simulated device"; }
  std::uint64_t memory() const override { return device_.memory; }
  std::uint32_t multiprocessors() const override { return device_.multiprocessors; }
  void select() const override {}
  bool is_lost() const noexcept override { return device_.lost; }
  std::shared_ptr<void> open(std::span<std::uint8_t> /*memory*/) const override { return std::make_shared<int>(); }
  const function::RemoteKernel* kernel(std::string_view name) const noexcept override {
    const auto found = std::ranges::find(kernels_, name, &function::RemoteKernel::name);
    return found == kernels_.end() ? nullptr : &*found;
  }
  std::string kernel_names() const override { return kernels_.empty() ? "" : std::string(kernels_.front().name); }
  void divide_multiprocessors() override {
    if (!device_.has_green_contexts) throw gpu::CudaError(0, "the driver has no green contexts");
  }
  std::shared_ptr<const MultiprocessorPart> take_part(Profile profile) const override {
    return std::make_shared<HostPart>(device_, profile);
  }
  std::unique_ptr<ring::Lane> make_lane(const ring::LaneShape& shape, ring::LaneStages stages,
                                        const ring::LaneMemory& memory, const MultiprocessorPart* part) const override {
    device_.note(part);
    device_.note(stages);
    return std::make_unique<HostLane>(device_, shape, std::move(stages), memory);
  }

 private:
  HostDevice& device_;
  const std::span<const function::RemoteKernel> kernels_;
};

/// Tables whose stages do this. `renew`: what they do with the tables of another recipe; null: they have none.
class HostTables final : public function::LoadedTables {
 public:
  using Work = ring::testing::SimulatedStage::Work;
  struct Loaded {
    Work work;
    std::size_t bytes = 0;
  };
  using Renew = std::function<Loaded(const function::StageRecipe& recipe)>;

  HostTables(Work work, std::size_t bytes, Renew renew = nullptr)
      : renew_(std::move(renew)), bytes_(bytes), works_(std::make_unique<const Work>(std::move(work))) {}
  std::unique_ptr<DeviceStage> make_stage(const StageUse& use) override {
    const auto newest = std::make_shared<function::Snapshot<Work>::Reader>(works_);
    return std::make_unique<HostStage>(
        use,
        [newest](PacketView packet, std::byte* finding, const std::byte* state) {
          return newest->table()(packet, finding, state);
        },
        [newest] { newest->refresh(); });
  }
  bool replace(const function::StageRecipe& recipe, const std::function<void()>& meanwhile) override {
    if (renew_ == nullptr) return false;
    Loaded next = renew_(recipe);
    bytes_ = next.bytes;
    static_cast<void>(works_.publish(std::make_unique<const Work>(std::move(next.work)), meanwhile));
    return true;
  }
  std::size_t bytes() const noexcept override { return bytes_; }
  std::size_t stage_bytes(const StageUse& use) const noexcept override { return use.batch_packets; }

 private:
  const Renew renew_;
  std::size_t bytes_;
  function::Snapshot<Work> works_;
};

}  // namespace penstock::proxy::testing
