// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The styles of curves, references and limits. Styles of one kind differ in several ways at once, so that plots can be
// read by colour-blind people and on black-and-white prints.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock::experiments {

enum class Marker : std::uint8_t { circle, square, triangle, diamond, down, pentagon, left, plus, cross, star };

struct CurveStyle {
  const char* colour;
  Marker marker;
  bool filled;
  const char* dash;  // SVG's stroke-dasharray, "" for a solid line
  friend bool operator==(const CurveStyle&, const CurveStyle&) = default;
};

/// Okabe and Ito's colours without yellow, which is too light for lines. The cycle lengths are coprime, and curves of
/// the same colour differ in marker, filling and dashes.
[[nodiscard]] constexpr CurveStyle curve_style(std::size_t index) noexcept {
  constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
  constexpr std::array kMarkers{Marker::circle, Marker::square,   Marker::triangle, Marker::diamond,
                                Marker::down,   Marker::pentagon, Marker::left};
  constexpr std::array kDashes{"", "7 3", "2 2", "9 3 2 3", "5 2"};
  return {kColours[index % kColours.size()], kMarkers[index % kMarkers.size()], index % 2 == 0,
          kDashes[index % kDashes.size()]};
}

/// The first so many curves all look different. No plot has more.
inline constexpr std::size_t kMostCurves = 42;

/// Markers for single values of a paper.
[[nodiscard]] constexpr Marker reference_marker(std::size_t index) noexcept {
  constexpr std::array kMarkers{Marker::star, Marker::cross, Marker::plus};
  return kMarkers[index % kMarkers.size()];
}

/// Limits, and values of a paper that hold for the whole axis.
struct GuideStyle {
  const char* dash;
  double width;
  friend bool operator==(const GuideStyle&, const GuideStyle&) = default;
};

[[nodiscard]] constexpr GuideStyle guide_style(std::size_t index) noexcept {
  constexpr std::array kDashes{"8 4", "2 3", "10 3 2 3", "4 2", "12 3 2 3 2 3", "1 5", "16 4", "6 2 1 2"};
  return {kDashes[index % kDashes.size()], index / kDashes.size() % 2 == 0 ? 1.2 : 2.2};
}

}  // namespace penstock::experiments
