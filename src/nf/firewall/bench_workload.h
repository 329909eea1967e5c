// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The benches' workloads: rules of a synthetic gateway, and ClassBench sets from the corpus, each with matching keys.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "classify/key.h"
#include "nf/firewall/corpus_for_test.h"
#include "nf/firewall/rule_reader.h"

namespace penstock::firewall {

struct Workload {
  classify::Ruleset rules;
  std::vector<classify::Key> keys;
};

/// The rules of a site: internal networks and hosts, services on them, a few blocked sources, and a default at the end.
inline Workload gateway(std::uint32_t count, std::size_t keys) {
  std::mt19937 random(count);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::uint16_t kServices[] = {22, 25, 53, 80, 110, 123, 143, 389, 443, 445, 993, 3306, 5060, 5432, 8080};
  Workload work;
  std::string text;
  const auto host = [&] { return "10." + std::to_string(below(8)) + "." + std::to_string(below(64)) + "."; };
  for (std::uint32_t i = 0; i + 1 < count; ++i) {
    const bool network = below(3) == 0;
    const std::string inside = host() + (network ? "0/24" : std::to_string(1 + below(254)) + "/32");
    const std::string outside =
        below(2) == 0 ? "0.0.0.0/0" : std::to_string(11 + below(180)) + "." + std::to_string(below(256)) + ".0.0/16";
    const std::string port = std::to_string(kServices[below(std::size(kServices))]);
    text += "@" + outside + " " + inside + " 0 : 65535 " + port + " : " + port + " " +
            (below(4) == 0 ? "0x11/0xFF" : "0x06/0xFF") + " 0x0000/0x0000\n";
  }
  text += "@10.0.0.0/8 0.0.0.0/0 0 : 65535 0 : 65535 0x00/0x00 0x0000/0x0000\n";
  work.rules = std::move(read_rules(text, "gateway", {})->value);
  for (std::size_t i = 0; i < keys; ++i) {
    classify::Key key;
    key.family = NetworkLayer::ipv4;
    key.source.low = random();
    key.destination.low = 0x0a000000 | (random() & 0x0007ffff);
    key.source_port = 1024 + below(64000);
    key.destination_port = kServices[below(std::size(kServices))];
    key.kind = 6U << classify::kKindDetailBits | 0x10;
    // Three of four packets match a given rule.
    const classify::Entry& entry = work.rules.entries[below(count)];
    for (std::uint32_t c = 0; i % 4 != 0 && c < entry.condition_count; ++c) {
      const classify::Condition& condition = work.rules.conditions[entry.first_condition + c];
      const std::uint32_t offset = static_cast<std::uint32_t>(random()) & (condition.high - condition.low);
      if (condition.subject == classify::Subject::source4) key.source.low = condition.low + offset;
      if (condition.subject == classify::Subject::destination4) key.destination.low = condition.low + offset;
      if (condition.subject == classify::Subject::destination_port) {
        key.destination_port = work.rules.port_ranges[condition.index].low;
      }
      if (condition.subject == classify::Subject::protocol) key.kind = condition.low << classify::kKindDetailBits;
    }
    work.keys.push_back(key);
  }
  return work;
}

/// With at most `keys` keys.
inline Workload classbench(const CorpusSet& set, std::size_t keys) {
  Workload work{std::move(read_rules(set.rules, "classbench", {})->value), set.keys};
  if (work.keys.empty()) {
    // For a set without a trace: keys at the low ends of its rules.
    for (const classify::Entry& entry : work.rules.entries) {
      classify::Key key;
      key.family = entry.family;
      key.kind = classify::kKindAnyDetail;
      key.source_port = key.destination_port = 0;
      for (std::uint32_t c = 0; c < entry.condition_count; ++c) {
        const classify::Condition& condition = work.rules.conditions[entry.first_condition + c];
        if (condition.subject == classify::Subject::source4) key.source.low = condition.low;
        if (condition.subject == classify::Subject::destination4) key.destination.low = condition.low;
        if (condition.subject == classify::Subject::source_port)
          key.source_port = work.rules.port_ranges[condition.index].low;
        if (condition.subject == classify::Subject::destination_port) {
          key.destination_port = work.rules.port_ranges[condition.index].low;
        }
        if (condition.subject == classify::Subject::protocol) key.kind = classify::kKindAnyDetail + condition.low;
      }
      work.keys.push_back(key);
    }
  }
  std::shuffle(work.keys.begin(), work.keys.end(), std::mt19937(1));
  work.keys.resize(std::min(work.keys.size(), keys));
  return work;
}

}  // namespace penstock::firewall
