// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a network function is to the chain: its traits (fixed once it is configured), the stages that run it, and what
// it tells the user. Configuration is immutable and shared; a stage is one worker's own.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "function/emitter.h"
#include "function/output.h"
#include "gpu/stage.h"
#include "packet/batch.h"
#include "packet/field.h"
#include "packet/packet.h"
#include "report/event_log.h"
#include "stack/stack_need.h"
#include "stack/tracker_options.h"

namespace penstock::stack {
class Attachment;
}

namespace penstock::function {

enum class Processor : std::uint8_t { cpu, gpu };

struct NfTraits {
  std::string_view name;
  std::string_view summary;
  Access cpu{};                 // of the CPU twin
  std::optional<Access> gpu{};  // of the GPU stage; none: the NF has no GPU stage
  std::optional<Access>
      finish{};  // of the CPU stage that consumes what the GPU stage found; writes `verdict`: may drop
  stack::StackNeed stack = stack::StackNeed::none;   // of the chain's stack: stages are attached to it
  std::uint32_t findings_bytes = 0;                  // for each packet, from the GPU stage to the finish stage
  std::uint32_t state_bytes = 0;                     // the same, from the state stage to the GPU stage; multiple of 8
  FrameRoom growth{};                                // most bytes it adds at head and tail
  bool chooses_port = false;                         // decides where packets leave
  bool finish_waits = false;                         // its finish stage may run once packets have left: it only looks
  bool emits = false;                                // its CPU stages make packets: they are given an Emitter
  bool replaces_frames = false;                      // its CPU stages move packets to larger frames, by an Emitter
  bool fills_gpu = false;                            // its GPU stage has kernels that StageUse::multiprocessors bounds
  std::span<const std::string_view> drop_reasons{};  // by the value of Verdict::drop
};

/// The CPU twin of one NF in one worker.
class CpuStage {
 public:
  virtual ~CpuStage() = default;
  /// Once, before the first packets, where the traits say that it makes packets or replaces frames. Borrowed, and the
  /// worker's.
  virtual void set_emitter(Emitter& emitter) noexcept { static_cast<void>(emitter); }
  /// Once, before the first packets, where the traits say that it needs the chain's stack. Borrowed, and the worker's.
  virtual void attach(stack::Attachment& attachment) noexcept { static_cast<void>(attachment); }
  /// A batch boundary, also passed now and then when no packets come: tables may be swapped here and nowhere else.
  virtual void begin_batch() noexcept {}
  /// Decides about packets by writing their `verdict`; all come in with a `forward` verdict and a parsed layout.
  /// `packets` is a part of a batch, small enough to stay in the first-level cache; it is never empty. A stage whose
  /// traits write `frame_shape` may move `frame` and change `length`, inside the growth it asked for. Only by
  /// Emitter::replace_frame does a packet get a larger frame than that.
  virtual void process(std::span<PacketView> packets) noexcept = 0;
  /// A fragment that another worker carries and decides about, while its datagram may be of a flow of this worker's.
  /// Between batches; its layout is not parsed.
  virtual void observe(PacketView packet) noexcept { static_cast<void>(packet); }
  /// Why it decides as it does about this packet, as it came in, by the tables that it holds: "rule 12: -A FORWARD -p
  /// tcp …". For the trace, by the worker's thread.
  [[nodiscard]] virtual std::string explain(PacketView packet) const {
    static_cast<void>(packet);
    return {};
  }
};

/// The CPU stage, in one worker, that gives the GPU stage per-flow state with each packet (Gaviss §4.4). It runs before
/// the segment of its function is sent to the device, while earlier batches may still be there: it knows the packets
/// that went before, but not what became of them.
class StateStage {
 public:
  virtual ~StateStage() = default;
  /// Writes NfTraits::state_bytes for each of the packets, at most a burst (function/burst.h), in packet order. The
  /// packets are as they were before the segment; their layouts may not have been parsed.
  virtual void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept = 0;
};

/// The CPU stage, in one worker, that consumes what the GPU stage found: counts, alerts, log lines, replays. It runs
/// when the batch has come back, in the order of the packets; those that the GPU stage left to the CPU twin go through
/// that one at their place among the others. It sees a packet's length as it was before its function, and all else as
/// it was before the segment that the GPU stage ran in. A segment begins with its function where one before it changes
/// bytes that its access reads; where it reads none, the frame may be shorter, behind a function of the same segment
/// that changes lengths, than the length says.
/// One that waits (NfTraits::finish_waits) runs, where it can, behind the sending of the batch: the same packets, in
/// the same order, as they would have been before. It can where its segment is the last of what the chain does with the
/// batch, and no packet of the batch is left to the twins.
class FinishStage {
 public:
  virtual ~FinishStage() = default;
  /// As CpuStage's.
  virtual void set_emitter(Emitter& emitter) noexcept { static_cast<void>(emitter); }
  /// If the function has a state stage: called before each `finish`, with the state that was sent with each of its
  /// packets. Valid until `finish` returns.
  virtual void take_states(std::span<const std::byte* const> states) noexcept { static_cast<void>(states); }
  /// `findings`: NfTraits::findings_bytes for each of the packets, all of which the GPU stage worked on.
  /// One whose access writes `verdict` sees those that its function gave (with the port that is chosen by now), and may
  /// turn `forward` into a drop for a reason of its function, or such a drop into one for another: the packet ends
  /// there, whatever later functions of the segment did with it, and is counted with the length that it had before
  /// this function. GPU stages behind this one's have worked on it all the same.
  virtual void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept = 0;
  /// Of one that waits, before its packets do: which of them `finish` is to see. It is not shown the others again: it
  /// may count them and no more, since those that wait before them have not been seen yet. `packets`, `findings`: as
  /// `finish` would have them, 256 at most. Writes the positions of the chosen ones among them, rising, and returns how
  /// many. Where `finish` runs at once it sees all packets, and must come to the same.
  [[nodiscard]] virtual std::size_t choose(std::span<const PacketView> packets,
                                           std::span<const std::byte* const> findings,
                                           std::span<std::uint8_t> chosen) noexcept {
    static_cast<void>(findings);
    for (std::size_t i = 0; i < packets.size(); ++i) chosen[i] = static_cast<std::uint8_t>(i);
    return packets.size();
  }
  /// For those whose access writes more than verdicts, which is then the last of its segment: behind `finish`, the
  /// packets that are still forwarded, with frames and lengths as they have come back; their layouts are those from
  /// before the segment, if any. It may change bytes, shorten frames at their end, and drop for a reason of its
  /// function.
  virtual void take_back(std::span<PacketView> packets) noexcept { static_cast<void>(packets); }
};

class NetworkFunction {
 public:
  virtual ~NetworkFunction() = default;

  [[nodiscard]] virtual const NfTraits& traits() const noexcept = 0;
  /// How traffic is to be tracked for it, where it needs datagrams or streams. Functions with the same options that see
  /// the same packets share a tracker.
  [[nodiscard]] virtual stack::TrackerOptions stack_options() const { return {}; }
  /// A stage for one more worker. The NF outlives its stages and may own their counters.
  [[nodiscard]] virtual std::unique_ptr<CpuStage> make_cpu_stage() = 0;

  /// A GPU stage, for one more batch in flight of `use.worker` on the current device. The stages of a worker are called
  /// by one thread at a time and enqueue its batches in order, so that they may share what counts on from batch to
  /// batch (gpu/turns.h keeps their work in order on the device); those of different workers run at once. Null where
  /// the NF has none, though its traits have an access for it; throws CudaError.
  [[nodiscard]] virtual std::unique_ptr<gpu::GpuStage> make_gpu_stage(const gpu::StageUse& use) {
    static_cast<void>(use);
    return nullptr;
  }
  /// For one more worker. Null if the NF has none; not null if its traits have `state_bytes`.
  [[nodiscard]] virtual std::unique_ptr<StateStage> make_state_stage() { return nullptr; }
  /// For one more worker, whose CPU stage is `twin`, one of this function's: it lives longer, the same thread calls
  /// both, and they may share what a worker keeps from packet to packet. Null where the NF has none.
  [[nodiscard]] virtual std::unique_ptr<FinishStage> make_finish_stage(CpuStage& twin) {
    static_cast<void>(twin);
    return nullptr;
  }

  /// What would keep a run from beginning, as far as can be told without changing anything. For `penstock check`.
  [[nodiscard]] virtual Errors check() const { return {}; }
  /// A run begins: before any stage is made, and before the ports open. Takes what the function needs of the system for
  /// as long as it runs: locks, say. A run may follow another. An error keeps the chain from running.
  [[nodiscard]] virtual Result<void> begin_run() { return {}; }
  /// The run is over: all stages have ended, and the logs are still open. Not where nothing has run.
  virtual void end_run() noexcept {}

  /// One line on what is loaded: "901,899 routes in a DIR-24-8 table of 66.1 MiB".
  [[nodiscard]] virtual std::string description() const = 0;
  /// More of it, and of what was left out, where a line does not say it: for `penstock check`, as text of whole lines,
  /// and into an object.
  [[nodiscard]] virtual std::string load_table() const { return {}; }
  virtual void load_report(nlohmann::ordered_json& into) const { static_cast<void>(into); }
  /// The NF's own part of the report (per-rule counters, say), into an object. Any thread, while running too.
  virtual void report(nlohmann::json& into) const { static_cast<void>(into); }
};

/// What an NF may know of the chain that it is built for.
struct NfContext {
  std::span<const std::string> ports;  // names, by PortIndex
  bool out_port_known = false;         // a function before this one chooses the port that packets leave by
  Errors unsupported{};                // the NF's readers append here what they leave out
  Errors cautions{};                   // and here what protection the user has switched off
  std::vector<bool> ports_write{};     // by PortIndex; none: not known
  Errors without_effect{};             // the NF appends here what stands in its parameters and files in vain
  std::span<const NamedLog> logs{};    // those of NfKind::outputs that the chain file names

  /// Null where the chain file does not name this output.
  [[nodiscard]] report::EventLog* log(std::string_view output) const noexcept {
    for (const NamedLog& named : logs) {
      if (named.output == output) return named.log;
    }
    return nullptr;
  }
};

/// A line of the catalog.
struct NfKind {
  std::string_view name;
  std::string_view summary;
  ParameterTable parameters;
  Result<std::unique_ptr<NetworkFunction>> (*make)(const Parameters& parameters, NfContext& context);
  std::span<const OutputKind> outputs{};  // that functions of this kind write, if the chain file names them
};

/// Those that a chain file can name. Borrowed: each lives as long as the program.
using NfKinds = std::span<const NfKind* const>;

}  // namespace penstock::function
