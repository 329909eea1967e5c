// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A compiled rule set: rules grouped by protocol, direction and port. Each group has the literals that select
// candidates, and the rules that no literal selects. Immutable, shared by all workers.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "nf/nids/detect/fast_pattern.h"
#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/rules/rule_set.h"

namespace penstock::nids {

struct DetectionOptions {
  MatcherKind matcher = MatcherKind::hyperscan;
  std::size_t most_pattern_bytes = kMostPatternBytes;  // of the literals that select candidates
  unsigned most_alerts = 255;                          // per packet; alerts of lower priority are dropped and counted
  std::size_t most_expression_bytes = std::size_t{512} << 20;  // memory of compiled expressions; typical ones take 3 KB
                                                               // each
};

class Detection {
 public:
  /// Rules that cannot be compiled (because of a regular expression), or whose expressions exceed the memory limit, are
  /// moved to `left_out` of `rules()`. Fails if the matchers cannot be built.
  [[nodiscard]] static Result<std::unique_ptr<const Detection>> compile(RuleSet rules, const DetectionOptions& options);
  ~Detection();

  [[nodiscard]] const RuleSet& rules() const noexcept;
  /// One line with the numbers of groups, literals and bytes.
  [[nodiscard]] std::string description() const;

  /// The literals that select candidates, of all groups, for scanning payloads on a GPU. The Inspector takes found
  /// literals by their indices in this span.
  [[nodiscard]] std::span<const Literal> literals() const noexcept;

  /// Whether every match in a single unfragmented TCP or UDP packet contains one of the `literals`. Packets without any
  /// of them then only matter for streams.
  [[nodiscard]] bool literals_select_all() const noexcept;

  /// TrackerOptions::seam_bytes for these rules: how many inspected bytes before new ones of a stream may be part of a
  /// match.
  [[nodiscard]] std::uint32_t seam_bytes() const noexcept;

  struct Parts;
  [[nodiscard]] const Parts& parts() const noexcept { return *parts_; }

 private:
  Detection();
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nids
