// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/filter/result_form.h"

#include <fmt/format.h>

#include <cstring>

#include "experiments/filter/random_packets.h"

namespace penstock::experiments {
namespace {

constexpr unsigned kByte = 8;

std::uint32_t expected_of(std::uint32_t number, unsigned bits) { return bits <= kByte ? number != 0 : number; }

std::uint32_t read(std::span<const std::byte> results, unsigned bits, std::size_t index) {
  if (bits == 1) return std::to_integer<std::uint32_t>(results[index / kByte]) >> (index % kByte) & 1;
  std::uint32_t value = 0;
  std::memcpy(&value, results.data() + index * (bits / kByte), bits / kByte);  // little endian
  return value;
}

void write(std::span<std::byte> results, unsigned bits, std::size_t index, std::uint32_t value) {
  if (bits == 1) {
    const auto mask = static_cast<std::byte>(1U << (index % kByte));
    std::byte& there = results[index / kByte];
    there = value != 0 ? there | mask : there & ~mask;
  } else {
    std::memcpy(results.data() + index * (bits / kByte), &value, bits / kByte);
  }
}

}  // namespace

void spoil_results(std::span<std::byte> results, unsigned bits, std::span<const std::uint32_t> expected) noexcept {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    write(results, bits, i * kCheckedStep, ~expected_of(expected[i], bits) & (bits == 1 ? 1 : ~0U));
  }
}

Result<void> check_results(std::span<const std::byte> results, unsigned bits, std::span<const std::uint32_t> expected,
                           const char* whose) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::uint32_t found = read(results, bits, i * kCheckedStep);
    const std::uint32_t right = expected_of(expected[i], bits);
    if (found == right) continue;
    return failure({{},
                    fmt::format("{} result for packet {} is wrong", whose, i * kCheckedStep),
                    std::to_string(found),
                    std::to_string(right)});
  }
  return {};
}

}  // namespace penstock::experiments
