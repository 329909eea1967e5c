// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/suricata_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/parameter.h"
#include "base/text_file.h"
#include "config/yaml_file.h"

namespace penstock::cli {

namespace {

constexpr std::array<std::string_view, 2> kGroups{"address-groups", "port-groups"};

/// The keys of a mapping that were read so far and their places, to detect duplicates.
class KeyPlaces {
 public:
  KeyPlaces(const config::YamlFile& file, Errors& errors) : file_(file), errors_(errors) {}

  /// False, with an error that gives both places, if the key is a duplicate.
  bool add(const YAML::Node& key, const std::string& what) {
    const Place place = file_.place(key);
    const auto [first, is_new] = places_.try_emplace(key.Scalar(), place);
    if (is_new) return true;
    errors_.push_back({place, what + ": given twice", "here and at " + to_string(first->second), "each key once"});
    return false;
  }

 private:
  static std::string to_string(const Place& place) {
    return place.line == 0 ? place.file : fmt::format("{}:{}:{}", place.file, place.line, place.column);
  }

  const config::YamlFile& file_;
  Errors& errors_;
  std::map<std::string, Place> places_;
};

std::string name_of(const YAML::Node& key) { return key.IsScalar() ? key.Scalar() : ""; }

/// Reads the variables of a group, which are words or lists of words.
void read_group(const config::YamlFile& file, const YAML::Node& group, const std::string& name, KeyPlaces& names,
                std::vector<RuleVariable>& into, Errors& errors) {
  if (!group.IsMap() && !group.IsNull()) {
    errors.push_back({file.place(group), name + ": wrong value", config::shape_of(group),
                      "a mapping of variables, such as HOME_NET: 10.0.0.0/8"});
    return;
  }
  std::vector<YAML::Node> keys;
  for (const auto& member : group) {
    if (member.first.IsScalar()) keys.push_back(member.first);
  }
  std::size_t at = 0;
  for (RawParameter& raw : file.parameters(group, {}, errors)) {
    const YAML::Node key = keys[at++];
    if (!names.add(key, "variable " + raw.name)) continue;
    if (raw.shape == RawParameter::Shape::wrong) continue;  // reported already
    const auto wrong = [&](std::string found, std::string expected) {
      errors.push_back(
          {raw.place, fmt::format("variable {}: wrong value", raw.name), std::move(found), std::move(expected)});
    };
    if (raw.shape == RawParameter::Shape::mapping) {
      wrong("a mapping", "a word or a list");
    } else if (raw.items.empty() || raw.items.front().empty()) {
      // In YAML, an unquoted `!$HOME_NET` is a tag.
      wrong(raw.items.empty() ? "an empty list" : "nothing", "a word or a list; a value that begins with ! in quotes");
    } else {
      std::string value = raw.shape == RawParameter::Shape::list ? fmt::format("[{}]", fmt::join(raw.items, ","))
                                                                 : std::move(raw.items.front());
      into.push_back({std::move(raw.name), std::move(value), std::move(raw.place)});
    }
  }
}

/// The section `vars`.
void read_vars(const config::YamlFile& file, const YAML::Node& vars, SuricataYaml& yaml, Errors& errors) {
  if (vars.IsNull()) return;
  if (!vars.IsMap()) {
    errors.push_back({file.place(vars), "vars: wrong value", config::shape_of(vars), "address-groups and port-groups"});
    return;
  }
  KeyPlaces groups(file, errors);
  KeyPlaces names(file, errors);  // variable names must be unique across groups
  for (const auto& group : vars) {
    const std::string name = name_of(group.first);
    if (std::ranges::find(kGroups, name) == kGroups.end()) {
      errors.push_back({file.place(group.first), "vars: unknown group", config::shape_of(group.first),
                        expected_name(name, kGroups)});
    } else if (groups.add(group.first, "vars." + name)) {
      read_group(file, group.second, "vars." + name, names, yaml.variables, errors);
    }
  }
}

/// Reports a section that should be `vars` or a part of it. Returns whether it is one; other sections are ignored.
bool is_misplaced(const config::YamlFile& file, const YAML::Node& key, bool has_vars, Errors& errors) {
  constexpr std::array<std::string_view, 1> kVars{"vars"};
  const std::string name = name_of(key);
  if (name.starts_with("vars.") || std::ranges::find(kGroups, name) != kGroups.end()) {
    errors.push_back({file.place(key), "wrong place for variables", in_quotes(name),
                      "address-groups and port-groups, indented under `vars:`"});
    return true;
  }
  std::string lower = name;
  std::ranges::transform(lower, lower.begin(), ascii_lower);
  if (has_vars || nearest_name(lower, kVars).empty()) return false;
  errors.push_back({file.place(key), "unknown section", in_quotes(name), "vars"});
  return true;
}

}  // namespace

Result<SuricataYaml> read_suricata_yaml(const std::string& path) {
  auto text = read_text_file(path);
  if (!text) return failure(std::move(text.error()));
  const auto file = config::YamlFile::of_text(*text, path);
  if (!file) {
    Errors errors = file.error();
    for (Error& error : errors) {
      if (error.message == "not a chain file") error = {error.place, "not a suricata.yaml", error.found, "a mapping"};
    }
    return failure(std::move(errors));
  }
  SuricataYaml yaml;
  Errors errors;
  KeyPlaces sections(*file, errors);
  const bool has_vars = file->root()["vars"].IsDefined();
  for (const auto& section : file->root()) {
    const std::string name = name_of(section.first);
    if (name != "vars") {
      if (!is_misplaced(*file, section.first, has_vars, errors)) yaml.not_used.push_back(name);
    } else if (sections.add(section.first, name)) {
      read_vars(*file, section.second, yaml, errors);
    }
  }
  if (!errors.empty()) return failure(in_file_order(std::move(errors)));
  if (yaml.variables.empty()) {
    yaml.warnings.push_back({{path, 0, 0},
                             "no variables are taken from this file",
                             has_vars ? "`vars` without variables" : "no `vars`",
                             "vars: {address-groups: {HOME_NET: …}, port-groups: {…}}"});
  }
  return yaml;
}

Result<std::vector<RuleVariable>> read_variables(const std::string& text, const std::string& name) {
  const auto file = config::YamlFile::of_text(text, name);
  if (!file) return failure(file.error());
  std::vector<RuleVariable> variables;
  Errors errors;
  KeyPlaces names(*file, errors);
  read_group(*file, file->root(), "vars", names, variables, errors);
  if (!errors.empty()) return failure(std::move(errors));
  return variables;
}

}  // namespace penstock::cli
