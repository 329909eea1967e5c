// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// One rule's tag on a flow or a host: determines which packets after the alert are logged.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "nf/nids/rules/rule_state.h"

namespace penstock::nids {

/// The most tags of one flow or host; further ones are ignored. A rule has one on each, which further matches renew.
inline constexpr unsigned kMostTags = 50;

struct TagEntry {
  std::uint64_t first_s = 0;
  std::uint32_t used = 0;  // packets or bytes so far
  std::uint32_t count = 0;
  Tag::Unit unit = Tag::Unit::packets;
  std::uint8_t renewals = 0;
  bool began = false;  // the packet that set the tag has been counted

  [[nodiscard]] static TagEntry of(const Tag& tag, std::uint64_t now_s) noexcept {
    return {.first_s = now_s, .used = 0, .count = tag.count, .unit = tag.unit, .renewals = 0, .began = false};
  }

  /// Renews the tag after one more match of the rule. Only the first few matches do so, so that an endless attack does
  /// not fill the log.
  void renew(std::uint64_t now_s) noexcept {
    constexpr std::uint8_t kMostRenewals = 10;
    if (renewals < kMostRenewals) ++renewals;
    if (renewals == kMostRenewals) return;
    first_s = now_s;
    used = 0;
  }

  enum class Says : std::uint8_t { not_this_one, log, ended };
  /// Counts one more packet.
  [[nodiscard]] Says packet(std::uint64_t now_s, std::uint32_t bytes) noexcept {
    if (unit == Tag::Unit::packets) ++used;
    if (unit == Tag::Unit::bytes) used += std::min(bytes, std::numeric_limits<std::uint32_t>::max() - used);
    if (!began) {
      began = true;
      return Says::not_this_one;
    }
    // If time goes backwards, the difference wraps and exceeds any count, which ends the tag.
    const bool over = unit == Tag::Unit::seconds ? now_s - first_s > count : used > count;
    return over ? Says::ended : Says::log;
  }
};

}  // namespace penstock::nids
