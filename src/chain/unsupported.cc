// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "chain/unsupported.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"

namespace penstock::chain {

Result<void> check_unsupported(const Parameters& parameters, std::string_view files, Errors unsupported,
                               Errors harmless, NfContext& context) {
  if (!unsupported.empty() && parameters.text("unsupported") == "refuse") {
    const std::size_t count = unsupported.size();
    unsupported.push_back({parameters.place(files),
                           fmt::format("refused because of {} unsupported construct{}, listed above",
                                       format_count(count), count == 1 ? "" : "s"),
                           "", "`unsupported: skip` to apply the rest"});
    return failure(std::move(unsupported));
  }
  append(context.unsupported, std::move(unsupported));
  append(context.unsupported, std::move(harmless));
  return {};
}

}  // namespace penstock::chain
