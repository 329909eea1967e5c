// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a chain: opens its ports, starts its workers, reloads their tables, waits for them, and adds up their counters.

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "port/port.h"
#include "report/run_report.h"
#include "run/chain.h"
#include "run/explain.h"
#include "run/taps.h"

namespace penstock::conntrack {
class ConnectionTables;
}

namespace penstock::run {

/// The state of a run, for the progress line.
struct Progress {
  std::chrono::nanoseconds elapsed{};
  std::uint64_t packets_in = 0;
  std::uint64_t bytes_in = 0;
  std::optional<double> part;  // fraction of the input that was read, if the sources know it
};

class Run;

/// Those that a function tracks.
struct TrackedConnections {
  std::string function;  // its name in the report
  std::shared_ptr<conntrack::ConnectionTables> connections;
};

/// What two processes must have in common for the one to continue the run of the other: the number of workers, and for
/// each port its name and Port::continuity.
struct Continuity {
  unsigned workers = 0;
  std::vector<std::pair<std::string, std::string>> ports;
};
/// An error names everything that cannot be continued in another process.
[[nodiscard]] Result<Continuity> continuity_of(const Chain& chain);

/// By the names of the ports.
using HandedPorts = std::map<std::string, port::HandedPort>;

/// The run of another process that a run continues. Both have the same continuity. Called by `start`.
class Predecessor {
 public:
  virtual ~Predecessor() = default;
  /// Everything is prepared: it is to receive no more, and hands over its ports: all of them, or none if it has died.
  [[nodiscard]] virtual Result<HandedPorts> take() = 0;
  /// Packets can flow here: it is to end. After an error it goes on, and this run must not begin.
  [[nodiscard]] virtual Result<void> confirm() = 0;
};

struct RunOptions {
  std::uint64_t trace_packets = 0;
  std::FILE* trace_out = nullptr;
  /// If a port is on an interface: the calling thread, and those of the run, give up for good all capabilities that the
  /// ports do not need (port::CapabilityNeeds). Those for opening the ports end with that.
  bool gives_up_capabilities = false;
  Predecessor* predecessor = nullptr;  // borrowed; null: none
  // Called by `Run::wait`; may be empty.
  std::function<void(const Progress&)> on_progress;  // a few times per second
  std::function<void(Run&)> on_tick;                 // many times per second while packets flow
};

/// Everything that would keep the chain from running, as far as its ports and functions can tell in advance
/// (`Port::check`, `NetworkFunction::check`). Reports all errors at once; changes nothing and does not wait.
[[nodiscard]] Errors check_system(const Chain& chain);

struct RunResult {
  report::RunReport report;
  Errors errors;  // errors during the run, such as a truncated capture or a full disk
};

using Functions = std::vector<std::unique_ptr<function::NetworkFunction>>;

/// Of a thread on the packets' way: grows several times per second while the thread gets packets done, or has none to
/// do. If it stays the same, the thread hangs, or waits for something that hangs: a GPU, or the reader of an output.
struct Pulse {
  std::string thread;                  // "worker 0", "receiver"
  std::optional<std::uint64_t> count;  // empty: the thread has ended
};

/// A run in progress: until the sources end, the configured duration has passed, or it is stopped. Any thread may call
/// it, several at once.
class Run {
 public:
  /// Stops the run and waits for its end.
  virtual ~Run() = default;

  /// Like the report at the end; packets in flight count as received and as nothing else yet.
  [[nodiscard]] virtual report::RunReport report() const = 0;
  /// Those of all threads on the packets' way.
  [[nodiscard]] virtual std::vector<Pulse> pulses() const = 0;
  /// What the functions in use would do with a packet (run/explain.h). The packet is changed.
  [[nodiscard]] virtual ExplainedPacket explain(PacketView packet) const = 0;
  /// Traces and captures of its packets.
  [[nodiscard]] virtual Taps& taps() noexcept = 0;
  /// Of a function, in all epochs.
  [[nodiscard]] virtual std::span<const std::string_view> drop_reasons(std::size_t function) const noexcept = 0;
  /// Of all functions in use that track some, in the order of the chain.
  [[nodiscard]] virtual std::vector<TrackedConnections> connections() const = 0;
  /// Those of the chain (EventLog::reopen) and that of the program (Log::reopen).
  [[nodiscard]] virtual Errors reopen_logs() = 0;

  /// Reload: puts `next`, one function for each of the chain and of the same kind, in the place of the chain's
  /// functions (config/reload.h makes them). Packets continue to flow: each is decided by the functions of one epoch,
  /// and none is lost. Returns when no packet uses the former functions any more, which are kept for a rollback;
  /// returns earlier if the run ends. After an error, nothing has changed: functions cannot take over, or a GPU has no
  /// room for the tables of two epochs.
  [[nodiscard]] virtual Result<void> apply(Functions next) = 0;
  /// Puts the functions of the former epoch back in their place. Their state, such as counters, continues. A second
  /// rollback takes the first one back.
  [[nodiscard]] virtual Result<void> rollback() = 0;

  // Another process takes over (docs/control.md). By one thread.

  /// See `continuity_of`.
  [[nodiscard]] virtual Result<Continuity> continuity() const = 0;
  /// Receives no more, so that packets wait in the kernel. Returns when all that were received are done, with what the
  /// other process needs. After an error, the run goes on.
  [[nodiscard]] virtual Result<HandedPorts> rest() = 0;
  /// The other process does not take over: goes on after `rest`.
  virtual void resume() = 0;
  /// After `rest`: the other process has begun, and this run ends.
  virtual void leave() noexcept = 0;

  /// The sources are not read any more, and the run ends when all packets that were read are done.
  virtual void stop() noexcept = 0;
  /// Waits for the end. The report accounts for every packet that was read: in = forwarded + dropped + consumed. Only
  /// one thread may call it, once.
  [[nodiscard]] virtual RunResult wait() = 0;
};

/// Starts a run, which ends early if `stop` is set. Borrows `chain` and `stop`; the chain must not be used otherwise
/// meanwhile. Returns when packets flow. Fails if the chain cannot run as configured; outputs are then unchanged. If
/// the run is stopped, or its time is up, while a port is still waiting to be opened, it is over at once: the report is
/// empty and the errors say why. Throws gpu::CudaError.
[[nodiscard]] Result<std::unique_ptr<Run>> start(Chain& chain, const RunOptions& options,
                                                 const std::atomic<bool>& stop);

/// Starts a run and waits for its end.
[[nodiscard]] Result<RunResult> run(Chain& chain, const RunOptions& options, const std::atomic<bool>& stop);

}  // namespace penstock::run
