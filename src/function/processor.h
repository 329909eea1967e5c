// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The processors that run stages of network functions. `cpu` is the host. Every other processor is a device: it has
// memory of its own, to which packets cross.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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

/// A table with a value for each processor.
template <typename Value>
class PerProcessor {
 public:
  struct Entry {
    Processor processor;
    Value value;
  };
  constexpr PerProcessor() = default;
  constexpr PerProcessor(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) (*this)[entry.processor] = entry.value;
  }
  [[nodiscard]] constexpr Value& operator[](Processor processor) noexcept {
    return values_[static_cast<std::size_t>(processor)];
  }
  [[nodiscard]] constexpr const Value& operator[](Processor processor) const noexcept {
    return values_[static_cast<std::size_t>(processor)];
  }

 private:
  static constexpr std::size_t kMost = 4;  // tests add processors that are not in the enumeration
  std::array<Value, kMost> values_{};
};

}  // namespace penstock::function
