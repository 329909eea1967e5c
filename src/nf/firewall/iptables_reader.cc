// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/iptables_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/error_list.h"
#include "base/text_file.h"
#include "conntrack/nat_range.h"
#include "nf/firewall/iptables_chains.h"
#include "nf/firewall/iptables_rule.h"

namespace penstock::firewall {

namespace {

class IptablesReader {
 public:
  IptablesReader(const std::string& file, const ReadOptions& options) : file_(file), options_(options) {
    read_.value.file = file;
    if (options.format == RuleFormat::ip6tables) next_family_ = NetworkLayer::ipv6;
  }

  Result<Read<classify::Ruleset>> read(std::string_view text) {
    find_changes(text);
    read_.value.gives_helpers = text.find("--helper ftp") != std::string_view::npos;
    LineReader lines(text);
    for (Line line; lines.next(line);) {
      const std::string_view content = trimmed(line.text);
      line_ = line.number;
      if (content.empty()) continue;
      if (content.front() == '#') {
        read_comment(content);
        continue;
      }
      // Chains and tables also take memory, and a rule with lists takes as much as the rules that it expands to.
      if (++cost_ > options_.most_rules) return failure(too_many_rules({file_, line_, 0}, options_));
      switch (content.front()) {
        case '*': read_table(content); break;
        case ':': read_chain(content); break;
        case '[':
        case '-': read_rule(line.text); break;
        default:
          if (content == "COMMIT") {
            if (!in_table_) mistake(content, "COMMIT outside a table", "a line *filter before it");
            table_ = nullptr;
            in_table_ = false;
          } else {
            mistake(content, "not a line of iptables-save", "*TABLE, :CHAIN POLICY, -A CHAIN …, COMMIT or # comment");
          }
      }
    }
    // A truncated file must not be mistaken for a shorter one.
    if (in_table_) mistakes_.add({{file_, line_, 0}, "the file ends inside table " + table_name_, "", "COMMIT"});
    return finish();
  }

 private:
  /// Rules that look a list or set up may come before those that change it. What only rules change that no packet meets
  /// here would never come.
  void find_changes(std::string_view text) {
    if (text.find("-set") == std::string_view::npos && text.find("recent") == std::string_view::npos) return;
    struct Change {
      std::string chain, what;
    };
    std::map<std::string, std::map<std::string, std::vector<std::string>>> jumps;  // by table, chain
    std::map<std::string, std::vector<Change>> changes;                            // by table
    std::string table;
    LineReader lines(text);
    for (Line line; lines.next(line);) {
      const std::string_view content = trimmed(line.text);
      if (content.starts_with('*')) table = content.substr(1);
      if (content.empty() || (content.front() != '-' && content.front() != '[') || !split_iptables(content, words_))
        continue;
      std::string chain, list = "DEFAULT";
      bool recent = false, changes_list = false;
      for (std::size_t i = 0; i + 1 < words_.size(); ++i) {
        const std::string &word = words_[i].text, &next = words_[i + 1].text;
        if (word == "-A" && chain.empty()) chain = next;
        if (word == "-j" || word == "-g") jumps[table][chain].push_back(next);
        if (word == "--add-set" || word == "--del-set") {
          changed_ipsets_.insert(next);
          changes[table].push_back({chain, "ipset " + next});
        }
        if (word == "-m") recent = next == "recent";
        if (recent && word == "--name") list = next;
        if (recent) changes_list |= word == "--set" || word == "--update" || word == "--remove";
      }
      if (recent || changes_list) changes_list |= words_.back().text == "--set" || words_.back().text == "--remove";
      if (changes_list) changes[table].push_back({chain, "recent " + list});
    }
    std::set<std::string> here, elsewhere;
    for (const auto& changed : changes) {
      const std::string& name = changed.first;
      const auto reached_from = [&](const std::vector<std::string>& starts) {
        std::set<std::string> reached;
        std::vector<std::string> open = starts;
        while (!open.empty()) {
          const std::string chain = std::move(open.back());
          open.pop_back();
          if (!reached.insert(chain).second) continue;
          const auto next = jumps[name].find(chain);
          if (next != jumps[name].end()) open.insert(open.end(), next->second.begin(), next->second.end());
        }
        return reached;
      };
      const bool any_hook = options_.hook.has_value();
      std::vector<std::string> starts{"PREROUTING", "FORWARD", "POSTROUTING"};
      if (options_.host_has_port) starts.insert(starts.end(), {"INPUT", "OUTPUT"});
      const std::set<std::string> seen = any_hook           ? reached_from(starts)
                                         : name == "filter" ? reached_from({first_chain("filter")})
                                                            : std::set<std::string>();
      const std::set<std::string> all_chains =
          reached_from({"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"});
      for (const Change& change : changed.second) {
        if (seen.contains(change.chain)) here.insert(change.what);
        if (all_chains.contains(change.chain)) elsewhere.insert(change.what);
      }
    }
    std::ranges::set_difference(elsewhere, here, std::inserter(changed_elsewhere_, changed_elsewhere_.end()));
  }

  void leave_out_users_of_changes_elsewhere(IptablesTable& table) {
    const classify::StepObjects& objects = read_.value.objects;
    for (auto& [name, chain] : table.chains) {
      for (ChainRule& rule : chain.rules) {
        for (const classify::Step& step : rule.steps) {
          const auto* const recent = std::get_if<classify::Recent>(&step);
          const auto* const look_up = std::get_if<classify::LookUp>(&step);
          std::string what;
          if (recent != nullptr) what = "recent " + objects.recents[recent->list].name;
          if (look_up != nullptr) what = objects.sets[look_up->set].name;
          if (!changed_elsewhere_.contains(what) || !rule.unsupported.empty()) continue;
          rule.unsupported = fmt::format("{} is changed only by rules that packets do not pass here", in_quotes(what));
        }
      }
    }
  }

  void mistake(std::string_view found, std::string_view message, std::string expected) {
    mistakes_.add({{file_, line_, 0}, std::string(message), in_quotes(found), std::move(expected)});
  }

  /// "# Generated by ip6tables-save …" gives the family of the following tables.
  void read_comment(std::string_view text) {
    if (options_.format != RuleFormat::automatic || text.find("Generated by") == std::string_view::npos) return;
    next_family_ = text.find("ip6tables") != std::string_view::npos ? NetworkLayer::ipv6 : NetworkLayer::ipv4;
  }

  void read_table(std::string_view text) {
    if (in_table_) mistake(text, "new table inside table " + table_name_, "a line COMMIT before it");
    in_table_ = true;
    table_ = nullptr;
    table_name_ = text.substr(1);
    table_line_ = line_;
    others_.emplace_back(OtherTable{table_name_, line_, {}});
    if (!is_wanted(table_name_)) return;
    for (const IptablesTable& table : tables_) {
      if (table.family == next_family_ && table.name == table_name_) {
        return mistake(text, fmt::format("second {} table for the same address family", table_name_),
                       "one for IPv4, and one for IPv6 after a line `# Generated by ip6tables-save`");
      }
    }
    // At most one of each name for each family. `table_` is set again at the next table, so it may be invalidated here.
    tables_.push_back({next_family_, table_name_, line_, {}});
    table_ = &tables_.back();
  }

  /// The tables whose chains packets pass at the hook, in this order.
  [[nodiscard]] std::vector<std::string_view> wanted_tables() const {
    if (options_.translates) return {"nat"};
    if (!options_.hook) return {"filter"};
    if (options_.hook == Hook::forward) return {"mangle", "filter", "security"};
    if (options_.hook == Hook::prerouting) return {"raw", "mangle"};
    if (options_.hook == Hook::input) return {"mangle", "filter", "security"};
    if (options_.hook == Hook::output) return {"raw", "mangle", "filter", "security"};
    return {"mangle"};
  }
  [[nodiscard]] bool is_wanted(std::string_view table) const {
    const auto wanted = wanted_tables();
    return std::ranges::find(wanted, table) != wanted.end();
  }
  /// Their chain.
  [[nodiscard]] std::string first_chain(std::string_view table) const {
    const Hook hook = options_.hook.value_or(Hook::forward);
    if (table == "filter" && options_.chain && hook == Hook::forward) return *options_.chain;
    return std::string(chain_at(hook));
  }
  static std::string_view chain_at(Hook hook) {
    switch (hook) {
      case Hook::prerouting: return "PREROUTING";
      case Hook::forward: return "FORWARD";
      case Hook::input: return "INPUT";
      case Hook::output: return "OUTPUT";
      case Hook::postrouting: break;
    }
    return "POSTROUTING";
  }
  /// Whether the table is the business of another function of the chain.
  [[nodiscard]] bool is_left_to_others(std::string_view table) const {
    constexpr std::array<std::string_view, 5> kTables{"raw", "mangle", "nat", "filter", "security"};
    return options_.hook && std::ranges::find(kTables, table) != kTables.end();
  }

  /// What matters of a table that is not read here.
  struct OtherTable {
    struct Chain {
      bool harmful = false;  // it can drop or change packets
      std::vector<std::string> jumps{};
    };
    std::string name;
    std::uint32_t line = 0;
    std::map<std::string, Chain, std::less<>> chains;

    /// Whether packets that pass through can meet such a chain.
    [[nodiscard]] bool matters() const {
      std::set<std::string_view> seen;
      std::vector<std::string_view> open{"PREROUTING", "FORWARD", "POSTROUTING"};
      while (!open.empty()) {
        const auto chain = chains.find(open.back());
        open.pop_back();
        if (chain == chains.end() || !seen.insert(chain->first).second) continue;
        if (chain->second.harmful) return true;
        open.insert(open.end(), chain->second.jumps.begin(), chain->second.jumps.end());
      }
      return false;
    }
  };

  /// A rule of a table that is not read here.
  void note_other_rule(std::string_view text) {
    if (!split_iptables(text, words_) || words_.size() < 2) return;
    const std::size_t first = words_.front().text.starts_with('[') ? 1 : 0;
    if (words_.size() < first + 2) return;
    OtherTable::Chain& chain = others_.back().chains[words_[first + 1].text];
    std::string target;
    for (std::size_t i = first + 2; i + 1 < words_.size(); ++i) {
      const bool jumps = words_[i].text == "-j" || words_[i].text == "-g" || words_[i].text == "--jump";
      if (jumps && !words_[i].quoted) target = words_[i + 1].text;
    }
    constexpr std::array<std::string_view, 5> kPassing{"ACCEPT", "RETURN", "LOG", "NFLOG", "TRACE"};
    if (target.empty() || std::ranges::find(kPassing, target) != kPassing.end()) return;
    chain.jumps.push_back(target);
  }

  void report_other_tables() {
    for (OtherTable& table : others_) {
      if (is_wanted(table.name) || is_left_to_others(table.name)) continue;
      for (auto& [name, chain] : table.chains) {
        // A target that is no chain of the table does something.
        chain.harmful |=
            std::ranges::any_of(chain.jumps, [&](const std::string& target) { return !table.chains.contains(target); });
      }
      if (!table.matters()) continue;
      if (options_.leaves_nat_aside && table.name == "nat") {
        read_.harmless.push_back({{file_, table.line, 0}, "table nat is left aside: nothing is translated", "", ""});
        continue;
      }
      read_.unsupported.push_back({{file_, table.line, 0},
                                   fmt::format("table {} is not supported", table.name),
                                   "",
                                   "the filter table alone, as `iptables-save -t filter` prints it, or `hook`"});
    }
  }

  void read_chain(std::string_view text) {
    if (!in_table_) return mistake(text, "chain outside a table", "a line *filter before it");
    std::vector<Word> words = split_words(text.substr(1));
    if (words.size() < 2) return mistake(text, "wrong chain", ":CHAIN POLICY [PACKETS:BYTES]");
    if (words[1].text == "DROP") note_where_rules_matter(words[0].text);
    if (table_ == nullptr) {
      others_.back().chains[std::string(words[0].text)].harmful = words[1].text == "DROP";
      return;
    }
    const auto [place, added] = table_->chains.try_emplace(std::string(words[0].text));
    if (!added) return mistake(text, "chain declared twice", "each chain once");
    FilterChain& chain = place->second;
    const std::string_view policy = words[1].text;
    if (policy == "ACCEPT")
      chain.policy = classify::Target::accept;
    else if (policy == "DROP")
      chain.policy = classify::Target::drop;
    else if (policy != "-")
      mistake(text, "unknown policy", "ACCEPT, DROP, or - for a user-defined chain");
  }

  void read_rule(std::string_view text) {
    if (!in_table_) return mistake(trimmed(text), "rule outside a table", "a line *filter before it");
    constexpr std::string_view kAppend = "-A ";
    if (const std::size_t append = text.find(kAppend); append != std::string_view::npos) {
      const std::string_view rest = text.substr(append + kAppend.size());
      note_where_rules_matter(rest.substr(0, rest.find(' ')));
    }
    if (table_ == nullptr) return note_other_rule(text);
    if (!split_iptables(text, words_)) return mistake(trimmed(text), "unclosed quote", "\" at its end");
    // iptables-save -c writes [packets:bytes] before each rule.
    if (words_.front().text.front() == '[') words_.erase(words_.begin());
    if (words_.size() < 2 || (words_[0].text != "-A" && words_[0].text != "--append")) {
      return mistake(trimmed(text), "not a rule of iptables-save", "-A CHAIN …");
    }
    // The text shown to users omits the saved counters.
    const std::string shown(trimmed(text.substr(words_[0].column - 1)));
    const Place place{file_, line_, 0};
    Errors errors;
    IptablesRule rule = read_iptables_rule(
        words_,
        {table_->family, options_.translates, options_.interfaces, options_.host, options_.ipsets.get(),
         changed_ipsets_, set_values_left_, options_.logs, options_.hook == Hook::output, shown, place},
        read_.value, errors);
    for (Error& error : errors) mistakes_.add(std::move(error));
    // NETMAP translates what its hook translates, also in chains that are called from there.
    if (rule.translation && rule.translation->range.has(conntrack::NatRange::kNetmap)) {
      using Way = classify::Translation::Way;
      const bool source = options_.hook == Hook::postrouting || options_.hook == Hook::input;
      rule.translation->way = source ? Way::source : Way::destination;
    }
    if (rule.translation && rule.translation->way == classify::Translation::Way::redirect &&
        options_.hook == Hook::output && rule.unsupported.empty())
      rule.unsupported = kRedirectsHost;
    rule.index = static_cast<std::uint32_t>(read_.value.rules.size());
    using Jump = IptablesRule::Jump;
    const classify::Target target = rule.jump == Jump::drop     ? classify::Target::drop
                                    : rule.jump == Jump::reject ? classify::Target::reject
                                                                : classify::Target::accept;
    read_.value.rules.push_back(
        {line_, target, false, shown, rule.answer, rule.translation, rule.steps, rule.continues});
    const auto chain = table_->chains.find(rule.chain);
    if (chain == table_->chains.end())
      return mistake(rule.chain, "rule of an unknown chain", "a line :CHAIN … before it");
    cost_ += cost_of(rule) - 1;
    chain->second.rules.push_back(static_cast<ChainRule&&>(rule));
  }

  /// In this chain of the current table.
  void note_where_rules_matter(std::string_view chain) {
    const bool translates = table_name_ == "nat";
    constexpr std::array<std::string_view, 4> kFilters{"raw", "mangle", "filter", "security"};
    if (!translates && std::ranges::find(kFilters, table_name_) == kFilters.end()) return;
    for (const Hook hook : kHooks) {
      if (chain_at(hook) != chain) continue;
      (translates ? read_.value.translates_at : read_.value.filters_at) |= bit_of(hook);
    }
  }

  /// How many rules a rule with lists expands to, or more if it has many conditions.
  static std::size_t cost_of(const IptablesRule& rule) {
    std::size_t conditions = 0;
    for (const Alternative& alternative : rule.alternatives) conditions += alternative.conditions.size();
    return std::max(rule.alternatives.size(), conditions / kMostConditionsPerRule);
  }

  [[nodiscard]] Errors write_table(const IptablesTable& table);
  [[nodiscard]] Errors write_tracking();

  Result<Read<classify::Ruleset>> finish();

  const std::string& file_;
  const ReadOptions& options_;
  Read<classify::Ruleset> read_;
  ErrorList mistakes_;
  std::uint32_t line_ = 0;
  std::size_t cost_ = 0;  // cost of all lines so far
  NetworkLayer next_family_ = NetworkLayer::ipv4;
  std::vector<IptablesTable> tables_;
  bool tracks_between_ = false;     // connections are looked up between the tables raw and mangle
  IptablesTable* table_ = nullptr;  // the filter table that the current lines belong to
  bool in_table_ = false;
  std::string table_name_;
  std::uint32_t table_line_ = 0;
  std::set<std::string, std::less<>> changed_ipsets_;
  std::size_t set_values_left_ = kMostValuesPerRule * options_.most_rules;
  std::set<std::string> changed_elsewhere_;  // lists and sets: "recent NAME", "ipset NAME"
  std::vector<OtherTable> others_;           // all tables, also those that are read
  std::vector<IptablesWord> words_;
};

/// Appends the entries of the table's chain at the hook.
Errors IptablesReader::write_table(const IptablesTable& table) {
  classify::Ruleset& rules = read_.value;
  const std::string start_chain = first_chain(table.name);
  const auto chain = table.chains.find(start_chain);
  if (chain == table.chains.end()) {
    const bool may_lack_it = table.name != "filter" && table.name != "nat";
    if (may_lack_it || is_of_host(options_.hook.value_or(Hook::forward))) return {};
    std::vector<std::string> names;
    for (const auto& [name, unused] : table.chains) names.push_back(name);
    return {{{file_, table.line, 0},
             fmt::format("the {} table has no chain {}", table.name, in_quotes(start_chain)),
             "",
             fmt::format("one of {}", fmt::join(names, ", "))}};
  }
  // They are in order.
  const bool is_last =
      !(tracks_between_ && table.name == "raw") &&
      std::none_of(tables_.begin() + (&table - tables_.data()) + 1, tables_.end(), [&](const auto& other) {
        return other.family == table.family && other.chains.contains(first_chain(other.name));
      });
  const bool overridden = options_.policy && table.name == "filter";
  const std::optional<classify::Target> policy = overridden ? options_.policy : chain->second.policy;
  if (!policy) {
    return {{{file_, table.line, 0},
             "chain without a policy",
             in_quotes(start_chain),
             "a built-in chain, or the parameter `policy`"}};
  }
  if (options_.decides == classify::Match::last) {
    if (Errors jumps = check_flat(table, start_chain, file_); !jumps.empty()) return jumps;
  }
  BaseChain start{start_chain, table.family};
  start.policy = policy;
  start.ipv4_continues = !is_last && table.family == NetworkLayer::ipv4;
  start.ipv6_continues = !is_last && table.family == NetworkLayer::ipv6;
  // A family without tables gets the policies of the other, as one: the safer guess.
  const bool alone =
      std::ranges::all_of(tables_, [&](const IptablesTable& other) { return other.family == table.family; });
  if (alone) {
    classify::Target& other = table.family == NetworkLayer::ipv4 ? rules.ipv6_policy : rules.ipv4_policy;
    if (other == classify::Target::accept) other = *policy;
  }
  if (is_last) {
    (table.family == NetworkLayer::ipv4 ? rules.ipv4_policy : rules.ipv6_policy) = *policy;
  } else if (*policy != classify::Target::accept) {
    start.policy_rule = static_cast<std::uint32_t>(rules.rules.size());
    rules.rules.push_back(
        {table.line, classify::Target::drop, false, fmt::format("{} {}: policy DROP", table.name, start_chain)});
  }
  const PlaceInRule in_line = [&](const ChainRule& rule, Error error) {
    error.place = {file_, rule.line, error.place.column};
    return error;
  };
  return write_out(table.chains, {&start, 1}, options_.most_rules, in_line, read_);
}

/// After the table raw.
Errors IptablesReader::write_tracking() {
  classify::Ruleset& rules = read_.value;
  const std::string name = "the packet's connection is looked up";
  ChainRule rule;
  rule.index = static_cast<std::uint32_t>(rules.rules.size());
  rule.alternatives.emplace_back();
  rule.steps = {classify::TrackConnection{}};
  rules.rules.push_back({0, classify::Target::accept, false, name, {}, {}, rule.steps});
  FilterChains chains;
  chains[name] = {classify::Target::accept, {std::move(rule)}};
  const auto continues = [&](NetworkLayer family) {
    return std::ranges::any_of(tables_, [&](const IptablesTable& table) {
      return table.name != "raw" && table.family == family && table.chains.contains(first_chain(table.name));
    });
  };
  const BaseChain start{name, NetworkLayer::none, continues(NetworkLayer::ipv4), continues(NetworkLayer::ipv6)};
  const PlaceInRule unplaced = [&](const ChainRule&, Error error) {
    error.place = {file_, 0, 0};
    return error;
  };
  return write_out(chains, {&start, 1}, options_.most_rules, unplaced, read_);
}

Result<Read<classify::Ruleset>> IptablesReader::finish() {
  // With hooks, a file may be about others; without any table, it is a wrong one.
  const bool may_be_empty =
      options_.translates || (options_.hook && (*options_.hook != Hook::forward || !others_.empty()));
  const auto is_filter = [](const IptablesTable& table) { return table.name == "filter"; };
  if (std::ranges::none_of(tables_, is_filter) && !may_be_empty)
    mistakes_.add({{file_, 0, 0}, "no filter table", "", "*filter, its chains and rules"});
  for (IptablesTable& table : tables_) {
    if (table.name == "raw") mark_rules_about_connections(table);
    if (table.name == "raw" && options_.hook != Hook::output) {
      tracks_between_ |=
          options_.decides == classify::Match::first && needs_early_rules(table, first_chain(table.name));
    } else {
      mark_rules_too_late(table);
    }
    const bool is_before_translation = table.name == "raw" || table.name == "mangle";
    if (options_.hook == Hook::output && !options_.translates && is_before_translation &&
        (read_.value.translates_at & bit_of(Hook::output)) != 0)
      mark_rules_before_translation(table);
    leave_out_users_of_changes_elsewhere(table);
    mark_unsupported_targets(table);
    for (Error& error : check_jumps(table, file_)) mistakes_.add(std::move(error));
  }
  report_other_tables();
  const auto fail = [&](Errors errors) {
    if (options_.refuses_unsupported) append(errors, std::move(read_.unsupported));
    return failure(std::move(errors));
  };
  if (!mistakes_.empty()) return fail(std::move(mistakes_).take({file_, 0, 0}));
  // In the order in which packets pass them, which may be another one than that of the file.
  const auto wanted = wanted_tables();
  std::ranges::stable_sort(
      tables_, {}, [&](const IptablesTable& table) { return std::ranges::find(wanted, table.name) - wanted.begin(); });
  Errors errors;
  bool is_tracked = !tracks_between_;
  for (const IptablesTable& table : tables_) {
    if (!is_tracked && table.name != "raw") append(errors, write_tracking());
    is_tracked |= table.name != "raw";
    append(errors, write_table(table));
  }
  if (!is_tracked) append(errors, write_tracking());
  if (!errors.empty()) return fail(std::move(errors));
  return std::move(read_);
}

}  // namespace

Result<Read<classify::Ruleset>> read_iptables(std::string_view text, const std::string& file,
                                              const ReadOptions& options) {
  return IptablesReader(file, options).read(text);
}

}  // namespace penstock::firewall
