// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a compiled rule set. Rules are identified by their position in the order of evaluation.

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

/// Distinct literals, and the rules that each selects.
struct LiteralTable {
  std::vector<Literal> literals;
  std::vector<std::uint32_t> starts;  // into `rules`; one more than literals
  std::vector<std::uint32_t> rules;

  [[nodiscard]] std::span<const std::uint32_t> rules_of(std::uint32_t literal) const noexcept {
    return std::span(rules).subspan(starts[literal], starts[literal + 1] - starts[literal]);
  }
};

/// Searches for some of a table's literals. Groups with the same literals share one.
struct Matcher {
  std::unique_ptr<PatternMatcher> matcher;
  std::vector<std::uint32_t> literals;  // maps its indices to the table's
  std::size_t longest = 0;              // longest of these literals, in bytes
};

inline constexpr std::uint32_t kNoMatcher = ~std::uint32_t{0};

/// How packets of a group are searched.
struct GroupPlan {
  std::uint32_t packets = kNoMatcher;  // for packet payloads; for TCP, only of rules that test packets
  std::uint32_t streams = kNoMatcher;  // for stream chunks, and for payloads outside streams
  struct OfHeader {
    Buffer buffer;
    std::uint32_t matcher;
  };
  std::vector<OfHeader> headers;
  struct Always {
    std::uint32_t rule;
    Needs needs;
  };
  std::vector<Always> always;      // rules that no literal selects, in ascending order
  std::uint32_t stream_reach = 0;  // longest reach of its rules
  bool looks_at_streams = false;
  bool from_start = false;  // some rules can only be tested from the stream's first byte on
};

struct Detection::Parts {
  RuleSet rule_set;
  DetectionOptions options;
  std::vector<CompiledRule> rules;
  IpOnlyRules ip_only{{}};
  RuleGroups groups{{}};
  std::vector<GroupPlan> plans;  // one for each group
  LiteralTable payload_literals, header_literals;
  ContestedSearch contested_search{{}};  // for the payload literals
  std::vector<Matcher> matchers;
  std::size_t most_literals = 0;   // most literals of one matcher
  std::uint32_t stream_reach = 0;  // longest reach of all rules
  bool has_tags = false;
};

}  // namespace penstock::nids
