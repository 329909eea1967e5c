// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/value_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/ascii.h"
#include "base/units.h"

namespace penstock::experiments {
namespace {

enum class Kind : std::uint8_t { any, number, positive, signed_number, count, percent, percentile, frame_size, bytes };

struct Rule {
  std::string_view key;
  Kind kind;
};

constexpr auto kRules = std::to_array<Rule>({
    {"batch", Kind::count},
    {"batch_bytes", Kind::bytes},
    {"buffer_bytes", Kind::count},
    {"cores", Kind::count},
    {"dollars", Kind::positive},
    {"dropped_percent", Kind::percent},
    {"functions", Kind::count},
    {"gpu_percent", Kind::percent},
    {"gpus", Kind::count},
    {"less_latency_shared", Kind::signed_number},
    {"less_up_shared", Kind::signed_number},
    {"load", Kind::positive},
    {"load_percent", Kind::percent},
    {"lost_percent", Kind::percent},
    {"mbps_per_dollar", Kind::positive},
    {"mbps_per_watt", Kind::positive},
    {"packet_bytes", Kind::count},
    {"percentile", Kind::percentile},
    {"probes_lost_percent", Kind::percent},
    {"router_waiting_percent", Kind::percent},
    {"routes", Kind::count},
    {"rules", Kind::count},
    {"size", Kind::frame_size},
    {"streams", Kind::count},
    {"tenants", Kind::count},
    {"transfer_percent", Kind::percent},
    {"waiting_percent", Kind::percent},
    {"watts", Kind::positive},
    {"workers", Kind::count},
});

constexpr double kMost = 1e15;
constexpr double kLeastFrame = 64;
constexpr double kMostFrame = 9000;  // the generator's maximum

Kind kind_of(std::string_view key) {
  if (key.starts_with("limit_")) return Kind::positive;
  const auto* const rule = std::ranges::find(kRules, key, &Rule::key);
  return rule == kRules.end() ? Kind::any : rule->kind;
}

const char* expected_of(Kind kind) {
  switch (kind) {
    case Kind::any: return "text, true, false, or a number from 0 to 1e15";
    case Kind::number: return "a number from 0 to 1e15";
    case Kind::positive: return "a number above 0, at most 1e15";
    case Kind::signed_number: return "a number from -1e15 to 1e15";
    case Kind::count: return "a whole number from 1 to 1e15";
    case Kind::percent: return "a number from 0 to 100";
    case Kind::percentile: return "a number above 0 and below 100";
    case Kind::frame_size: return "a frame size from 64 to 9000 bytes, or imix";
    case Kind::bytes: return "a size such as 8MiB";
  }
  return "";
}

bool is_whole(double number) { return std::trunc(number) == number; }

bool is_right(Kind kind, double number) {
  switch (kind) {
    case Kind::any:
    case Kind::number: return number >= 0 && number <= kMost;
    case Kind::positive: return number > 0 && number <= kMost;
    case Kind::signed_number: return std::abs(number) <= kMost;
    case Kind::count: return number >= 1 && number <= kMost && is_whole(number);
    case Kind::percent: return number >= 0 && number <= 100;
    case Kind::percentile: return number > 0 && number < 100;
    case Kind::frame_size: return number >= kLeastFrame && number <= kMostFrame && is_whole(number);
    case Kind::bytes: return false;
  }
  return false;
}

/// For "NaN", "-inf" and the like: a result that was lost.
bool is_not_finite(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  constexpr std::array<std::string_view, 3> kNames{"nan", "inf", "infinity"};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return equals_ignoring_case(text, name); });
}

bool is_right(Kind kind, const std::string& text) {
  const auto number = parse_number(text);
  if (kind == Kind::any) return number ? is_right(kind, *number) : !is_not_finite(text);
  if (kind == Kind::frame_size) return text == "imix" || (number && is_right(kind, *number));
  return kind == Kind::bytes && parse_size(text).value_or(0) > 0;
}

/// `key` without its ending, which names all measurements of a value.
std::string_view of_repeats(std::string_view key) {
  constexpr std::string_view kEnding = "_repeats";
  return key.ends_with(kEnding) ? key.substr(0, key.size() - kEnding.size()) : std::string_view();
}

bool is_right(Kind kind, const Value& value) {
  if (const auto* const number = std::get_if<double>(&value)) return is_right(kind, *number);
  if (const auto* const text = std::get_if<std::string>(&value)) return is_right(kind, *text);
  return kind == Kind::any && std::holds_alternative<bool>(value);
}

std::optional<std::string> expected_of(Kind kind, const Value& value) {
  if (is_right(kind, value)) return std::nullopt;
  // A number that is out of range: a number was expected.
  return expected_of(kind == Kind::any && std::holds_alternative<double>(value) ? Kind::number : kind);
}

}  // namespace

std::optional<std::string> expected_of_point(std::string_view key, const Value& value) {
  if (const std::string_view of = of_repeats(key); !of.empty()) {
    const auto* const repeats = std::get_if<Repeats>(&value);
    const Kind kind = kind_of(of);
    const bool right = repeats != nullptr && repeats->size() > 1 &&
                       std::ranges::all_of(*repeats, [&](double number) { return is_right(kind, number); });
    if (right) return std::nullopt;
    return "a list of at least two, each " + std::string(expected_of(kind == Kind::any ? Kind::number : kind));
  }
  return expected_of(kind_of(key), value);
}

std::optional<std::string> expected_of_limits(const Value& value) { return expected_of(Kind::positive, value); }

}  // namespace penstock::experiments
