// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/unsupported.h"

#include <fmt/format.h>

#include <utility>

#include "base/units.h"

namespace penstock::function {

bool refuses_unsupported(const Parameters& parameters) { return parameters.text("unsupported") == "refuse"; }

Errors refusal_of(Errors unsupported, Place place, std::string_view way_out) {
  const std::string count = format_count(count_of(unsupported), "unsupported construct");
  unsupported.push_back({std::move(place), fmt::format("refused because of {}, listed above", count), "",
                         fmt::format("{} to apply the rest", way_out)});
  return unsupported;
}

Result<void> check_unsupported(const Parameters& parameters, std::string_view files, Errors unsupported,
                               Errors harmless, NfContext& context) {
  if (!unsupported.empty() && refuses_unsupported(parameters)) {
    return failure(refusal_of(std::move(unsupported), parameters.place(files), "`unsupported: skip`"));
  }
  append(context.unsupported, std::move(unsupported));
  append(context.unsupported, std::move(harmless));
  return {};
}

}  // namespace penstock::function
