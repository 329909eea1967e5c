// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables that decide what happens to packets of one direction: its policies, compiled for the firewall's engine,
// and the SAs that they use. Built once from the user's files. Immutable; shared by all workers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "classify/classifier.h"
#include "classify/interfaces.h"
#include "classify/rule.h"
#include "classify/table_spans.h"
#include "nf/ipsec/esp/decapsulate_core.h"
#include "nf/ipsec/sa/sa.h"
#include "nf/ipsec/selection/policy.h"
#include "nf/ipsec/selection/selection_core.h"
#include "nf/ipsec/selection/selection_layout.h"

namespace penstock::ipsec {

/// What the tables are built from; borrowed during the build.
struct SelectionSources {
  std::span<const SecurityAssociation> states;
  std::span<const Policy> policies;     // of all directions, in the order in which they are tried
  std::string state_file, policy_file;  // names, for messages
  classify::Interfaces interfaces;      // resolves the devices that policies name
  std::uint32_t mtu = 1500;             // for `sa_view`
};

/// The arrays of a Selection, or of a recipe. Borrow them.
struct SelectionSpans {
  classify::TableSpans engine;  // bit vectors; an entry per policy
  std::span<const PolicyView> policies;
  std::span<const std::uint32_t> candidates;
  std::span<const SaView> sas;
  std::span<const SelectorView> selectors;
};
/// Those of an InboundTable, or of a recipe.
struct InboundSpans {
  std::span<const SaSlot> slots;
  std::span<const std::uint32_t> other_ports;
};

/// Policies and their SAs. Outbound: the policies of `Direction::out`. Inbound: those of `fwd`, which are tried first
/// because packets here are in transit, then those of `in`.
class Selection {
 public:
  /// Fails if there are too many policies for the engine. Policies that ask for something unsupported are reported, and
  /// drop the packets that they select.
  [[nodiscard]] static Result<Read<std::unique_ptr<const Selection>>> build(const SelectionSources& sources,
                                                                            bool inbound);

  /// For each key, writes the policy that selects it, or kNoPolicy.
  void find_policies(std::span<const classify::Key> keys, std::uint32_t* policies) const noexcept {
    classifier_->classify(keys, policies);
  }
  [[nodiscard]] SelectionView view() const noexcept {
    return {policies_.data(), candidates_.data(), sas_.data(), selectors_.data()};
  }
  /// The line in the policy file where a policy starts.
  [[nodiscard]] std::uint32_t line(std::uint32_t policy) const noexcept { return rules_.rules[policy].line; }

  /// What is copied to devices.
  [[nodiscard]] SelectionSpans spans() const {
    return {*classify::spans_of(rules_, *classifier_), policies_, candidates_, sas_, selectors_};
  }

  [[nodiscard]] const classify::Ruleset& rules() const noexcept { return rules_; }
  [[nodiscard]] const classify::Classifier& classifier() const noexcept { return *classifier_; }
  [[nodiscard]] const std::vector<PolicyView>& policies() const noexcept { return policies_; }
  [[nodiscard]] const std::vector<std::uint32_t>& candidates() const noexcept { return candidates_; }
  [[nodiscard]] const std::vector<SaView>& sas() const noexcept { return sas_; }
  [[nodiscard]] const std::vector<SelectorView>& selectors() const noexcept { return selectors_; }

 private:
  friend class SelectionBuilder;
  Selection() = default;

  classify::Ruleset rules_;                                 // one entry per policy
  std::unique_ptr<const classify::Classifier> classifier_;  // borrows rules_
  std::vector<PolicyView> policies_;
  std::vector<std::uint32_t> candidates_;
  std::vector<SaView> sas_;
  std::vector<SelectorView> selectors_;
};

/// SAs by destination and SPI, and the UDP ports that they use.
class InboundTable {
 public:
  /// Fails if two SAs have the same destination and SPI.
  [[nodiscard]] static Result<InboundTable> build(std::span<const SecurityAssociation> states,
                                                  const std::string& state_file);

  [[nodiscard]] InboundView view() const noexcept {
    return {slots_.data(), static_cast<std::uint32_t>(slots_.size() - 1)};
  }
  /// What is copied to devices.
  [[nodiscard]] InboundSpans spans() const noexcept { return {slots_, other_ports_}; }

  [[nodiscard]] const std::vector<SaSlot>& slots() const noexcept { return slots_; }
  /// Empty if 4500 is the only port.
  [[nodiscard]] const std::vector<std::uint32_t>& other_ports() const noexcept { return other_ports_; }
  [[nodiscard]] NatTraversalPorts ports() const noexcept {
    return {other_ports_.empty() ? nullptr : other_ports_.data()};
  }

 private:
  std::vector<SaSlot> slots_;
  std::vector<std::uint32_t> other_ports_;
};

}  // namespace penstock::ipsec
