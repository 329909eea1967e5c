// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/repeats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

namespace penstock::experiments {
namespace {

struct Moments {
  double mean = 0;
  double variance_of_mean = 0;
};

Moments moments_of(const Repeats& values) noexcept {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, squares / (count - 1) / count};
}

std::optional<Interval> if_finite(const Interval& interval) noexcept {
  const bool right = std::isfinite(interval.value) && std::isfinite(interval.low) && std::isfinite(interval.high);
  return right ? std::optional(interval) : std::nullopt;
}

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void set_repeats(Point& point, std::string_view name, const Repeats& values) {
  point.set(name, median_of(values));
  if (values.size() > 1) point.set(std::string(name) + "_repeats", values);
}

Repeats repeats_of(const Point& point, std::string_view name) {
  const Value* const list = point.find(std::string(name) + "_repeats");
  if (list != nullptr && std::holds_alternative<Repeats>(*list)) return std::get<Repeats>(*list);
  const auto number = point.number(name);
  return number ? Repeats{*number} : Repeats{};
}

Repeats divided(Repeats values, double by) {
  for (double& value : values) value /= by;
  return values;
}

double students_t(unsigned degrees) noexcept {
  constexpr std::array<double, 12> kSmall{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469,
                                          2.3646,  2.3060, 2.2622, 2.2281, 2.2010, 2.1788};
  if (degrees <= kSmall.size()) return kSmall[std::max(degrees, 1U) - 1];
  // Expansion about the normal distribution (Abramowitz and Stegun, 26.7.5), correct to four digits from here on.
  constexpr double kNormal = 1.959963985;
  constexpr double kSquare = kNormal * kNormal;
  const double n = degrees;
  return kNormal * (1 + (kSquare + 1) / (4 * n) + ((5 * kSquare + 16) * kSquare + 3) / (96 * n * n) +
                    (((3 * kSquare + 19) * kSquare + 17) * kSquare - 15) / (384 * n * n * n));
}

std::optional<Interval> mean_of(const Repeats& values) noexcept {
  if (values.size() < 2) return std::nullopt;
  const auto [mean, variance] = moments_of(values);
  const double half = students_t(static_cast<unsigned>(values.size() - 1)) * std::sqrt(variance);
  return if_finite({mean, mean - half, mean + half});
}

std::optional<Interval> quotient_of(const Repeats& dividends, const Repeats& divisors) noexcept {
  if (dividends.size() < 2 || divisors.size() < 2) return std::nullopt;
  const Moments above = moments_of(dividends);
  const Moments below = moments_of(divisors);
  if (!(above.mean > 0) || !(below.mean > 0)) return std::nullopt;
  const double value = above.mean / below.mean;
  const double of_above = above.variance_of_mean / (above.mean * above.mean);
  const double of_below = below.variance_of_mean / (below.mean * below.mean);
  const double variance = of_above + of_below;
  if (variance == 0) return if_finite({value, value, value});
  const double degrees = variance * variance /
                         (of_above * of_above / static_cast<double>(dividends.size() - 1) +
                          of_below * of_below / static_cast<double>(divisors.size() - 1));
  const auto most = static_cast<double>(dividends.size() + divisors.size() - 2);
  // Not a number if the squares are too small for a double: then one degree of freedom, which is safe.
  const auto whole = degrees >= 1 ? static_cast<unsigned>(std::min(degrees, most)) : 1U;
  const double half = students_t(whole) * std::sqrt(variance);
  return if_finite({value, value * std::exp(-half), value * std::exp(half)});
}

namespace {

void set_interval(Point& point, std::string_view name, const Interval& interval) {
  point.set(name, interval.value)
      .set(std::string(name) + "_low", interval.low)
      .set(std::string(name) + "_high", interval.high);
}

}  // namespace

void set_quotient(Point& point, std::string_view name, const Repeats& dividends, const Repeats& divisors, double unit) {
  const auto quotient = quotient_of(dividends, divisors);
  if (!quotient) {
    point.set(name, unit * median_of(dividends) / median_of(divisors));
    return;
  }
  set_interval(point, name, {unit * quotient->value, unit * quotient->low, unit * quotient->high});
}

void set_percent_less(Point& point, std::string_view name, const Repeats& values, const Repeats& whole) {
  const auto less = [](double quotient) { return 100 * (1 - quotient); };
  const auto quotient = quotient_of(values, whole);
  if (!quotient) {
    point.set(name, less(median_of(values) / median_of(whole)));
    return;
  }
  set_interval(point, name, {less(quotient->value), less(quotient->high), less(quotient->low)});
}

}  // namespace penstock::experiments
