// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// An engine's tables on a device, shared by all GPU stages of the device. Owns the device memory; immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "classify/bitvector_build.h"
#include "classify/bitvector_core.h"
#include "classify/classifier.h"
#include "classify/linear_core.h"
#include "classify/rfc_build.h"
#include "classify/rfc_core.h"
#include "classify/rules_view.h"
#include "classify/table_spans.h"
#include "gpu/memory.h"

namespace penstock::classify {

class DeviceTables {
 public:
  using EngineView = std::variant<LinearView, BitVectorView, RfcView>;

  /// Copies the tables to the current device; throws CudaError. `classifier` must be built from `rules`.
  DeviceTables(const Ruleset& rules, const Classifier& classifier);
  /// The same from elsewhere. Tables of another process must have been checked.
  explicit DeviceTables(const TableSpans& tables);

  // Pass these by value to kernels.
  [[nodiscard]] const EngineView& engine() const noexcept { return engine_; }
  [[nodiscard]] const RulesView& rules() const noexcept { return rules_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  void copy(const TableSpans& tables);
  template <typename T>
  const T* copy_of(std::span<const T> host);
  Ipv4View copy_of(const Ipv4Spans& table);
  Ipv6View copy_of(const Ipv6Spans& table);
  SmallView copy_of(const SmallSpans& table);
  [[nodiscard]] LinearView view(const LinearSpans& tables);
  [[nodiscard]] BitVectorView view(const BitVectorSpans& tables);
  [[nodiscard]] RfcView view(const RfcTables& tables);

  std::vector<gpu::DeviceBuffer<std::byte>> copies_;
  RulesView rules_;
  std::uint32_t entry_count_ = 0;
  EngineView engine_;
};

}  // namespace penstock::classify
