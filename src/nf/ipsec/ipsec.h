// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `ipsec`: ESP for one direction, configured by the SAs and policies of `ip xfrm` (RFC 4301,
// 4303). Outbound, it protects the packets that policies select. Inbound, it decapsulates ESP addressed to one of its
// SAs, and forwards what the policies allow.

#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "gpu/per_device.h"
#include "gpu/turns.h"
#include "nf/ipsec/device_tables.h"
#include "nf/ipsec/esp/fragment_wait.h"
#include "nf/ipsec/tables.h"
#include "report/counter.h"
#include "report/published.h"

namespace penstock::ipsec {

class Ipsec final : public function::NetworkFunction {
 public:
  /// `left_out` names constructs that were skipped in the files ("2 constructs left out ('mark')"); empty if none.
  explicit Ipsec(std::unique_ptr<Tables> tables, std::string left_out = {});

  const function::NfTraits& traits() const noexcept override { return traits_; }
  stack::TrackerOptions stack_options() const override { return FragmentWait::stack_options(); }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<gpu::GpuStage> make_gpu_stage(const gpu::StageUse& use) override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  Errors check() const override { return tables_->numbers().check(tables_->used_states()); }
  Result<void> begin_run() override;
  void end_run() noexcept override { tables_->end_run(); }
  std::string description() const override;
  /// {"warnings": [constructs skipped in the files], "state_dir": folder or null, "fault": why sequence numbers could
  /// not be reserved, only after a failure, "fragments": {"received", "reassembled", "timed_out", "dropped"}, only
  /// inbound and only if there were any, "sas": [{"spi", "source", "destination", "line", "packets", "bytes", "sent" or
  /// "received", "replayed", "integrity", "soft", "hard"} …]}. SAs that carried nothing and reached no limit are
  /// omitted.
  void report(nlohmann::json& into) const override;

  [[nodiscard]] const Tables& tables() const noexcept { return *tables_; }

  /// Called at batch boundaries, by any worker. Once a second, and when an SA reaches a limit (`limit_reached`), one
  /// worker checks all SAs: it logs the limits that were reached on stderr and updates the SA statuses on the devices.
  void look_after_sas(SaState::Seconds now) noexcept;
  void look_after_sas_at_once() noexcept;
  /// Per-SA counters for one more worker's stage, for SAs without limits (Carrier). Owned by this object.
  [[nodiscard]] std::span<report::Traffic> make_counts();
  /// Fragment counters for one more worker's stage. Owned by this object.
  [[nodiscard]] report::Published<FragmentCounts>& make_fragment_counts();
  void limit_reached() noexcept { limit_reached_.store(true, std::memory_order_relaxed); }

 private:
  static void log_limit(const SaState& state) noexcept;

  std::unique_ptr<Tables> tables_;
  const std::string left_out_;
  function::NfTraits traits_;
  std::atomic<SaState::Seconds> looked_at_ = 0;
  std::atomic<bool> limit_reached_ = false;
  mutable std::mutex mutex_;        // guards the members below: during set-up, and while SAs are checked
  std::vector<SaStatus> statuses_;  // by SA, as last copied to the devices
  gpu::PerDevice<DeviceTables> on_devices_;
  std::deque<std::vector<report::Traffic>> carried_;         // by stage and SA
  std::deque<report::Published<FragmentCounts>> fragments_;  // by stage
  std::map<std::pair<int, unsigned>, gpu::Turns> turns_;     // by device and worker; must outlive the stages
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
