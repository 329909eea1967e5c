// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts for NetworkFunction::changes_from.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::function {

/// Collects the changes of a function in the order in which they are added: "2 rules added, 1 removed, policy drop →
/// accept".
class Changes {
 public:
  struct Counts {
    std::size_t added = 0, removed = 0, changed = 0;
  };
  /// "2 rules added, 1 removed". `several`: the plural of `thing`, if it is not made with s.
  Changes& count(std::string_view thing, const Counts& counts, std::string_view several = "");
  /// "policy drop → accept"; nothing if both are equal.
  Changes& value(std::string_view what, std::string_view before, std::string_view now);
  Changes& add(std::string change);

  [[nodiscard]] bool empty() const noexcept { return changes_.empty(); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> changes_;
};

}  // namespace penstock::function
