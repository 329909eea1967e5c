// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine's tables on a device, shared by all GPU stages of the device. Owns the device memory; immutable.

#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "classify/bitvector_build.h"
#include "classify/bitvector_core.h"
#include "classify/classifier.h"
#include "classify/linear_core.h"
#include "classify/rfc_build.h"
#include "classify/rfc_core.h"
#include "classify/rules_view.h"
#include "gpu/memory.h"

namespace penstock::classify {

class DeviceTables {
 public:
  using EngineView = std::variant<LinearView, BitVectorView, RfcView>;

  /// Copies the tables to the current device; throws CudaError. `classifier` must be built from `rules`.
  DeviceTables(const Ruleset& rules, const Classifier& classifier);

  // Pass these by value to kernels.
  [[nodiscard]] const EngineView& engine() const noexcept { return engine_; }
  [[nodiscard]] const RulesView& rules() const noexcept { return rules_; }

 private:
  template <typename T>
  const T* copy_of(const std::vector<T>& host);
  Ipv4View copy_of(const Ipv4Table& table);
  Ipv6View copy_of(const Ipv6Table& table);
  SmallView copy_of(const SmallTable& table);
  [[nodiscard]] LinearView linear(const Ruleset& rules);
  [[nodiscard]] BitVectorView bitvectors(const BitVectorTables& tables);
  [[nodiscard]] RfcView rfc(const RfcTables& tables);

  std::vector<gpu::DeviceBuffer<std::byte>> copies_;
  RulesView rules_;
  EngineView engine_;
};

}  // namespace penstock::classify
