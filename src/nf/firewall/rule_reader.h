// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rule files, whatever their format: finds it out from the content, or takes the user's word.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "classify/interfaces.h"
#include "classify/rule.h"

namespace penstock::firewall {

enum class RuleFormat : std::uint8_t { automatic, classbench, iptables, ip6tables };

/// "auto", "classbench", "iptables" or "ip6tables".
[[nodiscard]] RuleFormat rule_format_of(std::string_view name);

/// Most rules of a file (for iptables, lines), and most that chains which call each other become: the default of the
/// parameter `most_rules`.
inline constexpr std::size_t kMostRules = 1'000'000;

struct ReadOptions {
  RuleFormat format = RuleFormat::automatic;
  classify::Interfaces interfaces;
  std::optional<std::string> chain;        // iptables alone: where packets begin, instead of FORWARD
  std::optional<classify::Target> match;   // ClassBench alone, which does not say what its rules do: instead of accept
  std::optional<classify::Target> policy;  // instead of the file's; a ClassBench set has none and drops
  std::size_t most_rules = kMostRules;
};

/// For a file with more rules than `options` allow; `place` is the first that is too many.
[[nodiscard]] Error too_many_rules(Place place, const ReadOptions& options);

/// Accept, drop or reject by its name.
[[nodiscard]] classify::Target target_of(std::string_view name);

/// `text` is the content of `file`, which names it in errors.
[[nodiscard]] Result<Read<classify::Ruleset>> read_rules(std::string_view text, const std::string& file,
                                                         const ReadOptions& options);

}  // namespace penstock::firewall
