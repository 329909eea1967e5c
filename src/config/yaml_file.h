// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A YAML document whose values know where they stand: in the file, or on the command line that overrides it.

#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"

namespace penstock::config {

class YamlFile {
 public:
  /// Reads and parses; the document must be a mapping.
  static Result<YamlFile> read(const std::string& path);

  [[nodiscard]] const YAML::Node& root() const { return root_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Replaces or adds the value at `path`, keys joined by dots; `text` stands for its place in errors. Steps through
  /// mappings by key, and through a list by position or by the key of a one-key mapping in it (the chain's functions).
  Result<void> set(const std::string& path, const std::string& value, const std::string& text);

  [[nodiscard]] Place place(const YAML::Node& node) const;
  /// What relative paths in this value are relative to.
  [[nodiscard]] std::string base_directory(const YAML::Node& node) const;

  /// The members of a mapping as raw parameters; members that are mappings and named in `nested` give "outer.inner".
  /// A null node gives none; anything but a mapping is an error.
  [[nodiscard]] Result<std::vector<RawParameter>> parameters(const YAML::Node& node,
                                                             std::vector<std::string_view> nested = {}) const;

 private:
  struct Overridden {
    YAML::Node node;
    std::string text;  // "--set run.workers=x"
  };
  void remember(const YAML::Node& node, const std::string& text);
  [[nodiscard]] const Overridden* overridden(const YAML::Node& node) const;
  [[nodiscard]] Result<RawParameter> parameter(std::string name, const YAML::Node& key, const YAML::Node& value) const;

  std::string path_;
  std::string directory_;
  YAML::Node root_;
  std::vector<Overridden> overridden_;
};

}  // namespace penstock::config
