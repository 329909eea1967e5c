// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A port is where packets enter or leave the chain. Each worker has its own receive and send queue at every port, and
// uses no others. If a port's workers share anything (such as one file), the port synchronises it.
//
// A port copies frames into batches, or lends them where they are, in memory that it has added to the chain's packet
// memory:
//
//     Port::open     adds its memory: the chain's devices can then read and write it
//     RxQueue::poll  lends frames (Batch::lend)
//     TxQueue::send  copies frames, or sends them from where they are, and later says that they have left
//     RxQueue::take_back  its frames have left everywhere: no function, device or port uses them any more

#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/capabilities.h"
#include "base/error.h"
#include "packet/batch.h"
#include "packet/packet.h"
#include "packet/packet_memory.h"
#include "port/live/file_descriptor.h"

namespace penstock::port {

enum class RxStatus : std::uint8_t {
  more,     // the batch is full, and there may be more packets
  copy,     // one frame was appended to an empty batch, for inspection only: another worker owns the packet
  idle,     // no packets now; poll again
  starved,  // there are packets, but no memory to lend for them until the queue has taken frames back
  end,      // no more packets will come
};

/// The receive side of one worker. All packets of a flow, in both directions, come to the same worker, in order.
/// Fragments follow their flow: a fragment that comes before the first one of its datagram is kept until that one comes
/// (fragment_table.h), and keeps its timestamp.
class RxQueue {
 public:
  virtual ~RxQueue() = default;
  /// Appends the packets that are available now, until `batch` has no room for the next one. Does not block. A frame
  /// that does not fit in an empty batch is an error of the port (see `Port::close`) and ends the queue.
  virtual RxStatus poll(Batch& batch) noexcept = 0;
  /// The oldest `frames` of the frames that it has lent and not taken back have left everywhere. Functions may have
  /// changed their bytes and those around them, inside their room.
  virtual void take_back(std::size_t frames) noexcept { static_cast<void>(frames); }

  /// For sources of recorded packets: the capture time of the next packet or, if that is not known yet, a lower bound
  /// for it (if the capture is in order of time). Workers merge such sources by time, so that the two directions of a
  /// connection keep their order. Empty for other sources: their packets are taken as they arrive.
  [[nodiscard]] virtual std::optional<std::uint64_t> next_time_ns() noexcept { return std::nullopt; }
  /// Like `poll`, for such sources, but idle if the next packet was captured after `time_ns`.
  virtual RxStatus poll_until(Batch& batch, std::uint64_t time_ns) noexcept {
    static_cast<void>(time_ns);
    return poll(batch);
  }

  /// For sources whose timestamps say when packets arrived here or were due: what to add to a timestamp to get a time
  /// of `Batch::Clock`. Empty for other sources: their packets count as arrived when they are polled.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> arrivals_to_clock() noexcept { return std::nullopt; }

  /// Appends what to wait for, so that an idle worker can sleep until there are packets to poll. False: nothing tells
  /// when packets come, and the queue is polled all the time. Called by the worker before it sleeps.
  virtual bool add_wake_ups(std::vector<pollfd>& to) noexcept {
    static_cast<void>(to);
    return false;
  }

  struct Discarded {
    RxStatus status = RxStatus::idle;  // as for `poll`; `more`: discarded `most` packets
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
  };
  /// Discards at most `most` packets for which there is no room. This is far cheaper than `poll`, so that an overloaded
  /// worker can spend its time on the packets that it has. Only for sources that are not lossless.
  virtual Discarded discard(std::size_t most) noexcept {
    static_cast<void>(most);
    return {};
  }
};

/// Packets that a port accepted but could not deliver, and the bytes of their frames.
struct Lost {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// Packets that a send queue has accepted since the run began. They leave in this order.
struct Departures {
  std::uint64_t accepted = 0;
  std::uint64_t left = 0;  // their frames are not read any more
};

/// The send side of one worker.
class TxQueue {
 public:
  virtual ~TxQueue() = default;
  /// Sends packets in order, and returns how many it accepted. It leaves out packets that it cannot send (for example,
  /// because the output cannot hold their link type), and gives them a drop verdict, `Verdict::drop(0)`; the worker
  /// counts them as refused, with their bytes. Like `flush`, it blocks while the output cannot take more (a slow reader
  /// of a pipe): see `Port::interrupt`.
  ///
  /// It may go on reading frames that are in the chain's packet memory, their batch's included, until they have left;
  /// it must copy all others before it returns.
  virtual std::size_t send(std::span<const PacketView> packets) noexcept = 0;
  /// For queues that go on reading frames. Polled: must be quick. All accepted packets leave in the end, also after an
  /// error.
  [[nodiscard]] virtual Departures departures() noexcept { return {}; }
  /// Delivers everything that was sent. Called at the end of each batch. Returns what could not be delivered since the
  /// last call; the worker counts it as refused.
  virtual Lost flush() noexcept { return {}; }
};

/// The packets that a rate-limited source should have made until it was last polled, and how late it was then.
struct OfferedLoad {
  std::uint64_t packets = 0;
  std::chrono::nanoseconds behind{};
};

/// Statistics of a port that assigns fragments to workers in software.
struct FragmentCounts {
  std::uint64_t packets = 0;
  std::uint64_t waited = 0;        // came before the fragment that identifies their flow, and were kept until it came
  std::uint64_t not_followed = 0;  // assigned by address: that fragment never came, or there was no room to wait
  std::uint64_t ambiguous = 0;     // first fragments that name another flow than the datagram's earliest first fragment
  std::uint64_t copied = 0;        // copies of such datagrams' fragments, for the workers of the other flows
};

/// Statistics of a port on an interface of the system, by name.
struct InterfaceCounts {
  using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
  /// Packets that came to the interface for the chain, but to no worker. With those that came in, they are all that the
  /// interface has received for it.
  Counts lost;
  /// What else happened: frames that were split, refusals by reason, changes of the interface.
  Counts events;
};

/// The capabilities that a port on an interface needs.
struct CapabilityNeeds {
  /// For `open` and `start`. A thread that `open` starts has them, and gives up the rest.
  std::vector<Capability> to_open;
  /// Afterwards, for any member, in any thread.
  std::vector<Capability> to_run;
};

/// The interface that a port is on: there is none with its name, frames cannot be sent (it is down, or the other end
/// is), or they can.
enum class LinkState : std::uint8_t { absent, down, up };

/// An interface of the system, as its kernel knows it.
struct InterfaceName {
  std::string name;
  std::string netns;  // its network namespace, by the name of `ip netns`; empty: that of the process
  friend bool operator==(const InterfaceName&, const InterfaceName&) = default;
};

/// What a chain offers to a port.
struct Opening {
  Opening(unsigned for_workers) : workers(for_workers) {}  // NOLINT(google-explicit-constructor): mostly all there is

  unsigned workers;
  PacketMemory* memory = nullptr;     // where ports add the memory from which they lend; null: frames are to be copied
  FrameRoom room{};                   // that lent frames must have before and after them
  bool host_changes_payload = false;  // functions on the host may change lent frames beyond their headers
  std::size_t lent_alignment = kFrameAlignment;    // of lent frames, if the port can choose
  std::size_t batch_bytes = std::size_t{1} << 20;  // the most in a batch
  std::size_t batch_packets = 512;
  bool continues = false;  // `continue_from` follows instead of `start`
};

/// What a port hands to the one of another process that continues it. Only ports of its kind understand the numbers.
struct HandedPort {
  std::vector<FileDescriptor> descriptors;
  std::vector<std::uint64_t> numbers;

  [[nodiscard]] bool is_empty() const noexcept { return descriptors.empty() && numbers.empty(); }
};

class Port {
 public:
  virtual ~Port() = default;

  /// Whether the chain file configures the port to read, and to write.
  [[nodiscard]] virtual bool reads() const noexcept = 0;
  [[nodiscard]] virtual bool writes() const noexcept = 0;
  /// A source that can wait for its reader (a file) is lossless. One that cannot (a live interface, a generator with a
  /// rate) drops what does not fit in the waiting queue, and the worker counts it.
  [[nodiscard]] virtual bool lossless() const noexcept { return true; }
  /// Whether its packets were recorded. A reply may then come to its worker before another worker has seen the packet
  /// to which it replies.
  [[nodiscard]] virtual bool is_recorded() const noexcept { return false; }

  /// Checks the files that the port names, as far as possible without blocking, and without opening pipes or creating
  /// or changing anything: captures that are missing or cannot be read, folders that are not writable.
  [[nodiscard]] virtual Errors check() const { return {}; }
  /// What lets packets pass the chain by, as the system is now. Thread-safe, also during a run.
  [[nodiscard]] virtual Errors cautions() const { return {}; }

  /// Opens files and interfaces, and makes the queues of the workers. Called once, before the workers start; their
  /// packet rings exist. Does not truncate outputs, since another port may still fail to open.
  [[nodiscard]] virtual Result<void> open(const Opening& opening) = 0;
  /// Ends the run early. If `open` is blocked, for example because a pipe has no other end, it fails. During the run,
  /// an output whose reader takes nothing more is given up, and the data that it holds is lost. Thread-safe; may be
  /// called several times.
  virtual void interrupt() noexcept {}
  /// Truncates the outputs, and lets packets in, once all ports of the chain are open. Called at most once. An error
  /// prevents the run; ports that started before it are closed.
  [[nodiscard]] virtual Result<void> start() { return {}; }

  // Another process takes over (docs/control.md): `rest`, and then `hand_over` and `leave`, or `resume`. By one thread,
  // while packets flow.

  /// What the port of the other process must be like: both must give the same text. An error: no process can continue
  /// this port.
  [[nodiscard]] virtual Result<std::string> continuity() const {
    return failure(Error{{}, "a port of this kind cannot be handed over", "", "af_packet, tap or null"});
  }
  /// Opens no further frames: they wait in the kernel.
  virtual void rest() noexcept {}
  virtual void resume() noexcept {}
  /// Whether all frames that were opened have been taken, and lent ones are back.
  [[nodiscard]] virtual bool rests() const noexcept { return true; }
  /// While it rests. The descriptors are duplicates.
  [[nodiscard]] virtual HandedPort hand_over() { return {}; }
  /// The other process has begun: `close` must leave what was handed over as it is.
  virtual void leave() noexcept {}
  /// Called instead of `start`: continues where the port of another process rests. If that has died, and nothing was
  /// handed over, begins as after `open` without `Opening::continues`.
  [[nodiscard]] virtual Result<void> continue_from(HandedPort) { return start(); }  // NOLINT(*-value-param)

  /// The queues of a worker; null if the port does not read, or does not write. The port owns them.
  [[nodiscard]] virtual RxQueue* rx(unsigned worker) noexcept = 0;
  [[nodiscard]] virtual TxQueue* tx(unsigned worker) noexcept = 0;
  /// Called once, after the workers have stopped, when no device uses the port's memory any more. Writes the remaining
  /// data, and returns the errors of the run, such as a truncated capture or a full disk. Without `start`, it leaves no
  /// trace.
  [[nodiscard]] virtual Errors close() = 0;

  /// Whether an error has occurred that `close` will return, so that the run may as well end. Thread-safe.
  [[nodiscard]] virtual bool failed() const noexcept { return false; }

  /// Empty for a source without a rate. Thread-safe.
  [[nodiscard]] virtual std::optional<OfferedLoad> offered() const noexcept { return std::nullopt; }

  /// Empty if the port does not assign packets to workers in software. Thread-safe.
  [[nodiscard]] virtual std::optional<FragmentCounts> fragments() const noexcept { return std::nullopt; }

  /// The interface whose frames the port receives and sends in the kernel's place, so that the kernel's routes through
  /// it lead to the port. Empty if there is none.
  [[nodiscard]] virtual std::optional<InterfaceName> interface() const { return std::nullopt; }
  /// Empty if the port is on no interface. A process with such ports gives up all other capabilities.
  [[nodiscard]] virtual std::optional<CapabilityNeeds> capabilities() const { return std::nullopt; }
  /// Empty if the port is not on an interface. Thread-safe.
  [[nodiscard]] virtual std::optional<InterfaceCounts> interface_counts() const { return std::nullopt; }

  /// Empty if the port is on no interface, or does not know. Valid once the port has started. Thread-safe.
  [[nodiscard]] virtual std::optional<LinkState> link() const noexcept { return std::nullopt; }
  /// The longest packet, without its link layer's header, that the interface sends. Otherwise as `link`.
  [[nodiscard]] virtual std::optional<std::uint32_t> mtu() const noexcept { return std::nullopt; }

  /// The fraction of the input that has been read, 0..1, for the progress line; empty if unknown. Thread-safe.
  [[nodiscard]] virtual std::optional<double> progress() const noexcept { return std::nullopt; }
};

/// Whether those who send packets to the port get what it sends: unlike a capture, it reads and writes one link.
[[nodiscard]] inline bool reaches_senders(const Port& port) noexcept {
  return port.reads() && port.writes() && !port.lossless();
}

}  // namespace penstock::port
