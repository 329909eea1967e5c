// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "experiments/plot/chart.h"

namespace penstock::experiments {

double text_width(std::string_view text, double size) noexcept {
  // Relative to the font size, as in DejaVu Sans, which is wider than most fonts.
  constexpr double kNarrow = 0.36;
  constexpr double kWide = 0.9;
  constexpr double kOther = 0.62;
  double width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) == 0x80U) continue;  // UTF-8 continuation byte
    const bool narrow = std::string_view("iljtfI.,:;'|!()[] ").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW%").find(c) != std::string_view::npos || byte >= 0x80U;
    width += narrow ? kNarrow : wide ? kWide : kOther;
  }
  return width * size;
}

std::vector<std::string> wrapped_text(std::string_view text, double size, double width) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    if (!lines.empty() && text_width(lines.back() + ' ' + word, size) <= width) {
      lines.back() += ' ' + word;
    } else if (!word.empty()) {
      lines.push_back(word);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Box Text::box() const noexcept {
  const double length = text_width(text, size) * (bold ? 1.08 : 1);
  const double before = anchor == Anchor::start ? 0 : anchor == Anchor::middle ? length / 2 : length;
  const double ascent = 0.75 * size;
  const double descent = 0.2 * size;
  if (upwards) return {at.x - ascent, at.y - (length - before), at.x + descent, at.y + before};
  return {at.x - before, at.y - ascent, at.x - before + length, at.y + descent};
}

}  // namespace penstock::experiments
