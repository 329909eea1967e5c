// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/error_list.h"
#include "base/units.h"
#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/keys.h"
#include "nf/firewall/nftables/rule.h"
#include "nf/firewall/nftables/steps.h"
#include "nf/firewall/nftables/text.h"
#include "nf/firewall/nftables/translation.h"

namespace penstock::firewall {

namespace nftables {
namespace {

using Jump = ChainRule::Jump;

/// Objects that do nothing unless a rule refers to them, which it then cannot.
constexpr auto kInert =
    std::to_array<std::string_view>({"counter", "ct expectation", "ct timeout", "flowtable", "secmark", "synproxy"});

/// A chain, as the file declares it.
struct Declared {
  std::string family, table, name;
  std::size_t object = 0;      // its index in the file
  std::string type{}, hook{};  // empty: not a base chain
  std::int64_t priority = 0;
  /// The place of a rule that can drop or change packets, and that the chain can reach; empty if there is none.
  std::string harmful{};
  std::string marking{};  // ditto, of one that marks packets or connections
  std::vector<std::string> called{};
};

/// Where a rule is in the file.
struct Origin {
  const Declared* chain;
  std::size_t object;
  std::uint64_t handle;
  std::string_view ignored;
};

/// A rule that uses a named set.
struct SetUse {
  std::string set, name;  // in the whole file, and in the table
  std::vector<ChainRule>* chain;
  std::size_t rule;
};

/// A rule that changes the elements of a set.
struct SetUpdate {
  std::string set;         // in the whole file
  std::string_view chain;  // ditto
};

/// The name of a chain or set within the whole file.
std::string full_name(std::string_view family, std::string_view table, std::string_view name) {
  return fmt::format("{} {} {}", family, table, name);
}

NetworkLayer family_of(const Declared& chain) {
  if (chain.family == "ip") return NetworkLayer::ipv4;
  return chain.family == "ip6" ? NetworkLayer::ipv6 : NetworkLayer::none;
}

constexpr std::int64_t kTracking = -200;  // NF_IP_PRI_CONNTRACK

/// Whether packets pass filters there before their connections are looked up.
bool has_early_filters(std::string_view hook) { return hook == "prerouting" || hook == "output"; }

template <typename Wanted>
bool is_step(const classify::Step& step) {
  return std::holds_alternative<Wanted>(step);
}

bool sees(const BaseChain& chain, NetworkLayer family) { return common_family(chain.family, family).has_value(); }

/// Whether `value` is this word, or a list that has it.
bool has_word(const Json& value, std::string_view word) {
  if (value.is_string()) return value.get_ref<const std::string&>() == word;
  return value.is_array() && std::ranges::any_of(value, [&](const Json& one) { return one == word; });
}

class Reader {
 public:
  Reader(const std::string& file, const ReadOptions& options)
      : file_(file), options_(options), budget_(kMostValuesPerRule * options.most_rules) {
    read_.value.file = file;
  }

  Result<Read<classify::Ruleset>> read(std::string_view text) {
    constexpr std::size_t kSomeMore = 100'000;  // also if few rules are allowed
    if (auto found = find_updated_sets(text); !found) return failure(std::move(found.error()));
    auto visited = visit_objects(
        text, file_, kMostValuesPerRule * options_.most_rules + kSomeMore,
        [&](std::size_t index, const std::string& kind, const Json& value) { return visit(index, kind, value); });
    if (!visited) {
      Errors errors = std::move(mistakes_).take({file_, 0, 0});
      append(errors, std::move(visited.error()));
      return failure(std::move(errors));
    }
    return finish();
  }

 private:
  /// Sets come before the rules that change their elements, and nft 1.0.6 does not print their flag `dynamic`.
  Result<void> find_updated_sets(std::string_view text) {
    if (text.find("\"elem\"") == std::string_view::npos || text.find("\"op\"") == std::string_view::npos) return {};
    return visit_objects(text, file_, kMostValuesPerRule * options_.most_rules + 100'000,
                         [&](std::size_t, const std::string& kind, const Json& value) {
                           if (kind == "rule" && value.is_object()) note_updates(value);
                           return true;
                         });
  }

  void note_updates(const Json& rule) {
    const auto statements = rule.find("expr");
    if (statements == rule.end() || !statements->is_array()) return;
    for (const Json& statement : *statements) {
      const auto update = statement.is_object() ? statement.find("set") : statement.end();
      if (!statement.is_object() || update == statement.end() || !update->is_object()) continue;
      const auto set = update->find("set");
      if (set == update->end() || !set->is_string() || !set->get_ref<const std::string&>().starts_with('@')) continue;
      updated_.insert(full_name(rule.value("family", ""), rule.value("table", ""), set->get<std::string>().substr(1)));
    }
  }

  bool visit(std::size_t index, const std::string& kind, const Json& value) {
    object_ = index;
    if (++cost_ > options_.most_rules) return stop(fmt::format("nftables[{}]", index));
    place_ = fmt::format("nftables[{}].{}", index, kind);
    if (!value.is_object()) {
      mistake("not an object", "", "an object");
    } else if (kind == "rule") {
      if (!read_rule_object(value)) return false;
    } else if (kind == "chain") {
      read_chain(value);
    } else if (kind == "set" || kind == "map") {
      read_set(value, kind == "map");
    } else if (kind == "limit" || kind == "quota") {
      read_limit(value, kind == "limit");
    } else if (kind == "ct helper") {
      const std::string type = text_of(value, "type");
      helpers_[full_name(text_of(value, "family"), text_of(value, "table"), text_of(value, "name"))] = type;
      read_.value.gives_helpers |= type == "ftp";
    } else if (kind == "table") {
      read_table(value);
    } else if (kind == "metainfo") {
      read_metainfo(value);
    } else if (std::ranges::find(kInert, std::string_view(kind)) == kInert.end()) {
      read_.unsupported.push_back(
          error(place_ + ": an object of this kind is not supported", "", "the output of `nft -j list ruleset`"));
    }
    return !budget_.is_exceeded();
  }

  [[nodiscard]] Error error(std::string message, std::string found, std::string expected) const {
    return {{file_, 0, 0}, std::move(message), std::move(found), std::move(expected)};
  }
  void mistake(std::string_view message, std::string found, std::string expected) {
    mistakes_.add(error(fmt::format("{}: {}", place_, message), std::move(found), std::move(expected)));
  }
  /// Reports too many rules, and ends the reading.
  bool stop(const std::string& place) {
    Error too_many = too_many_rules({file_, 0, 0}, options_);
    too_many.message = place + ": " + too_many.message;
    mistakes_.add(std::move(too_many));
    return false;
  }

  void read_metainfo(const Json& value) {
    const auto version = value.find("json_schema_version");
    if (version == value.end() || *version != 1) {
      mistake("unknown version of nft's JSON", version == value.end() ? "" : in_quotes(version->dump()),
              "\"json_schema_version\": 1");
    }
  }

  /// A member that is a text, and a mistake if it is not.
  std::string text_of(const Json& value, const char* member) {
    const auto found = value.find(member);
    if (found != value.end() && found->is_string()) {
      std::string text = found->get<std::string>();
      if (!text.empty() && text.find(' ') == std::string::npos) return text;
    }
    mistake(fmt::format("wrong or missing \"{}\"", member), found == value.end() ? "" : in_quotes(found->dump()),
            "a name");
    return "";
  }

  static std::uint64_t handle_of(const Json& value) {
    const auto handle = value.find("handle");
    return handle != value.end() && handle->is_number_unsigned() ? handle->get<std::uint64_t>() : 0;
  }

  void read_table(const Json& value) {
    const std::string family = text_of(value, "family"), name = text_of(value, "name");
    const auto flags = value.find("flags");
    if (flags == value.end()) return;
    if (has_word(*flags, "dormant")) {
      dormant_.insert(full_name(family, name, ""));
    } else if (!has_word(*flags, "owner") && !has_word(*flags, "persist")) {
      // nft 1.0.6 prints the name of the table instead of the flag.
      read_.unsupported.push_back(
          error(fmt::format("{} (table {} {}): a table with this flag is not supported", place_, family, name),
                in_quotes(flags->dump()), "\"dormant\", \"owner\" or \"persist\""));
    }
  }

  void read_chain(const Json& value) {
    Declared chain{text_of(value, "family"), text_of(value, "table"), text_of(value, "name"), object_};
    FilterChain filter;
    const auto has = [&](const char* member) { return value.contains(member); };
    if (has("hook") || has("type")) {
      chain.type = text_of(value, "type");
      chain.hook = text_of(value, "hook");
      const auto priority = value.find("prio");
      if (priority == value.end() || !priority->is_number_integer()) {
        mistake("wrong or missing \"prio\"", "", "a number");
      } else {
        chain.priority = priority->get<std::int64_t>();
      }
      const std::string policy = has("policy") ? text_of(value, "policy") : "accept";
      if (policy != "accept" && policy != "drop") mistake("unknown policy", in_quotes(policy), "accept or drop");
      filter.policy = policy == "accept" ? classify::Target::accept : classify::Target::drop;
    }
    const std::string key = full_name(chain.family, chain.table, chain.name);
    if (!declared_.try_emplace(key, std::move(chain)).second) return mistake("chain declared twice", "", "once");
    chains_.emplace(key, std::move(filter));
    if (has("hook") || has("type")) base_.push_back(key);
  }

  /// A named limit or quota.
  void read_limit(const Json& value, bool is_limit) {
    const std::string name = full_name(text_of(value, "family"), text_of(value, "table"), text_of(value, "name"));
    classify::StepObjects& objects = read_.value.objects;
    if (is_limit) {
      auto rate = read_rate(value);
      if (!rate) return mistake(rate.error().message, rate.error().found, rate.error().expected);
      if (!rates_.emplace(name, static_cast<std::uint32_t>(objects.rates.size())).second)
        return mistake("limit declared twice", "", "once");
      objects.rates.push_back({name, *rate});
    } else {
      auto quota = read_quota(value);
      if (!quota) return mistake(quota.error().message, quota.error().found, quota.error().expected);
      if (!quotas_.emplace(name, static_cast<std::uint32_t>(objects.quotas.size())).second)
        return mistake("quota declared twice", "", "once");
      objects.quotas.push_back({name, *quota});
    }
  }

  Checked<std::uint32_t> find_object(const std::map<std::string, std::uint32_t>& objects, const std::string& name,
                                     const char* what) {
    const auto found = objects.find(name);
    if (found != objects.end()) return found->second;
    return nftables::mistake(fmt::format("unknown {}", what), in_quotes(name), "one that the table declares");
  }

  void read_set(const Json& value, bool is_map) {
    const std::string family = text_of(value, "family"), table = text_of(value, "table"), name = text_of(value, "name");
    auto set = read_members_of_set(value, is_map, full_name(family, table, name));
    if (!set && !set.error().unsupported) {
      place_ += fmt::format("{} (table {} {}, {} {})", set.error().path, family, table, is_map ? "map" : "set", name);
      return mistake(set.error().message, set.error().found, set.error().expected);
    }
    if (!set) keep_elements(value, is_map, full_name(family, table, name));
    if (!sets_.try_emplace(full_name(family, table, name), std::move(set)).second) {
      mistake("set declared twice", "", "once");
    }
  }

  /// Of a set that does not change, of a type that only steps know.
  void keep_elements(const Json& value, bool is_map, const std::string& full) {
    if (is_map || changes(value, full) || !value.contains("type") || !value["type"].is_string()) return;
    const Json elements = value.contains("elem") ? value["elem"] : Json::array();
    if (elements.is_array() && budget_.take(elements.size()))
      elements_.try_emplace(full, value["type"].get<std::string>(), elements);
  }

  [[nodiscard]] bool changes(const Json& value, const std::string& full) const {
    return updated_.contains(full) || value.contains("timeout") ||
           (value.contains("flags") && (has_word(value["flags"], "timeout") || has_word(value["flags"], "dynamic")));
  }

  Checked<Set> read_members_of_set(const Json& value, bool is_map, const std::string& full) {
    auto types = value.contains("type") ? read_types(value["type"]) : unsupported("a set without a type");
    if (!types) return within(".type", std::move(types.error()));
    const bool changes = this->changes(value, full);
    if (is_map && changes) return unsupported("a map whose elements can change is not supported");
    if (changes) return read_changing_set(value, std::move(*types), full);
    const bool to_values = is_map && value.value("map", Json()) != "verdict";
    if (to_values && !(options_.translates && is_type_of_translations(value.value("map", Json()))))
      return unsupported("it is a map to values, not to verdicts");
    static const Json kNone = Json::array();
    const auto elements = value.find("elem");
    auto set = read_elements(*types, is_map, elements == value.end() ? kNone : *elements, options_.interfaces,
                             read_.value.interface_names, budget_, to_values);
    if (!set) return within(".elem", std::move(set.error()));
    return set;
  }

  Checked<Set> read_changing_set(const Json& value, std::vector<Type> types, const std::string& full) {
    if (types.size() > classify::kMostElementValues)
      return unsupported(fmt::format("a set that changes with more than {} values in an element is not supported",
                                     classify::kMostElementValues));
    for (const char* member : {"stmt", "limit", "quota", "ct count"}) {
      if (value.contains(member)) return unsupported("a set with statements is not supported", in_quotes(member));
    }
    classify::ChangingSet changing;
    changing.name = full;
    changing.values = static_cast<std::uint32_t>(types.size());
    if (value.contains("size")) {
      if (!value["size"].is_number_unsigned())
        return nftables::mistake("wrong size of a set", value["size"].dump(), "a number");
      changing.size = static_cast<std::uint32_t>(
          std::min<std::uint64_t>(value["size"].get<std::uint64_t>(), kMostChangingElements));
    }
    if (value.contains("timeout")) {
      auto timeout = read_seconds_ns(value["timeout"]);
      if (!timeout) return within(".timeout", std::move(timeout.error()));
      changing.timeout_ns = *timeout;
    }
    Set set;
    set.types = std::move(types);
    if (const auto elements = value.find("elem"); elements != value.end()) {
      auto read = read_changing_elements(
          set.types, *elements, {options_.interfaces, read_.value.interface_names, set.unknown_interfaces}, budget_);
      if (!read) return within(".elem", std::move(read.error()));
      changing.elements = std::move(*read);
    }
    for (classify::ChangingSet::Element& element : changing.elements) {
      if (element.timeout_ns == 0) element.timeout_ns = changing.timeout_ns;
    }
    classify::StepObjects& objects = read_.value.objects;
    set.changing = static_cast<std::uint32_t>(objects.sets.size());
    objects.sets.push_back(std::move(changing));
    return set;
  }

  /// "ipv4_addr"; ["ipv4_addr", "inet_service"]; {"typeof": {"payload": …}}
  static Checked<std::vector<Type>> read_types(const Json& value) {
    std::vector<Type> types;
    if (value.is_object() && value.contains("typeof")) {
      const auto keys = read_keys(value["typeof"]);
      if (!keys) return tl::unexpected(keys.error());
      for (const Key& key : *keys) types.push_back(key.type);
      return types;
    }
    const Json list = value.is_array() ? value : Json::array({value});
    for (const Json& name : list) {
      const auto type = name.is_string() ? type_of(name.get_ref<const std::string&>()) : std::nullopt;
      if (!type) return unsupported("elements of this type are not supported", in_quotes(name.dump()));
      types.push_back(*type);
    }
    if (types.empty()) return unsupported("a set without a type");
    return types;
  }

  bool read_rule_object(const Json& value) {
    const std::string family = text_of(value, "family"), table = text_of(value, "table"),
                      chain_name = text_of(value, "chain");
    const auto chain = declared_.find(full_name(family, table, chain_name));
    if (chain == declared_.end()) {
      mistake("rule of an unknown chain", in_quotes(chain_name), "a chain that is declared before it");
      return true;
    }
    Origin origin{&chain->second, object_, handle_of(value), {}};
    const std::string text = fmt::format("{} {} {}: {}", family, table, chain_name, rule_text(value));
    // Two equal rules have limits of their own.
    const unsigned same = rules_by_text_[text]++;
    const std::string unique = same == 0 ? text : fmt::format("{} ({})", text, same + 1);
    const RuleContext context{
        options_.interfaces,
        [&](const std::string& name) { return find_set(family, table, name); },
        read_.value,
        budget_,
        options_.translates,
        [&](const std::string& name) { return find_object(rates_, full_name(family, table, name), "limit"); },
        [&](const std::string& name) { return find_object(quotas_, full_name(family, table, name), "quota"); },
        [&](const std::string& name, std::string_view type) -> const Json* {
          const auto set = elements_.find(full_name(family, table, name));
          return set == elements_.end() || set->second.first != type ? nullptr : &set->second.second;
        },
        [&](const std::string& name) {
          const auto helper = helpers_.find(full_name(family, table, name));
          return helper == helpers_.end() ? std::string() : helper->second;
        },
        unique,
        options_.host,
        options_.logs,
        options_.bridges ? std::optional(options_.hook.value_or(Hook::forward)) : std::nullopt,
        options_.hook == Hook::output};
    auto rule = value.contains("expr") ? read_rule(value["expr"], context)
                                       : Checked<Rule>(nftables::mistake("rule without \"expr\"", "", "statements"));
    if (!rule) {
      mistakes_.add(error(fmt::format("{}: {}", where(origin, rule.error().path), rule.error().message),
                          rule.error().found, rule.error().expected));
      return true;
    }
    origin.ignored = rule->ignored;
    if (rule->can_drop && chain->second.harmful.empty()) chain->second.harmful = where(origin, "");
    Errors unknown;
    for (const std::string& name : rule->unknown_interfaces) unknown.push_back(unknown_interface(origin, name));
    if (rule->marks && chain->second.marking.empty()) chain->second.marking = where(origin, "");
    tests_marks_ |= rule->tests_marks;
    for (const std::string& set : rule->sets_updated) updates_.push_back({full_name(family, table, set), chain->first});
    return add_parts(std::move(*rule), origin, text, unknown, chain->second);
  }

  /// Each part counts as a rule of its own if it has another target, or if it translates.
  bool add_parts(Rule rule, const Origin& origin, const std::string& text, const Errors& unknown, Declared& chain) {
    std::vector<ChainRule>& to = chains_.find(full_name(chain.family, chain.table, chain.name))->second.rules;
    const std::size_t first = read_.value.rules.size();
    const std::string handle = origin.handle == 0 ? "" : fmt::format(" # handle {}", origin.handle);
    const bool from_map = rule.parts.size() > 1;
    std::size_t cost = 0;
    for (ChainRule& part : rule.parts) {
      const classify::Target target = part.jump == Jump::drop     ? classify::Target::drop
                                      : part.jump == Jump::reject ? classify::Target::reject
                                                                  : classify::Target::accept;
      const bool translates = part.jump == Jump::translate;
      std::size_t index = translates ? read_.value.rules.size() : first;
      const auto is_other = [&](const classify::Rule& one) { return one.target != target || one.steps != part.steps; };
      while (index < read_.value.rules.size() && is_other(read_.value.rules[index])) ++index;
      if (index == read_.value.rules.size()) {
        std::string written = text;
        if (translates && from_map) written.append(" : ").append(part.target);
        written += handle;
        read_.value.rules.push_back(
            {0, target, false, std::move(written), part.answer, part.translation, part.steps, part.continues});
        origins_.push_back(origin);
      }
      part.index = static_cast<std::uint32_t>(index);
      part.unknown_interfaces = unknown;
      const bool redirects = translates && part.translation->way == classify::Translation::Way::redirect;
      if (redirects && options_.hook == Hook::output && part.unsupported.empty()) part.unsupported = kRedirectsHost;
      if (part.jump == Jump::call || part.jump == Jump::go) {
        part.target = full_name(chain.family, chain.table, part.target);
        chain.called.push_back(part.target);
      }
      std::size_t conditions = 0;
      for (const Alternative& alternative : part.alternatives) conditions += alternative.conditions.size();
      cost += std::max(part.alternatives.size(), conditions / kMostConditionsPerRule);
      for (const std::string& set : rule.sets_used) {
        uses_.push_back({full_name(chain.family, chain.table, set), set, &to, to.size()});
      }
      to.push_back(std::move(part));
    }
    // The rule has been counted once, as an object.
    cost_ += cost > 0 ? cost - 1 : 0;
    return cost_ <= options_.most_rules || stop(where(origin, ""));
  }

  Checked<const Set*> find_set(const std::string& family, const std::string& table, const std::string& name) {
    const auto set = sets_.find(full_name(family, table, name));
    if (set == sets_.end()) {
      return nftables::mistake("unknown set", in_quotes("@" + name), "a set that the table declares before the rule");
    }
    if (!set->second) {
      const Problem& problem = set->second.error();
      return nftables::unsupported(fmt::format("set @{} is not supported: {}", name, problem.message), problem.found,
                                   problem.expected);
    }
    return &*set->second;
  }

  /// "nftables[17].rule.expr[2] (table inet filter, chain forward, rule handle 7)"
  static std::string where(const Origin& origin, const std::string& path) {
    const std::string handle = origin.handle == 0 ? "" : fmt::format(", rule handle {}", origin.handle);
    return fmt::format("nftables[{}].rule{}{} (table {} {}, chain {}{})", origin.object, path.empty() ? "" : ".expr",
                       path, origin.chain->family, origin.chain->table, origin.chain->name, handle);
  }

  [[nodiscard]] Error unknown_interface(const Origin& origin, std::string name) const {
    if (name.ends_with('+')) name.back() = '*';
    return error(where(origin, "") + ": unknown interface", in_quotes(name),
                 fmt::format("a port of the chain ({}), or a name that `interfaces` maps to one or to {}",
                             options_.interfaces.port_names(), classify::Interfaces::kNone));
  }

  [[nodiscard]] bool has_base_chains() const;
  Result<Read<classify::Ruleset>> finish();
  void leave_out_users_of_sets_updated_elsewhere();
  void leave_out_look_ups_of_limited_elements();
  void check_jumps();
  [[nodiscard]] bool is_of_wanted_family(const Declared& chain) const;
  [[nodiscard]] bool is_of_wanted_type(const Declared& chain) const;
  void report_other_family(const std::string& name);
  [[nodiscard]] std::vector<BaseChain> find_starts();
  void check_other_chain(const Declared& chain, const std::string& key);
  void note_where_rules_matter(const Declared& chain, const std::string& key);
  [[nodiscard]] std::set<std::string_view> reached_from(const std::vector<const Declared*>& filters) const;
  void leave_out_at_other_places(const std::vector<const Declared*>& early, const std::vector<const Declared*>& others,
                                 std::string_view hook);
  void leave_out_before_translation(std::vector<const Declared*>& filters);
  [[nodiscard]] bool needs_early_rules(const std::set<std::string_view>& early) const;
  [[nodiscard]] bool is_late(const Declared& filter, std::string_view hook);
  [[nodiscard]] BaseChain between(const char* text, classify::Step step);
  void spread_harm();
  void spread(std::string Declared::*place);
  [[nodiscard]] Errors set_policies(std::vector<BaseChain>& starts);
  void report_ignored();

  const std::string& file_;
  const ReadOptions& options_;
  Read<classify::Ruleset> read_;
  ErrorList mistakes_;
  Budget budget_;
  std::size_t cost_ = 0;
  std::size_t object_ = 0;  // the index of the current object
  std::string place_;       // "nftables[17].rule"
  std::set<std::string> dormant_;
  std::map<std::string, Declared> declared_;
  FilterChains chains_;            // the same
  std::vector<std::string> base_;  // the base chains, in the order of the file
  std::map<std::string, Checked<Set>> sets_;
  std::map<std::string, std::pair<std::string, Json>>
      elements_;                 // their type and elements, of those that only steps know
  std::vector<Origin> origins_;  // of the rules, by index
  std::map<std::string, unsigned> rules_by_text_;
  std::map<std::string, std::string> helpers_;           // types of named ones
  std::map<std::string, std::uint32_t> rates_, quotas_;  // named ones, by index in StepObjects
  std::set<std::string> updated_;                        // sets whose elements rules change
  std::vector<SetUpdate> updates_;
  bool tests_marks_ = false;  // any rule
  std::vector<SetUse> uses_;
};

/// Rules at hooks that no function stands for would change the elements of a set: those for the host's own packets,
/// and, without `hook`, all but those that filter forwarded packets. If rules here change it in the same way, only what
/// they would do for the host's own packets is missing.
void Reader::leave_out_users_of_sets_updated_elsewhere() {
  const auto reached_from = [&](const auto& is_start) {
    std::set<std::string_view> reached;
    std::vector<std::string_view> open;
    for (const std::string& key : base_) {
      if (is_start(declared_.find(key)->second) && reached.insert(key).second) open.push_back(key);
    }
    while (!open.empty()) {
      const Declared& chain = declared_.find(std::string(open.back()))->second;
      open.pop_back();
      for (const std::string& called : chain.called) {
        if (declared_.contains(called) && reached.insert(called).second) open.push_back(called);
      }
    }
    return reached;
  };
  const auto is_here = [&](const Declared& chain) {
    if (!is_of_wanted_family(chain)) return false;
    if (chain.hook == "forward" && chain.type == "filter") return true;
    if (options_.host_has_port && (chain.hook == "input" || chain.hook == "output")) return true;
    return options_.hook && (chain.hook == "prerouting" || chain.hook == "postrouting");
  };
  const std::set<std::string_view> here = reached_from(is_here);
  const std::set<std::string_view> elsewhere = reached_from([&](const Declared& chain) { return !is_here(chain); });
  std::set<std::string_view> changed;
  for (const SetUpdate& update : updates_) {
    if (elsewhere.contains(update.chain) && !here.contains(update.chain)) changed.insert(update.set);
  }
  for (const SetUse& use : uses_) {
    ChainRule& rule = (*use.chain)[use.rule];
    if (!changed.contains(use.set) || !rule.unsupported.empty()) continue;
    rule.unsupported =
        fmt::format("set @{} is not supported: rules that packets do not pass here change its elements", use.name);
  }
}

/// In Linux, a look-up also obeys what belongs to the element.
void Reader::leave_out_look_ups_of_limited_elements() {
  std::set<std::uint32_t> limited;
  const auto for_each_step = [&](const auto& use) {
    for (auto& [name, chain] : chains_) {
      for (ChainRule& rule : chain.rules) {
        for (const classify::Step& step : rule.steps) use(rule, step);
      }
    }
  };
  for_each_step([&](ChainRule&, const classify::Step& step) {
    const auto* const update = std::get_if<classify::Update>(&step);
    if (update != nullptr && update->of_element.index() != 0) limited.insert(update->set);
  });
  for_each_step([&](ChainRule& rule, const classify::Step& step) {
    const auto* const look_up = std::get_if<classify::LookUp>(&step);
    if (look_up == nullptr || !limited.contains(look_up->set) || !rule.unsupported.empty()) return;
    rule.unsupported = "looking up a set whose elements have limits, quotas or counts is not supported";
  });
}

bool Reader::has_base_chains() const {
  return std::ranges::any_of(declared_, [](const auto& chain) { return !chain.second.hook.empty(); });
}

Result<Read<classify::Ruleset>> Reader::finish() {
  leave_out_look_ups_of_limited_elements();
  leave_out_users_of_sets_updated_elsewhere();
  check_jumps();
  if (!mistakes_.empty()) return failure(std::move(mistakes_).take({file_, 0, 0}));
  std::vector<BaseChain> starts = find_starts();
  // Rules that are missing at `forward` must not open everything. With hooks, those of a router may be at others.
  const bool are_elsewhere = !options_.bridges && has_base_chains();
  const bool may_be_empty =
      options_.translates || (options_.hook && (*options_.hook != Hook::forward || are_elsewhere));
  if (starts.empty() && may_be_empty) return std::move(read_);
  if (starts.empty()) {
    return failure(
        error(options_.bridges ? "no chain that filters bridged frames" : "no chain that filters forwarded packets", "",
              fmt::format("a base chain of type filter at hook forward, in a table of family {}",
                          options_.bridges ? "bridge" : "inet, ip or ip6")));
  }
  if (Errors errors = set_policies(starts); !errors.empty()) return failure(std::move(errors));
  const PlaceInRule in_json = [&](const ChainRule& rule, Error problem) {
    problem.place = {file_, 0, 0};
    problem.message = where(origins_[rule.index], rule.path) + ": " + problem.message;
    return problem;
  };
  Errors errors = write_out(chains_, starts, options_.most_rules, in_json, read_);
  if (!errors.empty()) return failure(std::move(errors));
  report_ignored();
  return std::move(read_);
}

void Reader::check_jumps() {
  for (const auto& [key, chain] : chains_) {
    for (const ChainRule& rule : chain.rules) {
      if (rule.jump != Jump::call && rule.jump != Jump::go) continue;
      const auto to = chains_.find(rule.target);
      if (to != chains_.end() && !to->second.policy) continue;
      mistakes_.add(error(where(origins_[rule.index], "") +
                              (to == chains_.end() ? ": jump to an unknown chain" : ": jump to a base chain"),
                          in_quotes(rule.target), "a chain of the table that is no base chain"));
    }
  }
}

bool is_of_ip(const Declared& chain) { return chain.family == "ip" || chain.family == "ip6" || chain.family == "inet"; }

bool Reader::is_of_wanted_family(const Declared& chain) const {
  return options_.bridges ? chain.family == "bridge" : is_of_ip(chain);
}

/// Chains that packets do not pass in this chain, although they matter elsewhere.
void Reader::report_other_family(const std::string& name) {
  const char* const why = options_.bridges
                              ? "only routed packets and those of the host pass it, and here frames are bridged"
                              : "only frames that a bridge forwards pass it, and here packets are routed";
  read_.harmless.push_back(error(name + ": it does not apply: " + why, "", ""));
}

/// Chains of type route are filters, after which the route of a packet is looked up again if they have marked it: here,
/// the router follows in any case.
bool Reader::is_of_wanted_type(const Declared& chain) const {
  if (options_.translates) return chain.type == "nat";
  return chain.type == "filter" || chain.type == "route";
}

/// The base chains that filter forwarded packets, in the order in which packets pass them. Reports the other base
/// chains that matter.
std::vector<BaseChain> Reader::find_starts() {
  spread_harm();
  const std::string_view hook = name_of(options_.hook.value_or(Hook::forward));
  std::vector<const Declared*> filters;
  for (const std::string& key : base_) {
    const Declared& chain = declared_.find(key)->second;
    const bool is_ip = is_of_ip(chain), is_wanted = is_of_wanted_family(chain);
    // Also routed packets pass a bridge's other hooks, if they come or leave by a port of the bridge.
    const bool is_routed = options_.hook || options_.interfaces.out_known;
    const bool is_passed_by = options_.bridges ? (is_ip && chain.hook != "ingress") || chain.family == "arp"
                                               : chain.family == "bridge" && chain.hook == "forward" && is_routed;
    const bool matters = !chain.harmful.empty() || chains_.find(key)->second.policy == classify::Target::drop;
    const std::string name =
        fmt::format("nftables[{}].chain (table {} {}, chain {})", chain.object, chain.family, chain.table, chain.name);
    if (dormant_.contains(full_name(chain.family, chain.table, ""))) {
      read_.harmless.push_back(error(name + ": the table is dormant, so the chain filters no packets", "", ""));
    } else if (chain.family == "arp" && !options_.bridges) {
      read_.harmless.push_back(error(name + ": ARP is not supported: the verdicts of IP packets are the same", "", ""));
    } else if (is_passed_by) {
      if (matters) report_other_family(name);
    } else if (note_where_rules_matter(chain, key); is_wanted && chain.hook == hook && is_of_wanted_type(chain)) {
      filters.push_back(&chain);
    } else if (is_wanted && options_.hook && chain.hook != "ingress") {
      // Another function of the chain stands for the other hooks.
    } else if (!is_wanted || (chain.hook != "input" && chain.hook != "output")) {
      const std::string& harmful = chains_.find(key)->second.policy == classify::Target::drop ? name
                                   : chain.harmful.empty() && tests_marks_                    ? chain.marking
                                                                                              : chain.harmful;
      if (harmful.empty()) continue;
      if (is_ip && chain.type == "nat" && options_.leaves_nat_aside) {
        read_.harmless.push_back(error(fmt::format("{}: chain {} of type nat at hook {} is left aside: nothing is "
                                                   "translated",
                                                   harmful, chain.name, chain.hook),
                                       "", ""));
        continue;
      }
      read_.unsupported.push_back(
          error(fmt::format("{}: chain {} of type {} at hook {} is not supported: it can drop or change packets that "
                            "are forwarded",
                            harmful, chain.name, chain.type, chain.hook),
                "",
                chain.family == "bridge" && !options_.bridges ? "`family: bridge`, if the chain bridges frames"
                                                              : "chains of type filter at hook forward"));
    }
  }
  std::ranges::stable_sort(filters, {}, &Declared::priority);
  if (hook == "output" && !options_.translates) leave_out_before_translation(filters);
  const auto track = std::ranges::find_if(
      filters, [&](const Declared* one) { return !has_early_filters(hook) || one->priority >= kTracking; });
  auto translate = filters.end();
  bool tracks_between = false;
  if (!options_.translates && !options_.bridges) {
    const std::vector<const Declared*> early(filters.begin(), track), others(track, filters.end());
    leave_out_at_other_places(early, others, hook);
    tracks_between = hook == "prerouting" && needs_early_rules(reached_from(early));
    translate = std::ranges::find_if(filters, [&](const Declared* one) { return is_late(*one, hook); });
  }
  std::vector<BaseChain> starts;
  for (auto next = filters.begin();; ++next) {
    if (next == track && tracks_between)
      starts.push_back(between("the packet's connection is looked up", classify::TrackConnection{}));
    if (next == filters.end()) break;
    if (next == translate)
      starts.push_back(between("the packet's addresses are translated", classify::TranslateAddresses{}));
    starts.push_back({full_name((*next)->family, (*next)->table, (*next)->name), family_of(**next)});
  }
  bool more_ipv4 = false, more_ipv6 = false;
  for (auto start = starts.rbegin(); start != starts.rend(); ++start) {
    start->ipv4_continues = sees(*start, NetworkLayer::ipv4) && more_ipv4;
    start->ipv6_continues = sees(*start, NetworkLayer::ipv6) && more_ipv6;
    more_ipv4 |= sees(*start, NetworkLayer::ipv4);
    more_ipv6 |= sees(*start, NetworkLayer::ipv6);
  }
  return starts;
}

void Reader::note_where_rules_matter(const Declared& chain, const std::string& key) {
  if (!is_of_wanted_family(chain)) return;
  if (chain.harmful.empty() && chains_.find(key)->second.policy != classify::Target::drop) return;
  for (const Hook hook : kHooks) {
    if (chain.hook != name_of(hook)) continue;
    if (chain.type == "filter" || chain.type == "route") read_.value.filters_at |= bit_of(hook);
    if (chain.type == "nat") read_.value.translates_at |= bit_of(hook);
  }
}

std::set<std::string_view> Reader::reached_from(const std::vector<const Declared*>& filters) const {
  std::set<std::string_view> reached;
  std::vector<std::string> open;
  open.reserve(filters.size());
  for (const Declared* const filter : filters) open.push_back(full_name(filter->family, filter->table, filter->name));
  while (!open.empty()) {
    const auto chain = declared_.find(open.back());
    open.pop_back();
    if (chain == declared_.end() || !reached.insert(chain->first).second) continue;
    open.insert(open.end(), chain->second.called.begin(), chain->second.called.end());
  }
  return reached;
}

/// Before connections are looked up, rules cannot ask for them, and after that, packets cannot be left untracked.
void Reader::leave_out_at_other_places(const std::vector<const Declared*>& early,
                                       const std::vector<const Declared*>& others, std::string_view hook) {
  const auto leave_out = [&](std::string_view chain, const auto& is_out_of_place, const std::string& why) {
    for (ChainRule& rule : chains_.find(chain)->second.rules) {
      if (rule.unsupported.empty() && is_out_of_place(rule)) rule.unsupported = why;
    }
  };
  for (const std::string_view chain : reached_from(early)) {
    leave_out(
        chain,
        [](const ChainRule& rule) {
          return rule.tests_connections() || std::ranges::any_of(rule.steps, is_step<classify::GiveHelper>);
        },
        fmt::format("connections are not known before priority {}", kTracking));
  }
  // At output, connections are looked up before all rules.
  std::set<std::string_view> tracked = reached_from(others);
  if (hook == "output") tracked.merge(reached_from(early));
  for (const std::string_view chain : tracked) {
    leave_out(
        chain, [](const ChainRule& rule) { return std::ranges::any_of(rule.steps, is_step<classify::LeaveUntracked>); },
        fmt::format("notrack is supported only at hook prerouting before priority {}", kTracking));
  }
}

/// At output, packets are translated before the filters see them: leaves out those that Linux passes before that.
void Reader::leave_out_before_translation(std::vector<const Declared*>& filters) {
  const auto translates = [&](const Declared& chain) {
    const std::string key = full_name(chain.family, chain.table, chain.name);
    return !chain.harmful.empty() || chains_.find(key)->second.policy == classify::Target::drop;
  };
  const auto is_before = [&](const Declared* filter) {
    return std::ranges::any_of(base_, [&](const std::string& key) {
      const Declared& chain = declared_.find(key)->second;
      return chain.type == "nat" && chain.hook == "output" && chain.priority >= filter->priority && translates(chain) &&
             common_family(family_of(chain), family_of(*filter)) &&
             !dormant_.contains(full_name(chain.family, chain.table, ""));
    });
  };
  for (const Declared* const filter : filters) {
    if (!is_before(filter)) continue;
    read_.unsupported.push_back(error(
        fmt::format("nftables[{}].chain (table {} {}, chain {}): a filter before the translation of addresses at hook "
                    "output is not supported",
                    filter->object, filter->family, filter->table, filter->name),
        fmt::format("priority {}", filter->priority), "a higher priority than that of the chain of type nat"));
  }
  std::erase_if(filters, is_before);
}

/// Whether connections must not be looked up before these rules: they can drop packets, or leave them untracked.
bool Reader::needs_early_rules(const std::set<std::string_view>& early) const {
  return std::ranges::any_of(early, [&](std::string_view name) {
    const FilterChain& chain = chains_.find(name)->second;
    return chain.policy == classify::Target::drop || std::ranges::any_of(chain.rules, [](const ChainRule& rule) {
             return rule.jump == Jump::drop || rule.jump == Jump::reject ||
                    std::ranges::any_of(rule.steps, is_step<classify::LeaveUntracked>);
           });
  });
}

/// Whether it sees translated addresses. All chains of type nat translate in one place, whatever their priorities say.
bool Reader::is_late(const Declared& filter, std::string_view hook) {
  constexpr std::int64_t kOfDestinations = -100, kOfSources = 100;  // NF_IP_PRI_NAT_DST, NF_IP_PRI_NAT_SRC
  const std::int64_t place = hook == "prerouting" ? kOfDestinations : kOfSources;
  if (hook == "forward" || hook == "output" || filter.priority < place) return false;
  const bool is_translated = std::ranges::any_of(base_, [&](const std::string& key) {
    const Declared& chain = declared_.find(key)->second;
    return chain.type == "nat" && common_family(family_of(chain), family_of(filter)) &&
           !dormant_.contains(full_name(chain.family, chain.table, ""));
  });
  if (!is_translated) return false;
  if (filter.priority == place) {
    read_.unsupported.push_back(
        error(fmt::format("nftables[{}].chain (table {} {}, chain {}): a filter in the place of the translation of "
                          "addresses at hook {} is not supported: the one that was loaded last comes first",
                          filter.object, filter.family, filter.table, filter.name, hook),
              fmt::format("priority {}", filter.priority), "a lower or a higher priority"));
  }
  return true;
}

/// What happens between two filters, as a chain of one rule.
BaseChain Reader::between(const char* text, classify::Step step) {
  classify::Ruleset& rules = read_.value;
  ChainRule rule;
  rule.index = static_cast<std::uint32_t>(rules.rules.size());
  rule.alternatives.emplace_back();
  rule.steps = {step};
  rules.rules.push_back({0, classify::Target::accept, false, text, {}, {}, {std::move(step)}});
  static const Declared kNowhere;
  origins_.push_back({&kNowhere, 0, 0, {}});
  FilterChain& chain = chains_[text];
  chain.policy = classify::Target::accept;
  chain.rules.push_back(std::move(rule));
  return {text, NetworkLayer::none};
}

/// Makes the chains harmful that can reach a harmful one; the same for those that mark packets.
void Reader::spread_harm() {
  spread(&Declared::harmful);
  spread(&Declared::marking);
}

void Reader::spread(std::string Declared::*place) {
  std::map<std::string_view, std::vector<Declared*>> callers;
  std::vector<std::pair<std::string_view, Declared*>> open;
  for (auto& [key, chain] : declared_) {
    for (const std::string& called : chain.called) callers[called].push_back(&chain);
    if (!(chain.*place).empty()) open.emplace_back(key, &chain);
  }
  while (!open.empty()) {
    const auto [key, chain] = open.back();
    open.pop_back();
    for (Declared* const caller : callers[key]) {
      if (!(caller->*place).empty()) continue;
      caller->*place = chain->*place;
      open.emplace_back(declared_.find(full_name(caller->family, caller->table, caller->name))->first, caller);
    }
  }
}

/// Gives the rule set the policies of the last chains, and adds rules for those of the others.
Errors Reader::set_policies(std::vector<BaseChain>& starts) {
  classify::Ruleset& rules = read_.value;
  for (BaseChain& start : starts) {
    const classify::Target policy = *chains_.find(start.chain)->second.policy;
    const bool continues = start.ipv4_continues || start.ipv6_continues;
    if (options_.policy && continues) {
      return {error("`policy` is set, but packets pass several base chains", in_quotes(name(*options_.policy)),
                    "no `policy`, or one base chain of type filter at hook forward for each family")};
    }
    if (sees(start, NetworkLayer::ipv4) && !start.ipv4_continues) rules.ipv4_policy = policy;
    if (sees(start, NetworkLayer::ipv6) && !start.ipv6_continues) rules.ipv6_policy = policy;
    if (!continues || policy != classify::Target::drop) continue;
    start.policy_rule = static_cast<std::uint32_t>(rules.rules.size());
    const Declared& chain = declared_.find(start.chain)->second;
    rules.rules.push_back({0, classify::Target::drop, false, start.chain + ": policy drop"});
    origins_.push_back({&chain, chain.object, 0, {}});
  }
  if (options_.policy) rules.ipv4_policy = rules.ipv6_policy = *options_.policy;
  return {};
}

/// Of the rules that apply to packets.
void Reader::report_ignored() {
  for (const classify::Entry& entry : read_.value.entries) {
    Origin& origin = origins_[entry.rule];
    const std::string_view ignored = std::exchange(origin.ignored, {});
    if (ignored.empty()) continue;
    read_.harmless.push_back(
        error(fmt::format("{}: {} is not supported: the rule applies without it", where(origin, ""), ignored), "", ""));
  }
}

}  // namespace
}  // namespace nftables

Result<Read<classify::Ruleset>> read_nftables(std::string_view text, const std::string& file,
                                              const ReadOptions& options) {
  return nftables::Reader(file, options).read(text);
}

}  // namespace penstock::firewall
