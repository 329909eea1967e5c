// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameter `interfaces`, for functions whose files name network interfaces: {eth0: lan, ppp*: wan, lo: none}.

#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/parameter.h"

namespace penstock::function {

/// "eth0"; or, with `prefix`, all names that begin with the stem.
struct InterfacePattern {
  std::string_view stem;
  bool prefix = false;

  [[nodiscard]] bool covers(std::string_view name) const { return prefix ? name.starts_with(stem) : name == stem; }
  friend bool operator==(const InterfacePattern&, const InterfacePattern&) = default;
  /// Whether there is a name that matches both.
  [[nodiscard]] bool meets(const InterfacePattern& other) const { return covers(other.stem) || other.covers(stem); }
};

/// Parses a key of the parameter: "eth+" and "eth*" are prefixes. Borrows from `text`.
[[nodiscard]] inline InterfacePattern interface_key(std::string_view text, std::string_view wildcards = "+*") {
  const bool prefix = !text.empty() && wildcards.find(text.back()) != std::string_view::npos;
  return {text.substr(0, text.size() - (prefix ? 1 : 0)), prefix};
}
/// Parses a name in a file of iptables and others: only "eth+" is a prefix.
[[nodiscard]] inline InterfacePattern interface_in_file(std::string_view text) { return interface_key(text, "+"); }

/// Errors in the keys of "interface=port" items: a `*` before the last character, where it is no wildcard, and two keys
/// with the same meaning, such as `ppp*` and `ppp+`. `place_of` returns the place of an item.
[[nodiscard]] Errors check_interface_keys(std::span<const std::string> items,
                                          const std::function<Place(std::size_t)>& place_of);

/// A warning for each key of the parameter that matches none of `names`. `what` describes the files that contain these
/// names.
[[nodiscard]] Errors unused_interfaces(const Parameters& parameters, const std::set<std::string, std::less<>>& names,
                                       std::string_view what);

}  // namespace penstock::function
