// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/yaml_file.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"

namespace penstock::config {

namespace {

Place place_of_mark(const std::string& path, const YAML::Mark& mark) {
  if (mark.is_null()) return {path, 0, 0};
  return {path, static_cast<std::uint32_t>(mark.line + 1), static_cast<std::uint32_t>(mark.column + 1)};
}

/// The column of a tab before the first word of a line, if there is one.
std::optional<std::uint32_t> tab_in_indentation(std::string_view text, std::uint32_t number) {
  Line line;
  for (LineReader lines(text); lines.next(line);) {
    if (line.number != number) continue;
    const std::size_t at = line.text.find_first_not_of(' ');
    if (at == std::string_view::npos || line.text[at] != '\t') return std::nullopt;
    return static_cast<std::uint32_t>(at + 1);
  }
  return std::nullopt;
}

std::string too_many_values() {
  const std::string most = format_count(YamlFile::kMostValues);
  return fmt::format("too many values: found more than {}, expected at most {}", most, most);
}

/// Records where the documents of a text begin and how many values they have, but not the values. Throws YAML's
/// exception if there are too many.
class DocumentMarks final : public YAML::EventHandler {
 public:
  struct Document {
    YAML::Mark start;  // position of its `---`, or else of its root
    YAML::Mark root;
  };
  [[nodiscard]] const std::vector<Document>& documents() const noexcept { return documents_; }

  void OnDocumentStart(const YAML::Mark& mark) override { documents_.push_back({mark, YAML::Mark::null_mark()}); }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { note_node(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { note_node(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    note_node(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    note_node(mark);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    note_node(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapEnd() override {}
  void OnDocumentEnd() override {}

 private:
  void note_node(const YAML::Mark& mark) {
    if (++values_ > YamlFile::kMostValues) throw YAML::ParserException(mark, too_many_values());
    YAML::Mark& root = documents_.back().root;
    if (root.is_null()) root = mark;
  }

  std::vector<Document> documents_;
  std::size_t values_ = 0;
};

/// Parses `text`, which must contain one document.
Result<YAML::Node> parse(const std::string& text, const std::string& path) {
  if (text.size() > YamlFile::kMostBytes) {
    const std::string most = format_size(YamlFile::kMostBytes);
    return failure(Error{{path, 0, 0}, "the chain file is too large", "more than " + most, "at most " + most});
  }
  DocumentMarks marks;
  YAML::Node root;
  try {
    // For a word in the wrong place, YAML::LoadAll would add empty documents until the memory is exhausted.
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (marks.documents().size() < 2 && parser.HandleNextDocument(marks)) {
    }
    if (marks.documents().size() < 2) root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    Place place = place_of_mark(path, error.mark);
    if (const auto column = tab_in_indentation(text, place.line)) {
      place.column = *column;
      return failure(Error{std::move(place), "not YAML: a line is indented with a tab", "", "spaces"});
    }
    if (error.msg == too_many_values()) return failure(Error{std::move(place), error.msg, "", ""});
    return failure(Error{std::move(place), "not YAML: " + error.msg, "", ""});
  }
  if (marks.documents().size() < 2) return root;
  const DocumentMarks::Document& second = marks.documents()[1];
  if (second.start.pos == second.root.pos) {
    return failure(Error{place_of_mark(path, second.root), "text after the end of the YAML document", "", ""});
  }
  return failure(Error{place_of_mark(path, second.root), "a second YAML document", "", "one document, without `---`"});
}

/// The first key of an override's path: the longest matching key of the mapping, or else the part before the first dot.
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

/// Splits "nids#2", the name that reports use for the second `nids` of a chain, into the name and its number (from 1).
std::pair<std::string, std::uint64_t> name_and_number(const std::string& key) {
  const std::size_t hash = key.rfind('#');
  const auto number = hash == std::string::npos ? std::nullopt : parse_integer(key.substr(hash + 1));
  if (!number || *number == 0) return {key, 1};
  return {key.substr(0, hash), *number};
}

/// The node for one step of an override's path; undefined if there is none.
YAML::Node step_into(YAML::Node node, const std::string& key) {
  if (!node.IsSequence()) return node[key];
  if (const auto position = parse_integer(key)) {
    return *position < node.size() ? node[static_cast<std::size_t>(*position)] : YAML::Node(YAML::NodeType::Undefined);
  }
  auto [name, number] = name_and_number(key);
  for (auto item : node) {
    const bool is_named = item.IsScalar() ? item.Scalar() == name : item.IsMap() && item[name].IsDefined();
    if (!is_named || --number > 0) continue;
    if (item.IsMap()) return item[name];
    YAML::Node function = item;  // `- nids`, without parameters so far; refers to the list's item
    function = YAML::Node(YAML::NodeType::Map);
    function[name] = YAML::Node(YAML::NodeType::Map);
    return function[name];
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

/// For an error about a step that does not exist: the nearest key of the mapping, or of the mappings in the list.
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

/// The names of a section's parameters in `table`, without the section: "bytes", … for "batch".
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

/// Null if the table has no list of mappings of this name.
const Parameter* list_of_entries(ParameterTable table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Parameter::name);
  return found != table.end() && found->type == ParameterType::entries ? &*found : nullptr;
}

/// A word, or a list of words in its form on one line: "[10.0.0.0/8,192.168.0.0/16]". Empty for other nodes.
std::optional<std::string> text_in_mapping(const YAML::Node& value) {
  if (value.IsScalar()) return value.Scalar();
  if (!value.IsSequence()) return std::nullopt;
  std::string text = "[";
  for (const auto& item : value) {
    if (!item.IsScalar()) return std::nullopt;
    text += (text.size() > 1 ? "," : "") + item.Scalar();
  }
  return text + "]";
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
  auto file = of_text(*text, path);
  if (file) file->directory_ = std::filesystem::path(path).parent_path().string();
  return file;
}

Result<YamlFile> YamlFile::of_text(const std::string& text, std::string name) {
  YamlFile file;
  file.path_ = std::move(name);
  auto root = parse(text, file.path_);
  if (!root) return failure(std::move(root.error()));
  file.root_ = *root;
  if (!file.root_.IsMap()) {
    return failure(
        Error{file.place(file.root_), "not a chain file", shape_of(file.root_), "a mapping with `ports` and `chain`"});
  }
  return file;
}

Result<void> YamlFile::set(const std::string& path, const std::string& value, const std::string& given,
                           std::string_view fixed) {
  constexpr std::size_t kShown = 200;
  const std::string* const text = &texts_.emplace_back(given.size() <= kShown ? given : given.substr(0, kShown) + "…");
  const auto wrong = [&](std::string message, const std::string& found, std::string expected) {
    return failure(Error{{*text, 0, 0}, std::move(message), in_quotes(found), std::move(expected)});
  };
  // "-" is the standard input or output, but YAML would read it as a list.
  const auto parsed = value == "-" ? Result<YAML::Node>(YAML::Node(value)) : parse(value, "");
  if (!parsed) {
    const Error& error = parsed.error().front();
    return wrong(error.message, value, error.expected);
  }
  YAML::Node node = root_;  // a reference: assignment would change the tree, while reset() changes what it refers to
  std::size_t keys = 0;
  for (std::size_t from = 0;;) {
    if (++keys > kMostKeys) {
      return wrong("too many keys", path, fmt::format("at most {}, joined by dots", kMostKeys));
    }
    const std::string key = first_key(node, std::string_view(path).substr(from));
    if (key.empty() || (node.IsDefined() && !node.IsNull() && !node.IsMap() && !node.IsSequence())) {
      return wrong("no such value", path, "keys joined by dots, such as run.workers");
    }
    const YAML::Node next = step_into(node, key);
    if (!next.IsDefined() && node.IsSequence()) {
      return wrong("no such name or position in the list", key, expected_step(node, key));
    }
    if (!next.IsDefined() && from == fixed.size() + 1 && path.starts_with(fixed)) {
      return wrong(fmt::format("no such name in `{}`", fixed), key, expected_step(node, key));
    }
    const bool last = from + key.size() == path.size();
    if (last && node.IsSequence()) {
      step_into(node, key) = *parsed;
      remember(step_into(node, key), text);
    } else if (last) {
      put(node, key, *parsed, text);
    } else if (node.IsSequence() && next.IsNull()) {
      step_into(node, key) = YAML::Node(YAML::NodeType::Map);  // `- nids:`, without parameters so far
      remember(step_into(node, key), text);
    } else if (!next.IsDefined() || next.IsNull()) {
      put(node, key, YAML::Node(YAML::NodeType::Map), text);
    }
    if (last) return {};
    node.reset(step_into(node, key));
    from += key.size() + 1;
  }
}

void YamlFile::put(YAML::Node node, const std::string& key, const YAML::Node& value, const std::string* text) {
  const bool is_new = !node.IsMap() || !node[key].IsDefined();
  node[key] = value;
  remember(node[key], text);
  for (const auto& member : node) {
    if (!member.first.IsScalar() || member.first.Scalar() != key) continue;
    if (is_new || is_override(member.first)) remember(member.first, text);
  }
}

void YamlFile::remember(const YAML::Node& node, const std::string* text) {
  const auto [begin, end] = overridden_.equal_range(node.Mark().pos);
  const auto known = std::find_if(begin, end, [&](const auto& entry) { return entry.second.node.is(node); });
  if (known == end) {
    overridden_.emplace(node.Mark().pos, Overridden{node, text});
  } else if (known->second.text == text) {
    return;  // an alias, perhaps of one of its ancestors
  } else {
    known->second.text = text;  // the last override wins
  }
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
  if (!node.IsDefined()) return nullptr;  // is() throws for a node that a lookup did not find
  const auto [begin, end] = overridden_.equal_range(node.Mark().pos);
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second.node.is(node); });
  return found == end ? nullptr : &found->second;
}

Result<void> YamlFile::check_bounds() const {
  std::size_t values = 0;
  return count_values(root_, 1, values);
}

Result<void> YamlFile::count_values(const YAML::Node& node, std::size_t depth, std::size_t& values) const {
  if (++values > kMostValues) {
    const std::string most = format_count(kMostValues);
    return failure(
        Error{place(node), "too many values after expanding aliases", "more than " + most, "at most " + most});
  }
  if (depth > kMostDepth) {
    return failure(Error{place(node), "values nested too deeply", fmt::format("more than {} levels", kMostDepth),
                         fmt::format("at most {}", kMostDepth)});
  }
  Result<void> result;
  if (node.IsSequence()) {
    for (auto item = node.begin(); result && item != node.end(); ++item) {
      result = count_values(*item, depth + 1, values);
    }
  } else if (node.IsMap()) {
    for (auto member = node.begin(); result && member != node.end(); ++member) {
      result = count_values(member->first, depth + 1, values).and_then([&] {
        return count_values(member->second, depth + 1, values);
      });
    }
  }
  return result;
}

Place YamlFile::place(const YAML::Node& node) const {
  if (const Overridden* o = overridden(node)) return {*o->text, 0, 0};
  return place_of_mark(path_, node.IsDefined() ? node.Mark() : YAML::Mark::null_mark());
}

std::string YamlFile::base_directory(const YAML::Node& node) const {
  return overridden(node) != nullptr ? std::string() : directory_;
}

RawParameter YamlFile::parameter(std::string name, const YAML::Node& key, const YAML::Node& value,
                                 Errors& errors) const {
  using Shape = RawParameter::Shape;
  RawParameter raw{std::move(name), place(key), place(value), {}, Shape::scalar, base_directory(value)};
  const auto wrong = [&](const YAML::Node& node, const char* where, const YAML::Node& found) {
    errors.push_back({place(node), raw.name + where, shape_of(found), "a word"});
    raw.shape = Shape::wrong;
  };
  if (value.IsScalar()) {
    raw.items.push_back(value.Scalar());
  } else if (value.IsNull()) {
    raw.items.emplace_back();
    if (!is_override(value)) raw.place = place(key);  // null has no place of its own
  } else if (value.IsSequence()) {
    raw.shape = Shape::list;
    for (const auto& item : value) {
      if (!item.IsScalar()) {
        wrong(item, ": wrong value in the list", item);
        continue;
      }
      raw.items.push_back(item.Scalar());
      raw.item_places.push_back(place(item));
    }
  } else {
    raw.shape = Shape::mapping;
    for (const auto& member : value) {
      const auto text = text_in_mapping(member.second);
      if (!member.first.IsScalar() || !text) {
        wrong(member.first, ": wrong value in the mapping", member.second);
        continue;
      }
      raw.items.push_back(member.first.Scalar() + "=" + *text);
      raw.item_places.push_back(place(is_override(member.second) ? member.second : member.first));
    }
  }
  return raw;
}

RawParameter YamlFile::entries(const Parameter& list, const YAML::Node& key, const YAML::Node& value,
                               Errors& errors) const {
  using Shape = RawParameter::Shape;
  RawParameter raw{std::string(list.name), place(key), place(value), {}, Shape::entries, base_directory(value)};
  const std::size_t mistakes = errors.size();
  for (const auto& item : value) {
    raw.entries.push_back(parameters(item, *list.entries, errors));
    raw.item_places.push_back(place(item));
  }
  if (errors.size() > mistakes) raw.shape = Shape::wrong;
  return raw;
}

std::vector<RawParameter> YamlFile::parameters(const YAML::Node& node, ParameterTable table, Errors& errors) const {
  std::vector<RawParameter> all;
  if (!node.IsDefined() || node.IsNull()) return all;
  if (!node.IsMap()) {
    errors.push_back({place(node), "wrong value", shape_of(node), "a mapping of parameters"});
    // So that required parameters are not reported as missing too.
    for (const Parameter& p : table) all.push_back({std::string(p.name), {}, {}, {}, RawParameter::Shape::wrong, ""});
    return all;
  }
  for (const auto& member : node) {
    if (!member.first.IsScalar()) {
      errors.push_back({place(member.first), "wrong key", shape_of(member.first), "a name"});
      continue;
    }
    const std::string& name = member.first.Scalar();
    const std::vector<std::string_view> inner_names = names_in(table, name);
    if (const Parameter* list = list_of_entries(table, name); list != nullptr && member.second.IsSequence()) {
      all.push_back(entries(*list, member.first, member.second, errors));
    } else if (inner_names.empty()) {
      all.push_back(parameter(name, member.first, member.second, errors));
    } else if (member.second.IsMap()) {
      for (const auto& inner : member.second) {
        const std::string inner_name = inner.first.IsScalar() ? inner.first.Scalar() : shape_of(inner.first);
        all.push_back(parameter(std::string(name).append(".").append(inner_name), inner.first, inner.second, errors));
      }
    } else if (!member.second.IsNull()) {
      errors.push_back({place(member.second), name + ": wrong value", shape_of(member.second),
                        fmt::format("a mapping with {}", fmt::join(inner_names, ", "))});
    }
  }
  return all;
}

}  // namespace penstock::config
