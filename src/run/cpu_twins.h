// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU stages of a chain's functions. Takes bursts of packets through functions in order, and accounts for the
// packets that end there. Used for the whole chain, for the part between two segments on a device, and for packets that
// cannot continue there. Owned by one worker.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "conntrack/connections.h"
#include "function/deferring_stage.h"
#include "function/holding_stage.h"
#include "packet/batch.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/epoch.h"
#include "run/hand_over.h"
#include "run/held_packets.h"
#include "run/outlet.h"
#include "run/taps.h"
#include "stack/shared_stack.h"

namespace penstock::run {

class CpuTwins {
 public:
  /// Borrows everything but `runs`, the parts of the chain that run on a device; empty if none do. `batches`: the most
  /// in progress at a time. `taps` may be null. Does nothing until an epoch begins.
  CpuTwins(const Chain& chain, std::span<const plan::DevicePlan::Run> runs, unsigned worker, WorkerCounters& counters,
           function::Emitter& emitter, std::size_t batches = 1, Taps* taps = nullptr);

  /// Uses the stages of the next epoch from here on, which take over the state of those in use. They are borrowed until
  /// `end`, or until other stages are in use for good.
  void begin_epoch(StageSet& next) noexcept;
  /// Uses the stages of this epoch, which has begun: packets of another epoch's batch come next.
  void use(const StageSet& epoch) noexcept {
    if (in_use_ != &epoch) switch_to(epoch);
  }
  /// Enters connections of an earlier run. Called before the first packet of any worker.
  void begin() noexcept {
    if (connections_ != nullptr) connections_->pass_boundary();
  }
  /// Marks a batch boundary, at which functions may switch to new tables.
  void begin_batch() noexcept;
  /// Parses the burst with the shared stack. Call once for arriving packets, before `run`. `as_arrived`: no function
  /// has changed them.
  void parse(std::span<const PacketView> burst, bool as_arrived) noexcept;
  /// Packets of this worker's connections may come to other workers, and the other way round. Called once, before the
  /// first packet. Borrows it.
  void share_connections(HandOver& hand_over);
  /// Call once for a burst of arriving packets that are parsed, before `run`: hands over those that belong to other
  /// workers, with the verdict punt, and counts them. Returns the others, in order, moved to the front.
  [[nodiscard]] std::span<PacketView> keep_own(std::span<PacketView> burst) noexcept;
  /// Takes the burst through functions [first, last). All packets must be parsed and have the verdict forward. Each
  /// packet takes its arm of the forks in that range, which must contain forks whole. Returns the packets that
  /// continue, in order, moved to the start of `burst`.
  [[nodiscard]] std::span<PacketView> run(std::span<PacketView> burst, std::size_t first, std::size_t last) noexcept;
  /// Like `run`, for functions that all packets of the burst go through: within one arm, or outside forks.
  [[nodiscard]] std::span<PacketView> run_straight(std::span<PacketView> burst, std::size_t first,
                                                   std::size_t last) noexcept;
  // Functions whose stages defer (function/deferring_stage.h): they may have several bursts at a time.

  [[nodiscard]] bool defers(std::size_t function) const noexcept { return functions_[function].deferring != nullptr; }
  /// Begins the function. The burst must stay where it is. False: nothing has begun; once the function has no bursts,
  /// `run_straight` takes it through.
  [[nodiscard]] bool begin(std::size_t function, std::span<PacketView> burst) noexcept;
  /// Whether the first burst that the function has can be finished.
  [[nodiscard]] bool is_ready(std::size_t function) noexcept { return functions_[function].deferring->is_ready(); }
  /// Finishes it. Returns the packets that continue, as `run` does.
  [[nodiscard]] std::span<PacketView> finish(std::size_t function, std::span<PacketView> burst) noexcept;

  /// Like `run` and `run_straight`, for one packet whose path is recorded in `way`.
  [[nodiscard]] std::span<PacketView> run_traced(PacketView& packet, TracedWay& way, std::size_t first,
                                                 std::size_t last) noexcept;
  [[nodiscard]] std::span<PacketView> run_straight_traced(PacketView& packet, TracedWay& way, std::size_t first,
                                                          std::size_t last) noexcept;
  /// What comes next is done for packets of batch number `number`.
  void begin_numbered(std::uint64_t number) noexcept {
    number_ = number;
    if (connections_ != nullptr) connections_->begin_batch(number);
  }
  /// All functions have decided about the packets of batches up to `last_number`: connections that begin with those
  /// that pass are confirmed. Call it before they are sent.
  void settle_connections(std::uint64_t last_number = std::numeric_limits<std::uint64_t>::max()) noexcept {
    if (connections_ != nullptr) connections_->settle(last_number);
  }

  // Packets that functions hold (function/holding_stage.h), where `may_hold_packets`.

  [[nodiscard]] bool holds_packets() const noexcept;
  /// Whether the function holds packets with this verdict.
  [[nodiscard]] bool may_hold(std::size_t function, Verdict verdict) const noexcept {
    const function::HoldingStage* const holding = functions_[function].holding;
    return holding != nullptr && verdict.kind == VerdictKind::drop && verdict.value == holding->reasons().lacking;
  }
  /// For such a packet, which has a parsed layout, and about which a device may have decided: whether it is held now,
  /// and counted as such. Its verdict is then `consume`. If not, what it lacks has been asked for nevertheless, if it
  /// lacks something.
  [[nodiscard]] bool hold(std::size_t function, PacketView packet) noexcept;
  /// Call it where no packets that came later have been sent. Sends those held packets of batches up to `last_number`
  /// about which their functions can now decide, and drops those that have waited for too long.
  void pass_held(Outlet& outlet, function::Emissions* emissions,
                 std::uint64_t last_number = std::numeric_limits<std::uint64_t>::max()) noexcept;
  /// The same, for all of them: those about which their functions cannot decide are dropped.
  void give_up_held(Outlet& outlet, function::Emissions* emissions,
                    std::uint64_t last_number = std::numeric_limits<std::uint64_t>::max()) noexcept;

  /// Parses the packet, and shows it to the functions without deciding about it.
  void observe(PacketView packet) noexcept;
  /// Call when the function's finish stage has decided about the packets that it was given.
  void settle_flows(std::size_t function) noexcept { stack_.settle(function); }
  /// Ends flows. No packets may follow.
  void end() noexcept;

 private:
  using Clock = Batch::Clock;

  struct Function {
    function::NfTraits traits;  // in all epochs
    std::string_view name;
    bool changes_shape;
    bool changes_bytes;
    bool is_link_written_before;  // by a function before it
    // Of the epoch in use.
    function::CpuStage* stage = nullptr;
    function::HoldingStage* holding = nullptr;      // the same; null: it holds no packets
    function::DeferringStage* deferring = nullptr;  // the same; null: it does not defer
    std::unique_ptr<HeldPackets> held = nullptr;
    bool has_news = false;
  };

  void switch_to(const StageSet& epoch) noexcept;
  void make_room_to_hold();
  void hold_some(std::size_t index, std::span<const PacketView> packets) noexcept;
  void review(std::size_t index, Outlet& outlet, function::Emissions* emissions, std::uint64_t last_number,
              bool gives_up) noexcept;
  [[nodiscard]] std::span<PacketView> run_after(std::size_t index, std::span<PacketView> burst) noexcept;

  [[nodiscard]] std::span<PacketView> run_fork(const plan::Fork& fork, std::span<PacketView> burst) noexcept;

  // `alive` holds forwarded packets; the functions return those that continue. `bytes` is the total frame length,
  // updated by each step. `before` is the time at which the previous step ended, and is updated too.

  /// Takes each packet through functions [first, last) before the next one.
  [[nodiscard]] std::span<PacketView> run_in_lockstep(std::size_t first, std::size_t last, std::span<PacketView> alive,
                                                      std::uint64_t& bytes, Clock::time_point& before) noexcept;
  [[nodiscard]] std::span<PacketView> run_timed(std::size_t index, std::span<PacketView> alive, std::uint64_t& bytes,
                                                Clock::time_point& before) noexcept;
  [[nodiscard]] std::span<PacketView> run_function(std::size_t index, std::span<PacketView> alive,
                                                   std::uint64_t& bytes) noexcept;
  std::uint64_t process_and_settle(Function& function, std::span<PacketView> packets) noexcept;

  const Chain& chain_;
  function::Emitter& emitter_;
  const unsigned worker_;
  WorkerCounters& counters_;
  Capture* const capture_;
  stack::SharedStack stack_;
  std::unique_ptr<conntrack::Connections> connections_;  // null: no function asks about connections
  HandOver* hand_over_ = nullptr;                        // null: packets of all connections come to their worker
  std::unique_ptr<function::Arrivals> arrivals_;         // null: no function asks for packets as they arrived
  std::vector<Function> functions_;
  const StageSet* in_use_ = nullptr;
  std::uint64_t number_ = 0;
};

/// Ends the process because a function, or the code that carries its packets, broke an invariant. The message names
/// function, worker and packet.
[[noreturn]] void broken_invariant(std::string_view function, unsigned worker, const PacketDescriptor& packet,
                                   const char* what) noexcept;

}  // namespace penstock::run
