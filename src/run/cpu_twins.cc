// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/cpu_twins.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "base/log.h"
#include "function/burst.h"
#include "function/connection_keeper.h"
#include "function/stack_use.h"
#include "plan/device_plan.h"

namespace penstock::run {

namespace {

constexpr FieldSet kLinkAddresses{Field::eth_dst, Field::eth_src};

FieldSet all_reads(const Chain& chain) {
  FieldSet reads;
  for (const NamedFunction& f : chain.functions) reads |= f.function->traits().cpu.reads;
  return reads;
}

std::vector<stack::StackUse> stack_uses(const Chain& chain, std::span<const plan::DevicePlan::Run> runs) {
  std::vector<stack::StackUse> uses;
  std::size_t run = 0;
  for (std::size_t f = 0; f < chain.functions.size(); ++f) {
    while (run < runs.size() && f >= runs[run].last) ++run;
    stack::StackUse use = function::stack_use(*chain.functions[f].function);
    // Functions in different arms of a fork see different packets. Both terms only grow along the chain.
    use.run = run + plan::section_of(chain.forks, f);
    use.in_batches = run < runs.size() && is_device(runs[run].processor);
    uses.push_back(use);
  }
  return uses;
}

std::uint64_t nanoseconds_between(Batch::Clock::time_point from, Batch::Clock::time_point to) noexcept {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count());
}

/// Removes packets that left the chain at this function and counts them. `bytes` is the length of all frames, and
/// becomes that of the remaining ones. `holds`: consumed packets are held, and counted as such.
std::span<PacketView> keep_alive(std::span<PacketView> packets, std::uint8_t index, std::string_view name,
                                 unsigned worker, bool holds, FunctionCounters& counters,
                                 std::uint64_t& bytes) noexcept {
  std::size_t alive = 0;
  for (PacketView& packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    verdict.nf = index;
    if (verdict.alive()) {
      packets[alive++] = packet;
      continue;
    }
    const std::uint64_t length = packet.length();
    bytes -= length;
    switch (verdict.kind) {
      case VerdictKind::drop:
        if (verdict.value >= counters.dropped.size())
          broken_invariant(name, worker, *packet.packet, "drops for a reason that it does not declare");
        counters.dropped[verdict.value].add(1, length);
        break;
      case VerdictKind::consume:
        if (!holds) counters.consumed.add(1, length);
        break;
      // A punt means "finish on the CPU path", and this is that path.
      case VerdictKind::punt: broken_invariant(name, worker, *packet.packet, "the CPU twin punts");
      case VerdictKind::forward: break;
    }
  }
  return packets.first(alive);
}

}  // namespace

void broken_invariant(std::string_view function, unsigned worker, const PacketDescriptor& packet,
                      const char* what) noexcept {
  log_error("{}: {} (packet {} of worker {})", function, what, packet.sequence, worker);
  std::abort();
}

CpuTwins::CpuTwins(const Chain& chain, std::span<const plan::DevicePlan::Run> runs, unsigned worker,
                   WorkerCounters& counters, function::Emitter& emitter, std::size_t batches, Taps* taps)
    : chain_(chain),
      emitter_(emitter),
      worker_(worker),
      counters_(counters),
      capture_(taps != nullptr ? &taps->capture : nullptr),
      stack_(all_reads(chain), stack_uses(chain, runs), worker) {
  bool is_link_written = false;
  for (const NamedFunction& f : chain.functions) {
    const function::NfTraits& traits = f.function->traits();
    functions_.push_back(
        {traits, f.name, traits.cpu.writes.has(Field::frame_shape), changes_bytes(traits.cpu), is_link_written});
    is_link_written |= !(traits.cpu.writes & kLinkAddresses).empty();
    if (traits.asks_for_arrivals && arrivals_ == nullptr) {
      arrivals_ = std::make_unique<function::Arrivals>(function::kBurst);
      emitter_.know_arrivals(arrivals_.get());
    }
    if (connections_ == nullptr)
      connections_ = function::make_connections(*f.function, batches * chain.settings.batch_packets);
  }
}

void CpuTwins::begin_epoch(StageSet& next) noexcept {
  const StageSet* const before = in_use_;
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    const function::NfTraits& traits = functions_[i].traits;
    if (traits.emits || traits.replaces_frames || traits.asks_for_arrivals) next.twins[i]->set_emitter(emitter_);
    if (connections_ != nullptr && traits.connections) next.twins[i]->set_connections(*connections_);
  }
  switch_to(next);
  if (before == nullptr) make_room_to_hold();
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (before != nullptr) next.twins[i]->take_over(*before->twins[i]);
  }
}

void CpuTwins::switch_to(const StageSet& epoch) noexcept {
  in_use_ = &epoch;
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    functions_[i].stage = epoch.twins[i].get();
    functions_[i].holding = dynamic_cast<function::HoldingStage*>(epoch.twins[i].get());
    functions_[i].deferring = dynamic_cast<function::DeferringStage*>(epoch.twins[i].get());
    stack::Attachment* const attachment = stack_.attachment(i);
    if (attachment != nullptr) functions_[i].stage->attach(*attachment);
  }
}

void CpuTwins::end() noexcept {
  if (in_use_ != nullptr) {
    begin_batch();  // the last one
    stack_.finish();
  }
  in_use_ = nullptr;
}

void CpuTwins::begin_batch() noexcept {
  if (connections_ != nullptr) connections_->pass_boundary();
  for (Function& function : functions_) {
    function.stage->begin_batch();
    if (function.holding != nullptr && function.holding->has_news()) function.has_news = true;
  }
}

/// Skips functions in arms that packets of its port cannot take. Which port a fork would choose for it is unknown.
void CpuTwins::observe(PacketView packet) noexcept {
  parse({&packet, 1}, false);  // the descriptor still has the layout of an earlier batch's packet
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    const auto arm = plan::arm_of(chain_.forks, i);
    if (!arm || chain_.forks[arm->fork].arms[arm->arm].admits(packet.packet->in_port))
      functions_[i].stage->observe(packet);
  }
}

void CpuTwins::parse(std::span<const PacketView> burst, bool as_arrived) noexcept {
  const Clock::time_point start = Clock::now();
  stack_.prepare(burst);
  if (arrivals_ != nullptr) {
    arrivals_->forget();
    if (as_arrived) arrivals_->add(burst);
  }
  counters_.stack_time_ns.add(nanoseconds_between(start, Clock::now()));
}

void CpuTwins::share_connections(HandOver& hand_over) {
  if (connections_ == nullptr) return;
  hand_over_ = &hand_over;
  connections_->share(hand_over.owners(), worker_);
}

std::span<PacketView> CpuTwins::keep_own(std::span<PacketView> burst) noexcept {
  if (hand_over_ == nullptr) return burst;
  const Clock::time_point start = Clock::now();
  const std::span<PacketView> own = connections_->keep_own(burst, [this](PacketView packet, unsigned owner) noexcept {
    if (HandOver::was_given(packet)) return false;
    const bool is_given = hand_over_->give(worker_, owner, packet);
    packet.packet->verdict = is_given ? Verdict::punt() : Verdict::drop(ChainDrop::hand_over_full);
    report::Traffic& full = counters_.dropped_by_chain[static_cast<std::size_t>(ChainDrop::hand_over_full)];
    (is_given ? counters_.handed_over : full).add(1, packet.length());
    return true;
  });
  for (const PacketView packet : own) packet.packet->mark = 0;
  counters_.stack_time_ns.add(nanoseconds_between(start, Clock::now()));
  return own;
}

std::span<PacketView> CpuTwins::run(std::span<PacketView> burst, std::size_t first, std::size_t last) noexcept {
  for (const plan::Fork& fork : chain_.forks) {
    if (fork.first < first || fork.first >= last) continue;
    burst = run_straight(burst, first, fork.first);
    burst = run_fork(fork, burst);
    first = fork.last;
  }
  return run_straight(burst, first, last);
}

std::span<PacketView> CpuTwins::run_fork(const plan::Fork& fork, std::span<PacketView> burst) noexcept {
  // Chosen for the whole burst before any function of the arms changes the fields that the choice depends on.
  std::array<std::uint8_t, function::kBurst> arms;
  for (std::size_t i = 0; i < burst.size(); ++i) arms[i] = fork.arm_of(*burst[i].packet);
  std::array<PacketView, function::kBurst> group;
  for (std::size_t a = 0; a < fork.arms.size(); ++a) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < burst.size(); ++i) {
      if (arms[i] == a) group[count++] = burst[i];
    }
    if (count == 0) continue;
    const std::span<PacketView> left =
        run_straight(std::span(group).first(count), fork.arms[a].first, fork.arms[a].last);
    // Functions may have moved the start of frames.
    auto next = left.begin();
    for (std::size_t i = 0; i < burst.size() && next != left.end(); ++i) {
      if (burst[i].packet == next->packet) burst[i] = *next++;
    }
  }
  const auto end = std::remove_if(burst.begin(), burst.end(), [](PacketView p) { return !p.packet->verdict.alive(); });
  return burst.first(static_cast<std::size_t>(end - burst.begin()));
}

std::span<PacketView> CpuTwins::run_straight(std::span<PacketView> burst, std::size_t first,
                                             std::size_t last) noexcept {
  std::span<PacketView> alive = burst;
  std::uint64_t bytes = function::frame_bytes(alive);
  Clock::time_point before = Clock::now();
  for (std::size_t i = first; i < last && !alive.empty();) {
    const std::size_t end = stack_.lockstep_end(i);
    if (end == i + 1) {
      alive = run_timed(i, alive, bytes, before);
    } else {
      alive = run_in_lockstep(i, end, alive, bytes, before);
    }
    i = end;
  }
  return alive;
}

std::span<PacketView> CpuTwins::run_in_lockstep(std::size_t first, std::size_t last, std::span<PacketView> alive,
                                                std::uint64_t& bytes, Clock::time_point& before) noexcept {
  std::size_t left = 0;
  bytes = 0;
  for (PacketView& packet : alive) {
    std::span<PacketView> one(&packet, 1);
    std::uint64_t length = packet.length();
    for (std::size_t i = first; i < last && !one.empty(); ++i) one = run_timed(i, one, length, before);
    stack_.end_lockstep(first);
    if (one.empty()) continue;
    bytes += length;
    alive[left++] = packet;
  }
  return alive.first(left);
}

std::span<PacketView> CpuTwins::run_timed(std::size_t index, std::span<PacketView> alive, std::uint64_t& bytes,
                                          Clock::time_point& before) noexcept {
  alive = run_function(index, alive, bytes);
  const Clock::time_point after = Clock::now();
  counters_.functions[index].time_ns.add(nanoseconds_between(before, after));
  before = after;
  return alive;
}

std::span<PacketView> CpuTwins::run_traced(PacketView& packet, TracedWay& way, std::size_t first,
                                           std::size_t last) noexcept {
  const auto alive = [&packet] { return packet.packet->verdict.alive(); };
  for (const plan::Fork& fork : chain_.forks) {
    if (fork.first < first || fork.first >= last) continue;
    static_cast<void>(run_straight_traced(packet, way, first, fork.first));
    first = fork.last;
    if (!alive()) continue;
    const std::uint8_t taken = fork.arm_of(*packet.packet);
    const plan::Arm* const arm = taken == plan::Fork::kNoArm ? nullptr : &fork.arms[taken];
    way.take(arm);
    if (arm != nullptr) static_cast<void>(run_straight_traced(packet, way, arm->first, arm->last));
  }
  return run_straight_traced(packet, way, first, last);
}

std::span<PacketView> CpuTwins::run_straight_traced(PacketView& packet, TracedWay& way, std::size_t first,
                                                    std::size_t last) noexcept {
  std::uint64_t bytes = packet.length();
  const auto alive = [&packet] { return packet.packet->verdict.alive(); };
  for (std::size_t i = first; i < last && alive();) {
    const std::size_t begin = i;
    const std::size_t end = stack_.lockstep_end(i);
    for (; i < end && alive(); ++i) {
      way.before(functions_[i].traits, *functions_[i].stage, functions_[i].name, packet);
      static_cast<void>(run_function(i, {&packet, 1}, bytes));
      // Such a stage consumes no packets.
      way.after(packet, functions_[i].holding != nullptr && packet.packet->verdict.kind == VerdictKind::consume);
    }
    stack_.end_lockstep(begin);
  }
  return std::span(&packet, alive() ? 1 : 0);
}

std::span<PacketView> CpuTwins::run_function(std::size_t index, std::span<PacketView> alive,
                                             std::uint64_t& bytes) noexcept {
  Function& function = functions_[index];
  FunctionCounters& counters = counters_.functions[index];
  counters.in.add(alive.size(), bytes);
  std::optional<CapturedBurst> captured;
  if (capture_ != nullptr && capture_->wants(index)) captured.emplace(capture_->join(), alive, function.changes_bytes);
  if (function.changes_shape) {
    bytes = process_and_settle(function, alive);
  } else {
    function.stage->process(alive);
  }
  stack_.settle(index);
  if (function.holding != nullptr) hold_some(index, alive);
  if (captured) captured->processed(alive);
  const std::span<PacketView> left = keep_alive(alive, static_cast<std::uint8_t>(index), function.name, worker_,
                                                function.holding != nullptr, counters, bytes);
  counters.forwarded.add(left.size(), bytes);
  return left;
}

bool CpuTwins::begin(std::size_t function, std::span<PacketView> burst) noexcept {
  if (capture_ != nullptr && capture_->wants(function)) return false;
  const Clock::time_point start = Clock::now();
  if (!functions_[function].deferring->begin(burst)) return false;
  FunctionCounters& counters = counters_.functions[function];
  counters.in.add(burst.size(), function::frame_bytes(burst));
  counters.time_ns.add(nanoseconds_between(start, Clock::now()));
  return true;
}

std::span<PacketView> CpuTwins::finish(std::size_t function, std::span<PacketView> burst) noexcept {
  const Clock::time_point start = Clock::now();
  functions_[function].deferring->finish();
  stack_.settle(function);
  FunctionCounters& counters = counters_.functions[function];
  std::uint64_t bytes = function::frame_bytes(burst);
  const std::span<PacketView> left = keep_alive(burst, static_cast<std::uint8_t>(function), functions_[function].name,
                                                worker_, false, counters, bytes);
  counters.forwarded.add(left.size(), bytes);
  counters.time_ns.add(nanoseconds_between(start, Clock::now()));
  return left;
}

/// Runs a function that may move the bounds of frames, and updates everything that depends on them. Returns the new
/// total length of the frames.
std::uint64_t CpuTwins::process_and_settle(Function& function, std::span<PacketView> packets) noexcept {
  struct Bounds {
    std::uint8_t* first;
    std::uint32_t length;
    std::uint32_t offset;
    std::uint32_t wire_length;
  };
  std::array<Bounds, function::kBurst> before;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const PacketDescriptor& packet = *packets[i].packet;
    before[i] = {packets[i].frame, packet.length, packet.offset, packet.wire_length};
  }
  const function::Emissions* const emissions = function.traits.replaces_frames ? emitter_.goes_into() : nullptr;
  const std::size_t replaced_before = emissions != nullptr ? emissions->frames_used() : 0;
  function.stage->process(packets);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const PacketView& packet = packets[i];
    PacketDescriptor& descriptor = *packet.packet;
    if (emissions != nullptr && emissions->has_frame(packet.frame, replaced_before)) {
      if (!emissions->has_frame(packet.frame + descriptor.length - 1, replaced_before))
        broken_invariant(function.name, worker_, descriptor, "extends a frame by more than it declares");
      descriptor.offset = emissions->offset_of(packet.frame);
      descriptor.wire_length = descriptor.length;
      bytes += descriptor.length;
      continue;
    }
    const std::ptrdiff_t head = before[i].first - packet.frame;
    const std::ptrdiff_t tail = packet.frame + descriptor.length - (before[i].first + before[i].length);
    if (head > static_cast<std::ptrdiff_t>(function.traits.growth.head) ||
        tail > static_cast<std::ptrdiff_t>(function.traits.growth.tail)) {
      broken_invariant(function.name, worker_, descriptor, "extends a frame by more than it declares");
    }
    // Set here even if the function has updated it itself.
    descriptor.offset = static_cast<std::uint32_t>(before[i].offset - head);
    descriptor.wire_length = before[i].wire_length + descriptor.length - before[i].length;
    bytes += descriptor.length;
  }
  stack_.prepare(packets);
  return bytes;
}

// Packets that functions hold.

void CpuTwins::make_room_to_hold() {
  const FrameRoom room = plan::growth_of(chain_.traits());
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    Function& function = functions_[i];
    if (function.holding != nullptr && may_hold_packets(chain_, i))
      function.held = std::make_unique<HeldPackets>(function.holding->reasons(), room, counters_.functions[i]);
  }
}

bool CpuTwins::holds_packets() const noexcept {
  return std::ranges::any_of(functions_,
                             [](const Function& function) { return function.held && !function.held->empty(); });
}

bool CpuTwins::hold(std::size_t function, PacketView packet) noexcept {
  const auto lacks = functions_[function].holding->lacks(packet);
  HeldPackets* const held = functions_[function].held.get();
  if (held == nullptr) return false;
  const auto connection = connections_ != nullptr ? connections_->let_wait(packet) : HeldPackets::Connection();
  if (!held->take(packet, lacks.value_or(0), !lacks, number_, Clock::now(), connection)) return false;
  packet.packet->verdict = Verdict::consume();
  packet.packet->verdict.nf = static_cast<std::uint8_t>(function);
  return true;
}

void CpuTwins::hold_some(std::size_t index, std::span<const PacketView> packets) noexcept {
  for (const PacketView& packet : packets) {
    if (may_hold(index, packet.packet->verdict)) static_cast<void>(hold(index, packet));
  }
}

void CpuTwins::pass_held(Outlet& outlet, function::Emissions* emissions, std::uint64_t last_number) noexcept {
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (functions_[i].held != nullptr) review(i, outlet, emissions, last_number, false);
  }
}

void CpuTwins::give_up_held(Outlet& outlet, function::Emissions* emissions, std::uint64_t last_number) noexcept {
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (functions_[i].held != nullptr) review(i, outlet, emissions, last_number, true);
  }
}

void CpuTwins::review(std::size_t index, Outlet& outlet, function::Emissions* emissions, std::uint64_t last_number,
                      bool gives_up) noexcept {
  Function& function = functions_[index];
  HeldPackets& held = *function.held;
  const bool news = std::exchange(function.has_news, false);
  const Clock::time_point now = Clock::now();
  if (held.empty() || (!news && !gives_up && !held.is_due(now))) return;
  const function::HoldingStage::Reasons reasons = held.reasons();
  FunctionCounters& counters = counters_.functions[index];
  const bool are_asked = std::any_of(functions_.begin() + static_cast<std::ptrdiff_t>(index) + 1, functions_.end(),
                                     [](const Function& after) { return after.traits.connections.has_value(); });
  HeldPackets::Review review(held, last_number, news, now);
  for (std::span<PacketView> burst = review.next(); !burst.empty(); burst = review.next()) {
    std::uint64_t bytes = function::frame_bytes(burst);
    std::optional<CapturedBurst> captured;
    if (capture_ != nullptr && capture_->wants(index))
      captured.emplace(capture_->join(), burst, function.changes_bytes);
    if (arrivals_ != nullptr) {
      arrivals_->forget();
      if (!function.is_link_written_before) arrivals_->add(burst, function::Arrivals::Part::link_header);
    }
    const std::size_t position = connections_ != nullptr ? connections_->position() : 0;
    function.holding->process_again(burst, news);
    for (std::size_t i = 0; i < burst.size(); ++i) {
      Verdict& verdict = burst[i].packet->verdict;
      if (verdict == Verdict::drop(reasons.lacking) && !gives_up) {
        if (!review.has_waited_long(i)) {
          review.keep(i, function.holding->lacks(burst[i]).value_or(0));
          verdict = Verdict::consume();
          continue;
        }
        verdict = Verdict::drop(reasons.in_vain);
      }
      if (connections_ != nullptr) connections_->go_on(burst[i], review.connection(i), are_asked);
      review.let_go(i);
    }
    if (captured) captured->processed(burst);
    const std::span<PacketView> left =
        keep_alive(burst, static_cast<std::uint8_t>(index), function.name, worker_, true, counters, bytes);
    counters.forwarded.add(left.size(), bytes);
    // What functions emit belongs to this burst alone: there may be more held packets than a batch has.
    if (!left.empty() && emissions != nullptr) emissions->begin(review.batch());
    const std::span<PacketView> passed = left.empty() ? left : run_after(index, left);
    // Their descriptors are not those of their batch, and end here.
    if (connections_ != nullptr) connections_->settle_after(position);
    if (left.empty()) continue;
    outlet.send(passed, emissions);
    outlet.end_held(review.batch().size(), emissions);
  }
}

/// Takes packets that a function has forwarded through the functions after it.
std::span<PacketView> CpuTwins::run_after(std::size_t index, std::span<PacketView> burst) noexcept {
  const auto arm = plan::arm_of(chain_.forks, index);
  if (!arm) return run(burst, index + 1, functions_.size());
  const plan::Fork& fork = chain_.forks[arm->fork];
  return run(run_straight(burst, index + 1, fork.arms[arm->arm].last), fork.last, functions_.size());
}

}  // namespace penstock::run
