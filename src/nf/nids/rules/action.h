// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rule does with packets that match.

#pragma once

#include <cstdint>

namespace penstock::nids {

/// In the order in which the detection evaluates rules (Suricata's action-order): pass rules first.
enum class Action : std::uint8_t { pass, drop, reject, reject_source, reject_destination, reject_both, alert };

[[nodiscard]] constexpr bool is_reject(Action action) noexcept {
  return action >= Action::reject && action <= Action::reject_both;
}
/// Whether the action drops packets if `nids` may drop: `drop` and all forms of `reject`.
[[nodiscard]] constexpr bool drops(Action action) noexcept { return action == Action::drop || is_reject(action); }

}  // namespace penstock::nids
