// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <tuple>

#include "base/text_file.h"
#include "experiments/catalog.h"
#include "experiments/figure.h"
#include "experiments/kept_records_for_test.h"
#include "experiments/plot/layout.h"
#include "experiments/workload.h"

namespace penstock::experiments {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

Chart chart_of(const Figure& figure, const Record& record) {
  return figure.bars ? bar_chart(figure, record) : curve_chart(figure, record);
}

/// Visits all figures of all kept records that have a plot.
void for_each_kept_plot(const std::function<void(const std::string&, const Figure&, const Record&)>& visit) {
  for_each_kept_record(PENSTOCK_RECORDS,
                       [&](const std::string& path, const Experiment& experiment, const Record& record) {
                         for (const Figure& figure : experiment.figures()) {
                           if (!has_plot(figure, record)) continue;
                           visit(fs::path(path).stem().string() + ": " + figure.id, figure, record);
                         }
                       });
}

bool overlap(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

void expect_inside(const Pixel& at, double radius, const Box& frame, const std::string& what) {
  EXPECT_GE(at.x - radius, frame.left) << what;
  EXPECT_LE(at.x + radius, frame.right) << what;
  EXPECT_GE(at.y - radius, frame.top) << what;
  EXPECT_LE(at.y + radius, frame.bottom) << what;
}

TEST(KeptPlots, HaveAllMarksCompletelyInsideTheirFrames) {
  std::size_t marks = 0;
  for_each_kept_plot([&](const std::string& what, const Figure& figure, const Record& record) {
    for (const Panel& panel : chart_of(figure, record).panels) {
      for (const DrawnCurve& curve : panel.curves) {
        for (const Mark& mark : curve.marks) expect_inside(mark.at, kMarkRadius, panel.frame, what);
        marks += curve.marks.size();
      }
      for (const References& references : panel.references) {
        for (const Pixel& at : references.marks) expect_inside(at, kReferenceRadius, panel.frame, what);
      }
      for (const BarBox& bar : panel.bars) {
        EXPECT_GE(bar.box.left, panel.frame.left) << what;
        EXPECT_LE(bar.box.right, panel.frame.right) << what;
        EXPECT_LE(bar.box.bottom, panel.frame.bottom) << what;
      }
    }
  });
  EXPECT_GT(marks, 1000U) << "the records are there";
}

TEST(KeptPlots, HaveNoTwoSeriesOrLimitsThatLookAlike) {
  for_each_kept_plot([](const std::string& what, const Figure& figure, const Record& record) {
    std::set<std::pair<std::size_t, std::string>> curves;
    std::set<std::pair<std::size_t, std::string>> guides;
    std::set<std::pair<std::size_t, std::string>> references;
    for (const Panel& panel : chart_of(figure, record).panels) {
      for (const DrawnCurve& curve : panel.curves) curves.emplace(curve.style, curve.label);
      for (const Guide& guide : panel.guides) guides.emplace(guide.style, guide.label);
      for (const References& r : panel.references) references.emplace(r.style, r.label);
    }
    const auto expect_unique = [&](const auto& names, auto look) {
      std::vector<decltype(look(0))> looks;
      for (const auto& [style, label] : names) {
        EXPECT_EQ(std::ranges::count(looks, look(style)), 0) << what << ": " << label;
        looks.push_back(look(style));
      }
    };
    expect_unique(curves, [](std::size_t style) { return curve_style(style); });
    expect_unique(guides, [](std::size_t style) { return guide_style(style); });
    expect_unique(references, [](std::size_t style) { return reference_marker(style); });
  });
}

TEST(KeptPlots, HaveFewSeriesInAPanel) {
  for_each_kept_plot([](const std::string& what, const Figure& figure, const Record& record) {
    for (const Panel& panel : chart_of(figure, record).panels) EXPECT_LE(panel.curves.size(), 6U) << what;
  });
}

TEST(KeptPlots, HaveNoOverlappingTextsAndNoneOffThePage) {
  for_each_kept_plot([](const std::string& what, const Figure& figure, const Record& record) {
    const Chart chart = chart_of(figure, record);
    for (std::size_t i = 0; i < chart.texts.size(); ++i) {
      const Box box = chart.texts[i].box();
      EXPECT_GE(box.left, 0) << what << ": " << chart.texts[i].text;
      EXPECT_LE(box.right, chart.width) << what << ": " << chart.texts[i].text;
      EXPECT_GE(box.top, 0) << what << ": " << chart.texts[i].text;
      EXPECT_LE(box.bottom, chart.height) << what << ": " << chart.texts[i].text;
      for (std::size_t j = 0; j < i; ++j) {
        EXPECT_FALSE(overlap(box, chart.texts[j].box()))
            << what << ": " << chart.texts[i].text << " and " << chart.texts[j].text;
      }
    }
  });
}

TEST(KeptPlots, ConnectNoCategoryWithANumber) {
  std::size_t with_categories = 0;
  for_each_kept_plot([&](const std::string& what, const Figure& figure, const Record& record) {
    for (const Panel& panel : chart_of(figure, record).panels) {
      if (panel.dividers.empty()) continue;
      ++with_categories;
      for (const DrawnCurve& curve : panel.curves) {
        for (const Polyline& line : curve.lines) {
          for (const Pixel& at : line) EXPECT_LT(at.x, panel.dividers[0]) << what;
        }
      }
    }
  });
  EXPECT_GT(with_categories, 10U) << "frame sizes with imix";
}

TEST(KeptPlots, AreSmallAndReproducible) {
  for_each_kept_plot([](const std::string& what, const Figure& figure, const Record& record) {
    const std::string svg = plot_svg(figure, record);
    EXPECT_LT(svg.size(), 30'000U) << what;
    EXPECT_EQ(svg, plot_svg(figure, record)) << what;
  });
}

TEST(CurveStyles, DifferInColourAndWithoutIt) {
  for (std::size_t i = 0; i < kMostCurves; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const CurveStyle a = curve_style(i);
      const CurveStyle b = curve_style(j);
      EXPECT_FALSE(a == b) << i << ' ' << j;
      EXPECT_FALSE(a.marker == b.marker && a.filled == b.filled && std::string(a.dash) == b.dash)
          << i << ' ' << j << ": alike on a black-and-white printer";
    }
  }
}

TEST(GuideStyles, HaveTheirOwnDashes) {
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(std::string(guide_style(i).dash), guide_style(j).dash);
  }
}

// ---- One figure

Figure by_size() {
  return {.id = "size",
          .title = "Rate by size",
          .where = {},
          .x = {"size", "bytes", AxisKind::logarithmic},
          .y = {"gbps", "Gbit/s"},
          .series = {"mode"},
          .limit = LimitLine{.label = "PCIe limit", .key = "limit"},
          .references = {}};
}

Point point(const char* size, const char* mode, double gbps) {
  return Point().set("size", size).set("mode", mode).set("gbps", gbps);
}

Record record_of(std::vector<Point> points) {
  Record record;
  record.experiment = "test";
  record.points = std::move(points);
  return record;
}

TEST(CurvePlot, PutsCategoriesBesideTheNumbers) {
  const Chart chart =
      curve_chart(by_size(), record_of({point("1518", "gpu", 3), point("imix", "gpu", 2), point("64", "gpu", 1)}));
  const Panel& panel = chart.panels.at(0);
  ASSERT_EQ(panel.dividers.size(), 1U);
  const DrawnCurve& curve = panel.curves.at(0);
  ASSERT_EQ(curve.lines.size(), 1U);
  ASSERT_EQ(curve.lines[0].size(), 2U) << "64 and 1518";
  EXPECT_LT(curve.lines[0][0].x, curve.lines[0][1].x);
  EXPECT_EQ(std::ranges::count_if(curve.marks, [&](const Mark& m) { return m.at.x > panel.dividers[0]; }), 1);
}

TEST(CurvePlot, PutsASinglePointInTheMiddle) {
  const Chart chart = curve_chart(by_size(), record_of({point("64", "gpu", 3)}));
  const Panel& panel = chart.panels.at(0);
  expect_inside(panel.curves.at(0).marks.at(0).at, kMarkRadius, panel.frame, "the only point");
  EXPECT_NEAR(panel.curves[0].marks[0].at.x, (panel.frame.left + panel.frame.right) / 2, 1);
  EXPECT_TRUE(panel.curves[0].lines.empty());
}

TEST(CurvePlot, DrawsALimitInsideTheFrameAndNamesItBesideItsEnd) {
  const Chart chart = curve_chart(
      by_size(), record_of({point("64", "gpu", 80).set("limit", 90), point("1518", "gpu", 99).set("limit", 110)}));
  const Guide& limit = chart.panels.at(0).guides.at(0);
  ASSERT_EQ(limit.lines.size(), 1U);
  EXPECT_TRUE(chart.arrows.empty());
  const auto label = std::ranges::find(chart.texts, "PCIe limit", &Text::text);
  ASSERT_NE(label, chart.texts.end());
  EXPECT_GT(label->at.x, chart.panels[0].frame.right);
  EXPECT_NEAR(label->at.y, limit.lines[0].back().y, 10);
}

TEST(CurvePlot, MarksAFarLimitByAnArrowAndKeepsTheScale) {
  const auto top_of = [](double limit) {
    const Chart chart = curve_chart(by_size(), record_of({point("64", "gpu", 10).set("limit", limit)}));
    return std::tuple(chart.panels.at(0).curves.at(0).marks.at(0).at.y - chart.panels[0].frame.top, chart.arrows.size(),
                      chart.panels[0].guides.at(0).lines.size());
  };
  const auto [near, no_arrow, one_line] = top_of(10.001);
  const auto [far, arrow, no_line] = top_of(1000);
  EXPECT_NEAR(near, far, 1) << "the point fills the frame either way";
  EXPECT_EQ(no_arrow, 0U);
  EXPECT_EQ(one_line, 1U);
  EXPECT_EQ(arrow, 1U);
  EXPECT_EQ(no_line, 0U);
}

TEST(CurvePlot, CutsALimitWhereItLeavesTheFrame) {
  const Chart chart = curve_chart(
      by_size(), record_of({point("64", "gpu", 10).set("limit", 500), point("1518", "gpu", 10).set("limit", 11)}));
  const Panel& panel = chart.panels.at(0);
  ASSERT_EQ(panel.guides.at(0).lines.size(), 1U);
  EXPECT_NEAR(panel.guides[0].lines[0].front().y, panel.frame.top, 0.01);
  EXPECT_GT(panel.guides[0].lines[0].front().x, panel.frame.left);
}

TEST(CurvePlot, HasAPanelForEachValueWithSharedAxes) {
  Figure chains = by_size();
  chains.series = {"chain", "mode"};
  chains.panels = "chain";
  chains.references = {{"paper", 5, 64, "", "C2"}};
  Record record;
  for (const char* chain : {"C1", "C2", "C3", "C4"}) {
    for (const char* mode : {"shared", "unshared", "cpu"}) {
      for (const char* size : {"64", "1518"}) record.points.push_back(point(size, mode, 10).set("chain", chain));
    }
  }
  record.points.back().set("gbps", 20);
  const Chart chart = curve_chart(chains, record);
  ASSERT_EQ(chart.panels.size(), 4U);
  for (const Panel& panel : chart.panels) {
    EXPECT_EQ(panel.curves.size(), 3U);
    EXPECT_EQ(panel.frame.width(), chart.panels[0].frame.width());
    EXPECT_EQ(panel.curves[0].style, chart.panels[0].curves[0].style) << "shared looks the same in all of them";
    EXPECT_NEAR(panel.curves[0].marks[0].at.y - panel.frame.top,
                chart.panels[0].curves[0].marks[0].at.y - chart.panels[0].frame.top, 0.01);
  }
  EXPECT_TRUE(chart.panels[0].references.empty());
  EXPECT_EQ(chart.panels[1].references.size(), 1U);
  EXPECT_EQ(chart.legend.size(), 4U) << "three ways, and the paper";
}

TEST(CurvePlot, LeavesOutValuesThatALogarithmicAxisCannotShowAndSaysSo) {
  Figure logarithmic = by_size();
  logarithmic.y.kind = AxisKind::logarithmic;
  const Chart chart = curve_chart(logarithmic, record_of({point("64", "gpu", 0), point("128", "gpu", 2)}));
  EXPECT_EQ(chart.panels.at(0).curves.at(0).marks.size(), 1U);
  EXPECT_NE(std::ranges::find(chart.texts, "Values of 0 or less, which are not drawn: 1.", &Text::text),
            chart.texts.end());
  EXPECT_FALSE(has_plot(logarithmic, record_of({point("64", "gpu", 0)})));
}

TEST(CurvePlot, DrawsTheSpreadOfRepeats) {
  const Chart chart = curve_chart(by_size(), record_of({point("64", "gpu", 5).set("gbps_min", 4).set("gbps_max", 8)}));
  const Mark& mark = chart.panels.at(0).curves.at(0).marks.at(0);
  EXPECT_LT(mark.top, mark.at.y);
  EXPECT_GT(mark.bottom, mark.at.y);
}

TEST(CurvePlot, DrawsIntervalsOfMeansFromZeroOn) {
  const Chart chart = curve_chart(by_size(), record_of({point("64", "gpu", 5).set("gbps_repeats", Repeats{4, 6}),
                                                        point("64", "cpu", 5).set("gbps_min", 4).set("gbps_max", 8)}));
  const Mark& mark = chart.panels.at(0).curves.at(0).marks.at(0);
  EXPECT_LT(mark.top, mark.at.y);
  EXPECT_LE(mark.bottom, chart.panels.at(0).frame.bottom) << "5 ± 12.7";
  for (const char* const note : {"Vertical bars are confidence intervals of 95 % for means or their quotients.",
                                 "Other vertical bars span the lowest and the highest of the repeats."}) {
    EXPECT_NE(std::ranges::find(chart.texts, note, &Text::text), chart.texts.end()) << note;
  }
}

TEST(CurvePlot, DrawsNoMoreSeriesThanThereAreStyles) {
  Record record;
  for (std::size_t i = 0; i < kMostCurves + 3; ++i) {
    record.points.push_back(point("64", "x", 1).set("mode", "m" + std::to_string(i)));
  }
  const Chart chart = curve_chart(by_size(), record);
  EXPECT_EQ(chart.panels.at(0).curves.size(), kMostCurves);
  EXPECT_NE(std::ranges::find(chart.texts, "More series in the table, which are not drawn: 3.", &Text::text),
            chart.texts.end());
}

TEST(Svg, KeepsTextsUnchanged) {
  Figure odd = by_size();
  odd.title = "<script>&\"\x1b";
  const std::string svg = plot_svg(odd, record_of({point("64", "a</text>b", 1), point("64", "c", 1)}));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;&quot;\\x1b"));
  EXPECT_THAT(svg, HasSubstr("a&lt;/text&gt;b"));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
}

TEST(Svg, HasOnlyFiniteNumbersForAnyValues) {
  Record record = record_of({point("64", "a", 1e308), point("1518", "a", -1e308), point("imix", "b", 1e-308)});
  record.points[0].set("limit", -1e308);
  const std::string svg = plot_svg(by_size(), record);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

// ---- Bars

Figure bar_figure() {
  return {.id = "timeline",
          .title = "Transfers",
          .where = {},
          .x = {"mode", "mode"},
          .y = {"rate", "transfers"},
          .series = {},
          .limit = std::nullopt,
          .references = {},
          .bars = BarChart{"bars", "in progress", "waiting", {}}};
}

Point timeline(const char* mode, const char* bars) {
  return Point().set("mode", mode).set("rate", 1).set("bars", bars);
}

TEST(BarPlot, HasARowForEachFunctionWithoutOverlappingBars) {
  //   apart: nids    |----|
  //                     ::|---|      the second waits (:) for the first
  //   apart: router            |-|
  const Chart chart =
      bar_chart(bar_figure(), record_of({timeline("apart", "nids: 0 0 40; 10 30 70 | router: 100 0 5")}));
  const Panel& panel = chart.panels.at(0);
  ASSERT_EQ(panel.bars.size(), 4U) << "three, one of which waits first";
  EXPECT_EQ(std::ranges::count(panel.bars, true, &BarBox::waits), 1);
  for (std::size_t i = 0; i < panel.bars.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(panel.bars[i].box, panel.bars[j].box)) << i << ' ' << j;
  }
  EXPECT_EQ(panel.bands.size(), 1U);
  EXPECT_NE(std::ranges::find(chart.texts, "apart: router", &Text::text), chart.texts.end());
  EXPECT_NE(std::ranges::find(chart.texts, "waiting", &Text::text), chart.texts.end());
}

TEST(BarPlot, IsNotThereWithoutBars) {
  EXPECT_FALSE(has_plot(bar_figure(), record_of({timeline("apart", "")})));
  EXPECT_FALSE(has_plot(bar_figure(), record_of({timeline("apart", "nids: 0 0 a")})));
  EXPECT_TRUE(has_plot(bar_figure(), record_of({timeline("apart", "nids: 0 0 1")})));
}

// ---- Files

TEST(WritePlot, NamesTheFileAfterExperimentAndFigure) {
  const Workplace place;
  const std::string folder = fs::path(place.path("")).parent_path().string();
  const Record record = record_of({point("64", "gpu", 1)});
  const auto path = write_plot(by_size(), record, folder);
  ASSERT_TRUE(path) << to_string(path.error());
  EXPECT_EQ(*path, folder + "/test-size.svg");
  EXPECT_EQ(read_text_file(*path), plot_svg(by_size(), record));
  EXPECT_FALSE(write_plot(by_size(), record, folder + "/none"));
}

}  // namespace
}  // namespace penstock::experiments
