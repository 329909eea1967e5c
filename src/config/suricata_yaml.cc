// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/suricata_yaml.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/text_file.h"
#include "config/yaml_file.h"

namespace penstock::config {

namespace {

/// A section's variables: words, or lists of words.
void read_group(const YamlFile& file, const YAML::Node& group, std::vector<RuleVariable>& into, Errors& errors) {
  for (RawParameter& raw : file.parameters(group, {}, errors)) {
    if (raw.shape == RawParameter::Shape::wrong) continue;  // is among the errors
    if (raw.shape == RawParameter::Shape::mapping) {
      errors.push_back({raw.place, fmt::format("variable {}: wrong value", raw.name), "a mapping", "a word or a list"});
      continue;
    }
    std::string value = raw.shape == RawParameter::Shape::list ? fmt::format("[{}]", fmt::join(raw.items, ","))
                                                               : std::move(raw.items.front());
    into.push_back({std::move(raw.name), std::move(value), std::move(raw.place)});
  }
}

}  // namespace

Result<SuricataYaml> read_suricata_yaml(const std::string& path) {
  auto text = read_text_file(path);
  if (!text) return failure(std::move(text.error()));
  const auto file = YamlFile::of_text(*text, path);
  if (!file) {
    Errors errors = file.error();
    for (Error& error : errors) {
      if (error.message == "not a chain file") error = {error.place, "not a suricata.yaml", error.found, "a mapping"};
    }
    return failure(std::move(errors));
  }
  SuricataYaml yaml;
  Errors errors;
  for (const auto& section : file->root()) {
    const std::string name = section.first.IsScalar() ? section.first.Scalar() : "";
    if (name != "vars") {
      yaml.not_used.push_back(name);
      continue;
    }
    if (!section.second.IsMap() && !section.second.IsNull()) {
      errors.push_back({file->place(section.second), "vars: wrong value", shape_of(section.second),
                        "address-groups and port-groups"});
      continue;
    }
    for (const auto& group : section.second) {
      const std::string group_name = group.first.IsScalar() ? group.first.Scalar() : "";
      if (group_name == "address-groups" || group_name == "port-groups") {
        read_group(*file, group.second, yaml.variables, errors);
      } else {
        yaml.not_used.push_back("vars." + group_name);
      }
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return yaml;
}

Result<std::vector<RuleVariable>> read_variables(const std::string& text, const std::string& name) {
  const auto file = YamlFile::of_text(text, name);
  if (!file) return failure(file.error());
  std::vector<RuleVariable> variables;
  Errors errors;
  read_group(*file, file->root(), variables, errors);
  if (!errors.empty()) return failure(std::move(errors));
  return variables;
}

}  // namespace penstock::config
