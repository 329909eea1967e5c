// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/yaml_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text_file.h"
#include "base/units.h"

namespace penstock::config {

namespace {

std::string shape_of(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Null: return "nothing";
    case YAML::NodeType::Scalar: return in_quotes(node.Scalar());
    case YAML::NodeType::Sequence: return "a list";
    case YAML::NodeType::Map: return "a mapping";
    case YAML::NodeType::Undefined: return "nothing";
  }
  return "nothing";
}

Place place_of_mark(const std::string& path, const YAML::Mark& mark) {
  if (mark.is_null()) return {path, 0, 0};
  return {path, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
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

}  // namespace

Result<YamlFile> YamlFile::read(const std::string& path) {
  auto text = read_text_file(path);
  if (!text) return failure(std::move(text.error()));
  YamlFile file;
  file.path_ = path;
  file.directory_ = std::filesystem::path(path).parent_path().string();
  try {
    file.root_ = YAML::Load(*text);
  } catch (const YAML::Exception& error) {
    return failure(Error{place_of_mark(path, error.mark), "not YAML: " + error.msg, "", ""});
  }
  if (!file.root_.IsMap()) {
    return failure(
        Error{file.place(file.root_), "not a chain file", shape_of(file.root_), "a mapping with `ports` and `chain`"});
  }
  return file;
}

Result<void> YamlFile::set(const std::string& path, const std::string& value, const std::string& text) {
  YAML::Node replacement;
  try {
    replacement = YAML::Load(value);
  } catch (const YAML::Exception& error) {
    return failure(Error{{text, 0, 0}, "not YAML: " + error.msg, in_quotes(value), ""});
  }
  YAML::Node node = root_;  // a handle: assignment would change the tree, reset() moves the handle
  std::size_t from = 0;
  for (;;) {
    const std::size_t dot = path.find('.', from);
    const std::string key = path.substr(from, dot - from);
    if (key.empty() || (node.IsDefined() && !node.IsNull() && !node.IsMap() && !node.IsSequence())) {
      return failure(Error{{text, 0, 0}, "no such value", in_quotes(path), "keys joined by dots, such as run.workers"});
    }
    if (node.IsSequence() && !step_into(node, key).IsDefined()) {
      return failure(Error{{text, 0, 0}, "nothing of this name or position in the list", in_quotes(key), ""});
    }
    if (dot == std::string::npos) {
      if (node.IsSequence()) {
        step_into(node, key) = replacement;
      } else {
        node[key] = replacement;
      }
      remember(node.IsSequence() ? step_into(node, key) : node[key], text);
      return {};
    }
    const YAML::Node next = step_into(node, key);
    if (!next.IsDefined() || next.IsNull()) {
      node[key] = YAML::Node(YAML::NodeType::Map);
      node.reset(node[key]);
    } else {
      node.reset(next);
    }
    from = dot + 1;
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
    raw.place = place(key);
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

Result<std::vector<RawParameter>> YamlFile::parameters(const YAML::Node& node,
                                                       std::vector<std::string_view> nested) const {
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
    if (member.second.IsMap() && std::find(nested.begin(), nested.end(), name) != nested.end()) {
      for (const auto& inner : member.second) {
        const std::string inner_name = inner.first.IsScalar() ? inner.first.Scalar() : shape_of(inner.first);
        add(name + "." + inner_name, inner.first, inner.second);
      }
    } else {
      add(name, member.first, member.second);
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return all;
}

}  // namespace penstock::config
