// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/device_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "packet/batch.h"

namespace penstock::plan {

namespace {

/// Fields that may be beyond the headers, and so are not present if only headers cross.
constexpr FieldSet kBeyondHeaders{Field::tcp_options, Field::payload, Field::trailer};

/// Metadata that records can carry.
constexpr FieldSet kCarriedMetadata{Field::mark, Field::timestamp};

/// A segment while it is being collected from the plan's stages.
struct Collected {
  FieldSet up;
  FieldSet down;
  FieldSet stale;  // fields that differ from the CPU's copy on the device when the segment begins
  bool changes_shape = false;
  std::size_t first = 0;  // function
  std::size_t last = 0;
  ring::SegmentShape shape;
};

FieldSet bytes_of_frames() {
  FieldSet fields;
  for (unsigned f = 0; f < kByteFieldCount; ++f) fields |= {static_cast<Field>(f)};
  return fields;
}

/// Whether the function's finish stage reads bytes on the host that the segment changes on the device. A finish stage
/// that changes frames reads the returned ones, so it does not count.
bool reads_changed(const function::NfTraits& function, const Collected& segment) {
  if (!function.finish || finish_changes_frames(function)) return false;
  const FieldSet read = function.finish->reads & bytes_of_frames();
  return segment.changes_shape ? !read.empty() : !(read & segment.down).empty();
}

/// Groups the plan's stages into segments. A finish stage that does not start a new segment runs at the end of its
/// segment. To make the fields that it reads available on the host by then, a segment may have to begin with its
/// function. A segment also ends where a fork begins and where an arm ends, since the lane skips packets of other arms
/// by their verdicts.
class Collector {
 public:
  Collector(const TransferPlan& plan, std::span<const function::NfTraits> chain, std::span<const Fork> forks)
      : plan_(plan), chain_(chain), forks_(forks) {}

  std::vector<Collected> collect() && {
    for (const Fork& fork : forks_) {
      take(fork.first);
      const FieldSet at_fork = std::exchange(stale_, {});
      FieldSet joined = fork.exhaustive() ? FieldSet{} : at_fork;
      for (const Arm& arm : fork.arms) {
        open_ = false;
        stale_ = at_fork;
        take(arm.last);
        joined |= stale_;
      }
      open_ = false;
      stale_ = joined;
    }
    take(chain_.size());
    return std::move(segments_);
  }

 private:
  /// Takes the remaining stages of functions before `function`.
  void take(std::size_t function) {
    for (; at_ < plan_.stages.size() && plan_.stages[at_].function < function; ++at_) take(plan_.stages[at_]);
  }

  void take(const PlannedStage& stage) {
    if (stage.processor == function::Processor::gpu) {
      open_ = open_ && !reads_changed(chain_[stage.function], segments_.back());
      if (!open_ || !stage.to_device.empty()) {
        stale_ -= stage.to_device;
        segments_.push_back({});
        segments_.back().first = stage.function;
        segments_.back().stale = stale_;
        open_ = true;
      }
      Collected& segment = segments_.back();
      const bool changes_shape = stage.access.writes.has(Field::frame_shape);
      segment.up |= stage.to_device;
      segment.changes_shape |= changes_shape;
      segment.last = stage.function + 1;
      stale_ -= stage.access.writes;
      // Everything that a segment changes returns at its end, even if the host does not read it: the host must be able
      // to continue if the device fails later.
      segment.down |= stage.access.writes;
      const function::NfTraits& function = chain_[stage.function];
      segment.shape.stages.push_back(
          {static_cast<std::uint8_t>(stage.function), function.findings_bytes, changes_shape, function.state_bytes});
    } else if (!segments_.empty()) {
      stale_ |= stage.access.writes;
      if (stage.divides()) open_ = false;
    }
  }

  const TransferPlan& plan_;
  std::span<const function::NfTraits> chain_;
  std::span<const Fork> forks_;
  std::vector<Collected> segments_;
  std::size_t at_ = 0;  // index of the next stage
  bool open_ = false;
  FieldSet stale_;
};

/// The runs of a plan, added in order: segments, and CPU runs between them.
class Runs {
 public:
  Runs(std::span<const Collected> segments, std::span<const Fork> forks) : forks_(forks) {
    for (std::size_t f = 0; f < forks.size(); ++f) {
      const auto inside = [&](const Collected& s) { return forks[f].first <= s.first && s.first < forks[f].last; };
      if (std::ranges::any_of(segments, inside)) split_.push_back(f);
    }
  }

  /// Adds the functions before `function` that are not in a run yet.
  void add_on_cpu(std::size_t function) {
    while (next_ < function) add(function::Processor::cpu, std::min(function, next_bound()), 0);
  }
  void add_segment(std::size_t last, std::size_t segment) { add(function::Processor::gpu, last, segment); }
  [[nodiscard]] std::vector<DevicePlan::Run> take() && { return std::move(runs_); }

 private:
  void add(function::Processor processor, std::size_t last, std::size_t segment) {
    DevicePlan::Run& run = runs_.emplace_back(DevicePlan::Run{processor, next_, last, segment});
    for (const std::size_t f : split_) {
      if (forks_[f].first == next_) run.fork = f;
      if (forks_[f].first <= next_ && next_ < forks_[f].last) run.arm = arm_of(forks_, next_);
    }
    next_ = last;
  }
  /// The next position after `next_` where a fork with a device stage begins, or an arm of one ends.
  [[nodiscard]] std::size_t next_bound() const {
    std::size_t bound = std::numeric_limits<std::size_t>::max();
    const auto offer = [&](std::size_t at) {
      if (at > next_) bound = std::min(bound, at);
    };
    for (const std::size_t f : split_) {
      offer(forks_[f].first);
      for (const Arm& arm : forks_[f].arms) offer(arm.last);
    }
    return bound;
  }

  std::span<const Fork> forks_;
  std::vector<std::size_t> split_;  // forks with a device stage, whose arms become separate runs
  std::vector<DevicePlan::Run> runs_;
  std::size_t next_ = 0;  // next function
};

Error cannot_cross(const function::NfTraits& before, FieldSet fields) {
  Error error;
  error.message = fmt::format("{} cannot run on the GPU after a function on the CPU", before.name);
  error.found = fmt::format("variable-length fields that must cross PCIe between them: {}", to_string(fields));
  error.expected = "fixed-length fields, or processor: cpu";
  return error;
}

Result<DevicePlan> plan_shared(std::span<const function::NfTraits> chain, WholeFrames whole,
                               std::span<const Fork> forks) {
  const TransferPlan transfers = plan_transfers(chain, function::Processor::gpu, forks);
  std::vector<Collected> segments = Collector(transfers, chain, forks).collect();
  DevicePlan plan;
  Errors errors;
  Runs runs(segments, forks);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    Collected& segment = segments[s];
    ring::SegmentShape& shape = segment.shape;
    const bool first = s == 0;
    const bool last = s + 1 == segments.size();
    runs.add_on_cpu(segment.first);
    runs.add_segment(segment.last, s);
    shape.sends_packets = first;
    shape.verdicts_up = segment.first > 0 || arm_of(forks, segment.first);

    // Decide the way down first: frames that return whole must have gone up whole.
    const auto record_down = ring::record_layout(segment.down);
    const bool always = whole == WholeFrames::always && last;
    shape.frames_down = always || segment.changes_shape || !record_down;
    if (shape.frames_down) {
      shape.down = *ring::record_layout(segment.down & kCarriedMetadata);
    } else {
      shape.down = *record_down;
    }
    if (first) {
      shape.frames_up = whole == WholeFrames::always || !(segment.up & kBeyondHeaders).empty();
      const FieldSet metadata = segment.up & kCarriedMetadata;
      shape.up = *ring::record_layout(metadata);
      shape.verdicts_up |= !metadata.empty();
      continue;
    }
    // Frames that return whole must be up to date on the device, even if no stage there reads all fields.
    if (shape.frames_down) segment.up |= segment.stale;
    if (const auto record_up = ring::record_layout(segment.up); record_up && !segment.up.has(Field::frame_shape)) {
      shape.up = *record_up;
    } else {
      errors.push_back(cannot_cross(chain[segment.first], segment.up));
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  // Returned frames are the device's copies, so whole frames must be there.
  const bool any_frames_down = std::ranges::any_of(segments, [](const Collected& s) { return s.shape.frames_down; });
  if (!segments.empty()) segments.front().shape.frames_up |= any_frames_down;
  runs.add_on_cpu(chain.size());
  plan.runs = std::move(runs).take();
  for (DevicePlan::Run& run : plan.runs) {
    const bool on_gpu = run.processor == function::Processor::gpu;
    run.parses = on_gpu && !forks.empty() && !segments[run.segment].shape.up.empty();
  }
  for (Collected& segment : segments) plan.segments.push_back(std::move(segment.shape));
  for (const PlannedStage& stage : transfers.stages) {
    plan.hash_flows |= stage.processor == function::Processor::gpu && stage.access.reads.has(Field::flow_hash);
  }
  return plan;
}

std::uint32_t state_bytes(const ring::SegmentShape& segment) {
  std::uint32_t bytes = 0;
  for (const ring::SegmentShape::Stage& stage : segment.stages) bytes += stage.state_bytes;
  return bytes;
}

/// Plans each function separately. Its changes return after it, so no field has to cross on its own.
Result<DevicePlan> plan_unshared(std::span<const function::NfTraits> chain, WholeFrames whole, Sharing sharing) {
  DevicePlan plan;
  for (std::size_t f = 0; f < chain.size(); ++f) {
    if (!chain[f].gpu) {
      if (plan.runs.empty() || plan.runs.back().processor == function::Processor::gpu)
        plan.runs.push_back({function::Processor::cpu, f, f});
      plan.runs.back().last = f + 1;
      continue;
    }
    auto alone = plan_shared(chain.subspan(f, 1), whole, {});
    if (!alone) return alone;
    ring::SegmentShape& shape = alone->segments.front();
    shape.stages.front().function = static_cast<std::uint8_t>(f);
    shape.verdicts_up |= f > 0;
    shape.parses = sharing == Sharing::none || f == 0 || !chain[f - 1].gpu || finish_changes_frames(chain[f - 1]);
    plan.runs.push_back({function::Processor::gpu, f, f + 1, plan.segments.size()});
    plan.segments.push_back(std::move(shape));
    plan.hash_flows |= alone->hash_flows;
  }
  return plan;
}

}  // namespace

Result<DevicePlan> plan_device(std::span<const function::NfTraits> chain, WholeFrames whole, Sharing sharing,
                               std::span<const Fork> forks) {
  if (sharing == Sharing::packets) return plan_shared(chain, whole, forks);
  if (forks.empty()) return plan_unshared(chain, whole, sharing);
  return failure(Error{{},
                       "functions of a chain with forks must share packets on the GPU",
                       fmt::format("sharing: {}", kSharingNames[static_cast<std::size_t>(sharing)]),
                       "sharing: packets"});
}

FrameRoom growth_of(std::span<const function::NfTraits> chain) {
  FrameRoom sum;
  for (const function::NfTraits& nf : chain) {
    sum.head += nf.growth.head;
    sum.tail += nf.growth.tail;
  }
  return sum;
}

std::size_t functions_before_device(const DevicePlan& plan) {
  std::size_t before = 0;
  for (const DevicePlan::Run& run : plan.runs) {
    if (run.processor == function::Processor::gpu) break;
    before = run.last;
  }
  return before;
}

bool sends_packets_again(const DevicePlan& plan) {
  return std::ranges::count_if(plan.segments, &ring::SegmentShape::sends_packets) > 1;
}

FrameRoom room_on_device(std::span<const function::NfTraits> chain, const DevicePlan& plan) {
  FrameRoom room;
  for (const DevicePlan::Run& run : plan.runs) {
    if (run.processor == function::Processor::cpu) continue;
    const FrameRoom of_run = growth_of(chain.subspan(run.first, run.last - run.first));
    room.head += of_run.head;
    room.tail += of_run.tail;
  }
  return room;
}

bool finish_changes_frames(const function::NfTraits& function) {
  return function.finish && !(function.finish->writes - FieldSet{Field::verdict}).empty();
}

std::string describe_up(const ring::SegmentShape& segment) {
  std::string text;
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (segment.sends_packets)
    add(segment.frames_up ? "whole frames" : fmt::format("headers ({} bytes)", ring::kHeaderBytes));
  if (segment.verdicts_up) add("verdicts");
  if (!segment.up.empty()) add(fmt::format("records of {} bytes", segment.up.bytes));
  if (const std::uint32_t bytes = state_bytes(segment); bytes > 0) add(fmt::format("flow state of {} bytes", bytes));
  return text;
}

std::string describe_down(const ring::SegmentShape& segment) {
  std::string text = "verdicts";
  const auto lengths = std::ranges::count_if(segment.stages, &ring::SegmentShape::Stage::changes_shape);
  if (lengths > 0) text += lengths > 1 ? fmt::format(", lengths after {} functions", lengths) : ", lengths";
  if (segment.frames_down) text += ", whole frames";
  if (!segment.down.empty()) text += fmt::format(", records of {} bytes", segment.down.bytes);
  return text;
}

CrossingBytes crossing_bytes(const DevicePlan& plan, std::uint32_t frame_length, std::span<const std::uint8_t> path) {
  CrossingBytes bytes;
  const auto frame = static_cast<std::uint32_t>(aligned_frame(frame_length));
  for (const DevicePlan::Run& run : plan.runs) {
    if (run.processor != function::Processor::gpu) continue;
    const ring::SegmentShape& segment = plan.segments[run.segment];
    if (segment.sends_packets) {
      bytes.to_device += ring::kIndexBytes;
      bytes.to_device += segment.frames_up ? frame : std::min(frame, ring::kHeaderBytes);
    }
    if (segment.verdicts_up) bytes.to_device += ring::kVerdictBytes + segment.up.bytes;
    bytes.to_device += state_bytes(segment);
    bytes.to_host += ring::kVerdictBytes;
    for (const ring::SegmentShape::Stage& stage : segment.stages) {
      bytes.to_host += stage.findings_bytes + (stage.changes_shape ? ring::kLengthBytes : 0);
    }
    // Only packets that the segment forwards return.
    if (run.arm && !path.empty() && path[run.arm->fork] != run.arm->arm) continue;
    bytes.to_host += segment.down.bytes;
    if (segment.frames_down) bytes.to_host += frame;
  }
  return bytes;
}

}  // namespace penstock::plan
