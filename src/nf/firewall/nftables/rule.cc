// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <utility>

#include "nf/firewall/nftables/answer.h"
#include "nf/firewall/nftables/clause.h"
#include "nf/firewall/nftables/translation.h"
#include "packet/ip.h"

namespace penstock::firewall::nftables {

namespace {

using classify::IntervalSet;
using Jump = ChainRule::Jump;

/// Statements that change no verdict: they are ignored. In Linux, `flow add` makes later packets of a connection pass
/// by the rules; here, the rules decide about them.
constexpr auto kObserving = std::to_array<std::string_view>({"counter", "flow", "last", "log"});
/// Other statements that neither drop nor change a packet.
constexpr auto kPassive = std::to_array<std::string_view>(
    {"match", "accept", "continue", "return", "jump", "goto", "limit", "quota", "ct count"});

bool is_among(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// {"set": […]} or "@name"
bool is_set(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().starts_with('@');
  return value.is_object() && value.size() == 1 && value.contains("set");
}

/// ["established", "related"]; {"|": [… ]}
bool has_several(const Json& value) {
  const auto either = value.is_object() && value.size() == 1 ? value.find("|") : value.end();
  const Json& list = either == value.end() ? value : *either;
  return list.is_array() && list.size() > 1;
}

bool is_xt(const Json& value, const char* type, const char* name) {
  return value.is_object() && value.value("type", Json()) == type && value.value("name", Json()) == name;
}

class RuleReader {
 public:
  explicit RuleReader(const RuleContext& context) : context_(context) {}

  Checked<Rule> read(const Json& statements) {
    if (!statements.is_array()) return mistake("wrong statements of a rule", "", "a list");
    find_what_it_does(statements);
    for (std::size_t i = 0; i < statements.size(); ++i) {
      auto read = read_statement(statements[i]);
      if (read) continue;
      read.error().path.insert(0, fmt::format("[{}]", i));
      if (!read.error().unsupported) return tl::unexpected(std::move(read.error()));
      return left_out(read.error());
    }
    if (auto written = write(); !written) {
      if (!written.error().unsupported) return tl::unexpected(std::move(written.error()));
      return left_out(written.error());
    }
    return std::move(rule_);
  }

 private:
  /// The fields of a concatenation, and the tuples that match. A set with one field is in clause_ instead.
  struct Factor {
    std::vector<Key> keys;
    const std::vector<Tuple>* tuples;
  };

  /// Also of a rule that cannot be read.
  void find_what_it_does(const Json& statements) {
    for (const Json& statement : statements) {
      if (!statement.is_object() || statement.size() != 1) {
        rule_.can_drop = true;
        continue;
      }
      const std::string& kind = statement.begin().key();
      const Json& value = statement.begin().value();
      if (kind == "drop") seen_.jump = Jump::drop;
      if (kind == "reject" || (kind == "xt" && is_xt(value, "target", "REJECT"))) seen_.jump = Jump::reject;
      if (kind == "accept") seen_.jump = Jump::accept;
      if (kind == "jump" || kind == "goto") seen_ = read_verdict(statement).value_or(Verdict{});
      if (kind == "set" || kind == "map") note_update(value, kind.c_str());
      const bool passive = is_among(kind, kObserving) || is_among(kind, kPassive) ||
                           (kind == "xt" && (is_xt(value, "match", "comment") || is_xt(value, "target", "LOG"))) ||
                           (kind == "vmap" && !map_drops(value)) || (kind == "mangle" && only_marks(value));
      rule_.can_drop |= !passive;
    }
  }

  /// {"op": "add", "elem": …, "set": "@name"}
  void note_update(const Json& update, const char* member) {
    const auto name = update.is_object() ? update.find(member) : update.end();
    if (!update.is_object() || name == update.end() || !name->is_string()) return;
    const std::string& text = name->get_ref<const std::string&>();
    rule_.sets_updated.push_back(text.starts_with('@') ? text.substr(1) : text);
  }

  /// Whether a verdict map can drop, or jump, which is not followed here.
  static bool map_drops(const Json& map) {
    const auto data = map.is_object() ? map.find("data") : map.end();
    if (!map.is_object() || data == map.end() || !data->is_object() || !data->contains("set")) return true;
    const Json& elements = (*data)["set"];
    return !elements.is_array() || std::ranges::any_of(elements, [](const Json& element) {
      if (!element.is_array() || element.size() != 2) return true;
      const auto verdict = read_verdict(element[1]);
      return !verdict || verdict->jump == Jump::drop || verdict->jump == Jump::call || verdict->jump == Jump::go;
    });
  }

  /// {"key": {"meta": {"key": "mark"}}, "value": …}: rules that test marks are not supported.
  static bool only_marks(const Json& mangle) {
    const auto key = mangle.is_object() ? mangle.find("key") : mangle.end();
    return mangle.is_object() && key != mangle.end() && key->is_object() &&
           (key->contains("meta") || key->contains("ct"));
  }

  Checked<void> read_statement(const Json& statement) {
    // nft prints statements that it cannot express in JSON as text, such as anonymous chains.
    if (statement.is_string()) {
      return unsupported("a statement that nft does not print as JSON is not supported",
                         in_quotes(statement.get_ref<const std::string&>()));
    }
    if (!statement.is_object() || statement.size() != 1) {
      return mistake("wrong statement", "", "an object of one member, such as {\"accept\": null}");
    }
    const std::string& kind = statement.begin().key();
    const Json& value = statement.begin().value();
    const auto in_kind = [&](Checked<void> read) -> Checked<void> {
      if (read) return read;
      return within("." + kind, std::move(read.error()));
    };
    if (kind == "log") ignored_ = "log";
    if (kind == "flow") ignored_ = "flow offload";
    if (is_among(kind, kObserving)) return {};
    if (kind == "match") return in_kind(read_match(value));
    if (kind == "vmap") return in_kind(read_map(value));
    if (kind == "reject") return in_kind(read_reject(value));
    if (context_.translates && is_translation(kind)) return in_kind(read_nat(kind, value));
    if (kind == "accept" || kind == "drop" || kind == "continue" || kind == "return" || kind == "jump" ||
        kind == "goto") {
      auto verdict = read_verdict(statement);
      if (!verdict) return in_kind(tl::unexpected(std::move(verdict.error())));
      return decide(std::move(*verdict));
    }
    if (kind == "xt") return in_kind(read_xt(value));
    return unsupported(fmt::format("{} is not supported", kind));
  }

  /// An extension of iptables, without its arguments: {"type": "match", "name": "comment"}.
  Checked<void> read_xt(const Json& value) {
    if (is_xt(value, "match", "comment")) return {};
    if (is_xt(value, "target", "LOG")) {
      ignored_ = "log";
      return {};
    }
    // iptables has checked that the rule is for the protocol of the answer.
    if (is_xt(value, "target", "REJECT")) return decide({Jump::reject});
    const std::string name = value.is_object() ? value.value("name", Json()).dump() : "";
    return unsupported(fmt::format("xt {} is not supported", name), "", "the output of iptables-save for these rules");
  }

  Checked<void> decide(Verdict verdict) {
    if (verdict_ || map_ != nullptr) return mistake("second verdict in a rule", "", "one");
    verdict_ = std::move(verdict);
    return {};
  }

  Checked<void> read_match(const Json& match) {
    if (!match.is_object() || !match.contains("op") || !match["op"].is_string() || !match.contains("left") ||
        !match.contains("right") || match.size() != 3) {
      return mistake("wrong match", "", "an object of \"op\", \"left\" and \"right\"");
    }
    const std::string& op = match["op"].get_ref<const std::string&>();
    auto keys = read_keys(match["left"]);
    if (!keys) return within(".left", std::move(keys.error()));
    if (auto known = check_out_ports(*keys); !known) return within(".left", std::move(known.error()));
    auto read = keys->size() == 1 ? read_comparison(keys->front(), op, match["right"])
                                  : read_concatenation(std::move(*keys), op, match["right"]);
    if (read) return read;
    return within(".right", std::move(read.error()));
  }

  Checked<void> check_out_ports(const std::vector<Key>& keys) const {
    for (const Key& key : keys) {
      if (key.field == Field::out_port && !context_.interfaces.out_known) {
        return unsupported("oifname is supported only if an earlier function chooses the port");
      }
    }
    return {};
  }

  Checked<void> read_comparison(const Key& key, const std::string& op, const Json& right) {
    IntervalSet values;
    if (is_set(right)) {
      auto set = find_set({key}, false, right);
      if (!set) return tl::unexpected(std::move(set.error()));
      if (!(*set)->groups.empty()) values = (*set)->groups.front().tuples.front().front();
      if (!context_.budget.take(values.size())) return context_.budget.problem();
    } else {
      Names names{context_.interfaces, context_.rules.interface_names, rule_.unknown_interfaces};
      const bool several = key.field == Field::connection && has_several(right);
      auto read = several ? read_several(key, op, right, names) : read_value(key.type, right, names);
      if (!read) return tl::unexpected(std::move(read.error()));
      values = std::move(*read);
    }
    auto matching = compared(key, op, std::move(values), is_set(right));
    if (!matching) return tl::unexpected(std::move(matching.error()));
    if (key.of_fragments_only && !matching->empty() && matching->front().low == classify::number(0)) {
      return unsupported("a match on packets with a fragment header that are no later fragment is not supported");
    }
    never_ |= !clause_.narrow(key, *matching);
    return {};
  }

  /// A connection with one of several words: `ct state established,related`. Compared with == or !=, they are one
  /// value, which no connection has.
  static Checked<IntervalSet> read_several(const Key& key, const std::string& op, const Json& right, Names& names) {
    auto values = read_value(key.type, right.is_array() ? right : right["|"], names);
    const bool is_one = op == "==" || op == "!=";
    if (values && !is_one && !right.is_array()) return unsupported_operator(op);
    if (values && is_one) values->clear();
    return values;
  }

  /// The values of the key's field that are `op` the given ones.
  static Checked<IntervalSet> compared(const Key& key, const std::string& op, IntervalSet values, bool is_set) {
    const classify::Interval domain = domain_of(key.type);
    if (op == "==") return unmasked(key, values);
    if (op == "!=") return classify::complement(unmasked(key, values), domain);
    if (key.type == Type::tcp_flag && key.mask == 0xff && !is_set && (op == "in" || op == "!")) {
      // Whether any, or none, of the flags is set.
      const std::uint64_t flags = values.front().low.low;
      return bytes_where([&](unsigned byte) { return ((byte & flags) != 0) == (op == "in"); });
    }
    if (key.field == Field::connection && !is_set && (op == "in" || op == "!")) {
      return op == "in" ? values : classify::complement(values, domain);
    }
    const bool is_point = values.size() == 1 && values.front().low == values.front().high && !is_set;
    if (!is_point || !is_ordered(key.type)) return unsupported_operator(op);
    const classify::Number value = values.front().low;
    const auto range = [](classify::Number low, classify::Number high) { return IntervalSet{{low, high}}; };
    if (op == "<") return value == domain.low ? IntervalSet{} : range(domain.low, classify::predecessor(value));
    if (op == "<=") return range(domain.low, value);
    if (op == ">") return value == domain.high ? IntervalSet{} : range(classify::successor(value), domain.high);
    if (op == ">=") return range(value, domain.high);
    return unsupported_operator(op);
  }

  static tl::unexpected<Problem> unsupported_operator(const std::string& op) {
    return unsupported("an operator that is not supported here", in_quotes(op));
  }

  Checked<void> read_concatenation(std::vector<Key> keys, const std::string& op, const Json& right) {
    if (op != "==") return unsupported("a concatenation is supported with == only", in_quotes(op));
    if (!is_set(right)) return mistake("wrong value for a concatenation", "", "a set");
    auto set = find_set(keys, false, right);
    if (!set) return tl::unexpected(std::move(set.error()));
    if ((*set)->groups.empty()) {
      never_ = true;
    } else {
      factors_.push_back({std::move(keys), &(*set)->groups.front().tuples});
    }
    return {};
  }

  /// `to_values`: what it gives is a part of a translation.
  Checked<void> read_map(const Json& map, bool to_values = false) {
    if (!map.is_object() || map.size() != 2 || !map.contains("key") || !map.contains("data") || !is_set(map["data"])) {
      return mistake(to_values ? "wrong map" : "wrong verdict map", "", "an object of \"key\" and \"data\", a map");
    }
    if (verdict_ || map_ != nullptr) return mistake("second verdict in a rule", "", "one");
    auto keys = read_keys(map["key"]);
    if (!keys) return within(".key", std::move(keys.error()));
    if (auto known = check_out_ports(*keys); !known) return within(".key", std::move(known.error()));
    auto set = find_set(*keys, true, map["data"], to_values);
    if (!set) return within(".data", std::move(set.error()));
    for (const Key& key : *keys) {
      if (key.of_fragments_only) return unsupported("frag frag-off in a map is not supported");
    }
    map_ = *set;
    map_keys_ = std::move(*keys);
    return {};
  }

  /// The named or anonymous set or map, whose elements must have the types of `keys`.
  Checked<const Set*> find_set(const std::vector<Key>& keys, bool is_map, const Json& value, bool to_values = false) {
    std::vector<Type> types;
    types.reserve(keys.size());
    for (const Key& key : keys) types.push_back(key.type);
    const Set* set = nullptr;
    if (value.is_string()) {
      const std::string name = value.get<std::string>().substr(1);
      rule_.sets_used.push_back(name);
      auto found = context_.find_set(name);
      if (!found) return tl::unexpected(std::move(found.error()));
      set = *found;
      if (set->types != types || set->is_map != is_map || set->to_values != to_values) {
        return mistake(to_values ? "not a map to addresses or ports by this key"
                       : is_map  ? "not a map for verdicts by this key"
                                 : "not a set of values like the left side",
                       in_quotes("@" + name), is_map ? "a map of its types" : "a set of its types");
      }
    } else {
      auto read = read_elements(types, is_map, value["set"], context_.interfaces, context_.rules.interface_names,
                                context_.budget, to_values);
      if (!read) return within(".set", std::move(read.error()));
      set = &own_sets_.emplace_back(std::move(*read));
    }
    rule_.unknown_interfaces.insert(set->unknown_interfaces.begin(), set->unknown_interfaces.end());
    return set;
  }

  /// {"type": "icmpx", "expr": "admin-prohibited"}, or null. The kinds of answers imply conditions.
  Checked<void> read_reject(const Json& value) {
    Verdict verdict{Jump::reject};
    std::string type;
    if (value.is_object() && value.contains("type") && value["type"].is_string()) type = value["type"];
    if (type == "tcp reset") {
      never_ |= !clause_.narrow(Field::protocol, only(ip_protocol::kTcp));
      verdict.answer.tcp_reset = true;
    } else if (type == "icmp" || type == "icmpv6") {
      never_ |= !clause_.narrow(Field::family, only(type == "icmp" ? kIpv4 : kIpv6));
    } else if (type != "icmpx" && !value.is_null()) {
      return unsupported("a reject of this type is not supported", in_quotes(type));
    }
    if (!type.empty() && value.contains("expr")) {
      const std::optional<classify::Answer> answer = read_answer(type, value["expr"]);
      if (!answer) return unsupported("this answer is not supported", value["expr"].dump());
      verdict.answer = *answer;
    }
    return decide(std::move(verdict));
  }

  Checked<void> read_nat(const std::string& kind, const Json& value) {
    auto read = read_translation(kind, value);
    if (!read) return tl::unexpected(std::move(read.error()));
    if (read->family != NetworkLayer::none) {
      never_ |= !clause_.narrow(Field::family, only(read->family == NetworkLayer::ipv4 ? kIpv4 : kIpv6));
    }
    if (read->map != nullptr) return read_translating_map(*read);
    Verdict verdict{Jump::translate};
    verdict.translation = read->translation;
    return decide(std::move(verdict));
  }

  /// What the translation of each packet is depends on a map: each of its values is a verdict.
  Checked<void> read_translating_map(const ReadTranslation& rest) {
    const std::string path = fmt::format(".{}.map", rest.mapped);
    if (auto read = read_map(*rest.map, true); !read) return within(path, std::move(read.error()));
    std::size_t size = 0;
    for (const Group& group : map_->groups) size += group.tuples.size() + 1;
    if (!context_.budget.take(size)) return context_.budget.problem();
    Set whole = *map_;
    for (Group& group : whole.groups) {
      auto translation = with_mapped(rest, *group.verdict.translation);
      if (!translation) return within(path, std::move(translation.error()));
      group.verdict.translation = *translation;
    }
    map_ = &own_sets_.emplace_back(std::move(whole));
    return {};
  }

  Rule left_out(const Problem& problem) {
    ChainRule part;
    part.jump = seen_.jump;
    part.target = seen_.target;
    part.unsupported = problem.message;
    if (!problem.found.empty()) part.unsupported += ": found " + problem.found;
    if (!problem.expected.empty()) part.unsupported += ", expected " + problem.expected;
    part.path = problem.path;
    rule_.parts = {std::move(part)};
    return std::move(rule_);
  }

  Checked<void> write() {
    if (!verdict_ && map_ == nullptr) {
      ChainRule part;
      part.unsupported = fmt::format("{} is not supported", ignored_.empty() ? "a rule without a verdict" : ignored_);
      part.only_observes = true;
      rule_.parts = {std::move(part)};
      return {};
    }
    rule_.ignored = ignored_;
    if (map_ == nullptr) return write_part(*verdict_);
    factors_.push_back({map_keys_, nullptr});
    for (const Group& group : map_->groups) {
      factors_.back().tuples = &group.tuples;
      if (auto written = write_part(group.verdict); !written) return written;
    }
    return {};
  }

  Checked<void> write_part(const Verdict& verdict) {
    ChainRule& part = rule_.parts.emplace_back();
    part.jump = verdict.jump;
    part.target = verdict.target;
    part.answer = verdict.answer;
    part.translation = verdict.translation;
    Clause clause = clause_;
    const bool possible = verdict.family == NetworkLayer::none ||
                          clause.narrow(Field::family, only(verdict.family == NetworkLayer::ipv4 ? kIpv4 : kIpv6));
    // Unsupported, since a part with these is left out with its reason.
    if (never_ || !possible) return {};
    return multiply(0, clause, part.alternatives);
  }

  /// Combines `clause` with all tuples of the factors from `factor` on.
  Checked<void> multiply(std::size_t factor, const Clause& clause, std::vector<Alternative>& to) {
    if (factor == factors_.size()) return clause.write(context_.rules, context_.budget, to);
    const auto& [keys, tuples] = factors_[factor];
    for (const Tuple& tuple : *tuples) {
      if (!context_.budget.take(1)) return context_.budget.problem();
      Clause narrowed = clause;
      bool possible = true;
      for (std::size_t i = 0; i < keys.size() && possible; ++i) {
        possible = narrowed.narrow(keys[i], unmasked(keys[i], tuple[i]));
      }
      if (!possible) continue;
      if (auto written = multiply(factor + 1, narrowed, to); !written) return written;
    }
    return {};
  }

  const RuleContext& context_;
  Rule rule_;
  Verdict seen_;  // for the message if the rule is left out
  std::optional<Verdict> verdict_;
  const Set* map_ = nullptr;
  std::vector<Key> map_keys_;
  Clause clause_;
  std::vector<Factor> factors_;
  std::deque<Set> own_sets_;
  bool never_ = false;  // no packet matches
  std::string_view ignored_;
};

}  // namespace

Checked<Rule> read_rule(const Json& statements, const RuleContext& context) {
  return RuleReader(context).read(statements);
}

}  // namespace penstock::firewall::nftables
