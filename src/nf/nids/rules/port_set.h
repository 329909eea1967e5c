// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The ports of one side of a rule's header, as sorted ranges that neither overlap nor touch.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penstock::nids {

class PortSet {
 public:
  struct Range {
    std::uint16_t first, last;  // inclusive
    friend bool operator==(const Range&, const Range&) = default;
  };

  [[nodiscard]] static PortSet any() { return {{{0, 0xffff}}}; }

  std::vector<Range> ranges;

  [[nodiscard]] bool is_any() const noexcept {
    return ranges.size() == 1 && ranges[0].first == 0 && ranges[0].last == 0xffff;
  }
  [[nodiscard]] bool contains(std::uint16_t port) const noexcept {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), port,
                                        [](std::uint16_t p, const Range& r) { return p < r.first; });
    return after != ranges.begin() && std::prev(after)->last >= port;
  }

  friend bool operator==(const PortSet&, const PortSet&) = default;
};

}  // namespace penstock::nids
