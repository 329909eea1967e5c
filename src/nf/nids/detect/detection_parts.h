// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a compiled rule set is made of. Rules are named by their place in the order of evaluation.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "nf/nids/detect/compiled_rule.h"
#include "nf/nids/detect/contested_text.h"
#include "nf/nids/detect/detection.h"
#include "nf/nids/detect/ip_only.h"
#include "nf/nids/detect/rule_groups.h"

namespace penstock::nids {

/// Literals, each once, and the rules that each selects.
struct LiteralTable {
  std::vector<Literal> literals;
  std::vector<std::uint32_t> starts;  // into `rules`; one more than literals
  std::vector<std::uint32_t> rules;

  [[nodiscard]] std::span<const std::uint32_t> rules_of(std::uint32_t literal) const noexcept {
    return std::span(rules).subspan(starts[literal], starts[literal + 1] - starts[literal]);
  }
};

/// Finds some of a table's literals. Groups that look for the same share one.
struct Matcher {
  std::unique_ptr<PatternMatcher> matcher;
  std::vector<std::uint32_t> literals;  // what its indices are in the table
  std::size_t longest = 0;              // of them, in bytes
};

inline constexpr std::uint32_t kNoMatcher = ~std::uint32_t{0};

/// What a packet of a group is looked at by.
struct GroupPlan {
  std::uint32_t packets = kNoMatcher;  // of payloads of packets; of TCP those of rules that look at packets
  std::uint32_t streams = kNoMatcher;  // of chunks of streams, and of payloads that are in no stream
  struct OfHeader {
    Buffer buffer;
    std::uint32_t matcher;
  };
  std::vector<OfHeader> headers;
  struct Always {
    std::uint32_t rule;
    Needs needs;
  };
  std::vector<Always> always;      // rules that no literal selects, ascending
  std::uint32_t stream_reach = 0;  // the longest of its rules
  bool looks_at_streams = false;
  bool from_start = false;  // some can only be tried from the stream's first byte on
};

struct Detection::Parts {
  RuleSet rule_set;
  DetectionOptions options;
  std::vector<CompiledRule> rules;
  IpOnlyRules ip_only{{}};
  RuleGroups groups{{}};
  std::vector<GroupPlan> plans;  // of each group
  LiteralTable payload_literals, header_literals;
  ContestedSearch contested_search{{}};  // for the payload literals
  std::vector<Matcher> matchers;
  std::size_t most_literals = 0;   // of a matcher
  std::uint32_t stream_reach = 0;  // the longest of all rules
  bool has_tags = false;
};

}  // namespace penstock::nids
