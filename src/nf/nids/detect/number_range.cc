// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/packet_test.h"

namespace penstock::nids {

bool in_range(const NumberRange& range, std::uint64_t value) noexcept {
  switch (range.operation) {
    case NumberRange::Operator::equal: return value == range.first;
    case NumberRange::Operator::not_equal: return value != range.first;
    case NumberRange::Operator::less: return value < range.first;
    case NumberRange::Operator::less_equal: return value <= range.first;
    case NumberRange::Operator::greater: return value > range.first;
    case NumberRange::Operator::greater_equal: return value >= range.first;
    case NumberRange::Operator::between: return value > range.first && value < range.second;
    case NumberRange::Operator::not_between: return value <= range.first || value >= range.second;
  }
  return false;
}

}  // namespace penstock::nids
