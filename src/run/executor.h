// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes a worker's batches through the chain, on any processor. Work in progress on a device is polled and never
// blocked on; that in other processes is waited for, for a bounded time. Each worker has its own.

#pragma once

#include <memory>

#include "packet/batch.h"
#include "run/epoch.h"

namespace penstock::run {

class Executor {
 public:
  virtual ~Executor() = default;

  /// Called first, in the thread that makes all other calls. The ports are open.
  virtual void begin() noexcept = 0;
  /// Accepts a closed batch, whose memory must stay unchanged until `retire` returns it. False: there is no room now,
  /// and the batch stays with the caller.
  [[nodiscard]] virtual bool submit(Batch& batch) noexcept = 0;
  /// Advances the work in progress. Returns batches in the order of submission, each when all of its packets are done
  /// and counted; null: none is done.
  [[nodiscard]] virtual Batch* retire() noexcept = 0;
  /// Whether packets of `open`, which has room for more, leave soonest if it is submitted now instead of filled first.
  [[nodiscard]] virtual bool takes_early(const Batch& open) const noexcept = 0;
  /// Shows the functions a frame that another worker processes. Called only when nothing is in progress.
  virtual void observe(PacketView packet) noexcept = 0;
  /// Called when nothing is in progress and no packets arrive, so that functions can switch to new tables nevertheless.
  virtual void pass_boundary() noexcept = 0;
  /// Whether functions hold packets (function/holding_stage.h), which they may decide about at a batch boundary.
  [[nodiscard]] virtual bool holds_packets() const noexcept = 0;
  /// Drops the held packets about which the functions still cannot decide. The others are sent.
  virtual void give_up_held() noexcept = 0;
  /// Batches submitted from here on use these stages. The former ones finish the batches in progress. Call it again
  /// only once `take_ended` has returned them.
  virtual void begin_epoch(std::unique_ptr<StageSet> next) noexcept = 0;
  /// The stages of the former epoch, once no batch uses them any more; otherwise null.
  [[nodiscard]] virtual std::unique_ptr<StageSet> take_ended() noexcept = 0;
  // Only where lanes are in another process (lane_keeper.h):

  /// Makes lanes with stages of the chain's functions, on the device as it is connected now, and tries them. Called in
  /// another thread, while no epoch changes. Throws CudaError.
  [[nodiscard]] virtual std::unique_ptr<LaneSet> make_lanes() const { return nullptr; }
  /// Uses these lanes in the place of its own, which are lost, as soon as nothing is in progress; until then, it
  /// accepts no batch. Call it again only once `take_ended_lanes` has returned the former ones.
  virtual void begin_lanes(std::unique_ptr<LaneSet> /*next*/) noexcept {}
  /// Those that it does not use any more; otherwise null.
  [[nodiscard]] virtual std::unique_ptr<LaneSet> take_ended_lanes() noexcept { return nullptr; }

  /// Called when nothing is in progress or held and no more batches will come. Stages finish their work and are
  /// destroyed, so that no table update waits for their next batch boundary.
  virtual void end() noexcept = 0;
  /// After `end`: frees device resources. This takes the driver milliseconds, which must not count as packet time.
  virtual void release() noexcept {}
};

}  // namespace penstock::run
