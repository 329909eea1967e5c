// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/error_json.h"

#include <cstdint>
#include <string>

namespace penstock::report {

using Json = nlohmann::ordered_json;

Json to_json(const Errors& errors) {
  const auto or_null = [](const auto& value) { return value == decltype(value){} ? Json() : Json(value); };
  Json list = Json::array();
  for (const Error& error : errors) {
    list.push_back({{"file", or_null(error.place.file)},
                    {"line", or_null(error.place.line)},
                    {"column", or_null(error.place.column)},
                    {"message", error.message},
                    {"found", or_null(error.found)},
                    {"expected", or_null(error.expected)}});
  }
  return list;
}

Errors errors_of(const Json& list) {
  Errors errors;
  if (!list.is_array()) return errors;
  for (const Json& json : list) {
    const auto text = [&](const char* key) {
      return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>()
                                                                             : std::string();
    };
    const auto number = [&](const char* key) -> std::uint32_t {
      return json.is_object() && json.contains(key) && json[key].is_number_unsigned() ? json[key].get<std::uint32_t>()
                                                                                      : 0;
    };
    errors.push_back(
        {{text("file"), number("line"), number("column")}, text("message"), text("found"), text("expected")});
  }
  return errors;
}

}  // namespace penstock::report
