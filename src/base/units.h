// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers with units, as users write and read them. Units are case-insensitive ("1mb", "10gbps"), except where the case
// distinguishes bits from bytes: the size "1Mb" and the rate "1MBps" are refused.

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace penstock {

/// "4096", "4KiB", "4MiB", "1GiB", "2KB" (2,000 bytes), "64B".
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);
/// "500us", "1ms", "2.5s", "3m", "1h", "100ns". A number without a unit is refused because it is ambiguous, except "0".
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);
/// Bits per second "10Gbps", "500Mbps", or packets per second "2Mpps", "300kpps", "5pps".
struct Rate {
  enum class Unit : std::uint8_t { bits_per_second, packets_per_second } unit = Unit::packets_per_second;
  double value = 0;
};
[[nodiscard]] std::optional<Rate> parse_rate(std::string_view text);
/// A decimal or 0x-hexadecimal number, which must be all of `text`.
[[nodiscard]] std::optional<std::uint64_t> parse_integer(std::string_view text);
[[nodiscard]] std::optional<double> parse_number(std::string_view text);

[[nodiscard]] std::string format_size(std::uint64_t bytes);                // "4.0 MiB"
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds time);  // "1.25 ms"
[[nodiscard]] std::string format_count(std::uint64_t count);               // "1,234,567"
/// "1 rule", "1,234 rules"; the plural of `thing` must end in s.
[[nodiscard]] std::string format_count(std::uint64_t count, std::string_view thing);
/// Three digits and a decimal prefix, for rates: "12.3 M", "4.56 G" (append "pps").
[[nodiscard]] std::string format_si(double value);

}  // namespace penstock
