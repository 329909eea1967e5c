// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The processors that run stages of network functions. `cpu` is the host. Every other processor is a device: it has
// memory of its own, to which packets cross.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace penstock::function {

enum class Processor : std::uint8_t { cpu, gpu };

/// By Processor: as in chain files, plans and reports.
inline constexpr std::array<std::string_view, 2> kProcessorNames{"cpu", "gpu"};

[[nodiscard]] constexpr std::string_view name(Processor processor) noexcept {
  return kProcessorNames[static_cast<std::size_t>(processor)];
}
/// Empty for a name that is not in the table, such as `auto`.
[[nodiscard]] constexpr std::optional<Processor> processor_named(std::string_view text) noexcept {
  for (std::size_t p = 0; p < kProcessorNames.size(); ++p) {
    if (kProcessorNames[p] == text) return static_cast<Processor>(p);
  }
  return std::nullopt;
}
/// The values of `processor` in chain files.
inline constexpr std::string_view kProcessorChoices = "auto|cpu|gpu";

[[nodiscard]] constexpr bool is_device(Processor processor) noexcept { return processor != Processor::cpu; }

}  // namespace penstock::function
