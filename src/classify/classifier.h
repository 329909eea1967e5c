// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines that find the rule for a key, behind one interface. An engine borrows its rule set, is immutable, and may
// be used by many workers at once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "classify/key.h"
#include "classify/rule.h"

namespace penstock::classify {

struct BitVectorTables;
struct RfcTables;

class Classifier {
 public:
  /// How many keys an engine processes together.
  static constexpr std::size_t kGroup = 32;

  virtual ~Classifier() = default;
  /// Finds for each key the entry that decides it or has steps, or kNoEntry: then the policy decides. `entries` must
  /// have room for one per key.
  virtual void classify(std::span<const Key> keys, std::uint32_t* entries) const noexcept = 0;
  /// The same for one key, from entry `from` on: after the steps of the entry before it. Only for rules that have any.
  [[nodiscard]] virtual std::uint32_t next(const Key& key, std::uint32_t from) const noexcept = 0;
  /// The tables to copy to devices in addition to the rule set; null if they are another engine's.
  [[nodiscard]] virtual const BitVectorTables* bitvectors() const noexcept { return nullptr; }
  [[nodiscard]] virtual const RfcTables* rfc() const noexcept { return nullptr; }
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
};

enum class Engine : std::uint8_t { linear, bitvector, rfc };

/// "linear", "bitvector" or "rfc".
[[nodiscard]] Engine engine_of(std::string_view name);

/// Fails if there are too many rules for the engine.
[[nodiscard]] Result<std::unique_ptr<Classifier>> make_classifier(Engine engine, const Ruleset& rules);

}  // namespace penstock::classify
