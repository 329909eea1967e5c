// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/rule_reader.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"
#include "nf/nids/rules/options.h"
#include "nf/nids/rules/rule_draft.h"
#include "nf/nids/rules/rule_text.h"
#include "nf/nids/rules/side_files.h"
#include "nf/nids/rules/variables.h"

namespace penstock::nids {

namespace {

template <typename Enum>
struct Named {
  std::string_view name;
  Enum value;
};

constexpr std::array<Named<Action>, 7> kActions{{{"alert", Action::alert},
                                                 {"drop", Action::drop},
                                                 {"pass", Action::pass},
                                                 {"reject", Action::reject},
                                                 {"rejectsrc", Action::reject_source},
                                                 {"rejectdst", Action::reject_destination},
                                                 {"rejectboth", Action::reject_both}}};
// Other actions of Snort and Suricata.
constexpr std::array<std::string_view, 8> kOtherActions{"log",    "sdrop",  "activate", "dynamic",
                                                        "config", "accept", "block",    "rewrite"};

constexpr std::array<Named<RuleProtocol>, 15> kRuleProtocols{{{"ip", RuleProtocol::ip},
                                                              {"any", RuleProtocol::ip},
                                                              {"ipv4", RuleProtocol::ipv4},
                                                              {"ip4", RuleProtocol::ipv4},
                                                              {"ipv6", RuleProtocol::ipv6},
                                                              {"ip6", RuleProtocol::ipv6},
                                                              {"tcp", RuleProtocol::tcp},
                                                              {"tcp-pkt", RuleProtocol::tcp_pkt},
                                                              {"tcp-stream", RuleProtocol::tcp_stream},
                                                              {"udp", RuleProtocol::udp},
                                                              {"icmp", RuleProtocol::icmp},
                                                              {"icmpv4", RuleProtocol::icmpv4},
                                                              {"icmpv6", RuleProtocol::icmpv6},
                                                              {"sctp", RuleProtocol::sctp},
                                                              {"pkthdr", RuleProtocol::pkthdr}}};

template <typename Enum, std::size_t kCount>
std::optional<Enum> value_of(const std::array<Named<Enum>, kCount>& all, std::string_view name) noexcept {
  for (const Named<Enum>& one : all) {
    if (equals_ignoring_case(one.name, name)) return one.value;
  }
  return std::nullopt;
}

template <typename Enum, std::size_t kCount>
std::vector<std::string_view> names_of(const std::array<Named<Enum>, kCount>& all) {
  std::vector<std::string_view> names;
  names.reserve(kCount);
  for (const Named<Enum>& one : all) names.push_back(one.name);
  return names;
}

/// Reads rule files one after the other into one set.
class SetReader {
 public:
  SetReader(const Variables& variables, const ClassTable& classes, std::size_t most_rules)
      : variables_(variables), costs_(most_rules) {
    names_.classes = &classes;
  }

  /// Fails if the rules so far exceed a bound.
  [[nodiscard]] Result<void> read(std::string_view text, const std::string& file);
  void add_thresholds(std::vector<ThresholdLine> lines);
  [[nodiscard]] VariableResolver& variables() noexcept { return variables_; }
  [[nodiscard]] RuleSet take() &&;

 private:
  void read_line(const RuleLine& line, const std::string& file);
  void read_rule(const RuleLine& line, const std::string& file);
  bool read_header(RuleDraft& draft, const HeaderText& header);
  bool read_options(RuleDraft& draft, std::string_view body);
  void note_unknown_class(std::string_view name, const RuleLine& line, const std::string& file);
  void keep(Rule rule, const RuleLine& line, const std::string& file);
  void leave_out(std::uint32_t sid, Error why, std::string reason);

  VariableResolver variables_;
  RuleCosts costs_;
  RuleNames names_;
  RuleSet set_;
  std::vector<ThresholdLine> thresholds_;
  std::unordered_map<std::uint64_t, std::size_t> by_id_;  // gid and sid -> index in set_.rules
  std::vector<bool> replaced_;                            // for each of set_.rules
};

/// All unsupported features that the rule needs, in its order, each once. Called before the options are read, because
/// options after an unknown buffer cannot be interpreted.
std::vector<std::string> needs(const HeaderText& header, std::string_view body, std::string_view& first) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> all;
  const auto need = [&](std::string what, std::string_view at) {
    if (all.empty()) first = at;
    if (all.size() < kMostNamed && std::find(all.begin(), all.end(), what) == all.end()) all.push_back(std::move(what));
  };
  if (!value_of(kRuleProtocols, header.protocol)) {
    if (std::string name = lower_case(header.protocol); is_known_protocol(name)) {
      need("protocol " + std::move(name), header.protocol);
    }
  }
  OptionTexts options(body);
  Complaint why;
  for (OptionText option; options.next(option, why);) {
    if (option_of(option.name) == nullptr && is_known_option(option.name)) {
      need("option " + lower_case(option.name), option.name);
    }
  }
  return all;
}

/// The sid of a rule that cannot be read; 0 if it has none.
std::uint32_t sid_in(std::string_view body) {
  OptionTexts options(body);
  Complaint why;
  for (OptionText option; options.next(option, why);) {
    if (!equals_ignoring_case(option.name, "sid")) continue;
    const auto sid = parse_integer(option.value);
    return sid && *sid <= 0xffffffff ? static_cast<std::uint32_t>(*sid) : 0;
  }
  return 0;
}

void SetReader::leave_out(std::uint32_t sid, Error why, std::string reason) {
  set_.left_out.push_back({sid, std::move(why), std::move(reason)});
}

/// Decides by the first word. Lines of classification.config begin with `config`, which is also an action.
bool begins_as_rule(std::string_view line) {
  line = trimmed(line);
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  return value_of(kActions, word).has_value() ||
         (word != "config" && std::find(kOtherActions.begin(), kOtherActions.end(), word) != kOtherActions.end());
}

Result<void> SetReader::read(std::string_view text, const std::string& file) {
  RuleLines lines(text);
  for (RuleLine line; lines.next(line);) {
    if (!line.disabled) costs_.add_rule(line.text);
    if (!line.disabled && !costs_.passed_bound()) read_line(line, file);
    if (auto passed = costs_.passed_bound()) {
      passed->place = line.place({}, file);
      return failure(std::move(*passed));
    }
    if (line.disabled) ++set_.disabled;
  }
  return {};
}

void SetReader::read_line(const RuleLine& line, const std::string& file) {
  set_.has_rule |= begins_as_rule(line.text);
  if (line.too_long) {
    leave_out(0, {line.place({}, file), "rule too long", "", "at most " + format_size(kMostRuleBytes)}, "too long");
  } else if (is_threshold_line(line.text)) {
    Complaint why;
    if (auto read = read_threshold_line(line.text, variables_, why)) {
      thresholds_.push_back(std::move(*read));
    } else {
      leave_out(0, {line.place(why.at, file), why.message, why.found, why.expected}, why.reason);
    }
  } else {
    read_rule(line, file);
  }
}

void SetReader::read_rule(const RuleLine& line, const std::string& file) {
  Complaint why;
  const auto complain = [&](const Complaint& complaint, std::uint32_t sid) {
    leave_out(sid, {line.place(complaint.at, file), complaint.message, complaint.found, complaint.expected},
              complaint.reason);
  };
  const auto parts = split_rule(line.text, why);
  if (!parts) return complain(why, 0);
  const auto header = split_header(parts->header, why);
  if (!header) return complain(why, sid_in(parts->body));

  std::string_view first;
  if (const std::vector<std::string> missing = needs(*header, parts->body, first); !missing.empty()) {
    std::string list = missing[0];
    for (std::size_t i = 1; i < missing.size(); ++i) list += ", " + missing[i];
    return leave_out(sid_in(parts->body), {line.place(first, file), "not supported: " + list, "", ""}, missing[0]);
  }
  RuleDraft draft(names_);
  if (!read_header(draft, *header) || !read_options(draft, parts->body)) {
    return complain(draft.complaint, sid_in(parts->body));
  }
  if (!draft.unknown_class.empty()) note_unknown_class(draft.unknown_class, line, file);
  keep(std::move(draft).take(), line, file);
}

/// If there are more or longer names than in real files, no similar name is searched for, since that could take very
/// long.
void SetReader::note_unknown_class(std::string_view name, const RuleLine& line, const std::string& file) {
  constexpr std::size_t kMostNamed = 100;
  constexpr std::size_t kMostClasses = 1000;
  constexpr std::size_t kLongestName = 100;
  const std::string lower = lower_case(name);
  if (const auto known = set_.unknown_classes.find(lower); known != set_.unknown_classes.end()) {
    ++known->second.rules;
    return;
  }
  if (set_.unknown_classes.size() == kMostNamed) {
    ++set_.more_rules_of_unknown_classes;
    return;
  }
  std::vector<std::string_view> classes;
  if (names_.classes->size() <= kMostClasses && lower.size() <= kLongestName) {
    for (const auto& [known, about] : *names_.classes) {
      if (known.size() <= kLongestName) classes.push_back(known);
    }
  }
  std::ranges::sort(classes);  // makes the result deterministic if several are equally similar
  set_.unknown_classes.try_emplace(lower, RuleSet::UnknownClass{line.place(name, file), std::string(name),
                                                                std::string(nearest_name(lower, classes))});
}

bool SetReader::read_header(RuleDraft& draft, const HeaderText& header) {
  Rule& rule = draft.rule;
  const auto action = value_of(kActions, header.action);
  if (!action) {
    const bool known = std::find(kOtherActions.begin(), kOtherActions.end(), header.action) != kOtherActions.end();
    return draft.fail(
        header.action,
        known ? "unsupported action" : with_suggestion("unknown action", lower_case(header.action), names_of(kActions)),
        in_quotes(header.action), "alert, drop, pass, reject, rejectsrc, rejectdst or rejectboth",
        known ? "action " + std::string(header.action) : "unknown action");
  }
  rule.action = *action;
  // Pass rules do not alert, unless they have `alert`.
  rule.alerts = rule.action != Action::pass;
  const auto protocol = value_of(kRuleProtocols, header.protocol);
  if (!protocol) {
    return draft.fail(
        header.protocol, with_suggestion("unknown protocol", lower_case(header.protocol), names_of(kRuleProtocols)),
        in_quotes(header.protocol),
        "tcp, tcp-pkt, tcp-stream, udp, icmp, icmpv4, icmpv6, sctp, ip, ipv4, ipv6 or pkthdr", "unknown protocol");
  }
  rule.protocol = *protocol;
  if (header.direction == "<>") {
    rule.direction = RuleDirection::both_ways;
  } else if (header.direction == "=>") {
    return draft.fail(header.direction, "unsupported direction (transactions)", "'=>'", "-> or <>", "direction =>");
  } else if (header.direction != "->") {
    return draft.fail(header.direction, "unknown direction", in_quotes(header.direction), "-> or <>");
  }
  const VariableResolver::Addresses* source = variables_.addresses(header.source, draft.complaint);
  if (source == nullptr) return false;
  rule.source = static_cast<const AddressSet&>(*source);
  const VariableResolver::Addresses* destination = variables_.addresses(header.destination, draft.complaint);
  if (destination == nullptr) return false;
  rule.destination = static_cast<const AddressSet&>(*destination);
  rule.negates_addresses = source->negates || destination->negates;
  const PortSet* source_ports = variables_.ports(header.source_ports, draft.complaint);
  if (source_ports == nullptr) return false;
  rule.source_ports = *source_ports;
  const PortSet* destination_ports = variables_.ports(header.destination_ports, draft.complaint);
  if (destination_ports == nullptr) return false;
  rule.destination_ports = *destination_ports;
  costs_.add_header(rule.source, rule.source_ports);
  costs_.add_header(rule.destination, rule.destination_ports);
  return true;
}

/// Whether the rule needs single packets: it tests headers, or the payload of a packet.
bool needs_packet(const RuleDraft& draft) {
  const Rule& rule = draft.rule;
  if (rule.protocol == RuleProtocol::tcp_pkt || rule.flow.no_stream || draft.has_header_buffer()) return true;
  return std::any_of(rule.packet_matches.begin(), rule.packet_matches.end(), [](const PacketMatch& match) {
    return !std::holds_alternative<StreamSize>(match) && !std::holds_alternative<StreamEventMatch>(match) &&
           !std::holds_alternative<DecodeEventMatch>(match);
  });
}

/// Checks that need all options.
bool check_whole(RuleDraft& draft, std::string_view at) {
  const Rule& rule = draft.rule;
  if ((rule.protocol == RuleProtocol::tcp_stream || rule.flow.only_stream) && needs_packet(draft)) {
    return draft.fail(at, "packet options in a stream-only rule", "", "tcp, without only_stream", "combination");
  }
  return true;
}

bool SetReader::read_options(RuleDraft& draft, std::string_view body) {
  OptionTexts options(body);
  for (OptionText option; options.next(option, draft.complaint);) {
    if (!read_option(draft, option)) return false;
  }
  if (!draft.complaint.message.empty()) return false;
  if (!draft.has_sid) return draft.fail(body.substr(0, 0), "rule without a sid", "", "sid:N;", "no sid");
  return check_whole(draft, body.substr(0, 0));
}

/// Of rules with the same sid, keeps the highest revision, or the first of equal ones (as Suricata does).
void SetReader::keep(Rule rule, const RuleLine& line, const std::string& file) {
  rule.text = line.text;
  rule.file = file;
  rule.line = line.line;
  const std::uint64_t id = std::uint64_t{rule.gid} << 32 | rule.sid;
  const auto [at, is_new] = by_id_.try_emplace(id, set_.rules.size());
  if (!is_new) {
    const Rule& other = set_.rules[at->second];
    const bool is_newer = rule.rev > other.rev;
    const Rule& loser = is_newer ? other : rule;
    const Rule& winner = is_newer ? rule : other;
    leave_out(
        loser.sid,
        {{loser.file, loser.line, 0},
         "sid " + std::to_string(loser.sid) + " occurs twice",
         "revision " + std::to_string(loser.rev),
         "revision " + std::to_string(winner.rev) + ", which is in " + winner.file + ':' + std::to_string(winner.line)},
        "duplicate sid");
    if (!is_newer) return;
    replaced_[at->second] = true;
    at->second = set_.rules.size();
  }
  set_.rules.push_back(std::move(rule));
  replaced_.push_back(false);
}

void SetReader::add_thresholds(std::vector<ThresholdLine> lines) {
  std::move(lines.begin(), lines.end(), std::back_inserter(thresholds_));
}

RuleSet SetReader::take() && {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < set_.rules.size(); ++i) {
    if (replaced_[i]) continue;
    if (kept != i) set_.rules[kept] = std::move(set_.rules[i]);
    ++kept;
  }
  set_.rules.resize(kept);
  apply_thresholds(std::move(thresholds_), set_);
  set_.flowbits = std::move(names_.flowbits).take();
  set_.flowints = std::move(names_.flowints).take();
  set_.xbits = std::move(names_.xbits).take();
  return std::move(set_);
}

/// Adds the names of all `$NAME` in a text, and of those in their values.
void add_named_variables(std::string_view text, const Variables& variables, std::set<std::string, std::less<>>& named) {
  constexpr std::string_view kNameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  for (std::vector<std::string_view> texts{text}; !texts.empty();) {
    const std::string_view next = texts.back();
    texts.pop_back();
    for (std::size_t at = next.find('$'); at != next.npos; at = next.find('$', at + 1)) {
      const std::string_view rest = next.substr(at + 1);
      const std::string_view name = rest.substr(0, rest.find_first_not_of(kNameBytes));
      const auto variable = variables.find(name);
      if (variable != variables.end() && named.emplace(name).second) texts.emplace_back(variable->second);
    }
  }
}

/// Checks all variables, even if no rule uses them, so that an error is found where it was made, not in variables that
/// refer to it.
Errors check_variables(const Variables& variables, const std::map<std::string, Place, std::less<>>& places) {
  Errors errors;
  std::size_t least_depth = std::numeric_limits<std::size_t>::max();
  VariableResolver resolver(variables);
  const Variables defaults = default_variables();
  for (const auto& [name, value] : variables) {
    Complaint as_addresses;
    Complaint as_ports;
    const std::string reference = "$" + name;
    const bool is_ports = name.ends_with("PORTS") || name.ends_with("PORT");
    // Other names do not tell the type, so either is accepted. A plain number is a port, not an address.
    const bool is_known = defaults.contains(name);
    if (((!is_known || !is_ports) && resolver.addresses(reference, as_addresses) != nullptr) ||
        ((!is_known || is_ports) && resolver.ports(reference, as_ports) != nullptr)) {
      continue;
    }
    const Complaint& why = is_ports ? as_ports : as_addresses;
    if (why.variables > least_depth || (why.variables > 1 && why.variables == least_depth)) continue;
    if (why.variables < least_depth) errors.clear();
    least_depth = why.variables;
    const auto place = places.find(name);
    errors.push_back({place == places.end() ? Place{} : place->second, why.message, why.found, why.expected});
  }
  return errors;
}

}  // namespace

Result<RuleSet> read_rules(const RuleFiles& files) {
  Errors errors = check_variables(files.variables, files.variable_places);
  ClassTable classes;
  const ClassTable* used_classes = &default_classes();
  if (!files.classification.empty()) {
    auto read = read_input(files.classification).and_then([&](const std::string& text) {
      return read_classification(text, files.classification);
    });
    if (read) {
      classes = std::move(*read);
      used_classes = &classes;
    } else {
      append(errors, std::move(read.error()));
    }
  }
  ReferenceTable references = default_references();
  if (!files.reference.empty()) {
    auto read = read_input(files.reference).and_then([&](const std::string& text) {
      return read_references(text, files.reference);
    });
    if (read) {
      references = std::move(*read);
    } else {
      append(errors, std::move(read.error()));
    }
  }
  SetReader reader(files.variables, *used_classes, files.most_rules);
  std::set<std::string, std::less<>> named_variables;
  if (!files.threshold.empty()) {
    auto read = read_input(files.threshold).and_then([&](const std::string& text) {
      add_named_variables(text, files.variables, named_variables);
      return read_thresholds(text, files.threshold, reader.variables());
    });
    if (read) {
      reader.add_thresholds(std::move(*read));
    } else {
      append(errors, std::move(read.error()));
    }
  }
  for (const std::string& path : files.rules) {
    const auto text = read_input(path);
    if (!text) {
      append(errors, text.error());
    } else if (errors.empty()) {
      add_named_variables(*text, files.variables, named_variables);
      if (auto read = reader.read(*text, path); !read) append(errors, std::move(read.error()));
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  RuleSet set = std::move(reader).take();
  set.references = std::move(references);
  set.named_variables = std::move(named_variables);
  return set;
}

Result<RuleSet> read_rules_text(std::string_view text, const std::string& name, const Variables& variables,
                                std::size_t most_rules) {
  if (Errors errors = check_variables(variables, {}); !errors.empty()) return failure(std::move(errors));
  SetReader reader(variables, default_classes(), most_rules);
  if (auto read = reader.read(text, name); !read) return failure(std::move(read.error()));
  RuleSet set = std::move(reader).take();
  set.references = default_references();
  return set;
}

}  // namespace penstock::nids
