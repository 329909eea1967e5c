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
  FieldSet finish_changes;  // what finish stages change at its end
  FieldSet reads;           // of its stages
  FieldSet stale;           // fields that differ from the CPU's copy on the device when the segment begins
  std::optional<ArmPlace> arm;
  function::Processor processor = function::Processor::cpu;
  bool is_first = false;
  bool packets_are_there = false;  // an earlier segment has sent them
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

/// Whether all packets that come to this function have passed an earlier one that asks about connections. Then its
/// state stage gets what was said there, and reads nothing of the packets.
bool are_connections_known(std::span<const function::NfTraits> chain, std::span<const Fork> forks,
                           std::size_t function) {
  if (!chain[function].connections) return false;
  const auto arm = arm_of(forks, function);
  for (std::size_t f = 0; f < function; ++f) {
    const auto arm_before = arm_of(forks, f);
    if (chain[f].connections && (!arm_before || arm_before == arm)) return true;
  }
  return false;
}

/// Whether the function's state stage, or its finish stage, reads on the host what the segment changes before the
/// function. A finish stage that changes frames reads the returned ones, so it does not count.
bool reads_changed(const function::NfTraits& function, FieldSet state_reads, const Collected& segment) {
  if (!(state_reads & (segment.down | segment.finish_changes)).empty()) return true;
  if (!function.finish || finish_changes_frames(function)) return false;
  const FieldSet read = function.finish->reads & bytes_of_frames();
  return segment.changes_shape ? !read.empty() : !(read & segment.down).empty();
}

/// Groups the plan's stages into segments. A state stage runs before its segment, and a finish stage that does not
/// start a new one at its end. To make the fields that they read available on the host by then, a segment may have to
/// begin with their function. A segment also ends where a fork begins and where an arm ends, since the lane skips
/// packets of other arms by their verdicts.
///
/// The first segment sends the packets, those of all arms. A later one sends them again if its stages need fields that
/// records cannot carry, such as payloads that the host has changed. In an arm it sends only those of its arm, which
/// take the place of all others on the device; so the next segment elsewhere sends its packets again too.
class Collector {
 public:
  Collector(const TransferPlan& plan, std::span<const function::NfTraits> chain, std::span<const Fork> forks)
      : plan_(plan), chain_(chain), forks_(forks) {}

  std::vector<Collected> collect(WholeFrames whole) && {
    for (const Fork& fork : forks_) {
      take(fork.first);
      end_segment();
      const FieldSet at_fork = std::exchange(stale_, {});
      FieldSet joined = fork.exhaustive() ? FieldSet{} : at_fork;
      for (const Arm& arm : fork.arms) {
        stale_ = at_fork;
        take(arm.last);
        end_segment();
        joined |= stale_;
      }
      stale_ = joined;
    }
    take(chain_.size());
    end_segment();
    if (segments_.empty()) return {};
    if (whole == WholeFrames::always) shape_transfers(segments_.back(), true);
    send_what_segments_need(whole);
    return std::move(segments_);
  }

 private:
  /// Takes the remaining stages of functions before `function`.
  void take(std::size_t function) {
    for (; at_ < plan_.stages.size() && plan_.stages[at_].function < function; ++at_) take(plan_.stages[at_]);
  }

  void take(const PlannedStage& stage) {
    if (is_device(stage.processor)) {
      if (open_ && (!stage.brought().empty() || reads_changed(stage.function))) end_segment();
      if (!open_) {
        stale_ -= stage.brought();
        stale_since_ = {};
        begin_segment(stage);
      }
      Collected& segment = segments_.back();
      const bool changes_shape = stage.access.writes.has(Field::frame_shape);
      segment.up |= stage.brought();
      segment.reads |= stage.access.reads;
      segment.changes_shape |= changes_shape;
      segment.last = stage.function + 1;
      stale_ -= stage.access.writes;
      stale_since_ -= stage.access.writes;
      // Everything that a segment changes returns at its end, even if the host does not read it: the host must be able
      // to continue if the device fails later.
      segment.down |= stage.access.writes;
      const function::NfTraits& function = chain_[stage.function];
      if (function.finish) segment.finish_changes |= function.finish->writes;
      segment.shape.stages.push_back(
          {static_cast<std::uint8_t>(stage.function), function.findings_bytes, changes_shape, function.state_bytes});
    } else if (!segments_.empty()) {
      stale_ |= stage.access.writes;
      stale_since_ |= stage.access.writes;
      if (stage.divides()) end_segment();
    }
  }

  [[nodiscard]] bool reads_changed(std::size_t function) const {
    const function::NfTraits& traits = chain_[function];
    const bool knows = are_connections_known(chain_, forks_, function);
    return plan::reads_changed(traits, knows ? FieldSet{} : traits.state_reads, segments_.back());
  }

  void begin_segment(const PlannedStage& stage) {
    Collected& segment = segments_.emplace_back();
    segment.first = stage.function;
    segment.stale = stale_;
    segment.arm = arm_of(forks_, stage.function);
    segment.processor = stage.processor;
    segment.is_first = segments_.size() == 1;
    segment.packets_are_there = !segment.is_first && (!sent_in_ || segment.arm == sent_in_);
    open_ = true;
  }

  void end_segment() {
    if (!std::exchange(open_, false)) return;
    Collected& segment = segments_.back();
    shape_transfers(segment, false);
    if (!segment.shape.sends_packets) return;
    stale_ = stale_since_;
    sent_in_ = segment.is_first ? std::nullopt : segment.arm;
  }

  /// `whole`: all frames return.
  static void shape_transfers(Collected& segment, bool whole) {
    ring::SegmentShape& shape = segment.shape;
    // Decide the way down first: frames that return whole must be up to date on the device, even if no stage there
    // reads all fields.
    const auto record_down = ring::record_layout(segment.down);
    shape.frames_down = whole || segment.changes_shape || !record_down;
    shape.down = shape.frames_down ? *ring::record_layout(segment.down & kCarriedMetadata) : *record_down;
    const FieldSet up = shape.frames_down ? segment.up | segment.stale : segment.up;
    const auto record_up = ring::record_layout(up);
    shape.sends_packets = !segment.packets_are_there || !record_up || up.has(Field::frame_shape);
    if (!shape.sends_packets) shape.up = *record_up;
    shape.verdicts_up = segment.first > 0 || segment.arm;
  }

  /// What a segment sends lasts until the next one that sends packets.
  void send_what_segments_need(WholeFrames whole) {
    for (auto segment = segments_.begin(); segment != segments_.end();) {
      const auto next = std::find_if(segment + 1, segments_.end(), [](auto& s) { return s.shape.sends_packets; });
      ring::SegmentShape& shape = segment->shape;
      shape.frames_up = whole == WholeFrames::always;
      FieldSet reads;
      for (const Collected& s : std::span(segment, next)) {
        // Returned frames are the device's copies, so whole frames must be there.
        shape.frames_up |= s.shape.frames_down || !(s.reads & kBeyondHeaders).empty();
        reads |= s.reads;
      }
      // Packets that are sent again get new descriptors.
      const FieldSet metadata = (segment == segments_.begin() ? segment->up : reads) & kCarriedMetadata;
      shape.up = *ring::record_layout(metadata);
      shape.verdicts_up |= !metadata.empty();
      segment = next;
    }
  }

  const TransferPlan& plan_;
  std::span<const function::NfTraits> chain_;
  std::span<const Fork> forks_;
  std::vector<Collected> segments_;
  std::size_t at_ = 0;  // index of the next stage
  bool open_ = false;
  FieldSet stale_;
  FieldSet stale_since_;             // the same, since the last segment began
  std::optional<ArmPlace> sent_in_;  // if the packets on the device are only those of an arm
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
  void add_segment(const Collected& segment, std::size_t index) { add(segment.processor, segment.last, index); }
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

/// `functions`: of the whole chain.
std::vector<DevicePlan::Run> runs_of(std::span<const Collected> segments, std::span<const Fork> forks,
                                     std::size_t functions) {
  Runs runs(segments, forks);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    runs.add_on_cpu(segments[s].first);
    runs.add_segment(segments[s], s);
  }
  runs.add_on_cpu(functions);
  return std::move(runs).take();
}

DevicePlan plan_shared(std::span<const function::NfTraits> chain, const Processors& processors, WholeFrames whole,
                       std::span<const Fork> forks) {
  const TransferPlan transfers = plan_transfers(chain, processors, forks);
  std::vector<Collected> segments = Collector(transfers, chain, forks).collect(whole);
  DevicePlan plan;
  plan.runs = runs_of(segments, forks, chain.size());
  if (!segments.empty()) plan.device = segments.front().processor;
  for (DevicePlan::Run& run : plan.runs) {
    const bool on_device = is_device(run.processor);
    run.parses = on_device && !forks.empty() && !segments[run.segment].shape.up.empty();
  }
  for (Collected& segment : segments) plan.segments.push_back(std::move(segment.shape));
  for (const PlannedStage& stage : transfers.stages) {
    plan.hash_flows |= is_device(stage.processor) && stage.access.reads.has(Field::flow_hash);
  }
  return plan;
}

std::uint32_t state_bytes(const ring::SegmentShape& segment) {
  std::uint32_t bytes = 0;
  for (const ring::SegmentShape::Stage& stage : segment.stages) bytes += stage.state_bytes;
  return bytes;
}

/// Whether the function can use the layouts that the function before it has left on the device: it gets the same
/// packets, in the same shape.
bool finds_layouts(std::span<const function::NfTraits> chain, const Processors& processors, std::span<const Fork> forks,
                   std::size_t function) {
  if (function == 0 || arm_of(forks, function) != arm_of(forks, function - 1)) return false;
  return is_device(processors[function - 1]) && !finish_changes_frames(chain[function - 1]);
}

/// Plans each function separately. Its changes return after it, so no field has to cross on its own.
DevicePlan plan_unshared(std::span<const function::NfTraits> chain, const Processors& processors, WholeFrames whole,
                         Sharing sharing, std::span<const Fork> forks) {
  DevicePlan plan;
  plan.own_stacks = sharing == Sharing::none;
  std::vector<Collected> segments;
  for (std::size_t f = 0; f < chain.size(); ++f) {
    if (!is_device(processors[f])) continue;
    DevicePlan alone = plan_shared(chain.subspan(f, 1), {processors[f]}, whole, {});
    Collected& segment = segments.emplace_back();
    segment.processor = processors[f];
    segment.first = f;
    segment.last = f + 1;
    segment.arm = arm_of(forks, f);
    segment.shape = std::move(alone.segments.front());
    segment.shape.stages.front().function = static_cast<std::uint8_t>(f);
    segment.shape.verdicts_up |= f > 0 || segment.arm;
    segment.shape.parses = sharing != Sharing::parsing || !finds_layouts(chain, processors, forks, f);
    plan.hash_flows |= alone.hash_flows;
    plan.device = alone.device;
  }
  plan.runs = runs_of(segments, forks, chain.size());
  for (Collected& segment : segments) plan.segments.push_back(std::move(segment.shape));
  return plan;
}

}  // namespace

Result<DevicePlan> plan_device(std::span<const function::NfTraits> chain, const Processors& processors,
                               WholeFrames whole, Sharing sharing, std::span<const Fork> forks) {
  std::optional<function::Processor> device;
  for (const function::Processor processor : processors) {
    if (!is_device(processor)) continue;
    if (device.value_or(processor) != processor)
      return failure(Error{{}, "the functions of a chain run on several devices", "", "one device beside the CPU"});
    device = processor;
  }
  return sharing == Sharing::packets ? plan_shared(chain, processors, whole, forks)
                                     : plan_unshared(chain, processors, whole, sharing, forks);
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
    if (is_device(run.processor)) break;
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
    if (!is_device(run.processor)) continue;
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

namespace {

bool passes_by(const DevicePlan::Run& run, std::span<const std::uint8_t> path) {
  return run.arm && !path.empty() && path[run.arm->fork] != run.arm->arm;
}

}  // namespace

std::size_t round_trips(const DevicePlan& plan, std::span<const std::uint8_t> path) {
  return static_cast<std::size_t>(std::ranges::count_if(
      plan.runs, [&](const DevicePlan::Run& run) { return is_device(run.processor) && !passes_by(run, path); }));
}

CrossingBytes crossing_bytes(const DevicePlan& plan, std::uint32_t frame_length, std::span<const std::uint8_t> path) {
  CrossingBytes bytes;
  const auto frame = static_cast<std::uint32_t>(aligned_frame(frame_length));
  for (const DevicePlan::Run& run : plan.runs) {
    if (!is_device(run.processor)) continue;
    const ring::SegmentShape& segment = plan.segments[run.segment];
    const bool in_other_arm = passes_by(run, path);
    if (segment.sends_packets) {
      bytes.to_device += ring::kIndexBytes;
      // The first segment sends the packets of all arms.
      if (!in_other_arm || run.segment == 0)
        bytes.to_device += segment.frames_up ? frame : std::min(frame, ring::kHeaderBytes);
    }
    if (segment.verdicts_up) bytes.to_device += ring::kVerdictBytes + segment.up.bytes;
    bytes.to_device += state_bytes(segment);
    bytes.to_host += ring::kVerdictBytes;
    for (const ring::SegmentShape::Stage& stage : segment.stages) {
      bytes.to_host += stage.findings_bytes + (stage.changes_shape ? ring::kLengthBytes : 0);
    }
    // Only packets that the segment forwards return.
    if (in_other_arm) continue;
    bytes.to_host += segment.down.bytes;
    if (segment.frames_down) bytes.to_host += frame;
  }
  return bytes;
}

}  // namespace penstock::plan
