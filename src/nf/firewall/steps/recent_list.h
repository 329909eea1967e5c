// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The addresses of a list of xt_recent, each with the times of its last packets. All workers use the same list.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "classify/step.h"
#include "packet/layout.h"

namespace penstock::firewall {

class RecentList {
 public:
  /// The most packets of an address that count; iptables refuses larger numbers of hits.
  static constexpr std::uint32_t kMostHits = 255;
  /// The most addresses; then the one whose last packet is the oldest makes room. The kernel has 100, unless xt_recent
  /// is loaded with another number.
  static constexpr std::size_t kMostAddresses = 16384;

  RecentList();
  RecentList(const RecentList&) = delete;
  RecentList& operator=(const RecentList&) = delete;
  ~RecentList();

  /// Whether the match holds for a packet, which it may add to the list. Nothing: there is no memory for it.
  [[nodiscard]] std::optional<bool> holds(const classify::Recent& match, const classify::Number& address,
                                          NetworkLayer family, std::uint8_t hop_limit, std::uint64_t now_ns) noexcept;
  void clear() noexcept;

 private:
  struct Entries;
  std::unique_ptr<Entries> entries_;
};

}  // namespace penstock::firewall
