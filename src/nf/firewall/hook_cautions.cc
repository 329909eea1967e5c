// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Warns about hooks of Linux for which no firewall of a chain stands, or two of them, about their order, and about logs
// to which no firewall writes.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/units.h"
#include "nf/firewall/firewall.h"

namespace penstock::firewall {

namespace {

bool has(std::uint8_t hooks, Hook hook) { return (hooks & bit_of(hook)) != 0; }

/// Whether packets that pass both hooks pass `first` first.
bool is_before(Hook first, Hook second) {
  if (first == Hook::prerouting) return second != Hook::prerouting && second != Hook::output;
  return (first == Hook::forward || first == Hook::output) && second == Hook::postrouting;
}

}  // namespace

bool Firewall::logs_packets() const noexcept {
  const auto logs = [](const classify::Ruleset& rules) {
    return std::ranges::any_of(rules.rules, [](const classify::Rule& rule) {
      return std::ranges::any_of(
          rule.steps, [](const classify::Step& step) { return std::holds_alternative<classify::Log>(step); });
    });
  };
  return logs(rules_) || (nat_ && logs(nat_->rules));
}

Errors Firewall::cautions_in(std::span<const function::NetworkFunction* const> chain) const {
  const auto chooses_port = [](const function::NetworkFunction* one) { return one->traits().chooses_port; };
  if (bridge_ && std::ranges::any_of(chain, chooses_port)) {
    return {{place_, "frames are bridged, but a function of the chain chooses where packets leave", "family: bridge",
             "a chain without `router`, or no `family: bridge`"}};
  }
  std::vector<const Firewall*> all, same;  // firewalls; those with these rules, at any hook
  for (const function::NetworkFunction* const function : chain) {
    const auto* const firewall = dynamic_cast<const Firewall*>(function);
    if (firewall == nullptr) continue;
    all.push_back(firewall);
    if (firewall->hook_ && firewall->rules_.file == rules_.file && firewall->bridge_.has_value() == bridge_.has_value())
      same.push_back(firewall);
  }
  Errors cautions;
  // The first one speaks for all.
  if (all.front() == this && log_ != nullptr && std::ranges::none_of(all, &Firewall::logs_packets))
    cautions.push_back({place_, "the output packet_log stays empty", "no rule that logs", "one, or no packet_log"});
  const auto has_blocks = [](const Firewall* one) { return one->tracking_ && one->tracking_->port_blocks; };
  if (all.front() == this && nat_log_ != nullptr && std::ranges::none_of(all, has_blocks))
    cautions.push_back({place_, "the output nat_log stays empty", "no port_blocks", "some, or no nat_log"});
  if (!hook_) return cautions;
  const auto stands_for = [&](Hook hook) {
    return std::ranges::find(same, hook, [](const Firewall* one) { return *one->hook_; });
  };
  if (*stands_for(*hook_) != this) {
    cautions.push_back({place_, fmt::format("two firewalls with the same rules at hook {}", name_of(*hook_)),
                        in_quotes(rules_.file), "one for each hook"});
  }
  const auto later = std::find_if(same.begin(), std::ranges::find(same, this),
                                  [&](const Firewall* one) { return is_before(*hook_, *one->hook_); });
  if (*later != this) {
    cautions.push_back({place_, "packets pass hooks in another order than on Linux",
                        fmt::format("hook {} after hook {}", name_of(*hook_), name_of(*(*later)->hook_)),
                        fmt::format("hook {} first", name_of(*hook_))});
  }
  if (same.front() != this) return cautions;
  const bool with_host = std::ranges::any_of(same, &Firewall::host_has_port);
  std::uint8_t translates_at = rules_.translates_at;
  if (!with_host) translates_at &= static_cast<std::uint8_t>(~(bit_of(Hook::input) | bit_of(Hook::output)));
  for (const Hook hook : kHooks) {
    if (stands_for(hook) != same.end() || (is_of_host(hook) && !with_host)) continue;
    std::string message;
    if (has(rules_.filters_at | translates_at, hook)) {
      message =
          fmt::format("rules at hook {} apply to no packet: no firewall of the chain stands for it", name_of(hook));
    } else if (translates_at != 0 && hook != Hook::forward) {
      // Replies to a translated source arrive at prerouting or output, and those of a translated destination leave at
      // postrouting or input.
      message = fmt::format(
          "replies of translated connections are not translated back: no firewall of the chain stands "
          "for hook {}",
          name_of(hook));
    }
    if (message.empty()) continue;
    cautions.push_back({place_, std::move(message), in_quotes(rules_.file),
                        fmt::format("another `firewall` with these rules and `hook: {}`", name_of(hook))});
  }
  return cautions;
}

}  // namespace penstock::firewall
