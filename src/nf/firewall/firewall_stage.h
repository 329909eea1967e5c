// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU twin: makes keys of groups of packets, lets the engine find their rules, and turns the rules' targets into
// verdicts. Also the finish stage, which counts what the GPU stage decided.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "classify/classifier.h"
#include "classify/key.h"
#include "classify/rules_view.h"
#include "function/network_function.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/rejecter.h"
#include "nf/firewall/steps/step_runner.h"

namespace penstock::firewall {

/// Packets with their keys, about which the rules have not decided yet.
struct KeyedPackets {
  std::array<PacketView, classify::Classifier::kGroup> packets;
  std::array<classify::Key, classify::Classifier::kGroup> keys;
  std::size_t count = 0;
};

/// What all CPU twins do with packets that rules apply to. Borrows all arguments.
class RuleDecider {
 public:
  /// `answering`: as for Rejecter.
  /// `steps`: null if the rules have none.
  RuleDecider(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
              const Answering& answering, const StepContext* steps);

  /// Before the first packet, if connections are tracked.
  void set_connections(conntrack::Connections& connections) noexcept;
  void set_between(BetweenRules& between) noexcept;
  /// Before the first packet, if the function has an emitter.
  void set_emitter(function::Emitter& emitter) noexcept;
  /// A batch boundary.
  void begin_batch() noexcept;
  /// Does the steps of rules for them, sets their verdicts, counts them, and answers those that are rejected.
  void decide(const KeyedPackets& waiting) noexcept;
  /// Only for rules without steps.
  [[nodiscard]] std::uint32_t entry_for(const classify::Key& key) const noexcept;
  /// "rule 3 (line 7): -A FORWARD …": what decides about a packet with this key. With steps: what has decided about the
  /// last packet.
  [[nodiscard]] std::string explain(const classify::Key& key) const;
  [[nodiscard]] Rejecter& rejecter() noexcept { return rejecter_; }

 private:
  const classify::Ruleset& rules_;
  classify::RulesView view_;
  const classify::Classifier& classifier_;
  RuleCounters& counters_;
  Rejecter rejecter_;
  std::unique_ptr<StepRunner> steps_;  // null: the rules have none
  std::optional<std::uint32_t> last_;  // the entry for the last packet, or kNoEntry; empty: a full set dropped it
};

/// A CPU twin.
class DecidingStage : public function::CpuStage {
 public:
  /// Borrows all arguments.
  DecidingStage(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
                const Answering& answering, const StepContext* steps, Route route = {})
      : decider_(rules, classifier, counters, answering, steps), route_(route) {}
  void set_emitter(function::Emitter& emitter) noexcept override { decider_.set_emitter(emitter); }
  [[nodiscard]] Rejecter& rejecter() noexcept { return decider_.rejecter(); }

 protected:
  RuleDecider decider_;
  const Route route_;
};

/// What becomes of a packet that no rule applies to; empty if rules do.
[[nodiscard]] std::string explain_without_rules(Standing standing);

class FirewallStage final : public DecidingStage {
 public:
  using DecidingStage::DecidingStage;
  void begin_batch() noexcept override { decider_.begin_batch(); }
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  void process_group(std::span<PacketView> packets) noexcept;
};

/// For bridged frames.
class BridgeStage final : public DecidingStage {
 public:
  /// Borrows all arguments.
  BridgeStage(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
              const Answering& answering, const StepContext* steps, const Bridge& bridge)
      : DecidingStage(rules, classifier, counters, answering, steps), bridge_(bridge) {}
  void begin_batch() noexcept override { decider_.begin_batch(); }
  void process(std::span<PacketView> packets) noexcept override;
  std::string explain(PacketView packet) const override;

 private:
  const Bridge& bridge_;
};

class FirewallFinishStage final : public function::FinishStage {
 public:
  /// Borrows the counters, and the twin's rejecter; null: nothing is answered.
  FirewallFinishStage(RuleCounters& counters, Rejecter* rejecter) noexcept : counters_(counters), rejecter_(rejecter) {}

  void finish(std::span<const PacketView> packets, std::span<const std::byte* const> findings) noexcept override;

 private:
  void answer(PacketView packet, std::uint32_t counter) noexcept;

  RuleCounters& counters_;
  Rejecter* rejecter_;
};

}  // namespace penstock::firewall
