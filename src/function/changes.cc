// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/units.h"

namespace penstock::function {

Changes& Changes::count(std::string_view thing, const Counts& counts, std::string_view several) {
  bool named = false;
  const auto add_count = [&](std::size_t n, std::string_view what) {
    if (n == 0) return;
    const std::string first =
        several.empty() ? format_count(n, thing) : fmt::format("{} {}", format_count(n), n == 1 ? thing : several);
    add(fmt::format("{} {}", named ? format_count(n) : first, what));
    named = true;
  };
  add_count(counts.added, "added");
  add_count(counts.removed, "removed");
  add_count(counts.changed, "changed");
  return *this;
}

Changes& Changes::value(std::string_view what, std::string_view before, std::string_view now) {
  return before == now ? *this : add(fmt::format("{} {} → {}", what, before, now));
}

Changes& Changes::add(std::string change) {
  changes_.push_back(std::move(change));
  return *this;
}

std::string Changes::text() const { return fmt::format("{}", fmt::join(changes_, ", ")); }

}  // namespace penstock::function
