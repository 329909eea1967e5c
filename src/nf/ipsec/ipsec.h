// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `ipsec`: ESP for one direction, configured by the SAs and policies of `ip xfrm` (RFC 4301,
// 4303). Outbound, it protects the packets that policies select. Inbound, it decapsulates ESP addressed to one of its
// SAs, and forwards what the policies allow.

#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/siphash_core.h"
#include "function/granted_stage.h"
#include "function/lasting_function.h"
#include "function/network_function.h"
#include "gpu/per_device.h"
#include "gpu/turns.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/fragment_wait.h"
#include "nf/ipsec/tables.h"
#include "report/counter.h"
#include "report/published.h"

namespace penstock::ipsec {

/// Where the user gave parameters that a reload cannot change; for those not given, where the function is.
struct ParameterPlaces {
  Place state, direction, mtu, too_big, state_dir;
};

/// The turns in which a worker's GPU stages take numbers, by device and worker. Shared by the functions of all epochs.
class WorkerTurns {
 public:
  [[nodiscard]] gpu::Turns& of(int device, unsigned worker) {
    const std::lock_guard lock(mutex_);
    return turns_[{device, worker}];
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, unsigned>, gpu::Turns> turns_;
};

class Ipsec final : public function::NetworkFunction,
                    public function::DecidingFunction,
                    public function::LastingFunction {
 public:
  /// `left_out` names constructs that were skipped in the files ("2 constructs left out ('mark')"); empty if none.
  explicit Ipsec(std::unique_ptr<Tables> tables, std::string left_out = {}, ParameterPlaces places = {});

  const function::NfTraits& traits() const noexcept override { return traits_; }
  stack::TrackerOptions stack_options() const override { return FragmentWait::stack_options(); }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<DeviceStage> make_device_stage(function::Processor processor, const StageUse& use) override;
  /// It has the keys of the SAs. Outbound, only where the host decides (Settings::decides_on_host). For lanes of
  /// others, decisions from now on are for stages of this recipe only.
  std::optional<function::StageRecipe> stage_recipe(function::Processor processor) const override;
  std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& twin) override;
  void decide_for_others() override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  Errors check() const override { return tables_->numbers().check(tables_->used_states()); }
  Result<void> begin_run() override;
  void end_run() noexcept override { tables_->end_run(); }
  Result<std::string> changes_from(const function::NetworkFunction& running) const override;
  Result<void> take_over(function::NetworkFunction& predecessor) override;
  void predecessor_ended() noexcept override;
  std::optional<function::Explanation> explain(PacketView packet) const override;
  std::string state_of_run() const override { return "sequence numbers, replay windows and lifetimes of SAs"; }
  std::string description() const override;
  /// {"warnings": [constructs skipped in the files], "state_dir": folder or null, "fault": why sequence numbers could
  /// not be reserved, only after a failure, "fragments": {"received", "reassembled", "timed_out", "dropped"}, only
  /// inbound and only if there were any, "sas": [{"spi", "source", "destination", "line", "packets", "bytes", "sent" or
  /// "received", "replayed", "integrity", "soft", "hard"} …]}. SAs that carried nothing and reached no limit are
  /// omitted.
  void report(nlohmann::json& into) const override;

  [[nodiscard]] const Tables& tables() const noexcept { return *tables_; }
  /// Of decisions for the last recipe. While that changes, it may be no recipe's, so that its decisions mean nothing.
  [[nodiscard]] SipKey decision_key() const noexcept {
    return {decision_key_[0].load(std::memory_order_relaxed), decision_key_[1].load(std::memory_order_relaxed)};
  }

  /// Called at batch boundaries, by any worker. Once a second, and when an SA reaches a limit (`limit_reached`), one
  /// worker checks all SAs: it logs the limits that were reached and updates the SA statuses on the devices.
  void look_after_sas(SaState::Seconds now) noexcept;
  void look_after_sas_at_once() noexcept;
  /// Per-SA counters for one more worker's stage, for SAs without limits (Carrier). Owned by this object.
  [[nodiscard]] std::span<report::Traffic> make_counts();
  /// For one more worker's stage, unless that takes over another stage's.
  [[nodiscard]] std::shared_ptr<WorkerFragments> make_fragments();
  void limit_reached() noexcept { limit_reached_.store(true, std::memory_order_relaxed); }

 private:
  /// What an SA has carried, besides what `carried_` says.
  struct Earlier {
    report::TrafficSum in_file;  // when it was first loaded
    report::TrafficSum here;     // by stages that have ended
  };
  static void log_limit(const SaState& state) noexcept;
  void set_traits();
  // These need `mutex_`.
  [[nodiscard]] std::vector<Earlier> totals() const;
  void follow(Ipsec& predecessor);
  void remember_removed(Ipsec& predecessor);

  std::unique_ptr<Tables> tables_;
  const std::string left_out_;
  const ParameterPlaces places_;
  function::NfTraits traits_;
  mutable std::array<std::atomic<std::uint64_t>, 2> decision_key_{};
  std::atomic<SaState::Seconds> looked_at_ = 0;
  std::atomic<bool> limit_reached_ = false;
  mutable std::mutex mutex_;        // guards the members below: during set-up, and while SAs are checked
  std::vector<SaStatus> statuses_;  // by SA, as last copied to the devices
  bool has_new_devices_ = false;    // which have no copy of `statuses_` yet
  gpu::PerDevice<DeviceTables> on_devices_;
  std::vector<Earlier> earlier_;                             // by SA
  std::deque<std::vector<report::Traffic>> carried_;         // by stage and SA
  std::vector<std::shared_ptr<WorkerFragments>> fragments_;  // by stage, also of earlier epochs
  FragmentCounts ended_fragments_;                           // of workers that are not in `fragments_` any more
  std::shared_ptr<WorkerTurns> turns_;                       // must outlive the stages
  /// The function whose stages still exist. Only its counts change meanwhile, since it makes no stages any more.
  Ipsec* predecessor_ = nullptr;
  std::vector<std::uint32_t> in_predecessor_;     // by SA: its index there if it stays, else kNoSa
  std::deque<std::shared_ptr<SaState>> removed_;  // states of SAs that reloads of this run have removed
};

/// From the parameters of `ipsec_kind`, except `state_dir`: `numbers` supplies the SAs' sequence numbers and IVs
/// instead.
[[nodiscard]] Result<std::unique_ptr<function::NetworkFunction>> make_ipsec(const Parameters& parameters,
                                                                            function::NfContext& context,
                                                                            SaRegistry& registry,
                                                                            std::shared_ptr<NumberSource> numbers);

/// For the catalog.
[[nodiscard]] const function::NfKind& ipsec_kind();

}  // namespace penstock::ipsec
