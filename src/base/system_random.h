// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random bytes of the system, fit for secrets.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

namespace penstock {

/// False: the system has none, for a reason that `errno` names.
[[nodiscard]] bool fill_with_random(std::span<std::byte> bytes) noexcept;

/// A random value of a type of which all are possible. Empty: the system has none.
template <typename Value>
[[nodiscard]] std::optional<Value> random_value() noexcept {
  static_assert(std::is_trivially_copyable_v<Value> && std::has_unique_object_representations_v<Value>);
  Value value{};
  if (!fill_with_random(std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
  return value;
}

}  // namespace penstock
