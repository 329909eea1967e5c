// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules and keys that read as sentences, for tests.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "nf/firewall/classifier.h"
#include "nf/firewall/rule_reader.h"
#include "nf/firewall/tuple_reader.h"

namespace penstock::firewall {

/// "10.0.0.1 10.0.0.2 tcp 1024 80"
inline Key tuple(std::string_view text) {
  const auto keys = read_tuples(text, "tuple");
  EXPECT_TRUE(keys) << to_string(keys.error());
  return keys ? keys->front() : Key{};
}

inline Key with_detail(Key key, std::uint32_t detail) {
  key.kind = key.protocol() << kKindDetailBits | detail;
  return key;
}

/// As a fragment that is not the first: no ports, no detail.
inline Key later_fragment(Key key) {
  key.kind = kKindNoDetail + key.protocol();
  key.source_port = key.destination_port = kNoTransportPort;
  key.later_fragment = true;
  return key;
}

inline Key through(Key key, PortIndex in, PortIndex out = kNoPort) {
  key.in_port = in;
  key.out_port = out;
  return key;
}

inline Ruleset rules_of(std::string_view text, const ReadOptions& options = {}) {
  auto read = read_rules(text, "rules", options);
  EXPECT_TRUE(read) << to_string(read.error());
  if (!read) return {};
  EXPECT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
  return std::move(read->value);
}

/// "3 accept", "- drop": by both engines, which must agree.
inline std::string decide(const Ruleset& rules, const Key& key) {
  std::string answers[2];
  for (const Engine engine : {Engine::linear, Engine::bitvector}) {
    const auto classifier = make_classifier(engine, rules);
    std::uint32_t entry = 0;
    (*classifier)->classify({&key, 1}, &entry);
    const std::string rule = entry == kNoEntry ? "-" : std::to_string(rules.entries[entry].rule);
    answers[static_cast<int>(engine)] = rule + " " + std::string(name(rules.target(entry, key.family)));
  }
  EXPECT_EQ(answers[0], answers[1]);
  return answers[0];
}

/// The errors of a text that is refused.
inline std::string errors_of(std::string_view text, const ReadOptions& options = {}) {
  const auto read = read_rules(text, "rules", options);
  return read ? "read without an error" : to_string(read.error());
}

}  // namespace penstock::firewall
