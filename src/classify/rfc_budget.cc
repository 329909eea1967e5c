// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/rfc_budget.h"

#include <fmt/format.h>

#include "base/units.h"

namespace penstock::classify {

bool RfcBudget::refuse(std::string what) {
  if (!excess_) excess_ = fmt::format("{} {}", phase_, what);
  return false;
}

bool RfcBudget::refuse_memory(std::size_t) { return refuse("needs more than " + format_size(memory_limit_)); }

}  // namespace penstock::classify
