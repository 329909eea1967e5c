// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `nids`: evaluates Suricata and Snort rules on packets and reassembled streams. It logs alerts as
// EVE JSON and to fast.log, and drops packets if it is configured to.

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "gpu/per_device.h"
#include "nf/nids/detect/detection.h"
#include "nf/nids/detect/state_store.h"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/scan_tables.h"
#include "nf/nids/nids_settings.h"
#include "nf/nids/nids_stage.h"

namespace penstock::nids {

class Nids final : public function::NetworkFunction {
 public:
  Nids(std::unique_ptr<const Detection> detection, const NidsSettings& settings);

  const function::NfTraits& traits() const noexcept override { return traits_; }
  stack::TrackerOptions stack_options() const override { return settings_.tracker; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<gpu::GpuStage> make_gpu_stage(const gpu::StageUse& use) override;
  std::unique_ptr<function::StateStage> make_state_stage() override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  /// Writes the EVE `stats` record.
  void end_run() noexcept override;
  std::string description() const override;
  std::string load_table() const override;
  /// {"loaded": N, "left_out": M, "reasons": [{"reason", "rules", "first"} …]}
  void load_report(nlohmann::ordered_json& into) const override;
  /// {"alerts", "rules": [{"gid", "sid", "rev", "message", "alerts"} …], "load", "inspection", "stack", "profile" if it
  /// is recorded, "warnings" if any}. Only rules with alerts are listed, those with the most alerts first.
  void report(nlohmann::json& into) const override;

  /// Selects what a run records. Call it before the run.
  void record(const NidsRecording& what) noexcept { recording_ = what; }
  /// The sums over all workers, one entry for each rule in the order of the set. Empty if no profile is recorded.
  [[nodiscard]] std::vector<RuleProfileSum> profile() const;
  /// The frames that raised alerts, if they are recorded. Call it after the run has ended.
  [[nodiscard]] FrameSet alert_frames() const;

  [[nodiscard]] const RuleSet& rules() const noexcept { return detection_->rules(); }
  /// The alerts of all workers, one number for each rule in the order of the set.
  [[nodiscard]] std::vector<std::uint64_t> alerts_by_rule() const;
  [[nodiscard]] WorkerCounts::Numbers numbers() const;

 private:
  const std::unique_ptr<const Detection> detection_;
  const NidsSettings settings_;
  function::NfTraits traits_;
  NidsRecording recording_;
  HostMemory hosts_;
  mutable std::mutex mutex_;               // guards the members below; only set-up and reports take it
  std::optional<ScanTables> scan_tables_;  // built when the first device needs them
  gpu::PerDevice<const DeviceLiterals> on_devices_;
  std::vector<std::unique_ptr<WorkerCounts>> workers_;
  std::optional<std::chrono::steady_clock::time_point> begun_;
};

/// For the catalog.
[[nodiscard]] const function::NfKind& nids_kind();

}  // namespace penstock::nids
