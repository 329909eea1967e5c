// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A network function that knows what it needs of the other functions of its chain.

#pragma once

#include <span>

#include "base/error.h"

namespace penstock::function {

class NetworkFunction;

/// Implemented by functions beside NetworkFunction. `chain`: the functions on the ways of packets through this one, in
/// their order, with this one.
class ChainMember {
 public:
  virtual ~ChainMember() = default;
  /// Once, when all functions are made and before anything runs: may keep what it needs of them, which lives as long as
  /// this function. Errors about what it needs and does not find.
  [[nodiscard]] virtual Errors join(std::span<NetworkFunction* const> chain) = 0;
  /// Warnings about functions that are missing in the chain, or that contradict this one.
  [[nodiscard]] virtual Errors cautions_in(std::span<const NetworkFunction* const> chain) const = 0;
};

}  // namespace penstock::function
