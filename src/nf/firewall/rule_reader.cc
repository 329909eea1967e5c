// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/rule_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "classify/interval_set.h"
#include "nf/firewall/classbench_reader.h"
#include "nf/firewall/iptables_reader.h"
#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/nft.h"
#include "nf/firewall/nftables/reader.h"

namespace penstock::firewall {

namespace {

/// Detects the format from the first line with content: ClassBench rules begin with @, iptables-save has tables, and
/// nftables is JSON.
RuleFormat detected(std::string_view text) {
  if (nftables::is_json(text)) return RuleFormat::nftables;
  LineReader lines(text);
  for (Line line; lines.next(line);) {
    const std::string_view content = trimmed(line.text);
    if (content.empty() || content.front() == '#') continue;
    if (content.front() == '@') return RuleFormat::classbench;
    if (content.front() == '*' || content.front() == ':' || content.starts_with("-A ")) return RuleFormat::iptables;
    break;
  }
  return RuleFormat::automatic;
}

/// The first line that is not a comment, for an error message.
Line first_content(std::string_view text) {
  LineReader lines(text);
  Line line;
  while (lines.next(line)) {
    const std::string_view content = trimmed(line.text);
    if (!content.empty() && content.front() != '#') return {line.number, content};
  }
  return {};
}

}  // namespace

std::string_view name_of(Hook hook) {
  switch (hook) {
    case Hook::prerouting: return "prerouting";
    case Hook::forward: return "forward";
    case Hook::input: return "input";
    case Hook::output: return "output";
    case Hook::postrouting: break;
  }
  return "postrouting";
}

Hook hook_of(std::string_view name) {
  const auto* const hook = std::ranges::find(kHooks, name, name_of);
  return hook == kHooks.end() ? Hook::postrouting : *hook;
}

RuleFormat rule_format_of(std::string_view name) {
  if (name == "classbench") return RuleFormat::classbench;
  if (name == "iptables") return RuleFormat::iptables;
  if (name == "ip6tables") return RuleFormat::ip6tables;
  if (name == "nftables") return RuleFormat::nftables;
  if (name == "nft") return RuleFormat::nft;
  return RuleFormat::automatic;
}

Error too_many_rules(Place place, const ReadOptions& options) {
  const std::string most = format_count(options.most_rules);
  return {std::move(place), "too many rules", fmt::format("more than {}", most),
          fmt::format("at most {} (most_rules raises it)", most)};
}

classify::Target target_of(std::string_view name) {
  if (name == "accept") return classify::Target::accept;
  return name == "reject" ? classify::Target::reject : classify::Target::drop;
}

Result<void> set_match(ReadOptions& options, std::string_view match, std::string_view decides, const Place& place) {
  const bool is_order = match == "first" || match == "last";
  if (is_order && !decides.empty() && match != decides) {
    return failure({place, "`match` and `decides` contradict each other", in_quotes(match),
                    fmt::format("match: {}, or one of them alone", decides)});
  }
  if (!is_order && !match.empty()) options.match = target_of(match);
  const std::string_view order = is_order ? match : decides;
  options.decides = order == "last" ? classify::Match::last : classify::Match::first;
  return {};
}

namespace {

/// The error for an option that the format has no use for.
tl::unexpected<Errors> without_use(const std::string& file, std::string message, std::string_view found,
                                   std::string expected) {
  return failure({{file, 0, 0}, std::move(message), in_quotes(found), std::move(expected)});
}

Result<Read<classify::Ruleset>> read_nftables_with(std::string_view text, const std::string& file,
                                                   const ReadOptions& options) {
  if (options.chain) {
    return without_use(file, "`chain` is set, but all base chains at hook forward of nftables apply", *options.chain,
                       "iptables rules, or no `chain`");
  }
  if (options.decides == classify::Match::last) {
    return without_use(file, "`decides` is set, but the first match decides in nftables", name(options.decides),
                       "`decides: first`");
  }
  return read_nftables(text, file, options);
}

Result<Read<classify::Ruleset>> read_in_order_of_file(std::string_view text, const std::string& file,
                                                      const ReadOptions& options) {
  const RuleFormat format = options.format == RuleFormat::automatic ? detected(text) : options.format;
  if (format != RuleFormat::nftables) {
    if (auto checked = check_lines(text, file); !checked) return failure(std::move(checked.error()));
    if (options.bridges && format != RuleFormat::automatic) {
      return without_use(file, "rules of this format are not about bridged frames", "family: bridge",
                         "rules of nftables with a table of family bridge, or no `family: bridge`");
    }
    if (options.hook && format == RuleFormat::classbench) {
      return without_use(file, "`hook` is set, but ClassBench rules have no chains", name_of(*options.hook),
                         "rules of nftables or iptables, or no `hook`");
    }
  }
  if (format == RuleFormat::classbench) {
    if (options.chain) {
      return without_use(file, "`chain` is set, but ClassBench rules have no chains", *options.chain,
                         "iptables rules, or no `chain`");
    }
    return read_classbench(text, file, options);
  }
  if (format != RuleFormat::automatic) {
    if (options.match) {
      const std::string_view which = format == RuleFormat::nftables ? "nftables" : "iptables";
      return without_use(file, fmt::format("`match` is set, but {} rules have targets", which), name(*options.match),
                         "ClassBench rules, or no `match`");
    }
    if (format == RuleFormat::nftables) return read_nftables_with(text, file, options);
    return read_iptables(text, file, options);
  }
  const Line first = first_content(text);
  return failure(
      {{file, first.number, 0},
       first.number == 0 ? "no rules in the file" : "unknown rule format",
       first.number == 0 ? "" : in_quotes(first.text),
       "output of iptables-save, ip6tables-save or `nft -j list ruleset`, a file of nft, or a ClassBench filter set"});
}

}  // namespace

Result<Read<classify::Ruleset>> read_rules(std::string_view text, const std::string& file, const ReadOptions& options) {
  Result<Read<classify::Ruleset>> read = read_in_order_of_file(text, file, options);
  if (read && options.decides == classify::Match::last) let_last_decide(read->value);
  return read;
}

Result<Read<classify::Ruleset>> read_rule_file(const std::string& file, ReadOptions options) {
  Result<std::string> text = read_input(file);
  if (!text) return failure(std::move(text.error()));
  const std::string name = input_name(file);
  if (options.format == RuleFormat::nft ||
      (options.format == RuleFormat::automatic && nftables::is_nft_syntax(*text))) {
    text = nftables::translate(*text, name);
    if (!text) return failure(std::move(text.error()));
    options.format = RuleFormat::nftables;
  }
  return read_rules(*text, name, options);
}

}  // namespace penstock::firewall
