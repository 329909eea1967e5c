// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/transfer_plan.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "packet/field_range.h"
#include "packet/ip.h"
#include "packet/layout.h"

namespace penstock::plan {

namespace {

using function::Processor;
constexpr Processor kHost = Processor::cpu;

std::vector<PlannedStage> stages_of(std::span<const function::NfTraits> chain, const Processors& processors) {
  std::vector<PlannedStage> stages;
  for (std::size_t f = 0; f < chain.size(); ++f) {
    const function::NfTraits& nf = chain[f];
    stages.push_back({processors[f], f, false, *nf.access_on(processors[f])});
    if (is_device(processors[f]) && nf.finish) stages.push_back({kHost, f, true, *nf.finish});
  }
  return stages;
}

/// Fields that return with the results of a segment (ring/lane.h).
constexpr FieldSet kWithResults{Field::verdict, Field::frame_shape, Field::wire_length};

/// The part of a stage's access that requires fields to cross.
Access crossing_access(const PlannedStage& stage) {
  if (!stage.finish) return stage.access;
  const FieldSet writes = stage.access.writes - FieldSet{Field::verdict};
  return {stage.access.reads - (kWithResults - writes), writes};
}

/// Fields that cross with each packet of a batch the first time, including packets of other arms. Other metadata
/// crosses in records, only for packets that are processed.
FieldSet with_frames() { return FieldSet::all() - FieldSet{Field::verdict, Field::mark, Field::timestamp}; }

/// Where a packet's fields are up to date: a set of processors for each field, stored as a set of fields for each
/// processor.
class Copies {
 public:
  /// All fields are on the host.
  explicit Copies(std::size_t processors) : on_(processors) { on_[index(kHost)] = FieldSet::all(); }

  [[nodiscard]] FieldSet on(Processor processor) const { return on_[index(processor)]; }
  [[nodiscard]] bool has(Processor processor, FieldSet fields) const { return (fields - on(processor)).empty(); }
  void add(Processor processor, FieldSet fields) { on_[index(processor)] |= fields; }
  /// The processor changes them, so all other copies become stale.
  void change(Processor processor, FieldSet fields) {
    for (FieldSet& copies : on_) copies -= fields;
    add(processor, fields);
  }
  void remove_from_devices(FieldSet fields) {
    for (std::size_t p = 0; p < on_.size(); ++p) {
      if (p != index(kHost)) on_[p] -= fields;
    }
  }
  /// Keeps what is true on both paths.
  void join(const Copies& other) {
    for (std::size_t p = 0; p < on_.size(); ++p) on_[p] &= other.on_[p];
  }
  /// Brings those of these fields that are only on devices to the host. Appends what crosses.
  void bring_to_host(FieldSet fields, std::vector<Crossing>& crossings) {
    for (std::size_t p = 0; p < on_.size(); ++p) {
      const FieldSet crossing = (fields & on_[p]) - on(kHost);
      if (crossing.empty()) continue;
      crossings.push_back({static_cast<Processor>(p), kHost, crossing});
      add(kHost, crossing);
    }
  }
  /// Brings these fields to a processor, from wherever they are. Appends what crosses.
  void bring(FieldSet fields, Processor to, std::vector<Crossing>& crossings) {
    fields -= on(to);
    bring_to_host(fields, crossings);
    fields &= on(kHost);
    if (to == kHost || fields.empty()) return;
    crossings.push_back({kHost, to, fields});
    add(to, fields);
  }

 private:
  static std::size_t index(Processor processor) { return static_cast<std::size_t>(processor); }
  std::vector<FieldSet> on_;  // by processor
};

/// Stages [first, last) of a plan.
struct StageRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Visits the stages in order, along all paths at once.
class Planner {
 public:
  Planner(TransferPlan& plan, std::span<const Fork> forks)
      : plan_(plan),
        forks_(forks),
        processors_(count_processors(plan)),
        now_{Copies(processors_)},
        crossed_(processors_) {}

  void run() {
    find_wanted_after_forks();
    for (std::size_t f = 0; f < forks_.size(); ++f) {
      take(range_of(at_, forks_[f].first), before(f));
      pass(f);
    }
    take({at_, plan_.stages.size()}, nothing());
    now_.copies.bring_to_host(FieldSet::all(), plan_.at_end);
  }

 private:
  /// The state of packets on one path.
  struct State {
    Copies copies;
    FieldSet dropped_since{};  // the verdict, if a finish stage may have dropped packets: stale for a new segment
  };
  /// By processor that reads.
  using WantedFields = std::vector<FieldSet>;

  static std::size_t count_processors(const TransferPlan& plan) {
    std::size_t last = static_cast<std::size_t>(kHost);
    for (const PlannedStage& stage : plan.stages) last = std::max(last, static_cast<std::size_t>(stage.processor));
    return last + 1;
  }
  [[nodiscard]] WantedFields nothing() const { return WantedFields(processors_); }
  static void add(WantedFields& fields, const WantedFields& more) {
    for (std::size_t p = 0; p < fields.size(); ++p) fields[p] |= more[p];
  }

  /// The stages, starting with `first`, of functions before `function`.
  [[nodiscard]] StageRange range_of(std::size_t first, std::size_t function) const {
    std::size_t last = first;
    while (last < plan_.stages.size() && plan_.stages[last].function < function) ++last;
    return {first, last};
  }
  [[nodiscard]] StageRange range_of_arm(const Arm& arm) const {
    if (arm.first == arm.last) return {};
    return range_of(range_of(0, arm.first).last, arm.last);
  }
  /// The fields that each processor reads in the range before any processor writes them, so that a crossing at the
  /// start of the range can bring them for all these reads. `after` are the fields wanted at the end of the range.
  [[nodiscard]] WantedFields wanted(StageRange range, WantedFields after) const {
    for (std::size_t s = range.last; s-- > range.first;) {
      const Access access = crossing_access(plan_.stages[s]);
      for (FieldSet& fields : after) fields -= access.writes;  // a value that crosses now would be stale by then
      after[static_cast<std::size_t>(plan_.stages[s].processor)] |= access.reads;
    }
    return after;
  }
  [[nodiscard]] FieldSet wanted_by(Processor processor, StageRange range, const WantedFields& after) const {
    return wanted(range, after)[static_cast<std::size_t>(processor)];
  }
  /// At the start of fork `f`: what packets of the arms starting with `arm` want, and those that bypass the fork.
  [[nodiscard]] WantedFields before(std::size_t f, std::size_t arm = 0) const {
    WantedFields wanted_here = forks_[f].exhaustive() && arm == 0 ? nothing() : wanted_after_[f];
    for (const Arm& a : std::span(forks_[f].arms).subspan(arm))
      add(wanted_here, wanted(range_of_arm(a), wanted_after_[f]));
    return wanted_here;
  }
  void find_wanted_after_forks() {
    wanted_after_.resize(forks_.size());
    for (std::size_t f = forks_.size(); f-- > 0;) {
      const bool last = f + 1 == forks_.size();
      const std::size_t begin = range_of(0, forks_[f].last).last;
      const std::size_t end = last ? plan_.stages.size() : range_of(begin, forks_[f + 1].first).last;
      wanted_after_[f] = wanted({begin, end}, last ? nothing() : before(f + 1));
    }
  }

  /// Visits the arms one after the other. Packets return to the host where the fork begins, since the host chooses
  /// their arms, and where each arm ends.
  void pass(std::size_t f) {
    return_to_host();
    at_fork_ = now_;
    joined_.reset();
    for (std::size_t a = 0; a < forks_[f].arms.size(); ++a) {
      const StageRange range = range_of_arm(forks_[f].arms[a]);
      others_wanted_ = before(f, a + 1);
      now_ = *at_fork_;
      start_segments();
      if (range.first != range.last) take(range, wanted_after_[f]);
      return_to_host();
      join();
    }
    if (!forks_[f].exhaustive()) {
      now_ = *at_fork_;
      join();
    }
    now_ = *joined_;
    start_segments();
    at_fork_.reset();
    joined_.reset();
    others_wanted_ = nothing();
  }
  void join() {
    if (joined_) now_.copies.join(joined_->copies);
    joined_ = now_;
  }
  /// Devices get new verdicts, which tell their stages which packets to process.
  void start_segments() {
    now_.copies.remove_from_devices(FieldSet{Field::verdict});
    now_.dropped_since = {};
    segment_on_ = kHost;
  }
  void return_to_host() {
    std::vector<Crossing> crossings;
    now_.copies.bring_to_host(FieldSet::all(), crossings);
    if (crossings.empty()) return;
    std::vector<Crossing>& after = plan_.stages[at_ - 1].after;
    after.insert(after.end(), crossings.begin(), crossings.end());
  }

  void take(StageRange range, const WantedFields& after) {
    for (at_ = range.first; at_ < range.last; ++at_) {
      const Processor processor = plan_.stages[at_].processor;
      step(plan_.stages[at_], wanted_by(processor, {at_, range.last}, after),
           wanted_by(processor, {at_, range.last}, nothing()));
    }
  }

  /// `later`: the fields that a crossing before the stage brings along; `here`: those of them that are read before the
  /// next fork or join.
  void step(PlannedStage& stage, FieldSet later, FieldSet here) {
    const Processor processor = stage.processor;
    const bool on_device = is_device(processor);
    const Access access = crossing_access(stage);
    if (stage.finish) now_.copies.bring_to_host(stage.access.reads - access.reads, stage.before);
    FieldSet bring;
    if (!now_.copies.has(processor, access.reads)) {
      bring = later;  // something must cross now, so everything that this processor will read crosses with it
    } else if (on_device && segment_on_ != processor) {
      bring = here;
    }
    if (!now_.copies.has(processor, bring)) cross(stage, bring);
    if (on_device) {
      crossed_[static_cast<std::size_t>(processor)] = true;
      segment_on_ = processor;
    }
    now_.copies.change(processor, access.writes);
    if (stage.finish) now_.dropped_since |= stage.access.writes & FieldSet{Field::verdict};
    if (stage.divides()) {
      now_.copies.remove_from_devices(std::exchange(now_.dropped_since, {}));
      segment_on_ = kHost;
    }
  }

  void cross(PlannedStage& stage, FieldSet fields) {
    if (!is_device(stage.processor)) return now_.copies.bring(fields, stage.processor, stage.before);
    now_.copies.remove_from_devices(std::exchange(now_.dropped_since, {}));
    const bool first = !crossed_[static_cast<std::size_t>(stage.processor)];
    if (first) fields |= others_wanted_[static_cast<std::size_t>(stage.processor)] & with_frames();
    fields -= now_.copies.on(stage.processor);
    now_.copies.bring(fields, stage.processor, stage.before);
    if (first) give_to_others(stage.processor, fields & with_frames());
  }

  /// The whole batch crosses, including packets of other arms that wait at the start or end of the fork.
  void give_to_others(Processor processor, FieldSet fields) {
    if (at_fork_) at_fork_->copies.add(processor, fields);
    if (joined_) joined_->copies.add(processor, fields);
  }

  TransferPlan& plan_;
  std::span<const Fork> forks_;
  const std::size_t processors_;
  std::vector<WantedFields> wanted_after_;  // by fork
  std::size_t at_ = 0;                      // index of the next stage
  State now_;
  Processor segment_on_ = kHost;            // the device whose segment the next stage there continues; kHost: none
  std::vector<bool> crossed_;               // by processor: a stage has run there, so the packets are there
  std::optional<State> at_fork_;            // for packets whose arms are still to be visited
  std::optional<State> joined_;             // for packets whose arms were visited
  WantedFields others_wanted_ = nothing();  // the fields that both want
};

}  // namespace

FieldSet PlannedStage::brought() const {
  FieldSet fields;
  for (const Crossing& crossing : before) {
    if (crossing.to == processor) fields |= crossing.fields;
  }
  return fields;
}

bool PlannedStage::divides() const {
  if (is_device(processor)) return false;
  return !finish || !(brought() - kWithResults).empty() || !crossing_access(*this).writes.empty();
}

std::vector<Crossing> TransferPlan::crossings() const {
  std::vector<Crossing> all;
  for (const PlannedStage& stage : stages) {
    all.insert(all.end(), stage.before.begin(), stage.before.end());
    all.insert(all.end(), stage.after.begin(), stage.after.end());
  }
  all.insert(all.end(), at_end.begin(), at_end.end());
  return all;
}

Processors prefer(Processor processor, std::span<const function::NfTraits> chain) {
  Processors processors;
  for (const function::NfTraits& nf : chain)
    processors.push_back(nf.access_on(processor) != nullptr ? processor : kHost);
  return processors;
}

TransferPlan plan_transfers(std::span<const function::NfTraits> chain, const Processors& processors,
                            std::span<const Fork> forks) {
  TransferPlan plan{stages_of(chain, processors), {}};
  Planner(plan, forks).run();
  return plan;
}

std::uint32_t bytes_of(FieldSet fields, std::uint32_t frame_length) {
  PacketLayout layout;
  layout.network = NetworkLayer::ipv4;
  layout.transport = ip_protocol::kTcp;
  layout.network_offset = 14;
  layout.transport_offset = 34;
  layout.payload_offset = 54;
  layout.end = frame_length;
  layout.flags = PacketLayout::kNetworkHeader | PacketLayout::kTransportHeader;
  std::uint32_t bytes = 0;
  for (unsigned f = 0; f < kByteFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (fields.has(field)) bytes += field_range(field, layout, LinkType::ethernet, frame_length).length;
  }
  // Metadata in the sizes that the ring uses: offset and length of the frame, and the fields' own widths.
  const struct {
    Field field;
    std::uint32_t bytes;
  } metadata[] = {{Field::frame_shape, 8}, {Field::wire_length, 4}, {Field::timestamp, 8}, {Field::in_port, 2},
                  {Field::verdict, 4},     {Field::mark, 4},        {Field::flow_hash, 4}};
  for (const auto& m : metadata) {
    if (fields.has(m.field)) bytes += m.bytes;
  }
  return bytes;
}

}  // namespace penstock::plan
