// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "base/text_file.h"
#include "experiments/bars.h"
#include "experiments/figure.h"
#include "experiments/plot/layout.h"
#include "experiments/plot/plot_data.h"

namespace penstock::experiments {

bool has_plot(const Figure& figure, const Record& record) {
  if (!figure.bars) return !plot_data_of(figure, record).empty();
  return std::ranges::any_of(record.points, [&](const Point& point) {
    if (!satisfies(point, figure.where)) return false;
    const auto rows = parse_bars(point.text(figure.bars->key));
    return rows && !rows->empty();
  });
}

std::string plot_svg(const Figure& figure, const Record& record) {
  return to_svg(figure.bars ? bar_chart(figure, record) : curve_chart(figure, record));
}

Result<std::string> write_plot(const Figure& figure, const Record& record, const std::string& folder) {
  std::string path = fmt::format("{}/{}-{}.svg", folder, record.experiment, figure.id);
  if (auto written = write_text_file(path, plot_svg(figure, record)); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return path;
}

}  // namespace penstock::experiments
