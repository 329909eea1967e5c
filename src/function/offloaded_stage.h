// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A CPU stage that leaves its work to a device, for functions that are served in processes of their own. A call costs
// much whatever the number of packets, such as a launch, and the device may fail.

#pragma once

#include <cstddef>
#include <string_view>

namespace penstock::function {

/// Implemented by stages beside CpuStage.
class OffloadedStage {
 public:
  virtual ~OffloadedStage() = default;
  /// The most packets of a call of CpuStage::process: not just a burst.
  [[nodiscard]] virtual std::size_t most_packets() const noexcept = 0;
  /// Why the stage cannot go on: the verdicts of the last call are not valid, and neither are those of later ones. Its
  /// process ends then. Empty: it can.
  [[nodiscard]] virtual std::string_view failure() const noexcept = 0;
};

}  // namespace penstock::function
