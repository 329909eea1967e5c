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
#include "nf/firewall/nftables/frame_keys.h"
#include "nf/firewall/nftables/steps.h"
#include "nf/firewall/nftables/text.h"
#include "nf/firewall/nftables/translation.h"
#include "nf/firewall/rule_text.h"
#include "packet/ethernet.h"
#include "packet/ip.h"

namespace penstock::firewall::nftables {

namespace {

using classify::IntervalSet;
using Jump = ChainRule::Jump;

/// Statements that change no verdict: they are ignored. In Linux, `flow add` makes later packets of a connection pass
/// by the rules; here, the rules decide about them.
constexpr auto kObserving = std::to_array<std::string_view>({"counter", "flow", "last"});
constexpr std::string_view kLogWithoutOutput = "log without `packet_log` in `outputs`";
/// Other statements that neither drop nor change a packet.
constexpr auto kPassive =
    std::to_array<std::string_view>({"match", "accept", "continue", "return", "jump", "goto", "limit", "quota",
                                     "ct count", "ct helper", "log", "set", "meter"});

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
      if (read && i + 1 == statements.size()) read = finish_later();
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

  /// A part of a map by what only steps know.
  struct Draw {
    classify::Test test;
    Verdict verdict;
    std::optional<classify::SetMark> mark{};  // that it gives
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
      rule_.marks |= kind == "mangle" && only_marks(value);
      const bool passive = is_among(kind, kObserving) || is_among(kind, kPassive) ||
                           (kind == "xt" && (is_xt(value, "match", "comment") || is_xt(value, "target", "LOG"))) ||
                           (kind == "vmap" && !map_drops(value)) || (kind == "mangle" && only_marks(value)) ||
                           (kind == "mangle" && is_trace(value));
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

  /// {"key": {"meta": {"key": "mark"}}, "value": …}
  static bool only_marks(const Json& mangle) {
    const auto key = mangle.is_object() ? mangle.find("key") : mangle.end();
    return mangle.is_object() && key != mangle.end() && key->is_object() &&
           (key->contains("meta") || key->contains("ct"));
  }
  /// For the kernel's queues.
  static bool is_priority(const Json& mangle) {
    return mangle.is_object() && mangle.contains("key") && mangle["key"] == Json{{"meta", {{"key", "priority"}}}};
  }
  /// `meta nftrace set 1` shows the packet to `nft monitor trace`.
  static bool is_trace(const Json& mangle) {
    return mangle == Json{{"key", {{"meta", {{"key", "nftrace"}}}}}, {"value", 1}};
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
    const bool has_mark = !draws_.empty() && draws_.front().mark;
    if (has_mark && !is_among(kind, kObserving))
      return unsupported("a statement after a mark by a map is not supported");
    const auto in_kind = [&](Checked<void> read) -> Checked<void> {
      if (read) return read;
      return within("." + kind, std::move(read.error()));
    };
    const bool is_of_connections = kind.starts_with("ct ") || kind == "notrack" ||
                                   (kind == "mangle" && value.dump().find("\"ct\"") != std::string::npos);
    if (context_.bridged_at && is_of_connections)
      return unsupported(fmt::format("{} is not supported in a table of family bridge", kind));
    if (kind == "log" && !context_.logs) {
      ignored_ = kLogWithoutOutput;
      return {};
    }
    if (kind == "flow") ignored_ = "flow offload";
    if (is_among(kind, kObserving) || (kind == "mangle" && is_trace(value))) return {};
    if (kind == "limit") return in_kind(read_limit(value));
    if (kind == "quota") return in_kind(read_quota_of_rule(value));
    if (kind == "ct helper" && value.is_string()) return in_kind(read_helper(value.get<std::string>()));
    if (kind == "ct count") return in_kind(read_count_of_rule(value));
    if (kind == "log") return in_kind(read_log(value));
    if (kind == "mangle") return in_kind(read_change(value));
    if (kind == "set") return in_kind(read_update(value));
    if (kind == "meter") return in_kind(read_meter(value));
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
    if (kind == "notrack") return add_step(classify::LeaveUntracked{});
    if (kind == "xt") return in_kind(read_xt(value));
    return unsupported(fmt::format("{} is not supported", kind));
  }

  /// An extension of iptables, without its arguments: {"type": "match", "name": "comment"}.
  Checked<void> read_xt(const Json& value) {
    if (is_xt(value, "match", "comment")) return {};
    // Its arguments are not there.
    if (is_xt(value, "target", "LOG") && context_.logs) return add_step(classify::Log{});
    if (is_xt(value, "target", "LOG")) {
      ignored_ = kLogWithoutOutput;
      return {};
    }
    // iptables has checked that the rule is for the protocol of the answer.
    if (is_xt(value, "target", "REJECT")) return decide({Jump::reject});
    const std::string name = value.is_object() ? value.value("name", Json()).dump() : "";
    return unsupported(fmt::format("xt {} is not supported", name), "", "the output of iptables-save for these rules");
  }

  Checked<void> decide(Verdict verdict) {
    if (verdict_ || map_ != nullptr || !draws_.empty()) return mistake("second verdict in a rule", "", "one");
    verdict_ = std::move(verdict);
    return {};
  }

  Checked<void> read_match(const Json& match) {
    if (!match.is_object() || !match.contains("op") || !match["op"].is_string() || !match.contains("left") ||
        !match.contains("right") || match.size() != 3) {
      return mistake("wrong match", "", "an object of \"op\", \"left\" and \"right\"");
    }
    const std::string& op = match["op"].get_ref<const std::string&>();
    if (auto noted = note_frame_type(match["left"]); !noted) return noted;
    auto step_key = step_key_of(match["left"]);
    if (!step_key && context_.bridged_at) return within(".left", std::move(step_key.error()));
    auto of_connection = read_connection_test(match["left"], op, match["right"]);
    if (!of_connection) return tl::unexpected(std::move(of_connection.error()));
    if (*of_connection) return add_test(std::move(**of_connection));
    if (is_fib(match["left"]) && !context_.bridged_at) return read_fib(match["left"], op, match["right"]);
    if (!step_key) return within(".left", std::move(step_key.error()));
    if (*step_key) return read_test_of_rule(**step_key, op, match["right"]);
    auto keys = keys_of(match["left"]);
    if (!keys) return within(".left", std::move(keys.error()));
    if (auto known = check_out_ports(*keys, match["right"]); !known) return within(".left", std::move(known.error()));
    auto read = keys->size() == 1 ? read_comparison(keys->front(), op, match["right"])
                                  : read_concatenation(std::move(*keys), op, match["right"]);
    if (read) return read;
    return within(".right", std::move(read.error()));
  }

  Checked<std::optional<StepKey>> step_key_of(const Json& expression) const {
    if (context_.bridged_at) {
      auto key = read_frame_key(expression);
      if (!key || *key) return key;
    }
    return read_step_key(expression);
  }

  /// Of bridged frames, only those of IP have protocols, ports and the like.
  Checked<std::vector<Key>> keys_of(const Json& expression) const {
    auto keys = read_keys(expression);
    if (!keys || !context_.bridged_at) return keys;
    for (Key& key : *keys) {
      if (key.field == Field::connection || key.field == Field::family)
        return unsupported("connections and families in a table of family bridge are not supported");
      // Linux does not know it there, and no rule about it matches.
      if (key.field == Field::in_port && context_.bridged_at == Hook::postrouting)
        return unsupported("iifname is not known at hook postrouting of a bridge");
      if (key.field == Field::out_port && context_.bridged_at == Hook::prerouting)
        return unsupported("oifname is not known at hook prerouting of a bridge");
      if (key.field != Field::in_port && key.field != Field::out_port) key.implied.push_back(of_ip());
    }
    return keys;
  }
  static Condition of_ip() { return {Field::family, {{classify::number(kIpv4), classify::number(kIpv6)}}}; }

  Checked<void> check_out_ports(const std::vector<Key>& keys, const Json& right = Json()) const {
    if (context_.interfaces.out_known || is_no_port(right)) return {};
    for (const Key& key : keys) {
      if (key.field == Field::out_port) {
        return unsupported(
            fmt::format("oifname is supported only if an earlier function chooses the port, such as router{}",
                        context_.at_output ? kOutputAfterRouter : ""));
      }
    }
    return {};
  }

  /// An interface by which no packet leaves, such as the loopback.
  [[nodiscard]] bool is_no_port(const Json& name) const {
    return name.is_string() && context_.interfaces.ports_of(name.get<std::string>()) == std::uint64_t{0};
  }

  Checked<void> read_comparison(const Key& key, const std::string& op, const Json& right) {
    IntervalSet values;
    if (is_set(right)) {
      auto set = find_set({key}, false, right);
      if (!set) return tl::unexpected(std::move(set.error()));
      if ((*set)->changing) return look_up({key}, op, *(*set)->changing);
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
    narrow(key, *matching);
    return {};
  }

  /// Conditions after a step are tested after it.
  template <typename What>
  void narrow(const What& what, const IntervalSet& values) {
    if (!ordered_) {
      never_ |= !clause_.narrow(what, values);
      return;
    }
    has_later_ = true;
    later_never_ |= !later_.narrow(what, values);
  }
  void narrow(const std::vector<Condition>& implied) {
    for (const Condition& condition : implied) narrow(condition.first, condition.second);
    if (context_.bridged_at && !implied.empty()) narrow(of_ip().first, of_ip().second);
  }

  /// Makes a step of the conditions since the last one.
  Checked<void> finish_later() {
    if (!has_later_) return {};
    classify::AnyOf any;
    if (!later_never_) {
      if (auto written = multiply(later_factors_, 0, later_, any.alternatives); !written) return written;
    }
    steps_.emplace_back(std::move(any));
    later_ = {};
    later_factors_.clear();
    has_later_ = later_never_ = false;
    return {};
  }

  /// A step whose result depends on the packets that reach it.
  Checked<void> add_step(classify::Step step) {
    if (auto finished = finish_later(); !finished) return finished;
    ordered_ = true;
    steps_.push_back(std::move(step));
    return {};
  }

  /// "inet filter forward: limit rate … #2"
  std::string name_of_step() const { return fmt::format("{} #{}", context_.name, steps_.size()); }

  Checked<void> read_limit(const Json& value) {
    if (value.is_string()) {
      auto object = context_.find_rate(value.get<std::string>());
      if (!object) return tl::unexpected(std::move(object.error()));
      return add_step(classify::UseRate{*object});
    }
    auto rate = read_rate(value);
    if (!rate) return tl::unexpected(std::move(rate.error()));
    auto& rates = context_.rules.objects.rates;
    rates.push_back({name_of_step(), *rate});
    return add_step(classify::UseRate{static_cast<std::uint32_t>(rates.size() - 1)});
  }

  Checked<void> read_quota_of_rule(const Json& value) {
    if (value.is_string()) {
      auto object = context_.find_quota(value.get<std::string>());
      if (!object) return tl::unexpected(std::move(object.error()));
      return add_step(classify::UseQuota{*object});
    }
    auto quota = read_quota(value);
    if (!quota) return tl::unexpected(std::move(quota.error()));
    auto& quotas = context_.rules.objects.quotas;
    quotas.push_back({name_of_step(), *quota});
    return add_step(classify::UseQuota{static_cast<std::uint32_t>(quotas.size() - 1)});
  }

  /// Without another helper, packets that only it would call related are not.
  Checked<void> read_helper(const std::string& name) {
    const std::string type = context_.find_helper(name);
    if (type.empty()) return mistake("unknown ct helper", in_quotes(name), "one that the table declares");
    if (type == "ftp") return add_step(classify::GiveHelper{});
    ignored_ = "a helper other than that for FTP";
    return {};
  }

  Checked<void> read_count_of_rule(const Json& value) {
    auto count = read_count(value);
    if (!count) return tl::unexpected(std::move(count.error()));
    auto& counts = context_.rules.objects.counts;
    counts.push_back({name_of_step(), *count});
    return add_step(classify::UseCount{static_cast<std::uint32_t>(counts.size() - 1)});
  }

  Checked<void> read_log(const Json& value) {
    classify::Log log;
    if (value.is_object() && value.contains("prefix") && value["prefix"].is_string()) log.prefix = value["prefix"];
    return add_step(std::move(log));
  }

  Checked<void> read_change(const Json& value) {
    const auto by_map = read_mark_by_map(value);
    if (!by_map) return tl::unexpected(by_map.error());
    if (*by_map) return {};
    if (is_priority(value)) {
      ignored_ = "meta priority set";
      return {};
    }
    auto mangle = read_mangle(value);
    if (!mangle) return tl::unexpected(std::move(mangle.error()));
    narrow(mangle->implied);
    return add_step(std::move(mangle->step));
  }

  Checked<void> read_test_of_rule(const StepKey& key, const std::string& op, const Json& right) {
    using classify::Value;
    const Json* values = &right;
    Json elements;
    if (right.is_string() && right.get_ref<const std::string&>().starts_with('@')) {
      const std::string name = right.get<std::string>().substr(1);
      const Json* const found = key.set_type.empty() ? nullptr : context_.find_elements(name, key.set_type);
      if (found != nullptr) {
        elements = {{"set", *found}};
        values = &elements;
      }
    }
    auto test = read_test(key, op, *values);
    if (!test) return within(".right", std::move(test.error()));
    if (auto checked = check_of_frame(*test); !checked) return checked;
    rule_.tests_marks |= key.operand.value == Value::mark || key.operand.value == Value::connection_mark;
    add_objects(key, test->operand);
    narrow(key.implied);
    if (key.operand.value == Value::turn) return add_step(std::move(*test));
    return add_test(std::move(*test));
  }

  /// Adds the match that nft makes, and does not print.
  Checked<void> note_frame_type(const Json& expression) {
    if (!context_.bridged_at) return {};
    if (expression.is_object() && expression.contains("concat") && expression["concat"].is_array()) {
      for (const Json& one : expression["concat"]) {
        if (auto noted = note_frame_type(one); !noted) return noted;
      }
      return {};
    }
    const FrameType type = frame_type_of(expression);
    knows_frame_type_ |= type.is_of_tag_or_network;
    if (!type.needed || knows_frame_type_) return {};
    needs_type_ = true;
    const classify::Number needed = classify::number(*type.needed);
    return add_test({{classify::Value::ether_type}, {{needed, needed}}});
  }

  /// nft takes tags for those of 802.1Q, unless a match of the rule says that they are of 802.1ad. Whether a frame is
  /// for the host itself depends on the address of a bridge's port, which is not known.
  Checked<void> check_of_frame(const classify::Test& test) {
    using classify::Value;
    if (!context_.bridged_at) return {};
    const auto has = [&](std::uint64_t value) {
      return std::ranges::any_of(test.values, [&](const classify::Interval& interval) {
        return interval.low <= classify::number(value) && classify::number(value) <= interval.high;
      });
    };
    if (test.operand.value == Value::packet_type &&
        has(classify::PacketType::kHost) != has(classify::PacketType::kOtherHost)) {
      return unsupported("pkttype of frames to one host is not supported in a table of family bridge", "",
                         "broadcast or multicast");
    }
    tests_tags_ |= test.operand.value == Value::vlan_tci || test.operand.value == Value::vlan_type;
    other_tags_ |= test.operand.value == Value::ether_type && has(ether_type::kQinQ);
    const bool is_tagged =
        test.operand.value == Value::ether_type && !test.values.empty() &&
        test.values == IntervalSet{{classify::number(ether_type::kVlan), classify::number(ether_type::kVlan)}};
    knows_frame_type_ |= is_tagged;
    if ((tests_tags_ || needs_type_) && other_tags_)
      return unsupported(
          "a match with tags of 802.1ad, and one for which nft adds the type of frames, are not supported together");
    return {};
  }

  Checked<void> add_test(classify::Test test) {
    if (auto finished = finish_later(); !finished) return finished;
    steps_.emplace_back(std::move(test));
    return {};
  }

  /// What generators of numbers need.
  void add_objects(const StepKey& key, classify::Operand& operand) {
    classify::StepObjects& objects = context_.rules.objects;
    if (key.operand.value == classify::Value::turn) {
      operand.counter = static_cast<std::uint32_t>(objects.turns.size());
      objects.turns.push_back({name_of_step()});
    } else if (key.hash) {
      operand.counter = static_cast<std::uint32_t>(objects.hashes.size());
      objects.hashes.push_back(*key.hash);
    }
  }

  /// A mark that a map gives, or a generator of numbers.
  Checked<bool> read_mark_by_map(const Json& mangle) {
    const bool is_object = mangle.is_object() && mangle.contains("key") && mangle.contains("value");
    if (!is_object || !only_marks(mangle) || !mangle["value"].is_object() || mangle["value"].size() != 1) return false;
    const Json& target = mangle["key"].begin().value();
    if (!target.is_object() || target.value("key", Json()) != "mark") return false;
    const std::string& kind = mangle["value"].begin().key();
    const Json& value = mangle["value"].begin().value();
    const bool is_map = kind == "map";
    if (!is_map && kind != "numgen" && kind != "jhash" && kind != "symhash") return false;
    if (verdict_ || map_ != nullptr || !draws_.empty() || ordered_)
      return unsupported("a mark by a map after another statement is not supported");
    const bool is_pair = value.is_object() && value.contains("key") && value.contains("data");
    const Json& of = is_map && is_pair ? value["key"] : mangle["value"];
    if (auto noted = note_frame_type(of); !noted) return tl::unexpected(std::move(noted.error()));
    auto key = step_key_of(of);
    if (!key) return tl::unexpected(std::move(key.error()));
    if (!*key) return unsupported("a mark by a map of this key is not supported");
    Json elements = Json::array();
    constexpr std::uint64_t kMost = 4096;
    if (is_map) {
      if (!value["data"].is_object() || !value["data"].contains("set") || !value["data"]["set"].is_array())
        return unsupported("a named map of marks is not supported");
      elements = value["data"]["set"];
    } else if ((*key)->last >= kMost) {
      return unsupported(fmt::format("a mark of more than {} numbers is not supported", kMost));
    } else {
      for (std::uint64_t i = 0; i <= (*key)->last; ++i) elements.push_back({i + (*key)->offset, i + (*key)->offset});
    }
    auto read = read_map_of_step(**key, {{"set", std::move(elements)}}, false, mangle["key"].contains("ct"));
    if (!read) return tl::unexpected(std::move(read.error()));
    return true;
  }

  /// The operands of a set that changes.
  Checked<std::vector<classify::Operand>> operands_of(const std::vector<Key>& keys) {
    std::vector<classify::Operand> operands;
    for (const Key& key : keys) {
      auto operand = operand_of(key);
      if (!operand) return tl::unexpected(std::move(operand.error()));
      operands.push_back(*operand);
      narrow(key.implied);
      if (key.of_any_protocol) narrow(key, {domain_of(key.type)});
    }
    return operands;
  }

  Checked<void> look_up(const std::vector<Key>& keys, const std::string& op, std::uint32_t set) {
    if (op != "==" && op != "!=") return unsupported_operator(op);
    auto operands = operands_of(keys);
    if (!operands) return tl::unexpected(std::move(operands.error()));
    if (auto finished = finish_later(); !finished) return finished;
    steps_.emplace_back(classify::LookUp{set, std::move(*operands), op == "!="});
    return {};
  }

  /// {"op": "add", "elem": …, "set": "@name", "stmt": [{"limit": …}]}
  Checked<void> read_update(const Json& value) {
    using Way = classify::Update::Way;
    if (!value.is_object() || !value.contains("elem") || !value.contains("set") || !value["set"].is_string() ||
        !value.contains("op")) {
      return mistake("wrong update of a set", "", "an object of \"op\", \"elem\" and \"set\"");
    }
    classify::Update update{};
    if (value["op"] == "update")
      update.way = Way::update;
    else if (value["op"] == "delete")
      update.way = Way::remove;
    else if (value["op"] != "add")
      return unsupported("this update of a set is not supported", in_words(value["op"]));
    const Json* element = &value["elem"];
    if (element->is_object() && element->contains("elem")) {
      const Json& outer = (*element)["elem"];
      if (!outer.is_object() || !outer.contains("val")) return mistake("wrong element of an update", "", "\"val\"");
      if (outer.contains("timeout")) {
        auto timeout = read_seconds_ns(outer["timeout"]);
        if (!timeout) return tl::unexpected(std::move(timeout.error()));
        update.timeout_ns = *timeout;
      }
      element = &outer["val"];
    }
    if (auto noted = note_frame_type(*element); !noted) return noted;
    auto keys = keys_of(*element);
    if (!keys) return within(".elem", std::move(keys.error()));
    if (auto known = check_out_ports(*keys); !known) return within(".elem", std::move(known.error()));
    auto set = find_set(*keys, false, value["set"]);
    if (!set) return tl::unexpected(std::move(set.error()));
    if (!(*set)->changing) return unsupported("a set that changes, but is not read as one", in_words(value["set"]));
    update.set = *(*set)->changing;
    static const Json kNone = Json::array();
    return add_update(std::move(update), *keys, value.contains("stmt") ? value["stmt"] : kNone);
  }

  /// {"key": …, "stmt": {"limit": …}, "size": 65535, "name": "flood"}
  Checked<void> read_meter(const Json& value) {
    if (!value.is_object() || !value.contains("key") || !value.contains("stmt"))
      return mistake("wrong meter", "", "an object of \"key\" and \"stmt\"");
    const Json* key = &value["key"];
    classify::Update update{};
    if (key->is_object() && key->contains("elem") && (*key)["elem"].is_object() && (*key)["elem"].contains("val")) {
      const Json& outer = (*key)["elem"];
      if (outer.contains("timeout")) {
        auto timeout = read_seconds_ns(outer["timeout"]);
        if (!timeout) return tl::unexpected(std::move(timeout.error()));
        update.way = classify::Update::Way::update;
        update.timeout_ns = *timeout;
      }
      key = &outer["val"];
    }
    if (auto noted = note_frame_type(*key); !noted) return noted;
    auto keys = keys_of(*key);
    if (!keys) return within(".key", std::move(keys.error()));
    if (auto known = check_out_ports(*keys); !known) return within(".key", std::move(known.error()));
    classify::ChangingSet set;
    set.name = name_of_step();
    set.values = static_cast<std::uint32_t>(keys->size());
    if (value.contains("size") && value["size"].is_number_unsigned()) {
      set.size = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(value["size"].get<std::uint64_t>(), kMostChangingElements));
    }
    if (keys->size() > classify::kMostElementValues) return too_many_values();
    auto& sets = context_.rules.objects.sets;
    update.set = static_cast<std::uint32_t>(sets.size());
    sets.push_back(std::move(set));
    return add_update(std::move(update), *keys, Json::array({value["stmt"]}));
  }

  Checked<void> add_update(classify::Update update, const std::vector<Key>& keys, const Json& statements) {
    auto operands = operands_of(keys);
    if (!operands) return tl::unexpected(std::move(operands.error()));
    update.key = std::move(*operands);
    for (const Json& statement : statements) {
      if (!statement.is_object() || statement.size() != 1)
        return mistake("wrong statement of an element", "", "an object of one member");
      const std::string& kind = statement.begin().key();
      const Json& value = statement.begin().value();
      if (kind == "counter" || kind == "last") continue;
      if (update.of_element.index() != 0) return unsupported("several statements for an element are not supported");
      const auto set = [&](auto read) -> Checked<void> {
        if (!read) return within(".stmt", std::move(read.error()));
        update.of_element = *read;
        return {};
      };
      auto read = kind == "limit"   ? set(read_rate(value))
                  : kind == "quota" ? set(read_quota(value))
                  : kind == "ct count"
                      ? set(read_count(value))
                      : Checked<void>(unsupported(fmt::format("{} for an element is not supported", kind)));
      if (!read) return read;
    }
    return add_step(std::move(update));
  }

  /// The elements of an anonymous set, or the value alone.
  static Json alternatives_of(const Json& value) {
    const bool is_set = value.is_object() && value.contains("set") && value["set"].is_array();
    return is_set ? value["set"] : Json::array({value});
  }

  static bool is_fib(const Json& left) { return left.is_object() && left.contains("fib") && left["fib"].is_object(); }

  /// {"fib": {"result": "type", "flags": ["daddr"]}}, {"fib": {"result": "oif", "flags": ["saddr", "iif"]}}
  Checked<void> read_fib(const Json& left, const std::string& op, const Json& right) {
    const Json& fib = left["fib"];
    const std::string result = fib.value("result", Json()).is_string() ? fib["result"].get<std::string>() : "";
    const Json given = fib.value("flags", Json());
    std::set<std::string> flags;
    for (const Json& flag : given.is_array() ? given : Json::array({given}))
      flags.insert(flag.is_string() ? flag.get<std::string>() : "");
    const auto takes = [&](const char* flag) { return flags.erase(flag) == 1; };
    const bool of_source = takes("saddr"), of_destination = takes("daddr");
    const auto not_supported = [&] { return unsupported("this use of fib is not supported", in_words(left)); };
    if (of_source == of_destination || (op != "==" && op != "!=")) return not_supported();
    if (result == "type") return flags.empty() ? read_address_type(of_source, op, right) : not_supported();
    // Marks choose among routing tables, and the router has one.
    takes("mark");
    const bool by_in_port = takes("iif");
    if (!flags.empty() || (result != "oif" && result != "oifname" && result != "check")) return not_supported();
    return read_route({of_source, by_in_port, {}, op == "!="}, result, right);
  }

  /// Whether the address is of one of these types: "local", or a set of them. The chain file says which there are.
  Checked<void> read_address_type(bool of_source, const std::string& op, const Json& right) {
    std::vector<classify::Interval> ipv4, ipv6;
    for (const Json& type : alternatives_of(right)) {
      const std::string name = type.is_string() ? type.get<std::string>() : "";
      const auto of_ipv4 = context_.host.of_type(NetworkLayer::ipv4, name);
      const auto of_ipv6 = context_.host.of_type(NetworkLayer::ipv6, name);
      if (!of_ipv4 || !of_ipv6)
        return unsupported("this type of addresses is not supported", in_words(type),
                           "local, broadcast, anycast or multicast");
      if (const std::string_view lacks = context_.host.lacks(name); !lacks.empty())
        return unsupported(fmt::format("fib … type {} {}", name, lacks));
      ipv4.insert(ipv4.end(), of_ipv4->begin(), of_ipv4->end());
      ipv6.insert(ipv6.end(), of_ipv6->begin(), of_ipv6->end());
    }
    classify::AnyOf any;
    const auto add = [&](Field field, std::uint64_t family, const IntervalSet& addresses) -> Checked<void> {
      const IntervalSet set =
          op == "==" ? addresses
                     : classify::complement(addresses, domain_of(family == kIpv4 ? Type::ipv4_addr : Type::ipv6_addr));
      Clause clause;
      if (!clause.narrow(Field::family, only(family)) || !clause.narrow(field, set)) return {};
      return clause.write(context_.rules, context_.budget, any.alternatives);
    };
    auto added = add(of_source ? Field::source4 : Field::destination4, kIpv4, classify::united(std::move(ipv4)));
    if (added) added = add(of_source ? Field::source6 : Field::destination6, kIpv6, classify::united(std::move(ipv6)));
    if (!added) return added;
    if (auto finished = finish_later(); !finished) return finished;
    steps_.emplace_back(std::move(any));
    return {};
  }

  /// Whether there is a route (true, false), or whether it is by one of the interfaces.
  Checked<void> read_route(classify::RouteOut out, const std::string& result, const Json& right) {
    if (const std::string_view lacks = context_.host.lacks(""); !lacks.empty())
      return unsupported(fmt::format("fib … {} {}", result, lacks));
    if (right.is_boolean()) {
      out.negated ^= !right.get<bool>();
    } else {
      out.ports.emplace(0);
      for (const Json& name : alternatives_of(right)) {
        const std::string interface = name.is_string() ? name.get<std::string>() : "";
        const auto ports = context_.interfaces.ports_of(interface);
        // By which of the interfaces that are no ports a route leads is not known.
        if (result == "check" || !ports || *ports == 0 || interface.ends_with('*'))
          return unsupported("fib with an interface that is no port of the chain is not supported", name.dump());
        context_.rules.interface_names.insert(interface);
        *out.ports |= *ports;
      }
    }
    if (auto finished = finish_later(); !finished) return finished;
    steps_.emplace_back(out);
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
    if ((*set)->changing) return look_up(keys, op, *(*set)->changing);
    has_later_ |= ordered_;
    if ((*set)->groups.empty()) {
      (ordered_ ? later_never_ : never_) = true;
    } else {
      (ordered_ ? later_factors_ : factors_).push_back({std::move(keys), &(*set)->groups.front().tuples});
    }
    return {};
  }

  /// `to_values`: what it gives is a part of a translation.
  Checked<void> read_map(const Json& map, bool to_values = false) {
    if (!map.is_object() || map.size() != 2 || !map.contains("key") || !map.contains("data") || !is_set(map["data"])) {
      return mistake(to_values ? "wrong map" : "wrong verdict map", "", "an object of \"key\" and \"data\", a map");
    }
    if (verdict_ || map_ != nullptr || !draws_.empty()) return mistake("second verdict in a rule", "", "one");
    if (ordered_) return unsupported("a map after a limit, a quota or the like is not supported");
    if (auto noted = note_frame_type(map["key"]); !noted) return noted;
    auto step_key = step_key_of(map["key"]);
    if (!step_key) return within(".key", std::move(step_key.error()));
    if (*step_key) return read_map_of_step(**step_key, map["data"], to_values);
    auto keys = keys_of(map["key"]);
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

  /// {"set": [[0, {"accept": null}], …]}
  /// `mark`: it gives a mark, of the connection or else of the packet.
  Checked<void> read_map_of_step(const StepKey& key, const Json& data, bool to_values,
                                 std::optional<bool> mark = std::nullopt) {
    using classify::Value;
    const bool draws = key.operand.value == Value::random || key.operand.value == Value::turn;
    if (draws && !steps_.empty())
      return unsupported("a map by numgen after a set, a mark or the like is not supported");
    if (!data.is_object() || !data.contains("set") || !data["set"].is_array())
      return unsupported("a named map by this key is not supported");
    rule_.tests_marks |= key.operand.value == Value::mark || key.operand.value == Value::connection_mark;
    narrow(key.implied);
    classify::Operand operand = key.operand;
    add_objects(key, operand);
    for (const Json& element : data["set"]) {
      if (!element.is_array() || element.size() != 2)
        return mistake("wrong element of a map", element.dump(), "a list of a key and a verdict");
      auto test = read_test(key, "==", element[0]);
      if (!test) return within(".data", std::move(test.error()));
      if (auto checked = check_of_frame(*test); !checked) return checked;
      auto verdict = mark ? Checked<Verdict>(Verdict{}) : to_values ? read_given(element[1]) : read_verdict(element[1]);
      if (!verdict) return within(".data", std::move(verdict.error()));
      test->operand = operand;
      std::optional<classify::SetMark> set;
      if (mark) {
        if (!element[1].is_number_unsigned() || element[1].get<std::uint64_t>() > 0xffffffff)
          return unsupported("this value of a mark is not supported", in_words(element[1]));
        set.emplace().of_connection = *mark;
        set->flip = element[1].get<std::uint32_t>();
      }
      draws_.push_back({std::move(*test), std::move(*verdict), set});
      if (draws) operand = {Value::drawn};
      if (!context_.budget.take(1)) return context_.budget.problem();
    }
    if (draws_.empty()) never_ = true;
    return {};
  }

  static tl::unexpected<Problem> too_many_values() {
    return unsupported(fmt::format("a set that changes with more than {} values in an element is not supported",
                                   classify::kMostElementValues));
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
      narrow(Field::protocol, only(ip_protocol::kTcp));
      verdict.answer.tcp_reset = true;
    } else if (type == "icmp" || type == "icmpv6") {
      narrow(Field::family, only(type == "icmp" ? kIpv4 : kIpv6));
    } else if (type != "icmpx" && !value.is_null()) {
      return unsupported("a reject of this type is not supported", in_quotes(type));
    }
    if (!type.empty() && value.contains("expr")) {
      const std::optional<classify::Answer> answer = read_answer(type, value["expr"]);
      if (!answer) return unsupported("this answer is not supported", in_words(value["expr"]));
      verdict.answer = *answer;
    }
    return decide(std::move(verdict));
  }

  Checked<void> read_nat(const std::string& kind, const Json& value) {
    auto read = read_translation(kind, value);
    if (!read) return tl::unexpected(std::move(read.error()));
    if (read->family != NetworkLayer::none) {
      narrow(Field::family, only(read->family == NetworkLayer::ipv4 ? kIpv4 : kIpv6));
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
    for (Draw& draw : draws_) {
      auto translation = with_mapped(rest, *draw.verdict.translation);
      if (!translation) return within(path, std::move(translation.error()));
      draw.verdict.translation = *translation;
    }
    if (map_ == nullptr) return {};
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
    if (!verdict_ && map_ == nullptr && draws_.empty() && !steps_.empty()) {
      rule_.ignored = ignored_;
      return write_part(Verdict{Jump::none});
    }
    if (!verdict_ && map_ == nullptr && draws_.empty()) {
      ChainRule part;
      part.unsupported = fmt::format("{} is not supported", ignored_.empty() ? "a rule without a verdict" : ignored_);
      part.only_observes = true;
      rule_.parts = {std::move(part)};
      return {};
    }
    rule_.ignored = ignored_;
    if (!draws_.empty()) return write_draws();
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
    part.steps = steps_;
    part.continues = verdict.jump == Jump::none && !steps_.empty();
    Clause clause = clause_;
    const bool possible = verdict.family == NetworkLayer::none ||
                          clause.narrow(Field::family, only(verdict.family == NetworkLayer::ipv4 ? kIpv4 : kIpv6));
    // Unsupported, since a part with these is left out with its reason.
    if (never_ || !possible) return {};
    return multiply(factors_, 0, clause, part.alternatives);
  }

  /// A part for each value of the key. A number is drawn by the first part, and the others compare it with theirs.
  Checked<void> write_draws() {
    for (Draw& draw : draws_) {
      steps_.emplace_back(std::move(draw.test));
      if (draw.mark) steps_.emplace_back(*draw.mark);
      if (auto written = write_part(draw.verdict); !written) return written;
      steps_.resize(steps_.size() - (draw.mark ? 2 : 1));
    }
    for (std::size_t i = 0; i < rule_.parts.size(); ++i)
      rule_.parts[i].more_parts = static_cast<std::uint32_t>(rule_.parts.size() - 1 - i);
    return {};
  }

  /// Combines `clause` with all tuples of the factors from `factor` on.
  Checked<void> multiply(const std::vector<Factor>& factors, std::size_t factor, const Clause& clause,
                         std::vector<Alternative>& to) {
    if (factor == factors.size()) return clause.write(context_.rules, context_.budget, to);
    const auto& [keys, tuples] = factors[factor];
    for (const Tuple& tuple : *tuples) {
      if (!context_.budget.take(1)) return context_.budget.problem();
      Clause narrowed = clause;
      bool possible = true;
      for (std::size_t i = 0; i < keys.size() && possible; ++i) {
        possible = narrowed.narrow(keys[i], unmasked(keys[i], tuple[i]));
      }
      if (!possible) continue;
      if (auto written = multiply(factors, factor + 1, narrowed, to); !written) return written;
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
  std::vector<classify::Step> steps_;
  bool ordered_ = false;  // a step depends on which packets reach it; conditions after it are steps, too:
  Clause later_;
  std::vector<Factor> later_factors_;
  bool has_later_ = false, later_never_ = false;
  std::vector<Draw> draws_;  // of a map by what only steps know
  std::deque<Set> own_sets_;
  bool never_ = false;                            // no packet matches
  bool tests_tags_ = false, other_tags_ = false;  // of VLANs; the latter: those of 802.1ad may match
  // A match so far is about the tag or the network protocol; one was not, and needs a type.
  bool knows_frame_type_ = false, needs_type_ = false;
  std::string_view ignored_;
};

}  // namespace

Checked<Rule> read_rule(const Json& statements, const RuleContext& context) {
  return RuleReader(context).read(statements);
}

}  // namespace penstock::firewall::nftables
