// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A CPU stage whose packets are processed elsewhere, such as in another process. The worker can take other packets of
// the batch through other functions meanwhile.

#pragma once

#include <span>

#include "packet/packet.h"

namespace penstock::function {

/// Implemented by stages beside CpuStage. In all epochs, either all stages of a function implement it or none.
class DeferringStage {
 public:
  virtual ~DeferringStage() = default;
  /// Begins what CpuStage::process does, with packets that stay where they are until `finish`. Several bursts can be
  /// begun. False: nothing has begun, since there is no room for these packets, or for another burst.
  [[nodiscard]] virtual bool begin(std::span<PacketView> packets) noexcept = 0;
  /// Whether the first of the bursts that have begun can be finished. It can after a bounded time. To be called again
  /// and again.
  [[nodiscard]] virtual bool is_ready() noexcept = 0;
  /// Writes the verdicts of the first of them, which is ready.
  virtual void finish() noexcept = 0;
};

}  // namespace penstock::function
