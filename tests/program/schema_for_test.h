// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks JSON against the part of JSON Schema that our schemas use. A keyword that it does not know is a mismatch, so
// that nothing in a schema is silently ignored.

#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace penstock {

namespace schema_detail {

inline bool is_of_type(const nlohmann::json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

}  // namespace schema_detail

/// Where and how `value` differs from `schema`, a part of `root`; "" if it does not.
inline std::string mismatch(const nlohmann::json& root, const nlohmann::json& schema, const nlohmann::json& value,
                            const std::string& at = "") {
  using nlohmann::json;
  for (const auto& [keyword, rule] : schema.items()) {
    const std::string here = at + ": " + keyword + " " + rule.dump().substr(0, 200);
    if (keyword == "$schema" || keyword == "$id" || keyword == "$defs" || keyword == "title" ||
        keyword == "description" || (keyword == "additionalProperties" && rule.is_boolean()))
      continue;  // the last one with `properties`
    if (keyword == "$ref") {
      const json& target = root.at(json::json_pointer(rule.get<std::string>().substr(1)));
      if (const std::string wrong = mismatch(root, target, value, at); !wrong.empty()) return wrong;
    } else if (keyword == "type") {
      const json types = rule.is_array() ? rule : json::array({rule});
      const bool fits = std::any_of(types.begin(), types.end(),
                                    [&](const json& type) { return schema_detail::is_of_type(value, type); });
      if (!fits) return here;
    } else if (keyword == "const") {
      if (value != rule) return here;
    } else if (keyword == "enum") {
      if (std::find(rule.begin(), rule.end(), value) == rule.end()) return here;
    } else if (keyword == "pattern") {
      if (value.is_string() && !std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>())))
        return here;
    } else if (keyword == "minimum") {
      if (value.is_number() && value.get<double>() < rule.get<double>()) return here;
    } else if (keyword == "required") {
      for (const json& name : rule) {
        if (value.is_object() && !value.contains(name.get<std::string>())) return at + ": lacks " + name.dump();
      }
    } else if (keyword == "properties") {
      const bool closed = schema.value("additionalProperties", json(true)) == false;
      if (!value.is_object()) continue;
      for (const auto& [name, member] : value.items()) {
        if (!rule.contains(name)) {
          if (closed) return at + ": unknown member " + name;
        } else if (const std::string wrong = mismatch(root, rule[name], member, at + "/" + name); !wrong.empty()) {
          return wrong;
        }
      }
    } else if (keyword == "additionalProperties") {
      for (const auto& [name, member] : value.items()) {
        if (schema.contains("properties") && schema["properties"].contains(name)) continue;
        if (const std::string wrong = mismatch(root, rule, member, at + "/" + name); !wrong.empty()) return wrong;
      }
    } else if (keyword == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
        if (const std::string wrong = mismatch(root, rule, value[i], at + "/" + std::to_string(i)); !wrong.empty())
          return wrong;
      }
    } else if (keyword == "oneOf") {
      std::string all;
      const auto fitting = std::count_if(rule.begin(), rule.end(), [&](const json& one) {
        const std::string wrong = mismatch(root, one, value, at);
        all += wrong.empty() ? "" : "; " + wrong;
        return wrong.empty();
      });
      if (fitting != 1) return at + ": oneOf: " + std::to_string(fitting) + " fit" + all;
    } else {
      return at + ": the schema has an unknown keyword " + keyword;
    }
  }
  return "";
}

}  // namespace penstock
