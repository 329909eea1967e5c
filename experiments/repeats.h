// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Repeated measurements of one value, in the order in which they were made: how a point keeps them, and what they say
// about the mean. Intervals are confidence intervals of 95 percent.

#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "experiments/point.h"

namespace penstock::experiments {

/// `values` must not be empty. For an even number, the mean of the middle two.
[[nodiscard]] double median_of(std::vector<double> values);

/// Sets `name` to the median and, if there are several values, `name`_repeats to all of them.
void set_repeats(Point& point, std::string_view name, const Repeats& values);

/// The repeats of a point's value; only the value itself if it was measured once; none if there is no such number.
[[nodiscard]] Repeats repeats_of(const Point& point, std::string_view name);

[[nodiscard]] Repeats divided(Repeats values, double by);

struct Interval {
  double value = 0;  // a mean, or a quotient of means
  double low = 0, high = 0;
};

/// Student's t for this many degrees of freedom, at least 1: 97.5 percent of its distribution are below it.
[[nodiscard]] double students_t(unsigned degrees) noexcept;

/// The mean by Student's t. Nothing for fewer than two values, or if a double cannot hold the result.
[[nodiscard]] std::optional<Interval> mean_of(const Repeats& values) noexcept;

/// The quotient of the means of two independent series, which need not be equally long, since no value of one belongs
/// to one of the other. Its logarithm is a difference of means; the variance of each is that of the mean divided by the
/// mean's square (delta method), and the degrees of freedom are Welch's and Satterthwaite's, rounded down. So the
/// interval is not symmetric. Nothing if a mean is not positive, or a series has fewer than two values.
[[nodiscard]] std::optional<Interval> quotient_of(const Repeats& dividends, const Repeats& divisors) noexcept;

/// Sets `name` to the quotient of the means and `name`_low and `name`_high to its interval; if one was measured only
/// once, `name` to the quotient of the medians. Neither may be empty. `unit`: what 1 is, such as 100 for percent.
void set_quotient(Point& point, std::string_view name, const Repeats& dividends, const Repeats& divisors,
                  double unit = 1);

/// Likewise, what the value is less than that of `whole`, in percent.
void set_percent_less(Point& point, std::string_view name, const Repeats& values, const Repeats& whole);

}  // namespace penstock::experiments
