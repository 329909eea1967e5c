// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/connection_list.h"

#include <algorithm>
#include <new>

namespace penstock::firewall {

bool ConnectionList::holds(const classify::ConnectionCount& count, const conntrack::Connection& connection,
                           conntrack::Connections& table, std::uint64_t now_ns) noexcept {
  // Long lists are looked through from time to time only, each by its own clock: a host with many connections must not
  // keep those of others from being looked through.
  constexpr std::size_t kShort = 64;
  constexpr std::uint64_t kSweepEveryNs = 10'000'000;
  if (open_.size() <= kShort || now_ns < swept_ns_ || now_ns - swept_ns_ >= kSweepEveryNs) {
    forget_ended(table);
    swept_ns_ = now_ns;
  }
  const conntrack::Reference own = table.reference_to(connection);
  if (std::ranges::find(open_, own) != open_.end()) return (open_.size() > count.most) == count.over;
  // One more than the limit makes no difference, so that a flood of connections that are refused makes no long list.
  if (open_.size() > count.most) return count.over;
  try {
    open_.push_back(own);
  } catch (const std::bad_alloc&) {
    return count.over;  // the side on which rules protect
  }
  return (open_.size() > count.most) == count.over;
}

void ConnectionList::forget_ended(conntrack::Connections& table) noexcept {
  std::erase_if(open_, [&](const conntrack::Reference& one) { return !table.counts(one); });
}

}  // namespace penstock::firewall
