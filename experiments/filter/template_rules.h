// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules of Hung & Guo's experiments. The paper contradicts itself: §5 says "three rules and each rule has two
// fields as shown in Table 2", and the table lists four rules of one to three fields:
//
//   1  140.128.1.0/255.255.255.0  *                           *     *
//   2  *                          140.128.2.99/255.255.255.0  HTTP  8888
//   3  140.127.0.0/255.255.0.0    123.6.0.0/255.255.0.0       *     *
//   4  219.88.0.0/255.255.0.0     123.6.22.0/255.255.255.0    FTP   *
//
// Two readings, both measured:
//
//   table  all four, as printed, each with four fields, so that all have the same number (§4). The default
//   text   three rules of two fields: 1, 3 and 4 with their addresses only, which are all that figures 6 and 8 read
//
// Host bits that are set are ignored: 140.128.2.99/255.255.255.0 is 140.128.2.0/24. Names in the column "Protocol" mean
// TCP: HTTP with the port that the table states, and FTP, whose port is "*", with FTP's own, 21. Ports are destination
// ports.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "classify/rule.h"
#include "experiments/filter/word_rules.h"

namespace penstock::experiments {

enum class Reading : std::uint8_t { table, text };

/// "table" or "text".
[[nodiscard]] Reading reading_of(std::string_view name);

/// `count` rules: the templates in turn, first as printed, then with random networks and ports of the same kind. The
/// same in every run; the first n of more rules are the same as n rules.
[[nodiscard]] std::vector<WordRule<kKeyWords>> template_rules(Reading reading, std::size_t count);

/// The addresses' fields only; the others must be wildcards.
[[nodiscard]] std::vector<WordRule<2>> without_ports(const std::vector<WordRule<kKeyWords>>& rules);

/// The same rules for the engines of classify/, whose first match is the deciding rule: for Deciding::last, in reverse
/// order. Entry e is rule `number_of_entry(e, …)`. All rules drop, and the policy accepts.
[[nodiscard]] classify::Ruleset ruleset_of(const std::vector<WordRule<kKeyWords>>& rules, Deciding deciding);

/// Numbers as of deciding_rule. `entry` may be kNoEntry.
[[nodiscard]] PENSTOCK_HOST_DEVICE constexpr std::uint32_t number_of_entry(std::uint32_t entry, std::uint32_t count,
                                                                           Deciding deciding) noexcept {
  if (entry == classify::kNoEntry) return 0;
  return deciding == Deciding::first ? entry + 1 : count - entry;
}

}  // namespace penstock::experiments
