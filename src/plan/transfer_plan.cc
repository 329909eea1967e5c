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

std::vector<PlannedStage> stages_of(std::span<const function::NfTraits> chain, function::Processor processor) {
  std::vector<PlannedStage> stages;
  for (std::size_t f = 0; f < chain.size(); ++f) {
    const function::NfTraits& nf = chain[f];
    if (processor == function::Processor::gpu && nf.gpu) {
      stages.push_back({function::Processor::gpu, f, false, *nf.gpu, {}, {}});
      if (nf.finish) stages.push_back({function::Processor::cpu, f, true, *nf.finish, {}, {}});
    } else {
      stages.push_back({function::Processor::cpu, f, false, nf.cpu, {}, {}});
    }
  }
  return stages;
}

/// What comes back with the results of a segment (ring/lane.h).
constexpr FieldSet kWithResults{Field::verdict, Field::frame_shape, Field::wire_length};

/// What of a stage's access has fields cross.
Access crossing_access(const PlannedStage& stage) {
  if (!stage.finish) return stage.access;
  const FieldSet writes = stage.access.writes - FieldSet{Field::verdict};
  return {stage.access.reads - (kWithResults - writes), writes};
}

/// What all packets of a batch bring along when they first cross, those of other arms too. Other metadata crosses in
/// records, of the packets that are worked on.
FieldSet with_frames() { return FieldSet::all() - FieldSet{Field::verdict, Field::mark, Field::timestamp}; }

/// Stages [first, last) of a plan.
struct StageRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Walks through the stages in order, along all paths at once.
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

  /// Of the packets on one path.
  struct State {
    FieldSet on_host = FieldSet::all();  // up to date there
    FieldSet on_device;
    FieldSet dropped_since;  // the verdict, once a finish stage has had a say: stale for what begins anew

    /// What holds on both paths.
    void join(const State& other) {
      on_host &= other.on_host;
      on_device &= other.on_device;
    }
  };
  /// By the side that reads.
  struct Wishes {
    FieldSet gpu;
    FieldSet cpu;
    [[nodiscard]] FieldSet of(Processor processor) const { return processor == Processor::gpu ? gpu : cpu; }
    Wishes& operator|=(const Wishes& other) { return gpu |= other.gpu, cpu |= other.cpu, *this; }
  };

  /// The stages from `first` on of functions before `function`.
  [[nodiscard]] StageRange range_of(std::size_t first, std::size_t function) const {
    std::size_t last = first;
    while (last < plan_.stages.size() && plan_.stages[last].function < function) ++last;
    return {first, last};
  }
  [[nodiscard]] StageRange range_of_arm(const Arm& arm) const {
    if (arm.first == arm.last) return {};
    return range_of(range_of(0, arm.first).last, arm.last);
  }
  /// The fields that a side reads from the beginning of the range on, before anyone writes them there or on the other
  /// side: what a crossing at that point can bring along for all of them. `after`: the same where the range ends.
  [[nodiscard]] FieldSet wanted(Processor processor, StageRange range, FieldSet after) const {
    for (std::size_t s = range.last; s-- > range.first;) {
      const Access access = crossing_access(plan_.stages[s]);
      after -= access.writes;  // what crosses now would be stale by then
      if (plan_.stages[s].processor == processor) after |= access.reads;
    }
    return after;
  }
  [[nodiscard]] Wishes wishes(StageRange range, const Wishes& after) const {
    return {wanted(Processor::gpu, range, after.gpu), wanted(Processor::cpu, range, after.cpu)};
  }
  /// Where fork `f` begins: by the packets of its arms from `arm` on, and by those that go straight on.
  [[nodiscard]] Wishes before(std::size_t f, std::size_t arm = 0) const {
    Wishes wishes_there = forks_[f].exhaustive() && arm == 0 ? Wishes{} : wanted_after_[f];
    for (const Arm& a : std::span(forks_[f].arms).subspan(arm))
      wishes_there |= wishes(range_of_arm(a), wanted_after_[f]);
    return wishes_there;
  }
  void find_wanted_after_forks() {
    wanted_after_.resize(forks_.size());
    for (std::size_t f = forks_.size(); f-- > 0;) {
      const bool last = f + 1 == forks_.size();
      const std::size_t begin = range_of(0, forks_[f].last).last;
      const std::size_t end = last ? plan_.stages.size() : range_of(begin, forks_[f + 1].first).last;
      wanted_after_[f] = wishes({begin, end}, last ? Wishes{} : before(f + 1));
    }
  }

  /// The arms one after the other; the host decides about them, and when they join again.
  void pass(std::size_t f) {
    bring_home();
    at_fork_ = now_;
    joined_.reset();
    for (std::size_t a = 0; a < forks_[f].arms.size(); ++a) {
      const StageRange range = range_of_arm(forks_[f].arms[a]);
      others_want_ = before(f, a + 1).gpu;
      now_ = *at_fork_;
      begin_anew();
      if (range.first != range.last) take(range, wanted_after_[f]);
      bring_home();
      join();
    }
    if (!forks_[f].exhaustive()) {
      now_ = *at_fork_;
      join();
    }
    now_ = *joined_;
    begin_anew();
    at_fork_.reset();
    joined_.reset();
    others_want_ = {};
  }
  void join() {
    if (joined_) now_.join(*joined_);
    joined_ = now_;
  }
  /// A stage on the device is told whose packets are its own, by the verdicts.
  void begin_anew() {
    now_.on_device -= FieldSet{Field::verdict};
    now_.dropped_since = {};
  }
  void bring_home() {
    const FieldSet fields = FieldSet::all() - now_.on_host;
    if (!fields.empty()) plan_.stages[at_ - 1].to_host_after |= fields;
    now_.on_host = FieldSet::all();
  }

  void take(StageRange range, const Wishes& after) {
    for (at_ = range.first; at_ < range.last; ++at_) {
      PlannedStage& stage = plan_.stages[at_];
      step(stage, wanted(stage.processor, {at_, range.last}, after.of(stage.processor)));
    }
  }

  /// `bring`: what a crossing before it is to bring along.
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
      if (on_gpu && !crossed_) bring |= others_want_ & with_frames();
      // Something must cross now, so all that this side will read crosses with it.
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

  /// The whole batch crosses, the packets of other arms too, which wait where the fork begins or ends.
  void give_to_others(FieldSet fields) {
    if (at_fork_) at_fork_->on_device |= fields;
    if (joined_) joined_->on_device |= fields;
  }

  TransferPlan& plan_;
  std::span<const Fork> forks_;
  std::vector<Wishes> wanted_after_;  // by fork
  std::size_t at_ = 0;                // the stage that is next
  State now_;
  bool crossed_ = false;          // a stage on the device has run: packets have gone there
  std::optional<State> at_fork_;  // of packets whose arms have not been taken yet
  std::optional<State> joined_;   // of those whose arms have
  FieldSet others_want_;          // of both, on the device
};

}  // namespace

bool PlannedStage::divides() const {
  if (processor == function::Processor::gpu) return false;
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

TransferPlan plan_transfers(std::span<const function::NfTraits> chain, function::Processor processor,
                            std::span<const Fork> forks) {
  TransferPlan plan{stages_of(chain, processor), {}};
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
  // Metadata, as the ring lays it out: offset and length of the frame, the rest by their own widths.
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
