// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A YAML document whose values know where they stand: in the file, or on the command line that overrides it.

#pragma once

#include <yaml-cpp/yaml.h>

#include <cstddef>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"

namespace penstock::config {

/// What stands there, for an error's `found`: a word in quotes, "a list", "a mapping" or "nothing".
[[nodiscard]] std::string shape_of(const YAML::Node& node);

class YamlFile {
 public:
  // A document beyond these is refused: it is no chain file, and would take memory and time without bound.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  static constexpr std::size_t kMostValues = 250'000;  // keys count too, and what an alias stands for each time
  static constexpr std::size_t kMostDepth = 32;
  static constexpr std::size_t kMostKeys = 32;  // of an override's path

  /// Reads and parses; there must be one document, a mapping.
  static Result<YamlFile> read(const std::string& path);
  /// The same of a text. `name` stands in places; relative paths are relative to the working directory.
  static Result<YamlFile> of_text(const std::string& text, std::string name);

  [[nodiscard]] const YAML::Node& root() const { return root_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Replaces or adds the value at `path`, keys joined by dots; `text` stands for its place in errors. Steps through
  /// mappings by key (the longest that fits, since keys may hold dots themselves), and through a list by position or by
  /// the key of a one-key mapping in it (the chain's functions). The section `fixed` gets no new keys, and other
  /// mappings do.
  Result<void> set(const std::string& path, const std::string& value, const std::string& text, std::string_view fixed);

  /// Whether the document, its aliases written out and its values overridden, keeps to the bounds.
  [[nodiscard]] Result<void> check_bounds() const;

  [[nodiscard]] Place place(const YAML::Node& node) const;
  /// What relative paths in this value are relative to.
  [[nodiscard]] std::string base_directory(const YAML::Node& node) const;

  [[nodiscard]] bool is_override(const YAML::Node& node) const { return overridden(node) != nullptr; }

  /// The members of a mapping as raw parameters. Where the table has "outer.inner", the member `outer` is a mapping and
  /// gives these. A null node gives none; anything but a mapping is an error. Mistakes go to `errors`, and the members
  /// without one come back all the same.
  [[nodiscard]] std::vector<RawParameter> parameters(const YAML::Node& node, ParameterTable table,
                                                     Errors& errors) const;

 private:
  struct Overridden {
    YAML::Node node;
    const std::string* text;  // "--set run.workers=x"; of texts_
  };
  /// node[key] as an override has it: a key that was not there is the override's as well.
  void put(YAML::Node node, const std::string& key, const YAML::Node& value, const std::string* text);
  void remember(const YAML::Node& node, const std::string* text);
  [[nodiscard]] const Overridden* overridden(const YAML::Node& node) const;
  [[nodiscard]] Result<void> count_values(const YAML::Node& node, std::size_t depth, std::size_t& values) const;
  [[nodiscard]] RawParameter parameter(std::string name, const YAML::Node& key, const YAML::Node& value,
                                       Errors& errors) const;

  std::string path_;
  std::string directory_;
  YAML::Node root_;
  std::deque<std::string> texts_;
  std::unordered_multimap<int, Overridden> overridden_;  // by the position of a node in its text
};

}  // namespace penstock::config
