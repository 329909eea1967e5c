// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A port is where packets enter or leave the chain. Each worker has its own receive and send queue of every port, and
// touches no other: what a port shares between workers (one file, say) is its own affair.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "packet/batch.h"
#include "packet/packet.h"

namespace penstock::port {

enum class RxStatus : std::uint8_t {
  more,  // the batch is full, and there may be more
  copy,  // one frame was appended to an empty batch, to be looked at and no more: another worker carries it
  idle,  // nothing is there now; poll again
  end,   // nothing will come any more
};

/// One worker's receive side. Packets of a flow, in both directions, come to the same worker, in order. Fragments
/// follow their flow: one that comes before the first of its datagram is kept until then (fragment_table.h), and keeps
/// its time.
class RxQueue {
 public:
  virtual ~RxQueue() = default;
  /// Called before the first `poll` with each empty batch whose memory is already resident. A queue may write there
  /// what stays the same in every batch. The batch is empty again afterwards.
  virtual void prepare(Batch& batch) noexcept { static_cast<void>(batch); }
  /// Appends the packets that are there now, until `batch` has no room for the next one. Never waits. A frame that
  /// fits no empty batch is an error of the port (see `Port::close`) and ends the queue.
  virtual RxStatus poll(Batch& batch) noexcept = 0;

  /// Of captures on a disk: when the next packet was captured, or, where it is not known yet, a time that none to come
  /// lies before (as far as a capture's own order is that of time). A worker merges such sources by time, so that both
  /// directions of a connection come as they went. None: packets count as of when they come.
  [[nodiscard]] virtual std::optional<std::uint64_t> next_time_ns() noexcept { return std::nullopt; }
  /// The same as `poll`, for such sources; idle where the next packet was captured later than that.
  virtual RxStatus poll_until(Batch& batch, std::uint64_t time_ns) noexcept {
    static_cast<void>(time_ns);
    return poll(batch);
  }

  /// Of sources whose packets' times tell when they arrived here, or were due: what to add to such a time to get that
  /// of `Batch::Clock`. None: packets count as arrived when they are polled.
  [[nodiscard]] virtual std::optional<std::chrono::nanoseconds> arrivals_to_clock() noexcept { return std::nullopt; }

  struct Discarded {
    RxStatus status = RxStatus::idle;  // as of `poll`; more: `most` were discarded
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
  };
  /// Takes packets that there is no room for, at most `most`, and brings them nowhere: with far less effort than
  /// `poll`, so that a worker under overload can give its time to the packets that it has. Of sources that do not wait.
  virtual Discarded discard(std::size_t most) noexcept {
    static_cast<void>(most);
    return {};
  }
};

/// What a port took and then could not bring to its destination: packets, and the bytes of their frames.
struct Lost {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// One worker's send side.
class TxQueue {
 public:
  virtual ~TxQueue() = default;
  /// Sends the packets in order and returns how many it took. What it cannot take (a link type that the output cannot
  /// hold) it leaves out and marks with a drop verdict, `Verdict::drop(0)`: the worker counts it, to the byte, as
  /// refused.
  /// Waits, as `flush` does, for an output that cannot take more (a slow reader of a pipe): see `Port::interrupt`.
  virtual std::size_t send(std::span<const PacketView> packets) noexcept = 0;
  /// What was sent so far reaches its destination now. Called at the end of each batch. Returns what of it, since the
  /// last call, did not: the worker counts it as refused.
  virtual Lost flush() noexcept { return {}; }
};

/// What a source with a rate of its own was to make until it was last polled, and how far behind its times it was then.
struct OfferedLoad {
  std::uint64_t packets = 0;
  std::chrono::nanoseconds behind{};
};

/// What a port that spreads packets over workers in software did with fragments.
struct FragmentCounts {
  std::uint64_t packets = 0;
  std::uint64_t waited = 0;        // came before the fragment that tells their flow, and were kept until it came
  std::uint64_t not_followed = 0;  // went by their addresses: that fragment never came, or there was no room to wait
  std::uint64_t ambiguous = 0;     // first fragments that name another flow than their datagram's first one did
  std::uint64_t copied = 0;        // copies of fragments of such datagrams, for the workers of the other flows
};

class Port {
 public:
  virtual ~Port() = default;

  /// Whether the chain file gives it something to read or to write.
  [[nodiscard]] virtual bool reads() const noexcept = 0;
  [[nodiscard]] virtual bool writes() const noexcept = 0;
  /// A source that waits for its reader (a file) is lossless. One that does not (a live interface, a generator with an
  /// offered rate) loses what the waiting queue cannot hold, and the worker counts it.
  [[nodiscard]] virtual bool lossless() const noexcept { return true; }

  /// What of the files that it names will not do, as far as that shows without waiting for anything or changing it:
  /// captures that are missing or cannot be read, folders that cannot be written. Pipes are not opened, nothing is
  /// made.
  [[nodiscard]] virtual Errors check() const { return {}; }

  /// Opens files and interfaces and makes the queues of `workers` workers. Called once, before they start. What an
  /// output already holds it still holds, in case another port cannot be opened.
  [[nodiscard]] virtual Result<void> open(unsigned workers) = 0;
  /// The run is to end. Ends what `open` waits for, the other end of a pipe say, and lets it fail; while running, an
  /// output whose reader takes nothing any more is given up, and what it holds is lost. Any thread, more than once too.
  virtual void interrupt() noexcept {}
  /// All ports of the chain are open and the run begins: outputs are emptied. Called once at most.
  virtual void start() noexcept {}
  /// The queues of a worker; null where the port does not read, or not write. The port owns them.
  [[nodiscard]] virtual RxQueue* rx(unsigned worker) noexcept = 0;
  [[nodiscard]] virtual TxQueue* tx(unsigned worker) noexcept = 0;
  /// Called once, after the workers have stopped (at the end or before it): writes out what is left and tells what
  /// went wrong while running, such as a capture that breaks off or a full disk. Without `start` it leaves no trace.
  [[nodiscard]] virtual Errors close() = 0;

  /// Whether something went wrong that `close` will tell of: the run need not go on. Any thread may ask.
  [[nodiscard]] virtual bool failed() const noexcept { return false; }

  /// None for a source without a rate; any thread may ask.
  [[nodiscard]] virtual std::optional<OfferedLoad> offered() const noexcept { return std::nullopt; }

  /// None where the port spreads nothing; any thread may ask.
  [[nodiscard]] virtual std::optional<FragmentCounts> fragments() const noexcept { return std::nullopt; }

  /// The part of the input that has been read, 0..1, for the progress line; any thread may ask. None: unknown.
  [[nodiscard]] virtual std::optional<double> progress() const noexcept { return std::nullopt; }
};

}  // namespace penstock::port
