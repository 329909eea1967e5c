// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads rule files of any format: detects it from the content, or uses the one that the user gives.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/ip_address.h"
#include "classify/interfaces.h"
#include "classify/interval.h"
#include "classify/rule.h"
#include "nf/firewall/host_addresses.h"
#include "nf/firewall/ipset_reader.h"

namespace penstock::firewall {

/// Where a firewall stands, as in Linux: before the route of a packet is looked up, after that, and last; and before
/// the host gets a packet, and after it has sent one.
enum class Hook : std::uint8_t { prerouting, forward, postrouting, input, output };
inline constexpr std::array kHooks{Hook::prerouting, Hook::forward, Hook::postrouting, Hook::input, Hook::output};
/// Whether packets of the host itself pass it, and no others.
[[nodiscard]] constexpr bool is_of_host(Hook hook) noexcept { return hook == Hook::input || hook == Hook::output; }
/// Whether addresses are translated there before most filters see the packet, as in Linux.
[[nodiscard]] constexpr bool translates_before_filters(Hook hook) noexcept { return hook == Hook::output; }
/// Its bit in Ruleset::filters_at and translates_at.
[[nodiscard]] constexpr std::uint8_t bit_of(Hook hook) noexcept {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(hook));
}
[[nodiscard]] std::string_view name_of(Hook hook);
/// Of one of these names.
[[nodiscard]] Hook hook_of(std::string_view name);

/// nftables: JSON; nft: the syntax of nft itself.
enum class RuleFormat : std::uint8_t { automatic, classbench, iptables, ip6tables, nftables, nft };

/// "auto", "classbench", "iptables", "ip6tables", "nftables" or "nft".
[[nodiscard]] RuleFormat rule_format_of(std::string_view name);

/// The most rules of a file (for iptables: lines; for nftables: objects), and the most after chains are expanded: the
/// default of the parameter `most_rules`.
inline constexpr std::size_t kMostRules = 1'000'000;

struct ReadOptions {
  RuleFormat format = RuleFormat::automatic;
  classify::Interfaces interfaces;
  std::optional<std::string> chain;        // iptables only: the chain where packets start, instead of FORWARD
  std::optional<classify::Target> match;   // ClassBench only, which has no actions: the action of its rules, instead of
                                           // accept
  std::optional<classify::Target> policy;  // overrides the file's; a ClassBench set has none and drops
  classify::Match decides = classify::Match::first;
  // The hook whose chains apply. Others are the business of other functions. Empty: forward, and chains at other hooks
  // must not matter. Not for ClassBench.
  std::optional<Hook> hook{};
  bool bridges = false;        // of nftables: tables of family bridge apply, to bridged frames, instead of those of IP
  bool host_has_port = false;  // packets of the host itself pass chains at input and output, of other functions
  bool translates = false;     // reads the chains that translate at the hook (type or table nat) instead of the filters
  HostAddresses host{};        // which rules may ask for
  std::shared_ptr<const Ipsets> ipsets{};  // that rules of iptables use; null: no file of them
  bool logs = false;                       // whether rules that log do; otherwise logging is left out
  bool leaves_nat_aside = false;  // without `hook`: chains that translate are not unsupported, but reported as harmless
  std::size_t most_rules = kMostRules;
  bool refuses_unsupported = false;  // if there are mistakes, constructs that are not supported are reported with them
};

/// The error for a file with more rules than `options` allow; `place` is the first rule over the limit.
[[nodiscard]] Error too_many_rules(Place place, const ReadOptions& options);

/// Parses "accept", "drop" or "reject".
[[nodiscard]] classify::Target target_of(std::string_view name);

/// Applies the parameters `match` and `decides`, which are empty if not given. `match` is the verdict of rules without
/// one, or, as another name of `decides`, the order. An error, at `place`, if both name an order and differ.
[[nodiscard]] Result<void> set_match(ReadOptions& options, std::string_view match, std::string_view decides,
                                     const Place& place);

/// Reads a file, "-" for the standard input. Rules in the syntax of nft are translated by nft.
[[nodiscard]] Result<Read<classify::Ruleset>> read_rule_file(const std::string& file, ReadOptions options);

/// Reads `text`, the content of `file`; errors contain this name. Not for the syntax of nft. In all formats but
/// nftables, a line over kMostLineBytes is an error.
[[nodiscard]] Result<Read<classify::Ruleset>> read_rules(std::string_view text, const std::string& file,
                                                         const ReadOptions& options);

}  // namespace penstock::firewall
