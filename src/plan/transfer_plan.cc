// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/transfer_plan.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "packet/field_range.h"
#include "packet/ip.h"
#include "packet/layout.h"

namespace penstock::plan {

namespace {

std::vector<PlannedStage> stages_of(std::span<const function::NfTraits> chain, const Placement& placement) {
  std::vector<PlannedStage> stages;
  for (std::size_t f = 0; f < chain.size(); ++f) {
    const function::NfTraits& nf = chain[f];
    if (is_device(placement[f])) {
      stages.push_back({placement[f], f, false, *nf.gpu, {}, {}});
      if (nf.finish) stages.push_back({function::Processor::cpu, f, true, *nf.finish, {}, {}});
    } else {
      stages.push_back({function::Processor::cpu, f, false, nf.cpu, {}, {}});
    }
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

/// Stages [first, last) of a plan.
struct StageRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Visits the stages in order, along all paths at once.
class Planner {
 public:
  Planner(TransferPlan& plan, std::span<const Fork> forks) : plan_(plan), forks_(forks) {}

  void run() {
    find_wanted_after_forks();
    for (std::size_t f = 0; f < forks_.size(); ++f) {
      take(range_of(at_, forks_[f].first), before(f));
      pass(f);
    }
    take({at_, plan_.stages.size()}, {});
    plan_.to_host_at_end = FieldSet::all() - now_.on_host;
  }

 private:
  using Processor = function::Processor;

  /// The state of packets on one path.
  struct State {
    FieldSet on_host = FieldSet::all();  // fields that are up to date there
    FieldSet on_device;
    FieldSet dropped_since;  // the verdict, if a finish stage may have dropped packets: stale for a new segment

    /// Keeps what is true on both paths.
    void join(const State& other) {
      on_host &= other.on_host;
      on_device &= other.on_device;
    }
  };
  /// By processor that reads.
  struct WantedFields {
    FieldSet gpu;
    FieldSet cpu;
    [[nodiscard]] FieldSet of(Processor processor) const { return processor == Processor::gpu ? gpu : cpu; }
    WantedFields& operator|=(const WantedFields& other) { return gpu |= other.gpu, cpu |= other.cpu, *this; }
  };

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
  /// The fields that a processor reads in the range before either processor writes them, so that a crossing at the
  /// start of the range can bring them for all these reads. `after` are the fields wanted at the end of the range.
  [[nodiscard]] FieldSet wanted(Processor processor, StageRange range, FieldSet after) const {
    for (std::size_t s = range.last; s-- > range.first;) {
      const Access access = crossing_access(plan_.stages[s]);
      after -= access.writes;  // a value that crosses now would be stale by then
      if (plan_.stages[s].processor == processor) after |= access.reads;
    }
    return after;
  }
  [[nodiscard]] WantedFields wanted_by_both(StageRange range, const WantedFields& after) const {
    return {wanted(Processor::gpu, range, after.gpu), wanted(Processor::cpu, range, after.cpu)};
  }
  /// At the start of fork `f`: what packets of the arms starting with `arm` want, and those that bypass the fork.
  [[nodiscard]] WantedFields before(std::size_t f, std::size_t arm = 0) const {
    WantedFields wanted_here = forks_[f].exhaustive() && arm == 0 ? WantedFields{} : wanted_after_[f];
    for (const Arm& a : std::span(forks_[f].arms).subspan(arm))
      wanted_here |= wanted_by_both(range_of_arm(a), wanted_after_[f]);
    return wanted_here;
  }
  void find_wanted_after_forks() {
    wanted_after_.resize(forks_.size());
    for (std::size_t f = forks_.size(); f-- > 0;) {
      const bool last = f + 1 == forks_.size();
      const std::size_t begin = range_of(0, forks_[f].last).last;
      const std::size_t end = last ? plan_.stages.size() : range_of(begin, forks_[f + 1].first).last;
      wanted_after_[f] = wanted_by_both({begin, end}, last ? WantedFields{} : before(f + 1));
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
      others_wanted_ = before(f, a + 1).gpu;
      now_ = *at_fork_;
      start_segment();
      if (range.first != range.last) take(range, wanted_after_[f]);
      return_to_host();
      join();
    }
    if (!forks_[f].exhaustive()) {
      now_ = *at_fork_;
      join();
    }
    now_ = *joined_;
    start_segment();
    at_fork_.reset();
    joined_.reset();
    others_wanted_ = {};
  }
  void join() {
    if (joined_) now_.join(*joined_);
    joined_ = now_;
  }
  /// The device gets new verdicts, which tell its stages which packets to process.
  void start_segment() {
    now_.on_device -= FieldSet{Field::verdict};
    now_.dropped_since = {};
  }
  void return_to_host() {
    const FieldSet fields = FieldSet::all() - now_.on_host;
    if (!fields.empty()) plan_.stages[at_ - 1].to_host_after |= fields;
    now_.on_host = FieldSet::all();
  }

  void take(StageRange range, const WantedFields& after) {
    for (at_ = range.first; at_ < range.last; ++at_) {
      PlannedStage& stage = plan_.stages[at_];
      step(stage, wanted(stage.processor, {at_, range.last}, after.of(stage.processor)));
    }
  }

  /// `bring`: the fields that a crossing before the stage brings along.
  void step(PlannedStage& stage, FieldSet bring) {
    const bool on_gpu = stage.processor == Processor::gpu;
    FieldSet& here = on_gpu ? now_.on_device : now_.on_host;
    FieldSet& there = on_gpu ? now_.on_host : now_.on_device;
    const Access access = crossing_access(stage);
    if (stage.finish) {
      stage.to_host = (stage.access.reads - access.reads - now_.on_host) & now_.on_device;
      now_.on_host |= stage.to_host;
    }
    if (!(access.reads - here).empty()) {
      if (on_gpu) now_.on_device -= std::exchange(now_.dropped_since, {});
      if (on_gpu && !crossed_) bring |= others_wanted_ & with_frames();
      // Something must cross now, so everything that this processor will read crosses with it.
      const FieldSet crossing = (bring - here) & there;
      (on_gpu ? stage.to_device : stage.to_host) |= crossing;
      here |= crossing;
      if (on_gpu && !crossed_) give_to_others(crossing & with_frames());
    }
    crossed_ |= on_gpu;
    here |= access.writes;
    there -= access.writes;
    if (stage.finish) now_.dropped_since |= stage.access.writes & FieldSet{Field::verdict};
    if (stage.divides()) now_.on_device -= std::exchange(now_.dropped_since, {});
  }

  /// The whole batch crosses, including packets of other arms that wait at the start or end of the fork.
  void give_to_others(FieldSet fields) {
    if (at_fork_) at_fork_->on_device |= fields;
    if (joined_) joined_->on_device |= fields;
  }

  TransferPlan& plan_;
  std::span<const Fork> forks_;
  std::vector<WantedFields> wanted_after_;  // by fork
  std::size_t at_ = 0;                      // index of the next stage
  State now_;
  bool crossed_ = false;          // a stage has run on the device, so the packets are there
  std::optional<State> at_fork_;  // for packets whose arms are still to be visited
  std::optional<State> joined_;   // for packets whose arms were visited
  FieldSet others_wanted_;        // the fields that both want on the device
};

}  // namespace

bool PlannedStage::divides() const {
  if (is_device(processor)) return false;
  return !finish || !(to_host - kWithResults).empty() || !crossing_access(*this).writes.empty();
}

FieldSet TransferPlan::to_device() const {
  FieldSet fields;
  for (const PlannedStage& stage : stages) fields |= stage.to_device;
  return fields;
}

FieldSet TransferPlan::to_host() const {
  FieldSet fields = to_host_at_end;
  for (const PlannedStage& stage : stages) fields |= stage.to_host | stage.to_host_after;
  return fields;
}

Placement place_on(function::Processor processor, std::span<const function::NfTraits> chain) {
  Placement placement;
  for (const function::NfTraits& nf : chain)
    placement.push_back(processor == function::Processor::gpu && nf.gpu ? processor : function::Processor::cpu);
  return placement;
}

TransferPlan plan_transfers(std::span<const function::NfTraits> chain, const Placement& placement,
                            std::span<const Fork> forks) {
  TransferPlan plan{stages_of(chain, placement), {}};
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
