// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/filter_core.h"

namespace penstock::filter {

FilterTables::FilterTables(const FilterList& list) {
  for (std::size_t type = 0; type < kLinkTypes; ++type) {
    for (const NamedFilter& filter : list.filters) {
      starts.push_back(static_cast<std::uint32_t>(instructions.size()));
      if (const auto& program = filter.programs[type]) {
        instructions.insert(instructions.end(), program->instructions().begin(), program->instructions().end());
      }
    }
  }
  for (const NamedFilter& filter : list.filters) actions.push_back(filter.action);
}

FilterView FilterTables::view(const FilterList& list) const noexcept {
  FilterView view{instructions.data(), starts.data(),
                  actions.data(),      static_cast<std::uint32_t>(list.filters.size()),
                  list.otherwise,      list.headers_only};
  for (std::size_t type = 0; type < kLinkTypes; ++type) view.takes[type] = list.takes(static_cast<LinkType>(type));
  return view;
}

}  // namespace penstock::filter
