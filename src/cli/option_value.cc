// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/option_value.h"

#include <string_view>

#include "base/text_file.h"

namespace penstock::cli {

Value value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  // CLI11 has the list of an IsMember only in the name of the type: "TEXT:{auto,cpu}".
  std::string name = option.get_type_name();
  Value value{Value::Kind::word, name};
  if (const std::size_t list = name.find(":{"); list != name.npos) {
    value.name = name.substr(0, list);
    const std::string_view choices = std::string_view(name).substr(list + 2, name.rfind('}') - list - 2);
    for (const std::string_view choice : split(choices, ',')) value.choices.emplace_back(choice);
  } else if (name.find('|') != name.npos) {
    for (const std::string_view choice : split(name, '|')) value.choices.emplace_back(choice);
  } else if (name == "SOCKET") {
    value.kind = Value::Kind::socket;
  } else if (name == "TEXT" || name.starts_with("FILE")) {
    value.kind = Value::Kind::file;  // the only texts that can be completed
  } else if (name == "DIR") {
    value.kind = Value::Kind::folder;
  }
  value.optional = option.get_expected_min() == 0;
  return value;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace penstock::cli
