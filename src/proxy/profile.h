// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The sizes in which a device is given to tenants (Chaurasia): 1q is one sixteenth of its memory and time, 16q all.

#pragma once

#include <cstdint>
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
};
inline constexpr std::string_view kProfileNames = "1q, 2q, 4q, 8q or 16q";

}  // namespace penstock::proxy
