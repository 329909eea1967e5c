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
#include "function/confirming_stage.h"
#include "function/network_function.h"
#include "gpu/per_device.h"
#include "nf/nids/detect/detection.h"
#include "nf/nids/detect/state_ids.h"
#include "nf/nids/detect/state_store.h"
#include "nf/nids/match/device_literals.h"
#include "nf/nids/match/scan_tables.h"
#include "nf/nids/nids_settings.h"
#include "nf/nids/nids_stage.h"

namespace penstock::nids {

class Nids final : public function::NetworkFunction, public function::ConfirmingFunction {
 public:
  Nids(std::unique_ptr<const Detection> detection, const NidsSettings& settings);

  const function::NfTraits& traits() const noexcept override { return traits_; }
  stack::TrackerOptions stack_options() const override { return settings_.tracker; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<DeviceStage> make_device_stage(function::Processor processor, const StageUse& use) override;
  /// Of the hashed filter, also where the automaton in strips would be faster: no check knows that one. Null also if a
  /// search could take too long for a device of others.
  [[nodiscard]] std::optional<function::StageRecipe> stage_recipe(function::Processor processor) const override;
  std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& twin) override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  std::optional<function::ClearFindings> clear_findings() const noexcept override {
    return nids::clear_findings(*detection_, settings_);
  }
  /// "12 rules added, 3 removed, 5 changed (of 1,234); set anew: payload".
  Result<std::string> changes_from(const function::NetworkFunction& running) const override;
  /// What the run keeps: flow and host state, the counts of all workers, and the alerts of the rules that stay. It also
  /// keeps its stages: if the predecessor has a GPU stage, so has this function, even without literals; if not, rules
  /// run on the CPU.
  Result<void> take_over(function::NetworkFunction& predecessor) override;
  /// Frees the predecessor's tables on devices.
  void predecessor_ended() noexcept override;
  /// Writes the last EVE `stats` record.
  void end_run() noexcept override;
  std::optional<function::Explanation> explain(PacketView packet) const override;
  std::string state_of_run() const override { return "connections, streams and thresholds"; }
  std::string description() const override;
  std::string load_table() const override;
  /// {"loaded": N, "left_out": M, "reasons": [{"reason", "rules", "first"} …]}
  void load_report(nlohmann::ordered_json& into) const override;
  /// {"alerts", "rules": [{"gid", "sid", "rev", "message", "alerts"} …], "load", "inspection", "stack", "profile" if it
  /// is recorded, "warnings" if any}. Only rules with alerts are listed, those with the most alerts first. After a
  /// reload, all numbers continue, but "load" and "profile" are about the new rules since then. A rule that stays, by
  /// gid and sid, keeps its alerts; those of removed rules only remain in the sum.
  void report(nlohmann::json& into) const override;

  /// Selects what a run records. Call it before the run.
  void record(const NidsRecording& what) noexcept { recording_ = what; }
  /// The sums over all workers since this rule set was loaded, one entry for each rule in the order of the set. Empty
  /// if no profile is recorded.
  [[nodiscard]] std::vector<RuleProfileSum> profile() const;
  /// The frames that raised alerts, if they are recorded. Call it after the run has ended.
  [[nodiscard]] FrameSet alert_frames() const;

  [[nodiscard]] const RuleSet& rules() const noexcept { return detection_->rules(); }
  /// The alerts of all workers, one number for each rule in the order of the set.
  [[nodiscard]] std::vector<std::uint64_t> alerts_by_rule() const;
  [[nodiscard]] WorkerCounts::Numbers numbers() const;

 private:
  /// Called with mutex_ held.
  [[nodiscard]] Result<const ScanTables*> scan_tables() const;
  /// What outlives the rule sets of a run. Functions that take each other's place share it.
  struct Run {
    std::mutex mutex;                 // guards the other members, and what is said so of the functions
    std::optional<HostMemory> hosts;  // set with the first stage
    StateIds::Unused unused_ids;
    std::vector<std::shared_ptr<WorkerCounts>> workers;  // at least one for each worker
    std::optional<std::chrono::steady_clock::time_point> begun;
    std::atomic<report::EventLog::Clock::rep> stats_due{0};  // any worker writes them; 0: not known yet
  };
  struct Predecessor {
    Nids* function;
    std::vector<std::uint32_t> rules;   // by our rule: the same one there, or kNone
    std::vector<std::uint64_t> alerts;  // own_alerts() there when we took its place
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  // Call these with the run's mutex.
  [[nodiscard]] std::vector<std::uint64_t> own_alerts() const;
  [[nodiscard]] std::vector<std::uint64_t> inherited_alerts() const;
  [[nodiscard]] std::vector<std::uint64_t> all_alerts() const;
  void forget_ended_stages();
  [[nodiscard]] WorkerCounts::Numbers sum_numbers() const;
  void write_stats(const WorkerCounts::Numbers& counted, std::uint64_t timestamp_ns) const;

  void write_stats_if_due(report::EventLog::Clock::time_point now) noexcept;
  void end_predecessor();

  const std::unique_ptr<const Detection> detection_;
  const NidsSettings settings_;
  function::NfTraits traits_;
  NidsRecording recording_;
  std::shared_ptr<Run> run_;
  std::shared_ptr<const StateIds> ids_;

  // Guarded by the run's mutex.
  std::vector<std::shared_ptr<RuleCounts>> stages_;
  std::vector<std::uint64_t> ended_alerts_;  // by rule, of stages that have been destroyed
  std::vector<RuleProfileSum> ended_profile_;
  std::vector<std::uint64_t> earlier_alerts_;  // by rule, of other functions; may be negative, modulo 2^64
  std::optional<Predecessor> predecessor_;     // until its stages have ended

  mutable std::mutex mutex_;                       // guards the members below
  mutable std::optional<ScanTables> scan_tables_;  // built when the first device needs them
  gpu::PerDevice<const DeviceLiterals> on_devices_;
};

/// For the catalog.
[[nodiscard]] const function::NfKind& nids_kind();

}  // namespace penstock::nids
