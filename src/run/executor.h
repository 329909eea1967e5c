// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What takes a worker's batches through the chain, on whichever processor. It never waits: work that is under way
// elsewhere is asked after. One worker's own.

#pragma once

#include "packet/batch.h"

namespace penstock::run {

class Executor {
 public:
  virtual ~Executor() = default;

  /// In the thread that calls all of the following, before any of them.
  virtual void begin() noexcept {}
  /// Takes a closed batch on, whose memory stays as it is until `retire` gives the batch back. False: there is no room
  /// now, the batch is the caller's still.
  [[nodiscard]] virtual bool submit(Batch& batch) noexcept = 0;
  /// Moves on what is under way. Returns the next batch, in order of submission, all of whose packets are at their end
  /// and accounted for; null: none is now.
  [[nodiscard]] virtual Batch* retire() noexcept = 0;
  /// Whether a batch that is submitted now is worked on at once: then a small batch need not wait to be filled.
  [[nodiscard]] virtual bool idle() const noexcept = 0;
  /// Shows the functions a frame that another worker carries. Nothing is under way.
  virtual void observe(PacketView packet) noexcept = 0;
  /// Nothing is under way and nothing comes: functions may take up new tables all the same.
  virtual void pass_boundary() noexcept = 0;
  /// No batch comes any more and none is under way: the stages do what is left to them, and go, so that no update waits
  /// for a batch boundary of theirs.
  virtual void end() noexcept = 0;
  /// After `end`: what a device has for them goes too, which takes its driver milliseconds and is no packet's time.
  virtual void release() noexcept {}
};

}  // namespace penstock::run
