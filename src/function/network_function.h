// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The interface of a network function to the chain: its traits (fixed once it is configured), the stages that run it,
// and its reports to the user. The configuration is immutable and shared; each stage belongs to one worker.

#pragma once

#include <array>
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
#include "conntrack/options.h"
#include "function/emitter.h"
#include "function/explanation.h"
#include "function/output.h"
#include "function/processor.h"
#include "function/shared_objects.h"
#include "function/stage_recipe.h"
#include "packet/batch.h"
#include "packet/device_stage.h"
#include "packet/field.h"
#include "packet/packet.h"
#include "report/event_log.h"
#include "stack/stack_need.h"
#include "stack/tracker_options.h"

namespace penstock::conntrack {
class Connections;
}
namespace penstock::stack {
class Attachment;
}

namespace penstock::function {

struct NfTraits {
  std::string_view name;
  std::string_view summary;
  Access cpu{};  // of the CPU twin
  /// Of the stage on each device; empty: it has no stage there.
  PerProcessor<std::optional<Access>> devices{};
  /// Of the CPU stage that consumes what a device stage found; writes `verdict`: may drop.
  std::optional<Access> finish{};
  /// What the state stage reads; `verdict`: it must only see packets that reach its function. A segment begins with it
  /// if an earlier function changes any of this, unless `connections` are known from one. Empty: nothing of others.
  FieldSet state_reads{};
  stack::StackNeed stack = stack::StackNeed::none;   // of the chain's stack: stages are attached to it
  std::optional<conntrack::Options> connections{};   // of connections, which it asks about; the same for a whole chain
  std::uint32_t findings_bytes = 0;                  // for each packet, from a device stage to the finish stage
  std::uint32_t state_bytes = 0;                     // the same, from the state stage to a device stage; multiple of 8
  FrameRoom growth{};                                // most bytes it adds at head and tail
  bool chooses_port = false;                         // decides where packets leave, of all that it forwards
  bool chooses_some_ports = false;                   // ditto, of some: others keep the port that they have
  bool finish_waits = false;                         // its finish stage may run once packets have left: it only looks
  bool finish_counts = false;                        // its finish stage only counts: packets need it for nothing
  bool emits = false;                                // its CPU stages make packets: they are given an Emitter
  bool asks_for_arrivals = false;                    // its CPU stages ask an Emitter for packets as they arrived
  bool replaces_frames = false;                      // its CPU stages move packets to larger frames, by an Emitter
  bool fills_gpu = false;                            // its stage on a GPU has kernels that StageUse bounds
  bool one_worker = false;                           // packets that belong together may come to different workers …
  bool shares_connections = false;                   // … but those of its connections can be taken to their worker
  std::span<const std::string_view> drop_reasons{};  // by the value of Verdict::drop

  /// Of the function's stage on this processor. Null: it has none.
  [[nodiscard]] const Access* access_on(Processor processor) const noexcept {
    if (!is_device(processor)) return &cpu;
    return devices[processor] ? &*devices[processor] : nullptr;
  }
  /// Whether its verdicts may name other ports than packets came with.
  [[nodiscard]] bool names_ports() const noexcept { return chooses_port || chooses_some_ports; }
};

/// The CPU twin of one function in one worker.
class CpuStage {
 public:
  virtual ~CpuStage() = default;
  /// Once, before the first packets, where the traits say that it makes packets, replaces frames or asks for packets as
  /// they arrived. Borrowed, and the worker's.
  virtual void set_emitter(Emitter& emitter) noexcept { static_cast<void>(emitter); }
  /// Once, before the first packets, if the traits have `connections`. Borrowed, and the worker's, in all epochs.
  virtual void set_connections(conntrack::Connections& connections) noexcept { static_cast<void>(connections); }
  /// Called before the first packet, and again as `take_over` says, if the traits need the chain's stack. The
  /// attachment is borrowed and belongs to the worker.
  virtual void attach(stack::Attachment& attachment) noexcept { static_cast<void>(attachment); }
  /// In a reload: shares the worker's state with `predecessor`, the stage of the same worker in the epoch before.
  /// Called once, after `attach` and before the first packets, in the worker's thread, so it must be quick. The
  /// predecessor may get packets of batches that began earlier until it ends; it then ends first. Before either stage
  /// gets packets after the other one, `attach` is called again.
  virtual void take_over(CpuStage& predecessor) noexcept { static_cast<void>(predecessor); }
  /// A batch boundary. Also called from time to time when no packets come, and at the end. Tables may only be swapped
  /// here.
  virtual void begin_batch() noexcept {}
  /// Decides about packets by writing their `verdict`; all come in with a `forward` verdict and a parsed layout.
  /// `packets` is a part of a batch, small enough to stay in the first-level cache; it is never empty. A stage whose
  /// traits write `frame_shape` may move `frame` and change `length`, inside the growth it asked for. Only by
  /// Emitter::replace_frame does a packet get a larger frame than that.
  virtual void process(std::span<PacketView> packets) noexcept = 0;
  /// A fragment that another worker owns, but whose datagram may belong to a flow of this worker. It has a parsed
  /// layout. Called between batches.
  virtual void observe(PacketView packet) noexcept { static_cast<void>(packet); }
  /// For the trace: explains the decision on this packet, in its state at entry, by the stage's current tables: "rule
  /// 12: -A FORWARD -p tcp …". Called by the worker's thread.
  [[nodiscard]] virtual std::string explain(PacketView packet) const {
    static_cast<void>(packet);
    return {};
  }
};

/// A worker's CPU stage that provides per-flow state for the device stage with each packet (Gaviss §4.4). It runs
/// before the function's segment is sent to the device. Earlier batches may still be on the device then, so it knows
/// the previous packets, but not their results.
class StateStage {
 public:
  virtual ~StateStage() = default;
  /// Writes NfTraits::state_bytes for each packet, in packet order. `packets` has at most one burst (function/burst.h).
  /// The packets are in their state before the segment; their layouts may not be parsed yet.
  virtual void fill(std::span<const PacketView> packets, std::span<std::byte* const> states) noexcept = 0;
  /// The device has failed, or has left these packets to the CPU: the twin gets them after this call, in the same
  /// order, in their state before the segment. They are at most one burst, with the states that `fill` has written;
  /// those of packets that it has not seen are zeros. The states are valid until this returns.
  virtual void hand_back(std::span<const PacketView> packets, std::span<const std::byte* const> states) noexcept {
    static_cast<void>(packets);
    static_cast<void>(states);
  }
};

/// A worker's CPU stage that consumes what the device stage found: counts, alerts, log lines, replays. It runs when the
/// batch has returned, in packet order. Packets that the device stage left to the CPU twin are processed by the twin,
/// at their place in this order. The finish stage sees the length of a packet before its function, and everything else
/// as it was before the segment that contains the device stage. If an earlier function changes bytes that this stage
/// reads, the segment starts with this stage's function. If this stage reads no bytes of the frame, and an earlier
/// function of the same segment changes lengths, the frame may be shorter than the length says.
///
/// If the stage waits (NfTraits::finish_waits), it runs after the batch was sent if possible, with the same packets in
/// the same order. This is possible if the chain does nothing with the batch after the segment, and no packet of the
/// batch is left to the twins.
class FinishStage {
 public:
  virtual ~FinishStage() = default;
  /// As for CpuStage.
  virtual void set_emitter(Emitter& emitter) noexcept { static_cast<void>(emitter); }
  /// Only if the function has a state stage: called before each `finish`, with the states that were sent with its
  /// packets. They are valid until `finish` returns.
  virtual void take_states(std::span<const std::byte* const> states) noexcept { static_cast<void>(states); }
  /// `findings` has NfTraits::findings_bytes for each packet; the device stage has processed all of them. A stage whose
  /// access writes `verdict` sees the verdicts of its function (with the port that has been chosen by now). It may
  /// change `forward` to a drop for a reason of its function, or change the reason of such a drop. The packet then ends
  /// here, whatever later functions of the segment did with it, and is counted with the length that it had before this
  /// function. Later device stages have processed it nevertheless.
  virtual void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept = 0;
  /// For a stage that waits, called before the packets are sent: selects the packets that `finish` will see. The stage
  /// does not see the others again. It may count them, but nothing more, since earlier waiting packets have not been
  /// processed yet. `packets` and `findings` are as for `finish`, with at most 256 packets. Writes the indices of the
  /// selected packets in ascending order, and returns their number. If `finish` runs immediately, it sees all packets,
  /// and must produce the same result.
  [[nodiscard]] virtual std::size_t choose(std::span<const PacketView> packets,
                                           std::span<const std::byte* const> findings,
                                           std::span<std::uint8_t> chosen) noexcept {
    static_cast<void>(findings);
    for (std::size_t i = 0; i < packets.size(); ++i) chosen[i] = static_cast<std::uint8_t>(i);
    return packets.size();
  }
  /// Only for a stage whose access writes more than verdicts, which is then the last of its segment. Called after
  /// `finish`, with the packets that are still forwarded, and with the frames and lengths that the device returned.
  /// Layouts, if any, are those from before the segment. It may change bytes, shorten frames at their end, and drop
  /// packets for a reason of its function.
  virtual void take_back(std::span<PacketView> packets) noexcept { static_cast<void>(packets); }
};

class NetworkFunction {
 public:
  virtual ~NetworkFunction() = default;

  [[nodiscard]] virtual const NfTraits& traits() const noexcept = 0;
  /// The options for tracking its traffic, if it needs datagrams or streams. Functions with the same options that see
  /// the same packets share a tracker.
  [[nodiscard]] virtual stack::TrackerOptions stack_options() const { return {}; }
  /// Makes a stage for one more worker. The function outlives its stages, and may own their counters.
  [[nodiscard]] virtual std::unique_ptr<CpuStage> make_cpu_stage() = 0;

  /// Makes a stage for one more batch in flight of `use.worker`, on a device for which the traits have an access. A GPU
  /// is the current one, and the stage a gpu::GpuStage. The stages of one worker are called by one thread at a time,
  /// and get their batches in order, so they may share state that continues from batch to batch (gpu/turns.h keeps
  /// their work in order on a GPU). Stages of different workers run concurrently. Null if this build has no such stage,
  /// although the traits have an access for it. Throws CudaError.
  [[nodiscard]] virtual std::unique_ptr<DeviceStage> make_device_stage(Processor processor, const StageUse& use) {
    static_cast<void>(processor);
    static_cast<void>(use);
    return nullptr;
  }
  /// What its stage on this device is made from, by the newest tables; for a process that owns the device. Later
  /// changes of the tables are not in it. Thread-safe. Null: its stage on this processor cannot run in another process.
  [[nodiscard]] virtual std::optional<StageRecipe> stage_recipe(Processor processor) const {
    static_cast<void>(processor);
    return std::nullopt;
  }
  /// How often this recipe has changed, if it changes while the function runs: whoever has made stages from it then
  /// exchanges their tables. Empty: it stays as it is. Thread-safe.
  [[nodiscard]] virtual std::optional<std::uint64_t> recipe_version() const noexcept { return std::nullopt; }
  /// Makes a stage for one more worker, whose CPU stage is `twin`, made by this function. The twin outlives it, and the
  /// same thread calls both, so they may share a worker's state. Null if the function has none; never null if its
  /// traits have `state_bytes`.
  [[nodiscard]] virtual std::unique_ptr<StateStage> make_state_stage(CpuStage& twin) {
    static_cast<void>(twin);
    return nullptr;
  }
  /// The same for a finish stage.
  [[nodiscard]] virtual std::unique_ptr<FinishStage> make_finish_stage(CpuStage& twin) {
    static_cast<void>(twin);
    return nullptr;
  }

  /// For `penstock check`: what would prevent a run, as far as can be checked without changing anything.
  [[nodiscard]] virtual Errors check() const { return {}; }
  /// A run begins. Called before any stage is made and before the ports open. Acquires what the function needs for the
  /// duration of a run, such as locks. Further runs may follow. An error prevents the run.
  [[nodiscard]] virtual Result<void> begin_run() { return {}; }
  /// The run is over: all stages have ended, and the logs are still open. Not called if nothing has run, nor for a
  /// function whose place another one has taken.
  virtual void end_run() noexcept {}

  // A reload makes a function of the same kind for each function of the chain: the next epoch (run/epoch.h). Tables are
  // made anew. What outlives an epoch, such as counters, is the state that one function takes over from the other.

  /// What distinguishes this function from `running`, whose place it could take, for the user: "2 rules added, 1
  /// removed". Empty: nothing. An error: only a new run can make this change. Changes nothing. Both are of one kind.
  [[nodiscard]] virtual Result<std::string> changes_from(const NetworkFunction& running) const {
    static_cast<void>(running);
    return "reloaded: " + description();
  }
  /// Takes the place of `predecessor`, which `changes_from` has accepted, and shares its state. Called instead of
  /// `begin_run`, before any stage is made. Stages of both functions are used side by side, each batch by those of one
  /// of them, until `predecessor_ended`. If the reload fails, that is never called, and the predecessor goes on as if
  /// nothing had happened; so does a predecessor after an error. A function may later take its place back.
  [[nodiscard]] virtual Result<void> take_over(NetworkFunction& predecessor) {
    static_cast<void>(predecessor);
    return {};
  }
  /// All stages of the predecessor have been destroyed. It is not used any more, unless it takes its place back.
  virtual void predecessor_ended() noexcept {}

  /// Explains to an operator what happens to a packet that would come now, by the tables in use. `packet` is a copy
  /// with a parsed layout and a flow hash, and with the verdict forward. Its verdict and frame become what the CPU twin
  /// would make of them, unless the explanation says what else decides, or that it ends here. Nothing is counted or
  /// kept of it. Thread-safe, also during a run, and quick. Empty, with the packet unchanged: the function explains
  /// nothing.
  [[nodiscard]] virtual std::optional<Explanation> explain(PacketView packet) const {
    static_cast<void>(packet);
    return std::nullopt;
  }

  /// What the function keeps from packet to packet, and another process that takes over the run would lack, for the
  /// user: "connections and streams". Empty: nothing but counters.
  [[nodiscard]] virtual std::string state_of_run() const { return {}; }

  /// One line about what is loaded: "901,899 routes in a DIR-24-8 table of 66.1 MiB".
  [[nodiscard]] virtual std::string description() const = 0;
  /// For `penstock check`: details of what is loaded and what was skipped, beyond `description`. As text of complete
  /// lines, and written to an object.
  [[nodiscard]] virtual std::string load_table() const { return {}; }
  virtual void load_report(nlohmann::ordered_json& into) const { static_cast<void>(into); }
  /// Writes the function's own part of the report, such as per-rule counters, to an object. Thread-safe, also during a
  /// run.
  virtual void report(nlohmann::json& into) const { static_cast<void>(into); }
};

/// What a function may know about its chain when it is made.
struct NfContext {
  std::span<const std::string> ports;  // port names, by PortIndex
  bool out_port_known = false;         // an earlier function sets the port by which packets leave
  Errors unsupported{};                // the function's readers append what they skip
  Errors cautions{};                   // warnings about protection that the user has disabled
  std::vector<bool> ports_write{};     // by PortIndex; empty: unknown
  std::vector<bool> ports_live{};      // ditto; whether the port is a network interface
  std::vector<bool> ports_answer{};    // ditto; whether who sends packets to the port gets what is sent there
  std::vector<PortIndex> exits{};      // ditto; where packets leave that came there, unless a function chooses the port
  Errors without_effect{};             // warnings about parameters and file contents without effect
  std::span<const NamedLog> logs{};    // the logs among NfKind::outputs that the chain file names
  /// In a reload: the function, of the same kind, whose place the new one could take. Otherwise null.
  const NetworkFunction* running = nullptr;
  /// With the chain's other functions. Null: it stands alone.
  SharedObjects* shared = nullptr;
  /// If the chain runs on a device, another process makes its device stages, from NetworkFunction::stage_recipe.
  bool device_is_remote = false;

  /// Null if the chain file does not name this output.
  [[nodiscard]] report::EventLog* log(std::string_view output) const noexcept {
    for (const NamedLog& named : logs) {
      if (named.output == output) return named.log;
    }
    return nullptr;
  }
};

/// The parameters that every function of a chain has in addition to those of its kind. The chain reads them.
inline constexpr std::array<Parameter, 1> kCommonParameters{
    {{"processor", ParameterType::choice, "auto", kProcessorChoices,
      "where the function runs, if it has a stage there; auto: as `run.processor` says"}}};

/// An entry of the catalog.
struct NfKind {
  std::string_view name;
  std::string_view summary;
  ParameterTable parameters;
  Result<std::unique_ptr<NetworkFunction>> (*make)(const Parameters& parameters, NfContext& context);
  std::span<const OutputKind> outputs{};  // outputs that functions of this kind write if the chain file names them
};

/// The function kinds that a chain file can use. Borrowed; each kind lives as long as the program.
using NfKinds = std::span<const NfKind* const>;

}  // namespace penstock::function
