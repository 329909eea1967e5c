// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network function `firewall`: drops packets that its rules do not accept. The first matching rule decides, or else
// the policy. Packets other than IP pass, as they pass an IP filter.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "classify/classifier.h"
#include "classify/device_tables.h"
#include "classify/rule.h"
#include "function/network_function.h"
#include "gpu/per_device.h"
#include "nf/firewall/judge_core.h"

namespace penstock::firewall {

/// The fields that the rules test, and those that a network function reads and writes to apply them.
[[nodiscard]] Access access_of(const classify::Ruleset& rules);

/// One worker's counts: one per rule by index, then one each for the IPv4 and IPv6 policy. Only the worker writes; any
/// thread may read.
class RuleCounters {
 public:
  struct Count {
    std::uint64_t packets = 0, bytes = 0;
  };
  explicit RuleCounters(std::size_t rules) : cells_(cells_for(rules)) {}
  [[nodiscard]] static std::size_t cells_for(std::size_t rules) noexcept { return rules + 2; }
  [[nodiscard]] static std::size_t of_policy(std::size_t rules, NetworkLayer family) noexcept {
    return classify::policy_counter(static_cast<std::uint32_t>(rules), family);
  }

  void add(std::size_t rule, std::uint64_t bytes, std::uint64_t packets = 1) noexcept {
    Cell& cell = cells_[rule];
    cell.packets.store(cell.packets.load(std::memory_order_relaxed) + packets, std::memory_order_relaxed);
    cell.bytes.store(cell.bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] Count operator[](std::size_t rule) const noexcept {
    return {cells_[rule].packets.load(std::memory_order_relaxed), cells_[rule].bytes.load(std::memory_order_relaxed)};
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> packets = 0, bytes = 0;
  };
  std::vector<Cell> cells_;
};

class Firewall final : public function::NetworkFunction {
 public:
  /// Fails if there are too many rules for the engine.
  [[nodiscard]] static Result<std::unique_ptr<Firewall>> build(classify::Ruleset rules, classify::Engine engine);

  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<gpu::GpuStage> make_gpu_stage(const gpu::StageUse& use) override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  std::string description() const override;
  /// {"rules": [{"index", "line", "target", "packets", "bytes", "text"} …], "policy": {"ipv4": {"target", "packets",
  /// "bytes"}, "ipv6": {…}}}. Rules without matches are not listed.
  void report(nlohmann::json& into) const override;

  [[nodiscard]] const classify::Ruleset& rules() const noexcept { return rules_; }
  /// The sums over all workers, in the order of RuleCounters.
  [[nodiscard]] std::vector<RuleCounters::Count> counts() const;

 private:
  explicit Firewall(classify::Ruleset rules);
  [[nodiscard]] RuleCounters& add_counters();

  const classify::Ruleset rules_;
  std::unique_ptr<const classify::Classifier> classifier_;  // borrows rules_
  function::NfTraits traits_;
  mutable std::mutex mutex_;  // guards the members below; only set-up and reports take it
  std::vector<std::unique_ptr<RuleCounters>> counters_;
  gpu::PerDevice<const classify::DeviceTables> on_devices_;
};

/// For the catalog.
[[nodiscard]] const function::NfKind& firewall_kind();

}  // namespace penstock::firewall
