// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Keywords of thresholds, used both in rules and in threshold.config.

#pragma once

#include <optional>
#include <string_view>

#include "nf/nids/rules/rule_state.h"

namespace penstock::nids {

/// Parses `by_src` and similar keywords.
[[nodiscard]] constexpr std::optional<TrackBy> track_of(std::string_view text) noexcept {
  if (text == "by_src") return TrackBy::source;
  if (text == "by_dst") return TrackBy::destination;
  if (text == "by_both") return TrackBy::both;
  if (text == "by_rule") return TrackBy::rule;
  if (text == "by_flow") return TrackBy::flow;
  return std::nullopt;
}

/// Parses the type of a `threshold`: `limit` and similar keywords.
[[nodiscard]] constexpr std::optional<Threshold::Type> threshold_type_of(std::string_view text) noexcept {
  if (text == "limit") return Threshold::Type::limit;
  if (text == "threshold") return Threshold::Type::threshold;
  if (text == "both") return Threshold::Type::both;
  if (text == "backoff") return Threshold::Type::backoff;
  return std::nullopt;
}

}  // namespace penstock::nids
