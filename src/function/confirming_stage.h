// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finish stages of functions in processes of their own, whose device stages run in the lanes of a chain. What these
// found comes by way of the chain's process, which may lie.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

namespace penstock::function {

/// Which findings need no finish stage: packets with them are only counted. A test of the first bytes of a finding, so
/// that a process that knows nothing else of the function can choose its packets.
struct ClearFindings {
  static constexpr std::size_t kBytes = 8;  // of a finding, which must not be shorter

  std::uint64_t mask = 0;
  std::uint64_t value = 1;  // of the bytes under the mask; by default: none is clear

  [[nodiscard]] bool has(const std::byte* finding) const noexcept {
    std::uint64_t first = 0;
    std::memcpy(&first, finding, kBytes);
    return (first & mask) == value;
  }
  friend bool operator==(const ClearFindings&, const ClearFindings&) = default;
};

/// Packets that a finish stage has not seen, since their findings are clear.
struct PassedOver {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;  // of their frames
};

/// Implemented by functions beside NetworkFunction. Their device stages decide nothing.
class ConfirmingFunction {
 public:
  virtual ~ConfirmingFunction() = default;
  /// Empty: its finish stages are no ConfirmingStages.
  [[nodiscard]] virtual std::optional<ClearFindings> clear_findings() const noexcept = 0;
};

class NetworkFunction;
/// Empty: its finish stages cannot be in another process.
[[nodiscard]] std::optional<ClearFindings> confirmed_findings(const NetworkFunction& function) noexcept;

/// Implemented by finish stages beside FinishStage.
class ConfirmingStage {
 public:
  virtual ~ConfirmingStage() = default;
  /// Whether the device stage can have left this finding. Others must not be given to FinishStage::finish.
  [[nodiscard]] virtual bool can_be(const std::byte* finding) const noexcept = 0;
  /// If the device stage needs states (NfTraits::state_bytes), which come back with the findings: whether the state
  /// stage can have made this one. Others must not be given to FinishStage::take_states.
  [[nodiscard]] virtual bool can_be_state(const std::byte* state) const noexcept {
    static_cast<void>(state);
    return false;
  }
  /// Counts packets with clear findings, which it is not given.
  virtual void pass_over(const PassedOver& packets) noexcept = 0;
};

}  // namespace penstock::function
