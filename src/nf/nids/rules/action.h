// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rule does with what it matches.

#pragma once

#include <cstdint>

namespace penstock::nids {

/// In the order in which the detection looks at them (Suricata's action-order): what passes comes first.
enum class Action : std::uint8_t { pass, drop, reject, reject_source, reject_destination, reject_both, alert };

[[nodiscard]] constexpr bool is_reject(Action action) noexcept {
  return action >= Action::reject && action <= Action::reject_both;
}
/// Where rules may drop: to reject is to drop, and to say so.
[[nodiscard]] constexpr bool drops(Action action) noexcept { return action == Action::drop || is_reject(action); }

}  // namespace penstock::nids
