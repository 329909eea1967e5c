// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/firewall_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "classify/explain.h"
#include "nf/firewall/bridged_frame.h"
#include "packet/parse_core.h"

namespace penstock::firewall {

RuleDecider::RuleDecider(const classify::Ruleset& rules, const classify::Classifier& classifier, RuleCounters& counters,
                         const Answering& answering, const StepContext* steps)
    : rules_(rules),
      view_(classify::view_of(rules)),
      classifier_(classifier),
      counters_(counters),
      rejecter_(rules, answering),
      steps_(steps == nullptr ? nullptr : std::make_unique<StepRunner>(rules, classifier, &counters, *steps)) {}

void RuleDecider::set_connections(conntrack::Connections& connections) noexcept {
  if (steps_ != nullptr) steps_->set_connections(connections);
}

void RuleDecider::set_between(BetweenRules& between) noexcept {
  if (steps_ != nullptr) steps_->set_between(between);
}

void RuleDecider::set_emitter(function::Emitter& emitter) noexcept {
  rejecter_.set_emitter(emitter);
  if (steps_ != nullptr) steps_->set_emitter(emitter);
}

void RuleDecider::begin_batch() noexcept {
  if (steps_ != nullptr) steps_->begin_batch();
}

void RuleDecider::decide(const KeyedPackets& waiting) noexcept {
  std::array<std::uint32_t, classify::Classifier::kGroup> entries;
  classifier_.classify({waiting.keys.data(), waiting.count}, entries.data());
  for (std::size_t i = 0; i < waiting.count; ++i) {
    const PacketView packet = waiting.packets[i];
    std::uint32_t entry = entries[i];
    if (steps_ != nullptr) {
      last_ = steps_->decide(packet, waiting.keys[i], entry);
      if (!last_) {
        if (packet.packet->verdict.alive()) packet.packet->verdict = Verdict::drop(DropReason::denied);
        continue;
      }
      entry = *last_;
    }
    const classify::Decision decided = classify::decision(view_, entry, waiting.keys[i].family);
    counters_.add(decided.counter, packet.length());
    packet.packet->verdict = verdict_of(decided.action, packet.packet->verdict);
    const bool is_ip = waiting.keys[i].family == NetworkLayer::ipv4 || waiting.keys[i].family == NetworkLayer::ipv6;
    if (decided.action == classify::Action::reject && is_ip) rejecter_.answer(packet, decided.counter);
  }
}

std::uint32_t RuleDecider::entry_for(const classify::Key& key) const noexcept {
  std::uint32_t entry = classify::kNoEntry;
  classifier_.classify({&key, 1}, &entry);
  return entry;
}

std::string RuleDecider::explain(const classify::Key& key) const {
  if (steps_ != nullptr && !last_) return std::string(steps_->why_dropped());
  const std::uint32_t entry = steps_ != nullptr ? *last_ : entry_for(key);
  if (entry == classify::kNoEntry) return fmt::format("default policy: {}", name(rules_.policy(key.family)));
  return classify::describe(rules_, rules_.entries[entry].rule);
}

std::string explain_without_rules(Standing standing) {
  if (standing == Standing::not_ip) return "not IP: passes";
  if (standing == Standing::elsewhere) return "passes: rules of another hook apply";
  if (standing != Standing::judged) return fmt::format("{} header", kDropReasons[verdict_of(standing, {}).value]);
  return {};
}

void FirewallStage::process(std::span<PacketView> packets) noexcept {
  while (!packets.empty()) {
    const std::size_t n = std::min(packets.size(), classify::Classifier::kGroup);
    process_group(packets.first(n));
    packets = packets.subspan(n);
  }
}

void FirewallStage::process_group(std::span<PacketView> packets) noexcept {
  KeyedPackets judged;
  for (const PacketView packet : packets) {
    Verdict& verdict = packet.packet->verdict;
    const Standing standing = standing_of(packet, route_);
    if (standing != Standing::judged) {
      verdict = verdict_of(standing, verdict);
      continue;
    }
    judged.packets[judged.count] = packet;
    classify::make_key(packet, judged.keys[judged.count++]);
  }
  decider_.decide(judged);
}

std::string FirewallStage::explain(PacketView packet) const {
  if (std::string why = explain_without_rules(standing_of(packet, route_)); !why.empty()) return why;
  classify::Key key;
  classify::make_key(packet, key);
  return decider_.explain(key);
}

void BridgeStage::process(std::span<PacketView> packets) noexcept {
  KeyedPackets judged;
  for (const PacketView packet : packets) {
    const Standing standing = bridged_standing(packet);
    if (standing != Standing::judged) {
      packet.packet->verdict = verdict_of(standing, packet.packet->verdict);
      continue;
    }
    judged.packets[judged.count] = packet;
    judged.keys[judged.count++] = bridged_key(packet, bridge_.exits);
    if (judged.count < classify::Classifier::kGroup) continue;
    decider_.decide(judged);
    judged.count = 0;
  }
  decider_.decide(judged);
}

std::string BridgeStage::explain(PacketView packet) const {
  if (std::string why = explain_without_rules(bridged_standing(packet)); !why.empty()) return why;
  return decider_.explain(bridged_key(packet, bridge_.exits));
}

void FirewallFinishStage::finish(std::span<const PacketView> packets,
                                 std::span<const std::byte* const> findings) noexcept {
  if (packets.empty()) return;
  const auto counter_of = [&](std::size_t i) {
    std::uint32_t counter = classify::kNoCounter;
    std::memcpy(&counter, findings[i], sizeof counter);
    return counter;
  };
  // Often one rule matches a whole burst: count it in one addition, because each addition would wait for the previous
  // one.
  const std::uint32_t first = counter_of(0);
  bool all_the_first = true;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    all_the_first &= counter_of(i) == first;
    bytes += packets[i].length();
  }
  if (all_the_first) {
    if (first == classify::kNoCounter) return;
    counters_.add(first, bytes, packets.size());
    if (rejecter_ == nullptr || !rejecter_->rejects(first)) return;
    for (const PacketView packet : packets) answer(packet, first);
    return;
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const std::uint32_t counter = counter_of(i);
    if (counter == classify::kNoCounter) continue;
    counters_.add(counter, packets[i].length());
    if (rejecter_ != nullptr && rejecter_->rejects(counter)) answer(packets[i], counter);
  }
}

/// On the host, the packet may not be parsed yet.
void FirewallFinishStage::answer(PacketView packet, std::uint32_t counter) noexcept {
  parse(packet);
  rejecter_->answer(packet, counter);
}

}  // namespace penstock::firewall
