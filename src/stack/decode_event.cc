// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/decode_event.h"

#include <algorithm>

namespace penstock::stack {

std::optional<DecodeEvent> decode_event_of(std::string_view name) noexcept {
  const auto* const found = std::find(kDecodeEventNames.begin(), kDecodeEventNames.end(), name);
  if (found == kDecodeEventNames.end()) return std::nullopt;
  return DecodeEvent{static_cast<std::uint16_t>(found - kDecodeEventNames.begin())};
}

}  // namespace penstock::stack
