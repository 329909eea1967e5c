// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/yaml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text_file.h"
#include "base/units.h"

namespace penstock::config {

namespace {

Place place_of_mark(const std::string& path, const YAML::Mark& mark) {
  if (mark.is_null()) return {path, 0, 0};
  return {path, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
}

/// The one document of `text`.
Result<YAML::Node> parse(const std::string& text, const std::string& path) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    return failure(Error{place_of_mark(path, error.mark), "not YAML: " + error.msg, "", ""});
  }
  if (documents.size() > 1) {
    return failure(
        Error{place_of_mark(path, documents[1].Mark()), "a second YAML document", "", "one, with no `---` in it"});
  }
  return documents.empty() ? YAML::Node() : documents.front();
}

/// The first key of an override's path: the longest of the mapping's keys that it begins with, or what is before a dot.
std::string first_key(const YAML::Node& node, std::string_view path) {
  std::string_view key = path.substr(0, path.find('.'));
  if (!node.IsMap()) return std::string(key);
  for (const auto& member : node) {
    if (!member.first.IsScalar()) continue;
    const std::string& name = member.first.Scalar();
    const bool fits = path.starts_with(name) && (path.size() == name.size() || path[name.size()] == '.');
    if (fits && name.size() > key.size()) key = path.substr(0, name.size());
  }
  return std::string(key);
}

/// The node for one step of an override's path. Undefined where there is none.
YAML::Node step_into(YAML::Node node, const std::string& key) {
  if (!node.IsSequence()) return node[key];
  if (const auto position = parse_integer(key)) {
    return *position < node.size() ? node[static_cast<std::size_t>(*position)] : YAML::Node(YAML::NodeType::Undefined);
  }
  for (auto item : node) {
    if (item.IsMap() && item[key].IsDefined()) return item[key];
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

/// For the error of a step that leads nowhere: the nearest of the mapping's keys, or of the keys of a list's mappings.
std::string expected_step(const YAML::Node& node, const std::string& key) {
  std::vector<std::string> keys;
  const auto add_keys = [&](const YAML::Node& mapping) {
    for (const auto& member : mapping) {
      if (member.first.IsScalar()) keys.push_back(member.first.Scalar());
    }
  };
  if (node.IsMap()) add_keys(node);
  if (node.IsSequence()) {
    for (const auto& item : node) {
      if (item.IsMap()) add_keys(item);
    }
  }
  return expected_name(key, std::vector<std::string_view>(keys.begin(), keys.end()));
}

/// The parameters of `table` in a section, without its name: "bytes", … for "batch".
std::vector<std::string_view> names_in(ParameterTable table, std::string_view section) {
  std::vector<std::string_view> names;
  for (const Parameter& parameter : table) {
    const std::size_t dot = parameter.name.find('.');
    if (dot != std::string_view::npos && parameter.name.substr(0, dot) == section) {
      names.push_back(parameter.name.substr(dot + 1));
    }
  }
  return names;
}

}  // namespace

std::string shape_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Null: return "nothing (YAML's null)";
    case YAML::NodeType::Scalar: return in_quotes(node.Scalar());
    case YAML::NodeType::Sequence: return "a list";
    case YAML::NodeType::Map: return "a mapping";
    case YAML::NodeType::Undefined: return "nothing";
  }
  return "nothing";
}

Result<YamlFile> YamlFile::read(const std::string& path) {
  auto text = read_text_file(path);
  if (!text) return failure(std::move(text.error()));
  YamlFile file;
  file.path_ = path;
  file.directory_ = std::filesystem::path(path).parent_path().string();
  auto root = parse(*text, path);
  if (!root) return failure(std::move(root.error()));
  file.root_ = *root;
  if (!file.root_.IsMap()) {
    return failure(
        Error{file.place(file.root_), "not a chain file", shape_of(file.root_), "a mapping with `ports` and `chain`"});
  }
  return file;
}

Result<void> YamlFile::set(const std::string& path, const std::string& value, const std::string& text,
                           std::string_view fixed) {
  const auto wrong = [&](std::string message, const std::string& found, std::string expected) {
    return failure(Error{{text, 0, 0}, std::move(message), in_quotes(found), std::move(expected)});
  };
  // The standard input or output; to YAML it would be a list.
  const auto parsed = value == "-" ? Result<YAML::Node>(YAML::Node(value)) : parse(value, "");
  if (!parsed) {
    const Error& error = parsed.error().front();
    return wrong(error.message, value, error.expected);
  }
  YAML::Node node = root_;  // a handle: assignment would change the tree, reset() moves the handle
  for (std::size_t from = 0;;) {
    const std::string key = first_key(node, std::string_view(path).substr(from));
    if (key.empty() || (node.IsDefined() && !node.IsNull() && !node.IsMap() && !node.IsSequence())) {
      return wrong("no such value", path, "keys joined by dots, such as run.workers");
    }
    const YAML::Node next = step_into(node, key);
    if (!next.IsDefined() && node.IsSequence()) {
      return wrong("nothing of this name or position in the list", key, expected_step(node, key));
    }
    if (!next.IsDefined() && from == fixed.size() + 1 && path.starts_with(fixed)) {
      return wrong(fmt::format("nothing of this name in `{}`", fixed), key, expected_step(node, key));
    }
    const bool last = from + key.size() == path.size();
    if (last && node.IsSequence()) {
      step_into(node, key) = *parsed;
      remember(step_into(node, key), text);
    } else if (last) {
      put(node, key, *parsed, text);
    } else if (!next.IsDefined() || next.IsNull()) {
      put(node, key, YAML::Node(YAML::NodeType::Map), text);
    }
    if (last) return {};
    node.reset(step_into(node, key));
    from += key.size() + 1;
  }
}

void YamlFile::put(YAML::Node node, const std::string& key, const YAML::Node& value, const std::string& text) {
  const bool is_new = !node.IsMap() || !node[key].IsDefined();
  node[key] = value;
  remember(node[key], text);
  if (!is_new) return;
  for (const auto& member : node) {
    if (member.first.IsScalar() && member.first.Scalar() == key) remember(member.first, text);
  }
}

void YamlFile::remember(const YAML::Node& node, const std::string& text) {
  if (overridden(node) != nullptr) return;  // an alias, perhaps of what it stands in
  overridden_.push_back({node, text});
  if (node.IsSequence()) {
    for (const auto& item : node) remember(item, text);
  } else if (node.IsMap()) {
    for (const auto& member : node) {
      remember(member.first, text);
      remember(member.second, text);
    }
  }
}

const YamlFile::Overridden* YamlFile::overridden(const YAML::Node& node) const {
  if (!node.IsDefined()) return nullptr;  // is() throws for what a lookup did not find
  const auto found =
      std::find_if(overridden_.begin(), overridden_.end(), [&](const Overridden& o) { return o.node.is(node); });
  return found == overridden_.end() ? nullptr : &*found;
}

Place YamlFile::place(const YAML::Node& node) const {
  if (const Overridden* o = overridden(node)) return {o->text, 0, 0};
  return place_of_mark(path_, node.IsDefined() ? node.Mark() : YAML::Mark::null_mark());
}

std::string YamlFile::base_directory(const YAML::Node& node) const {
  return overridden(node) != nullptr ? std::string() : directory_;
}

Result<RawParameter> YamlFile::parameter(std::string name, const YAML::Node& key, const YAML::Node& value) const {
  RawParameter raw{std::move(name), place(key), place(value), {}, RawParameter::Shape::scalar, base_directory(value)};
  if (value.IsScalar()) {
    raw.items.push_back(value.Scalar());
  } else if (value.IsNull()) {
    raw.items.emplace_back();
    if (overridden(value) == nullptr) raw.place = place(key);  // nothing stands nowhere
  } else if (value.IsSequence()) {
    raw.shape = RawParameter::Shape::list;
    for (const auto& item : value) {
      if (!item.IsScalar())
        return failure(Error{place(item), raw.name + ": wrong value in the list", shape_of(item), "a word"});
      raw.items.push_back(item.Scalar());
    }
  } else {
    raw.shape = RawParameter::Shape::mapping;
    for (const auto& member : value) {
      if (!member.first.IsScalar() || !member.second.IsScalar()) {
        return failure(
            Error{place(member.first), raw.name + ": wrong value in the mapping", shape_of(member.second), "a word"});
      }
      raw.items.push_back(member.first.Scalar() + "=" + member.second.Scalar());
    }
  }
  return raw;
}

Result<std::vector<RawParameter>> YamlFile::parameters(const YAML::Node& node, ParameterTable table) const {
  std::vector<RawParameter> all;
  if (!node.IsDefined() || node.IsNull()) return all;
  if (!node.IsMap()) return failure(Error{place(node), "wrong value", shape_of(node), "a mapping of parameters"});
  Errors errors;
  const auto add = [&](std::string name, const YAML::Node& key, const YAML::Node& value) {
    auto raw = parameter(std::move(name), key, value);
    if (raw) {
      all.push_back(std::move(*raw));
    } else {
      append(errors, std::move(raw.error()));
    }
  };
  for (const auto& member : node) {
    if (!member.first.IsScalar()) {
      errors.push_back({place(member.first), "wrong key", shape_of(member.first), "a name"});
      continue;
    }
    const std::string& name = member.first.Scalar();
    const std::vector<std::string_view> inner_names = names_in(table, name);
    if (inner_names.empty()) {
      add(name, member.first, member.second);
    } else if (member.second.IsMap()) {
      for (const auto& inner : member.second) {
        const std::string inner_name = inner.first.IsScalar() ? inner.first.Scalar() : shape_of(inner.first);
        add(std::string(name).append(".").append(inner_name), inner.first, inner.second);
      }
    } else if (!member.second.IsNull()) {
      errors.push_back({place(member.second), name + ": wrong value", shape_of(member.second),
                        fmt::format("a mapping with {}", fmt::join(inner_names, ", "))});
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return all;
}

}  // namespace penstock::config
