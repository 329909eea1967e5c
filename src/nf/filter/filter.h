// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `filter`: BPF programs decide which packets are forwarded, dropped, or sent to a port. All its
// filters are run on each packet, and count what they match; the first one that matches decides.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "gpu/per_device.h"
#include "nf/filter/bpf/matcher.h"
#include "nf/filter/device_tables.h"
#include "nf/filter/filter_list.h"
#include "nf/filter/filter_stage.h"
#include "nf/filter/tally.h"

namespace penstock::filter {

/// Options of the function other than its filters.
struct FilterOptions {
  Engine engine = Engine::interpreter;
  GpuEngine gpu_engine = GpuEngine::automatic;
  std::size_t most_filters = 32;  // that a reload may bring; a multiple of 32
};

class Filter final : public function::NetworkFunction {
 public:
  /// Fails if this build lacks the engine.
  [[nodiscard]] static Result<std::unique_ptr<Filter>> build(FilterList list, const FilterOptions& options);

  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<DeviceStage> make_device_stage(function::Processor processor, const StageUse& use) override;
  /// For the interpreter; null where the user has chosen generated code.
  std::optional<function::StageRecipe> stage_recipe(function::Processor processor) const override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  /// "1 filter added, 2 changed, otherwise drop → forward"
  Result<std::string> changes_from(const function::NetworkFunction& running) const override;
  /// The counts of unchanged filters continue: those with the same name, programs and action.
  Result<void> take_over(function::NetworkFunction& predecessor) override;
  void predecessor_ended() noexcept override;
  std::optional<function::Explanation> explain(PacketView packet) const override;
  std::string description() const override;
  std::string load_table() const override;
  /// {"filters": [{"name", "expression" or "program", "match", "packets", "bytes", "decided": {"packets", "bytes"}} …],
  /// "unmatched": {"packets", "bytes"}}, in the order of the filters.
  void report(nlohmann::json& into) const override;

  [[nodiscard]] const FilterList& list() const noexcept { return list_; }
  /// The sums over all workers, one for each filter, then that of the packets that no filter matches.
  [[nodiscard]] std::vector<Count> counts() const;

 private:
  Filter(FilterList list, const FilterOptions& options);
  /// Null if GPUs interpret the programs. Called with the lock of `on_devices_`.
  [[nodiscard]] MachineCode* machine_code();

  const FilterList list_;
  const FilterOptions options_;
  MatcherTable matchers_;  // by link type; null where a filter has no program
  function::NfTraits traits_;
  std::vector<std::shared_ptr<Tally>> tallies_;  // by filter, and one more for packets that match none
  Filter* predecessor_ = nullptr;                // whose device tables are still in use
  std::unique_ptr<MachineCode> code_;            // once it is needed
  gpu::PerDevice<const DeviceTables> on_devices_;
};

/// For the catalog.
[[nodiscard]] const function::NfKind& filter_kind();

}  // namespace penstock::filter
