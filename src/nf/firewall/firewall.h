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
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "classify/classifier.h"
#include "classify/device_tables.h"
#include "classify/rule.h"
#include "conntrack/options.h"
#include "function/chain_member.h"
#include "function/connection_counters.h"
#include "function/connection_keeper.h"
#include "function/connection_reader.h"
#include "function/network_function.h"
#include "gpu/per_device.h"
#include "nf/firewall/judge_core.h"
#include "nf/firewall/nat_rules.h"
#include "nf/firewall/recipe.h"
#include "nf/firewall/rejecter.h"
#include "nf/firewall/rule_source.h"
#include "nf/firewall/steps/step_runner.h"
#include "nf/firewall/steps/step_state.h"

namespace penstock::conntrack {
struct Counters;
}

namespace penstock::firewall {

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

/// For rules about bridged frames.
struct Bridge {
  std::vector<PortIndex> exits;  // by PortIndex: where the chain sends what came there
};

class Firewall final : public function::NetworkFunction,
                       public function::ConnectionKeeper,
                       public function::ConnectionReader,
                       public function::ChainMember {
 public:
  struct Setup {
    conntrack::Options tracking{};    // of connections, which are tracked if a rule tests them
    bool tracks_in_any_case = false;  // since a reload may bring such rules, or has taken them away
    conntrack::Clock clock = conntrack::Clock::packets;
    std::string connections_file{};                // keeps connections from run to run; empty: they end with the run
    Answering answering{};                         // which packets that are rejected are answered
    std::optional<FromKernel> from{};              // the rules are the kernel's
    std::optional<NatRules> nat{};                 // if it translates addresses; without a classifier
    report::EventLog* log = nullptr;               // of packets, for rules that log; borrowed. Null: none
    report::EventLog* nat_log = nullptr;           // of port blocks; ditto
    function::SharedObjects* shared = nullptr;     // with the chain's other functions; null: it stands alone
    std::vector<std::string> port_names{};         // by PortIndex
    std::vector<std::uint16_t> largest_packets{};  // MTUs, ditto
    std::optional<Hook> hook{};                    // that it stands for
    PortIndex host = kNoPort;                      // the host's port; kNoPort: its packets pass no hook
    bool link_is_written = false;                  // as StepContext
    std::optional<Bridge> bridge{};                // empty: packets are routed
    Place place{};                                 // of its rules in the chain file
  };
  /// Fails if there are too many rules for the engine. With `bridge`, it is the linear one.
  [[nodiscard]] static Result<std::unique_ptr<Firewall>> build(classify::Ruleset rules, classify::Engine engine,
                                                               Setup setup);
  [[nodiscard]] static Result<std::unique_ptr<Firewall>> build(classify::Ruleset rules, classify::Engine engine) {
    return build(std::move(rules), engine, Setup());
  }

  ~Firewall() override;

  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override;
  std::unique_ptr<DeviceStage> make_device_stage(function::Processor processor, const StageUse& use) override;
  /// Null for rules with the engine `rfc`, whose tables are not checked.
  std::optional<function::StageRecipe> stage_recipe(function::Processor processor) const override;
  std::unique_ptr<function::StateStage> make_state_stage(function::CpuStage& twin) override;
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& twin) override;
  Errors check() const override;
  Result<void> begin_run() override;
  void end_run() noexcept override;
  /// "3 rules added, 1 removed, policy drop → accept"
  Result<std::string> changes_from(const function::NetworkFunction& running) const override;
  /// The counters of unchanged rules continue: rules with the same text, target and address family, wherever they are.
  /// Identical rules are paired in their order. The counters of the policies continue for each family.
  Result<void> take_over(function::NetworkFunction& predecessor) override;
  void predecessor_ended() noexcept override;
  std::optional<function::Explanation> explain(PacketView packet) const override;
  function::Explanation explain(PacketView packet, conntrack::Connections& connections) const override;
  Errors join(std::span<function::NetworkFunction* const> chain) override;
  Errors cautions_in(std::span<const function::NetworkFunction* const> chain) const override;
  std::shared_ptr<conntrack::ConnectionTables> connections() const noexcept override { return tables_; }
  std::string why_needs_connections() const override;
  void read_connections() override { reads_connections_ = true; }
  /// Connections, if they are tracked.
  std::string state_of_run() const override;
  std::string description() const override;
  /// {"rules": [{"index", "line", "target", "packets", "bytes", "text"} …], "policy": {"ipv4": {"target", "packets",
  /// "bytes"}, "ipv6": {…}}}. Rules without matches are not listed. If connections are tracked, also "connections",
  /// with the sums over all workers. With a source: its report as "kernel".
  void report(nlohmann::json& into) const override;

  /// Empty: the rules are those of a file.
  [[nodiscard]] const std::optional<FromKernel>& from_kernel() const noexcept { return from_; }
  /// Borrowed. Null: nobody follows the kernel, or the rules are those of a file. Set while nothing runs; in a reload,
  /// functions take it over.
  void set_source(RuleSource* source) noexcept { source_ = source; }
  [[nodiscard]] RuleSource* source() const noexcept { return source_; }

  [[nodiscard]] const classify::Ruleset& rules() const noexcept { return rules_; }
  [[nodiscard]] bool tracks() const noexcept { return tracking_.has_value(); }
  [[nodiscard]] StageKind stage_kind() const noexcept;
  [[nodiscard]] bool translates() const noexcept { return nat_.has_value(); }
  [[nodiscard]] bool answers() const noexcept { return traits_.emits; }
  /// The sums over all workers, in the order of RuleCounters. In a reload, with those of the predecessor, so that they
  /// never decrease.
  [[nodiscard]] std::vector<RuleCounters::Count> counts() const;
  /// The sums over all workers; `most_connections` is that of their highest numbers.
  [[nodiscard]] conntrack::Counters connection_counters() const { return connections_.sum(); }

 private:
  Firewall(classify::Ruleset rules, Setup setup);
  /// Without a state, nothing is remembered or logged.
  [[nodiscard]] StepContext step_context(StepState* state) const;
  [[nodiscard]] StepContext steps_to_explain() const;
  [[nodiscard]] bool host_has_port() const noexcept { return route_.host != kNoPort; }
  [[nodiscard]] bool logs_packets() const noexcept;
  [[nodiscard]] RuleCounters& add_counters();
  [[nodiscard]] std::shared_ptr<conntrack::ConnectionTables> make_tables() const;
  [[nodiscard]] std::vector<RuleCounters::Count> sum_counts() const;  // with counters_mutex held

  const classify::Ruleset rules_;
  const std::optional<FromKernel> from_;
  const Answering answering_;
  std::optional<NatRules> nat_;
  const std::optional<Hook> hook_;
  const Route route_;
  const bool link_is_written_;
  const std::optional<Bridge> bridge_;
  const Place place_;
  RuleSource* source_ = nullptr;
  std::unique_ptr<const classify::Classifier> classifier_;  // borrows rules_
  const std::optional<conntrack::Options> tracking_;        // empty: connections are not tracked
  const conntrack::Clock clock_;
  const std::vector<std::string> port_names_;
  const std::vector<std::uint16_t> largest_packets_;
  StepState step_state_, nat_step_state_;         // the stages' steps; the latter: of nat_
  std::optional<StepContext> steps_, nat_steps_;  // empty: the rules have no steps
  report::EventLog* const log_;                   // as Setup, like the next one
  report::EventLog* const nat_log_;
  const std::string connections_file_;
  std::shared_ptr<conntrack::ConnectionTables> tables_;  // of all epochs of a run; null: connections are not tracked
  function::NfTraits traits_;
  bool reads_connections_ = false;           // those that another process tracks
  function::CountersOfWorkers connections_;  // of stages, which borrow them
  // Guards the members below; only set-up, reloads and reports take it. One for all firewalls: a report adds up those
  // of a predecessor, and either may be the other's.
  static std::mutex counters_mutex;
  std::vector<std::unique_ptr<RuleCounters>> counters_;  // of stages, which borrow them
  std::vector<RuleCounters::Count> ended_;               // of stages that have ended; empty: zeros
  Firewall* predecessor_ = nullptr;                      // if its stages may still count
  std::vector<std::uint32_t> same_counters_;             // by counter: the predecessor's for the same rule, or kNoRule
  gpu::PerDevice<const classify::DeviceTables> on_devices_;
};

/// For the catalog.
[[nodiscard]] const function::NfKind& firewall_kind();

}  // namespace penstock::firewall
