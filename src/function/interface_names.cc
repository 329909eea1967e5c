// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/interface_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace penstock::function {

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
