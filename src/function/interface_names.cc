// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/interface_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace penstock::function {

Errors check_interface_keys(std::span<const std::string> items, const std::function<Place(std::size_t)>& place_of) {
  Errors errors;
  std::map<std::pair<std::string_view, bool>, std::string_view> keys;  // by their meaning; the first key for each
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string_view key = std::string_view(items[i]).substr(0, items[i].find('='));
    const InterfacePattern pattern = interface_key(key);
    if (pattern.stem.find('*') != std::string_view::npos) {
      errors.push_back({place_of(i), "interfaces: only the last character can be a wildcard", in_quotes(key),
                        "a name, or its beginning and *, such as ppp*"});
    }
    const auto [first, is_new] = keys.try_emplace({pattern.stem, pattern.prefix}, key);
    if (is_new) continue;
    errors.push_back({place_of(i), "interfaces: two keys mean the same",
                      fmt::format("{} and {}", in_quotes(first->second), in_quotes(key)), "one of them"});
  }
  return errors;
}

Errors unused_interfaces(const Parameters& parameters, const std::set<std::string, std::less<>>& names,
                         std::string_view what) {
  Errors warnings;
  if (!parameters.has("interfaces")) return warnings;
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::vector<std::string>& given = parameters.texts("interfaces");
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string_view key = std::string_view(given[i]).substr(0, given[i].find('='));
    const auto is_meant = [pattern = interface_key(key)](std::string_view name) {
      return interface_in_file(name).meets(pattern);
    };
    if (std::ranges::any_of(known, is_meant)) continue;
    warnings.push_back({parameters.place("interfaces", i), fmt::format("interfaces: no {} names this interface", what),
                        in_quotes(key), known.empty() ? "" : expected_name(key, known)});
  }
  return warnings;
}

}  // namespace penstock::function
