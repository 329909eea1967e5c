// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twins of a chain's functions: they take bursts of packets through functions in order, and account for those
// that end there. For the whole chain, for a part of it between two GPU segments, and for what cannot go on on a GPU.
// One worker's own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "packet/batch.h"
#include "run/chain.h"
#include "run/counters.h"
#include "run/trace.h"
#include "stack/shared_stack.h"

namespace penstock::run {

class CpuTwins {
 public:
  /// Borrows all but the plan, by whose runs the chain goes over a device; empty: it does not.
  CpuTwins(const Chain& chain, std::span<const plan::DevicePlan::Run> runs, unsigned worker, WorkerCounters& counters,
           function::Emitter& emitter);

  /// A batch boundary: functions may take up new tables.
  void begin_batch() noexcept;
  /// Fills in what the shared stack finds; before `run`, once for what comes in.
  void parse(std::span<const PacketView> burst) noexcept;
  /// Takes the burst, parsed and all of it forwarded, through functions [first, last), and each packet through its arm
  /// of the forks there, which must be whole. Returns those that go on: the first of `burst`, in order.
  [[nodiscard]] std::span<PacketView> run(std::span<PacketView> burst, std::size_t first, std::size_t last) noexcept;
  /// The same of functions that all packets of the burst go through, in one arm or in none.
  [[nodiscard]] std::span<PacketView> run_straight(std::span<PacketView> burst, std::size_t first,
                                                   std::size_t last) noexcept;
  /// The whole chain for one packet, with its way written down.
  [[nodiscard]] std::span<PacketView> run_traced(PacketView& packet, Trace::Way& way) noexcept;
  void observe(PacketView packet) noexcept;
  [[nodiscard]] function::CpuStage& stage(std::size_t function) noexcept { return *functions_[function].stage; }
  /// The function's finish stage has decided about the packets that it was given.
  void settle_flows(std::size_t function) noexcept { stack_.settle(function); }
  /// No packet comes any more: flows end, then the stages.
  void end() noexcept;

 private:
  using Clock = Batch::Clock;

  struct Function {
    std::unique_ptr<function::CpuStage> stage;
    std::string_view name;
    bool changes_shape;
    bool replaces_frames;
    FrameRoom growth;
  };

  void run_traced(PacketView& packet, Trace::Way& way, std::size_t first, std::size_t last) noexcept;
  [[nodiscard]] std::span<PacketView> run_fork(const plan::Fork& fork, std::span<PacketView> burst) noexcept;

  // `alive`: forwarded packets; what is returned are those of them that go on. `bytes`: of their frames, before and
  // then after. `before`: when the step before ended, then when this one did.

  /// Through functions [first, last), one packet through all of them before the next one.
  [[nodiscard]] std::span<PacketView> run_in_lockstep(std::size_t first, std::size_t last, std::span<PacketView> alive,
                                                      std::uint64_t& bytes, Clock::time_point& before) noexcept;
  [[nodiscard]] std::span<PacketView> run_timed(std::size_t index, std::span<PacketView> alive, std::uint64_t& bytes,
                                                Clock::time_point& before) noexcept;
  [[nodiscard]] std::span<PacketView> run_function(std::size_t index, std::span<PacketView> alive,
                                                   std::uint64_t& bytes) noexcept;
  std::uint64_t process_and_settle(Function& function, std::span<PacketView> packets) noexcept;

  const Chain& chain_;
  const function::Emitter& emitter_;
  const unsigned worker_;
  WorkerCounters& counters_;
  stack::SharedStack stack_;
  std::vector<Function> functions_;
};

/// A function, or what carries its packets, breaks its promise: the process ends, with function, worker and packet
/// named.
[[noreturn]] void broken_invariant(std::string_view function, unsigned worker, const PacketDescriptor& packet,
                                   const char* what) noexcept;

}  // namespace penstock::run
