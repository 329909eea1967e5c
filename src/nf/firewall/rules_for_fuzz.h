// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the fuzzers of rule files have in common.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/testing/fuzz_check.h"
#include "classify/classifier.h"
#include "nf/firewall/rule_reader.h"
#include "nf/firewall/tuple_reader.h"

namespace penstock::firewall {

/// For an input of this size.
inline ReadOptions options_for_fuzz(std::size_t size) {
  ReadOptions options;
  options.interfaces.ports = {"lan", "eth0"};
  options.interfaces.unknown_is_none = size % 2 == 0;
  // Small inputs can expand to a million entries; comparing the engines on these would take too long.
  options.most_rules = 2000;
  return options;
}

inline const std::vector<classify::Key>& keys_for_fuzz() {
  static const std::vector<classify::Key> keys = *read_tuples(
      "10.0.0.1 192.168.1.1 tcp 1024 80\n10.1.2.3 8.8.8.8 udp 53 53\n0.0.0.0 255.255.255.255 icmp 0 0\n"
      "2001:db8::1 fe80::1 tcp 1 443\n:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 58 0 65535\n",
      "keys");
  return keys;
}

/// Both engines must agree on those keys. The entries that decide; empty if an engine cannot take the rules.
inline std::optional<std::vector<std::uint32_t>> decide_by_both_engines(const classify::Ruleset& rules) {
  const std::vector<classify::Key>& keys = keys_for_fuzz();
  const auto linear = classify::make_classifier(classify::Engine::linear, rules);
  const auto bitvector = classify::make_classifier(classify::Engine::bitvector, rules);
  if (!linear || !bitvector) return std::nullopt;
  std::vector<std::uint32_t> slow(keys.size()), quick(keys.size());
  (*linear)->classify(keys, slow.data());
  (*bitvector)->classify(keys, quick.data());
  testing::check(slow == quick);
  return slow;
}

}  // namespace penstock::firewall
