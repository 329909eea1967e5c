// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/ascii.h"

namespace penstock {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};

/// Removes the number at the front of `text`.
std::optional<double> take_number(std::string_view& text) {
  double value = 0;
  const char* last = text.data() + text.size();
  if (text.empty() || text.front() == '-' || text.front() == '+') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), last, value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return value;
}

bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }

template <std::size_t kUnits>
std::optional<double> number_with_unit(std::string_view text, const std::array<Unit, kUnits>& units) {
  const auto value = take_number(text);
  if (!value) return std::nullopt;
  for (const Unit& unit : units) {
    if (equals_ignoring_case(text, unit.name)) return *value * unit.factor;
  }
  return std::nullopt;
}

/// True for "Mb" and "GBps", whose case contradicts the unit: read case-insensitively, they would be wrong by a factor
/// of eight.
bool swaps_bits_and_bytes(std::string_view text, char wrong) noexcept {
  const std::size_t unit = text.find_first_not_of("0123456789. ");
  if (unit == std::string_view::npos) return false;
  text.remove_prefix(unit);
  const std::size_t at = text.find(wrong);
  const bool one_case = std::none_of(text.begin(), text.end(), wrong == 'b' ? is_upper : is_lower);
  return at != std::string_view::npos && !one_case;
}

constexpr double kKi = 1024;
constexpr std::array<Unit, 12> kSizes{{{"", 1},
                                       {"B", 1},
                                       {"KiB", kKi},
                                       {"MiB", kKi* kKi},
                                       {"GiB", kKi* kKi* kKi},
                                       {"TiB", kKi* kKi* kKi* kKi},
                                       {"KB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"K", kKi},
                                       {"M", kKi* kKi},
                                       {"G", kKi* kKi* kKi}}};
constexpr std::array<Unit, 7> kDurations{
    {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
constexpr std::array<Unit, 5> kBitRates{{{"bps", 1}, {"kbps", 1e3}, {"Mbps", 1e6}, {"Gbps", 1e9}, {"Tbps", 1e12}}};
constexpr std::array<Unit, 4> kPacketRates{{{"pps", 1}, {"kpps", 1e3}, {"Mpps", 1e6}, {"Gpps", 1e9}}};

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  if (swaps_bits_and_bytes(text, 'b')) return std::nullopt;
  const auto value = number_with_unit(text, kSizes);
  // A fraction of a byte is a mistake. A double holds integers exactly only up to 2^53.
  if (!value || *value > 9.0e15 || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  if (text == "0") return std::chrono::nanoseconds{0};
  const auto value = number_with_unit(text, kDurations);
  if (!value || *value > 9.0e18) return std::nullopt;
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::llround(*value))};
}

std::optional<Rate> parse_rate(std::string_view text) {
  if (swaps_bits_and_bytes(text, 'B')) return std::nullopt;
  if (const auto bits = number_with_unit(text, kBitRates)) return Rate{Rate::Unit::bits_per_second, *bits};
  if (const auto packets = number_with_unit(text, kPacketRates)) return Rate{Rate::Unit::packets_per_second, *packets};
  return std::nullopt;
}

std::optional<std::uint64_t> parse_integer(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t value = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value, base);
  if (text.empty() || error != std::errc{} || end != last) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = take_number(text);
  if (!value || !text.empty()) return std::nullopt;
  return value;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kNames[unit]);
}

std::string format_duration(std::chrono::nanoseconds time) {
  const auto ns = static_cast<double>(time.count());
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.3g} ms", ns / 1e6);
  return fmt::format("{:.3f} s", ns / 1e9);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string format_count(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", format_count(count), thing, count == 1 ? "" : "s");
}

std::string format_si(double value) {
  constexpr std::array<std::string_view, 5> kPrefixes{"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 1000 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}", value, kPrefixes[prefix]);
}

}  // namespace penstock
