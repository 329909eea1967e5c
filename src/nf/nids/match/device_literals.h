// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scan tables on a device, shared by all scan stages of this device. Owns the device memory; immutable.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "gpu/memory.h"
#include "gpu/stage.h"
#include "nf/nids/match/aho_corasick_layout.h"
#include "nf/nids/match/automaton_recipe.h"
#include "nf/nids/match/hashed_filter_layout.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/scan_tables.h"

namespace penstock::nids {

/// Of PacketAutomaton.
template <typename Entry>
struct PacketAutomatonView {
  AhoCorasickView<Entry> automaton;
};

class DeviceLiterals {
 public:
  using EngineView = std::variant<AhoCorasickView<std::uint16_t>, HashedFilterView, PacketAutomatonView<std::uint16_t>,
                                  PacketAutomatonView<std::uint32_t>>;

  /// Copies the tables to the current device; throws CudaError.
  explicit DeviceLiterals(const ScanTables& tables);
  /// The same of a PacketAutomaton, or of a hashed filter. Those of another process must have been checked.
  explicit DeviceLiterals(const AutomatonSpans& automaton);
  explicit DeviceLiterals(const FilterSpans& filter);

  /// To be passed by value to kernels.
  [[nodiscard]] const EngineView& engine() const noexcept { return engine_; }

 private:
  template <typename T>
  const T* copy_of(std::span<const T> host);
  template <typename Entry>
  [[nodiscard]] AhoCorasickView<Entry> copy_of(const AutomatonSpans& automaton, std::span<const Entry> rows);
  [[nodiscard]] EngineView copy_of(const AhoCorasickTables& tables);
  [[nodiscard]] EngineView copy_of(const HashedFilterTables& tables) { return copy_of(tables.spans()); }
  [[nodiscard]] EngineView copy_of(const FilterSpans& filter);
  [[nodiscard]] EngineView copy_of(const PacketAutomaton& automaton);
  [[nodiscard]] EngineView copy_of(const AutomatonSpans& automaton);

  std::vector<gpu::DeviceBuffer<std::byte>> copies_;
  EngineView engine_;
};

/// Makes a stage that finds the literals in each forwarded packet's possible payload (scan_range_core.h), and writes
/// them as the packet's finding, a PacketLiterals. For other packets the finding says that they were not scanned. If
/// packets come with states (DevicePackets::states, one FlowState each), literals that begin in the state are included,
/// unless each packet has a thread (PacketAutomaton) or `takes_states` is false. Verdicts do not change. Borrows the
/// tables, which must be on the current device. `multiprocessors`: how many it may fill, as in StageUse. Throws
/// CudaError.
[[nodiscard]] std::unique_ptr<gpu::GpuStage> make_scan_stage(const DeviceLiterals& literals,
                                                             std::uint32_t multiprocessors = 0,
                                                             bool takes_states = true);

}  // namespace penstock::nids
