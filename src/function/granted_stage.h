// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Device stages that are made from tables of another process. The process that has a function loads its tables where
// the lanes of others run, and gets a token: whoever has it may make stages of these tables, but can neither read nor
// change them. Granted tables never change: other tables have another token.

#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "function/stage_recipe.h"
#include "packet/packet.h"
#include "packet/verdict.h"

namespace penstock::function {

/// Random, and secret.
using GrantToken = std::array<std::uint8_t, 16>;

/// Tells granted tables apart, in the processes that know the token. Never 0, which stands for a function's own tables.
[[nodiscard]] inline std::uint64_t grant_number(const GrantToken& token) noexcept {
  std::uint64_t number = 0;
  std::memcpy(&number, token.data(), sizeof number);
  return number | 1;
}

// In the process that has the function:

/// Tables that are loaded for others, until this is destroyed.
class GrantedTables {
 public:
  virtual ~GrantedTables() = default;
  [[nodiscard]] virtual const GrantToken& token() const noexcept = 0;
  /// Whether they have gone already, with the process that has the device.
  [[nodiscard]] virtual bool are_lost() noexcept = 0;
};

/// Loads tables for others. Thread-safe.
class TableGranter {
 public:
  virtual ~TableGranter() = default;
  /// Of stages that are made from the recipe. Empty: none can be made for others.
  [[nodiscard]] virtual std::optional<StageNeeds> needs_of(const StageRecipe& recipe) const = 0;
  /// Returns once they are loaded.
  [[nodiscard]] virtual Result<std::unique_ptr<GrantedTables>> grant(const StageRecipe& recipe) = 0;
};

/// Implemented by a function, beside NetworkFunction, whose device stage carries out what the function has decided
/// about each packet (NfTraits::state_bytes). These states cross through the process that has the lanes, which may
/// change, forge or repeat them: tables that are granted to it must tell.
class DecidingFunction {
 public:
  virtual ~DecidingFunction() = default;
  /// Called once, before anything else is asked of the function: its device stages will be made from granted tables.
  virtual void decide_for_others() = 0;
};

// In the process that has the lanes:

/// A function whose stage on a device may be made from tables that its own process has granted.
class GrantedStage {
 public:
  virtual ~GrantedStage() = default;
  /// The most that the stage may do: one that does more must not be made. Null: the function has no such stage.
  [[nodiscard]] virtual const StageNeeds* stage_needs() const noexcept = 0;
  /// Asks the function's process for the token of its present tables, and waits for it until `gives_up` returns true.
  [[nodiscard]] virtual Result<GrantToken> ask_for_token(const std::function<bool()>& gives_up) = 0;
  /// Whether the stage can have given this verdict: nobody else has compared its tables with the chain.
  [[nodiscard]] virtual bool can_give(Verdict verdict) const noexcept = 0;
};

/// Implemented by lanes beside ring::Lane.
class GrantingLane {
 public:
  virtual ~GrantingLane() = default;
  /// grant_number of the tables that a stage of the lane uses. 0: they are those of its function.
  [[nodiscard]] virtual std::uint64_t grant(std::size_t segment, std::size_t stage) const noexcept = 0;
};

/// Implemented by the finish stage of such a function, beside FinishStage. What its device stage has found means
/// something only to the process that has granted the tables.
class HandingStage {
 public:
  virtual ~HandingStage() = default;
  /// Called before each FinishStage::choose, finish or begin_finish: grant_number of the tables that the device stage
  /// has used.
  virtual void take_grant(std::uint64_t grant) noexcept = 0;
  /// For a stage that waits (NfTraits::finish_waits): called in place of FinishStage::finish once the packets were
  /// sent. The process may go on with them until `end_finish`, which is called after the last ones of the batch.
  virtual void begin_finish(std::span<const PacketView> packets,
                            std::span<const std::byte* const> findings) noexcept = 0;
  virtual void end_finish() noexcept = 0;
};

/// Implemented by the state stage of such a function, beside StateStage: states mean something only to tables of the
/// process that has made them.
class StatesOfGrant {
 public:
  virtual ~StatesOfGrant() = default;
  /// Called before the states of a batch: grant_number of the tables that will read them.
  virtual void take_grant(std::uint64_t grant) noexcept = 0;
  /// Called after the last StateStage::fill of a batch. Its states are complete only then.
  virtual void end_states() noexcept = 0;
};

class NetworkFunction;
/// Null: the function has no such stage.
[[nodiscard]] GrantedStage* granted_stage_of(NetworkFunction& function) noexcept;

}  // namespace penstock::function
