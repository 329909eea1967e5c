// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The sizes in which a device is given to tenants (Chaurasia): 1q is one sixteenth of its memory and time, 16q all; and
// how its multiprocessors are.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace penstock::proxy {

struct Profile {
  static constexpr unsigned kWhole = 16;

  unsigned units = 1;  // 1, 2, 4, 8 or 16

  /// "4q"
  [[nodiscard]] static std::optional<Profile> named(std::string_view name) {
    for (unsigned units = 1; units <= kWhole; units *= 2) {
      if (name == Profile{units}.name()) return Profile{units};
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string name() const { return std::to_string(units) + "q"; }
  [[nodiscard]] double part() const noexcept { return static_cast<double>(units) / kWhole; }
  [[nodiscard]] std::uint64_t memory(std::uint64_t of_device) const noexcept { return of_device / kWhole * units; }
  /// Rounded down, so that all profiles together have no more than the device has; but at least one.
  [[nodiscard]] std::uint32_t multiprocessors(std::uint32_t of_device) const noexcept {
    return std::max(1U, static_cast<std::uint32_t>(std::uint64_t{of_device} * units / kWhole));
  }
};
inline constexpr std::string_view kProfileNames = "1q, 2q, 4q, 8q or 16q";

/// What kernels of a tenant may fill: all multiprocessors; as many as its profile has, by limits of their blocks; or
/// those of a green context of its own (gpu/green_context.h), whose number its profile gives.
enum class MultiprocessorShares : std::uint8_t { all, blocks, green_contexts };
inline constexpr std::string_view kMultiprocessorSharesNames[] = {"all", "blocks", "green-contexts"};

[[nodiscard]] constexpr std::string_view name_of(MultiprocessorShares shares) noexcept {
  return kMultiprocessorSharesNames[static_cast<std::size_t>(shares)];
}
[[nodiscard]] constexpr std::optional<MultiprocessorShares> multiprocessor_shares_named(
    std::string_view name) noexcept {
  for (std::size_t s = 0; s < std::size(kMultiprocessorSharesNames); ++s) {
    if (kMultiprocessorSharesNames[s] == name) return static_cast<MultiprocessorShares>(s);
  }
  return std::nullopt;
}

}  // namespace penstock::proxy
