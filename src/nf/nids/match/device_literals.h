// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of a scan on a device: what all scan stages of one device share. Owns the device's memory; immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "gpu/memory.h"
#include "gpu/stage.h"
#include "nf/nids/match/aho_corasick_layout.h"
#include "nf/nids/match/hashed_filter_layout.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/scan_tables.h"

namespace penstock::nids {

class DeviceLiterals {
 public:
  using EngineView = std::variant<AhoCorasickView<std::uint16_t>, HashedFilterView>;

  /// Copies them to the current device; throws CudaError.
  explicit DeviceLiterals(const ScanTables& tables);

  /// To be passed by value to kernels.
  [[nodiscard]] const EngineView& engine() const noexcept { return engine_; }

 private:
  template <typename T>
  const T* copy_of(const std::vector<T>& host);
  [[nodiscard]] EngineView copy_of(const AhoCorasickTables& tables);
  [[nodiscard]] EngineView copy_of(const HashedFilterTables& tables);

  std::vector<gpu::DeviceBuffer<std::byte>> copies_;
  EngineView engine_;
};

/// For each packet that is forwarded: which literals are where its payload can be (scan_range_core.h), as the
/// PacketLiterals that is the packet's finding. Of one that is not forwarded the finding says that it was not scanned.
/// If packets come with states (DevicePackets::states, a FlowState each), literals that begin there are among them.
/// Verdicts stay as they are. Borrows the tables, which lie on the current device; `multiprocessors`: that it may fill,
/// as StageUse has it. Throws CudaError.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_scan_stage(const DeviceLiterals& literals,
                                                             std::uint32_t multiprocessors = 0);

}  // namespace penstock::nids
