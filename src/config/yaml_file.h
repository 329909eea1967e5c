// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A YAML document that knows the place of each value: in the file, or on the command line if it was overridden.

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

/// Describes a node for an error's `found`: a word in quotes, "a list", "a mapping" or "nothing".
[[nodiscard]] std::string shape_of(const YAML::Node& node);

class YamlFile {
 public:
  // Larger documents are refused: they are not chain files, and could take unbounded memory and time.
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  static constexpr std::size_t kMostValues = 250'000;  // including keys; an alias counts with all its values
  static constexpr std::size_t kMostDepth = 32;
  static constexpr std::size_t kMostKeys = 32;  // in an override's path

  /// Reads and parses a file, which must contain one document, a mapping.
  static Result<YamlFile> read(const std::string& path);
  /// Like `read`, for a text. `name` is used as the file name in places. Relative paths start at the working directory.
  static Result<YamlFile> of_text(const std::string& text, std::string name);

  [[nodiscard]] const YAML::Node& root() const { return root_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Replaces or adds the value at `path`, which consists of keys joined by dots. `text` stands for its place in
  /// errors. Mappings are traversed by key (the longest that matches, since keys may contain dots), and lists by
  /// position or by the key of a one-key mapping in the list (the functions of the chain). No keys can be added to the
  /// section `fixed`; they can be to other mappings.
  Result<void> set(const std::string& path, const std::string& value, const std::string& text, std::string_view fixed);

  /// Whether the document is within the limits, with aliases expanded and overrides applied.
  [[nodiscard]] Result<void> check_bounds() const;

  [[nodiscard]] Place place(const YAML::Node& node) const;
  /// The folder where relative paths in this value start.
  [[nodiscard]] std::string base_directory(const YAML::Node& node) const;

  [[nodiscard]] bool is_override(const YAML::Node& node) const { return overridden(node) != nullptr; }

  /// The members of a mapping as raw parameters. If the table has "outer.inner", the member `outer` must be a mapping
  /// that contains `inner`. A null node has no members; anything else that is not a mapping is an error. Mistakes are
  /// added to `errors`; members without mistakes are returned nevertheless.
  [[nodiscard]] std::vector<RawParameter> parameters(const YAML::Node& node, ParameterTable table,
                                                     Errors& errors) const;

 private:
  struct Overridden {
    YAML::Node node;
    const std::string* text;  // "--set run.workers=x"; points into texts_
  };
  /// Sets node[key] as an override. A key that did not exist belongs to the override too.
  void put(YAML::Node node, const std::string& key, const YAML::Node& value, const std::string* text);
  void remember(const YAML::Node& node, const std::string* text);
  [[nodiscard]] const Overridden* overridden(const YAML::Node& node) const;
  [[nodiscard]] Result<void> count_values(const YAML::Node& node, std::size_t depth, std::size_t& values) const;
  [[nodiscard]] RawParameter parameter(std::string name, const YAML::Node& key, const YAML::Node& value,
                                       Errors& errors) const;
  /// A list of mappings, each with the members of `list.entries`.
  [[nodiscard]] RawParameter entries(const Parameter& list, const YAML::Node& key, const YAML::Node& value,
                                     Errors& errors) const;

  std::string path_;
  std::string directory_;
  YAML::Node root_;
  std::deque<std::string> texts_;
  std::unordered_multimap<int, Overridden> overridden_;  // by the position of a node in its text
};

}  // namespace penstock::config
