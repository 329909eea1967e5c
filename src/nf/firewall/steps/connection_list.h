// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The open connections that a rule, or an element of a set, counts (the kernel's nf_conncount_list).

#pragma once

#include <cstdint>
#include <vector>

#include "classify/step.h"
#include "conntrack/connections.h"

namespace penstock::firewall {

/// Of connections of one worker's table.
class ConnectionList {
 public:
  /// Whether the count's condition holds with this connection, which the list then has.
  [[nodiscard]] bool holds(const classify::ConnectionCount& count, const conntrack::Connection& connection,
                           conntrack::Connections& table, std::uint64_t now_ns) noexcept;
  /// For a packet without a connection, which counts as one more.
  [[nodiscard]] bool holds_without(const classify::ConnectionCount& count) const noexcept {
    return (open_.size() + 1 > count.most) == count.over;
  }
  /// Whether none is left of those that are open.
  [[nodiscard]] bool is_over(conntrack::Connections& table) noexcept {
    forget_ended(table);
    return open_.empty();
  }
  void clear() noexcept { open_.clear(); }

 private:
  void forget_ended(conntrack::Connections& table) noexcept;

  std::vector<conntrack::Reference> open_;
  std::uint64_t swept_ns_ = 0;  // when a long list was looked through
};

}  // namespace penstock::firewall
