// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines that find the rule for a key, behind one interface. An engine borrows the rule set that it was made for,
// is immutable, and is used by many workers at once.

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

class Classifier {
 public:
  /// Keys that are worked on together.
  static constexpr std::size_t kGroup = 32;

  virtual ~Classifier() = default;
  /// For each key the entry that decides about it, or kNoEntry: the policy does. `entries` has the size of `keys`.
  virtual void classify(std::span<const Key> keys, std::uint32_t* entries) const noexcept = 0;
  /// What is copied to devices beside the rule set; null where the engine has nothing but that.
  [[nodiscard]] virtual const BitVectorTables* bitvectors() const noexcept = 0;
  [[nodiscard]] virtual std::size_t memory_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
};

enum class Engine : std::uint8_t { linear, bitvector };

/// "linear" or "bitvector".
[[nodiscard]] Engine engine_of(std::string_view name);

/// Fails where the rules are too many for the engine.
[[nodiscard]] Result<std::unique_ptr<Classifier>> make_classifier(Engine engine, const Ruleset& rules);

}  // namespace penstock::classify
