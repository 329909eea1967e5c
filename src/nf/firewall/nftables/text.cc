// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "nf/firewall/nftables/translation.h"

namespace penstock::firewall::nftables {

namespace {

constexpr std::size_t kMostElements = 64;
/// Of a map in a translation, each value of which becomes a rule with this text.
constexpr std::size_t kMostMapped = 4;

std::string expression_text(const Json& value, bool names_interfaces);

std::string joined(const Json& list, std::string_view separator, bool names_interfaces) {
  std::string text;
  std::size_t count = 0;
  for (const Json& one : list) {
    if (count == kMostElements) return text + fmt::format("{}… ({} in all)", separator, list.size());
    if (count++ != 0) text += separator;
    text += expression_text(one, names_interfaces);
  }
  return text;
}

std::string word(const Json& object, const char* member) {
  const auto found = object.is_object() ? object.find(member) : object.end();
  if (!object.is_object() || found == object.end()) return "";
  return found->is_string() ? found->get<std::string>() : json_text(*found);
}

/// "meta l4proto", but "iifname".
std::string meta_text(const std::string& key) {
  constexpr auto kUnqualified =
      std::to_array<std::string_view>({"iif", "iifname", "iiftype", "iifgroup", "oif", "oifname", "oiftype", "oifgroup",
                                       "skuid", "skgid", "nftrace", "rtclassid", "ibrname", "obrname"});
  const bool alone = std::ranges::find(kUnqualified, std::string_view(key)) != kUnqualified.end();
  return alone ? key : "meta " + key;
}

bool is_interface(const Json& key) {
  if (!key.is_object() || !key.contains("meta")) return false;
  const std::string name = word(key["meta"], "key");
  return name == "iif" || name == "oif" || name == "iifname" || name == "oifname";
}

std::string verdict_text(const Json& verdict) {
  if (!verdict.is_object() || verdict.size() != 1) return json_text(verdict);
  const std::string& kind = verdict.begin().key();
  const std::string target = word(verdict.begin().value(), "target");
  return target.empty() ? kind : kind + " " + target;
}

/// An element of a set, or of a map: [key, verdict].
std::string element_text(const Json& element, bool names_interfaces) {
  if (!element.is_array() || element.size() != 2) return expression_text(element, names_interfaces);
  return expression_text(element[0], names_interfaces) + " : " + verdict_text(element[1]);
}

std::string set_text(const Json& elements, bool names_interfaces, bool is_map) {
  if (!elements.is_array()) return json_text(elements);
  std::string text = "{ ";
  std::size_t count = 0;
  for (const Json& element : elements) {
    if (count == kMostElements) {
      text += fmt::format(", … ({} in all)", elements.size());
      break;
    }
    if (count++ != 0) text += ", ";
    text += is_map ? element_text(element, names_interfaces) : expression_text(element, names_interfaces);
  }
  return text + " }";
}

/// "ip saddr map { 10.0.0.1 : 192.168.0.1 }"
std::string value_map_text(const Json& map) {
  if (!map.is_object() || !map.contains("key") || !map.contains("data")) return json_text(map);
  const Json& key = map["key"];
  const Json& data = map["data"];
  const std::string text = expression_text(key, false) + " map ";
  if (!data.is_object() || !data.contains("set") || !data["set"].is_array()) return text + expression_text(data, false);
  std::string elements;
  std::size_t count = 0;
  for (const Json& element : data["set"]) {
    if (count == kMostMapped) {
      elements += fmt::format(", … ({} in all)", data["set"].size());
      break;
    }
    if (count++ != 0) elements += ", ";
    const bool is_pair = element.is_array() && element.size() == 2;
    elements += is_pair ? expression_text(element[0], is_interface(key)) + " : " + expression_text(element[1], false)
                        : json_text(element);
  }
  return text + "{ " + elements + " }";
}

std::string object_text(const std::string& kind, const Json& value, bool names_interfaces) {
  if (kind == "payload" && value.is_object() && value.contains("field")) {
    return word(value, "protocol") + " " + word(value, "field");
  }
  if (kind == "meta") return meta_text(word(value, "key"));
  if (kind == "ct") {
    const std::string direction = word(value, "dir");
    return "ct " + (direction.empty() ? "" : direction + " ") + word(value, "key");
  }
  if (kind == "rt" || kind == "socket" || kind == "osf") return kind + " " + word(value, "key");
  if (kind == "tcp option") {
    const std::string field = word(value, "field");
    return "tcp option " + word(value, "name") + (field.empty() ? "" : " " + field);
  }
  if (kind == "fib" && value.is_object() && value.contains("flags")) {
    const Json& flags = value["flags"];
    return fmt::format("fib {} {}", flags.is_array() ? joined(flags, " . ", false) : expression_text(flags, false),
                       word(value, "result"));
  }
  if (kind == "numgen" || kind == "jhash" || kind == "symhash") {
    std::string text = kind;
    if (const std::string mode = word(value, "mode"); !mode.empty()) text += " " + mode;
    if (value.is_object() && value.contains("expr")) text += " " + expression_text(value["expr"], false);
    text += " mod " + word(value, "mod");
    for (const char* const more : {"seed", "offset"}) {
      if (const std::string number = word(value, more); !number.empty() && number != "0")
        text += fmt::format(" {} {}", more, number);
    }
    return text;
  }
  if (kind == "exthdr") {
    const std::string field = word(value, "field");
    return field.empty() ? "exthdr " + word(value, "name") : word(value, "name") + " " + field;
  }
  if (kind == "prefix") return word(value, "addr") + "/" + word(value, "len");
  if (kind == "elem" && value.is_object() && value.contains("val")) {
    return expression_text(value["val"], names_interfaces);
  }
  if (kind == "set") return set_text(value, names_interfaces, false);
  if (kind == "map") return value_map_text(value);
  if (value.is_array()) {
    if (kind == "range") return joined(value, "-", names_interfaces);
    if (kind == "concat") return joined(value, " . ", names_interfaces);
    if (kind == "|") return joined(value, " | ", names_interfaces);
    if (kind == "^") return joined(value, " ^ ", names_interfaces);
    if (kind == "&" && value.size() == 2) {
      const bool many = value[1].is_structured();
      const std::string mask = value[1].is_array() ? joined(value[1], " | ", false) : expression_text(value[1], false);
      return expression_text(value[0], false) + " & " + (many ? "(" + mask + ")" : mask);
    }
  }
  return json_text({{kind, value}});
}

std::string expression_text(const Json& value, bool names_interfaces) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return names_interfaces && !text.starts_with('@') ? "\"" + text + "\"" : text;
  }
  if (value.is_array()) return joined(value, ",", names_interfaces);
  if (value.is_object() && value.size() == 1) {
    return object_text(value.begin().key(), value.begin().value(), names_interfaces);
  }
  return json_text(value);
}

std::string match_text(const Json& match) {
  const std::string op = word(match, "op");
  if (!match.is_object() || !match.contains("left") || !match.contains("right")) return json_text(match);
  const Json& left = match["left"];
  const Json& right = match["right"];
  if (left.is_object() && left.contains("exthdr") && right.is_boolean()) {
    return expression_text(left, false) + (right == true ? " exists" : " missing");
  }
  // Of bits, an operator left out means `in`; of a masked expression, there is none to leave out.
  const bool is_masked = left.is_object() && left.contains("&");
  const bool is_flags = left.is_object() && left.contains("payload") && word(left["payload"], "field") == "flags";
  const bool is_implied = op == "in" || (op == "==" && !is_masked && (!is_flags || right.is_object()));
  return expression_text(left, false) + (is_implied ? " " : " " + op + " ") +
         expression_text(right, is_interface(left));
}

std::string map_text(const Json& map) {
  if (!map.is_object() || !map.contains("key") || !map.contains("data")) return json_text(map);
  const Json& key = map["key"];
  const Json& data = map["data"];
  const bool anonymous = data.is_object() && data.contains("set");
  return expression_text(key, false) + " vmap " +
         (anonymous ? set_text(data["set"], is_interface(key), true) : expression_text(data, false));
}

std::string_view over(const Json& value) { return value.is_object() && value.contains("inv") ? "over " : ""; }

/// "limit rate over 10/second burst 5", "limit name \"slow\""
std::string limit_text(const Json& value) {
  if (!value.is_object()) return "limit name " + json_text(value);
  std::string text = fmt::format("limit rate {}{}", over(value), word(value, "rate"));
  if (value.contains("rate_unit")) text += " " + word(value, "rate_unit");
  text += "/" + word(value, "per");
  if (value.contains("burst") && value["burst"] != 0) text += " burst " + word(value, "burst");
  if (value.contains("burst_unit")) text += " " + word(value, "burst_unit");
  return text;
}

/// Without what is used of it, which changes.
std::string quota_text(const Json& value) {
  if (!value.is_object()) return "quota name " + json_text(value);
  return fmt::format("quota {}{} {}", over(value), word(value, "val"), word(value, "val_unit"));
}

std::string statement_text(const Json& statement);

/// "update @seen { ip saddr timeout 60s limit rate 10/second }"
std::string update_text(const std::string& kind, const Json& value) {
  const bool is_meter = kind == "meter";
  if (!value.is_object() || !value.contains(is_meter ? "key" : "elem")) return json_text(value);
  std::string text = is_meter ? "meter " + word(value, "name") : word(value, "op") + " " + word(value, "set");
  const Json& element = value[is_meter ? "key" : "elem"];
  text += " { " + expression_text(element, false);
  if (element.is_object() && element.contains("elem") && element["elem"].is_object() &&
      element["elem"].contains("timeout"))
    text += " timeout " + word(element["elem"], "timeout") + "s";
  const auto statements = value.find("stmt");
  if (statements != value.end()) {
    for (const Json& one : statements->is_array() ? *statements : Json::array({*statements}))
      text += " " + statement_text(one);
  }
  return text + " }";
}

/// "dnat ip to 10.0.0.5:8080 random", "masquerade"
std::string translation_text(const std::string& kind, const Json& value) {
  if (!value.is_object()) return value.is_null() ? kind : kind + " " + json_text(value);
  std::string text = kind;
  if (value.contains("family")) text += " " + word(value, "family");
  const bool prefix = word(value, "type_flags") == "prefix";
  if (prefix) text += " prefix";
  if (value.contains("addr") || value.contains("port")) text += " to ";
  if (value.contains("addr")) {
    const std::string address = expression_text(value["addr"], false);
    const bool brackets = value.contains("port") && value["addr"].is_string() && address.find(':') != std::string::npos;
    text += brackets ? "[" + address + "]" : address;
  }
  if (value.contains("port")) text += ":" + expression_text(value["port"], false);
  if (!value.contains("flags") || prefix) return text;
  const Json& flags = value["flags"];
  return text + " " + (flags.is_array() ? joined(flags, ",", false) : expression_text(flags, false));
}

std::string statement_text(const Json& statement) {
  if (!statement.is_object() || statement.size() != 1) return json_text(statement);
  const std::string& kind = statement.begin().key();
  const Json& value = statement.begin().value();
  if (kind == "match") return match_text(value);
  if (kind == "vmap") return map_text(value);
  if (is_translation(kind)) return translation_text(kind, value);
  if (kind == "jump" || kind == "goto") return verdict_text(statement);
  if (kind == "reject" && value.is_object()) {
    const std::string answer = word(value, "expr");
    return "reject with " + word(value, "type") + (answer.empty() ? "" : " " + answer);
  }
  if (kind == "log" && value.is_object() && value.contains("prefix"))
    return "log prefix \"" + word(value, "prefix") + "\"";
  if (kind == "flow" && value.is_object())
    return fmt::format("flow {} {}", word(value, "op"), word(value, "flowtable"));
  if (kind == "limit") return limit_text(value);
  if (kind == "quota") return quota_text(value);
  if (kind == "ct count") return fmt::format("ct count {}{}", over(value), word(value, "val"));
  if (kind == "set" || kind == "meter") return update_text(kind, value);
  if (kind == "mangle" && value.is_object() && value.contains("key") && value.contains("value"))
    return expression_text(value["key"], false) + " set " + expression_text(value["value"], false);
  // Statements without arguments that matter: accept, counter, notrack.
  return value.is_null() || kind == "counter" || kind == "log" ? kind : json_text(statement);
}

}  // namespace

std::string in_words(const Json& expression) { return in_quotes(expression_text(expression, false)); }

std::string rule_text(const Json& rule) {
  std::string text;
  const auto statements = rule.find("expr");
  if (statements != rule.end() && statements->is_array()) {
    for (const Json& statement : *statements) {
      if (!text.empty()) text += ' ';
      text += statement_text(statement);
    }
  }
  if (const std::string comment = word(rule, "comment"); !comment.empty()) text += " comment \"" + comment + "\"";
  return text;
}

}  // namespace penstock::firewall::nftables
