// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule set, compiled: rules grouped by protocol, direction and port; in each group the literals that select
// candidates and the rules that nothing selects. Immutable, shared by all workers.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "nf/nids/match/pattern_matcher.h"
#include "nf/nids/rules/rule_set.h"

namespace penstock::nids {

struct DetectionOptions {
  MatcherKind matcher = MatcherKind::hyperscan;
  unsigned most_alerts = 255;  // of one packet; those of lower priority are left out, and counted
  std::size_t most_expression_bytes = std::size_t{512} << 20;  // of memory; real ones take 3 KB each
};

class Detection {
 public:
  /// A rule that cannot be compiled (a regular expression), or whose expressions have no room, goes to `left_out` of
  /// `rules()`. Fails where the matchers cannot be made.
  [[nodiscard]] static Result<std::unique_ptr<const Detection>> compile(RuleSet rules, const DetectionOptions& options);
  ~Detection();

  [[nodiscard]] const RuleSet& rules() const noexcept;
  /// One line: groups, literals, bytes.
  [[nodiscard]] std::string description() const;

  /// For a scan of all payloads elsewhere (a GPU): the literals that select candidates, over all groups. The indices
  /// are those that `Inspector` is given candidates by.
  [[nodiscard]] std::span<const Literal> literals() const noexcept;

  /// Whether all that a TCP or UDP packet that is no fragment can match by itself holds one of the `literals`: without
  /// any in it there is nothing to look for, but in streams.
  [[nodiscard]] bool literals_select_all() const noexcept;

  /// TrackerOptions::seam_bytes of a tracker for these rules: so many inspected bytes before new ones of a stream may
  /// be part of a match.
  [[nodiscard]] std::uint32_t seam_bytes() const noexcept;

  struct Parts;
  [[nodiscard]] const Parts& parts() const noexcept { return *parts_; }

 private:
  Detection();
  std::unique_ptr<Parts> parts_;
};

}  // namespace penstock::nids
