// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

#include "experiments/curves.h"

namespace penstock::experiments {
namespace {

using ::testing::HasSubstr;

Figure figure() {
  return {.id = "batch",
          .title = "Look-ups by batch",
          .where = {{"sweep", {"batch"}}},
          .x = {"batch", "packets", AxisKind::logarithmic},
          .y = {"mpps", "Mpps", AxisKind::logarithmic},
          .series = {"processor", "streams"},
          .limit = LimitLine{.label = "PCIe", .key = "limit"},
          .references = {{"paper", 500, 65536, "a paper, figure 3"}, {"paper's CPU", 2.48, std::nullopt, "ibid."}}};
}

Point point(double batch, const char* processor, double mpps) {
  return Point().set("sweep", "batch").set("batch", batch).set("processor", processor).set("mpps", mpps);
}

Record record() {
  Record record;
  record.experiment = "test";
  record.command = "penstock bench test";
  record.points = {point(65536, "gpu", 1234.4).set("streams", 2).set("limit", 2000),
                   point(256, "cpu", 49.123).set("mpps_min", 48).set("mpps_max", 50),
                   point(256, "gpu", 0.5).set("streams", 2).set("limit", 2000),
                   point(4096, "cpu", 123.45),
                   point(1, "cpu", 7).set("sweep", "another"),
                   Point().set("sweep", "batch").set("batch", 8)};
  return record;
}

TEST(FigureTable, HasARowForEachXAndAColumnForEachSeries) {
  EXPECT_EQ(table(figure(), record(), Style::terminal),
            "Look-ups by batch\n"
            "Mpps, by packets\n"
            "packets        gpu    cpu   PCIe\n"
            "         streams=2\n"
            "    256      0.500  49.12  2,000\n"
            "  4,096             123.5\n"  // the GPU's series has no such point
            " 65,536      1,234         2,000\n"
            "  Nearest to its limit (PCIe): 62 %, with processor gpu, streams 2, batch 65536.\n"
            "  Medians; repeats of a point differ by at most 4.1 %.\n"
            "  Not shown: 1 point without a number for mpps.\n"
            "  paper: 500 at 65,536 (a paper, figure 3).\n"
            "  paper's CPU: 2.48 (ibid.).\n");
}

TEST(FigureTable, ShowsMeansOfRepeatsWithTheirIntervals) {
  Record repeated;
  repeated.points = {point(1, "cpu", 353).set("mpps_repeats", Repeats{350, 353, 355, 352, 356}),
                     point(2, "cpu", 12346).set("mpps_repeats", Repeats{12345, 12346, 12355}),
                     point(3, "cpu", 7).set("mpps_repeats", Repeats{7, 7}),
                     point(4, "cpu", 2.05).set("mpps_low", 1.98).set("mpps_high", 2.13),
                     point(5, "cpu", 5).set("mpps_min", 4).set("mpps_max", 6),
                     point(6, "cpu", 0.1234567).set("mpps_repeats", Repeats{0.1234566, 0.1234568})};
  const std::string text = table(figure(), repeated, Style::markdown);
  EXPECT_THAT(text, HasSubstr("| 1 | 353.2 ± 3.0 |")) << text;
  EXPECT_THAT(text, HasSubstr("| 2 | 12,349 ± 14 |"));
  EXPECT_THAT(text, HasSubstr("| 3 | 7.000 |")) << "all the same";
  EXPECT_THAT(text, HasSubstr("| 4 | 2.050 (1.980 to 2.130) |"));
  EXPECT_THAT(text, HasSubstr("| 5 | 5.000 |"));
  EXPECT_THAT(text, HasSubstr("| 6 | 0.1235 ± 0.0001 |")) << "not more digits than others have, and one";
  EXPECT_THAT(text, HasSubstr("- ± is the 95 % confidence interval of the mean of 2 to 5 repeats (Student's t). In "
                              "parentheses is the 95 % confidence interval of the quotient of two means (delta method "
                              "for its logarithm, Welch's degrees of freedom). Others are medians; repeats of a point "
                              "differ by at most 40.0 %.\n"));
}

TEST(FigureTable, IsTheSameInMarkdown) {
  EXPECT_THAT(table(figure(), record(), Style::markdown), HasSubstr("### Look-ups by batch\n\nMpps, by packets.\n\n"
                                                                    "| packets | gpu streams=2 | cpu | PCIe |\n"
                                                                    "| ---: | ---: | ---: | ---: |\n"
                                                                    "| 256 | 0.500 | 49.12 | 2,000 |\n"
                                                                    "| 4,096 |  | 123.5 |  |\n"
                                                                    "| 65,536 | 1,234 |  | 2,000 |\n"
                                                                    "\n- Nearest to its limit (PCIe): 62 %"));
}

TEST(FigureTable, EscapesControlCharactersOfMarkdownAndTerminals) {
  Record odd;
  odd.points = {point(1, "a|b_c\x1b[31m", 1)};
  EXPECT_THAT(table(figure(), odd, Style::markdown), HasSubstr("a\\|b\\_c\\\\x1b\\[31m"));
  EXPECT_THAT(table(figure(), odd, Style::terminal), HasSubstr("a|b_c\\x1b[31m"));
}

TEST(FigureTable, BreaksColumnsThatDoNotFitATerminal) {
  Record wide;
  for (int i = 0; i < 30; ++i) wide.points.push_back(point(256, "processor", 1000 + i).set("streams", i));
  std::istringstream lines(table(figure(), wide, Style::terminal));
  std::string all;
  for (std::string line; std::getline(lines, line); all += line + '\n') EXPECT_LE(line.size(), 100U) << line;
  for (int i = 0; i < 30; ++i) EXPECT_THAT(all, HasSubstr("1,0" + std::string(i < 10 ? "0" : "") + std::to_string(i)));
}

TEST(FigureTable, HasATableForEachPanelIfThereAreManySeries) {
  Figure with_panels = figure();
  with_panels.panels = "processor";
  Record many;
  for (const char* processor : {"gpu", "cpu"}) {
    for (const int streams : {1, 2, 3, 4}) many.points.push_back(point(1, processor, streams).set("streams", streams));
  }
  EXPECT_THAT(table(with_panels, many, Style::markdown),
              HasSubstr("**processor gpu**\n\n| packets | streams=1 | streams=2 | streams=3 | streams=4 |\n"
                        "| ---: | ---: | ---: | ---: | ---: |\n| 1 | 1.000 | 2.000 | 3.000 | 4.000 |\n"
                        "\n**processor cpu**\n\n| packets |"));
  many.points.resize(6);
  EXPECT_THAT(table(with_panels, many, Style::markdown), HasSubstr("| packets | gpu streams=1 |")) << "six series";
}

TEST(FigureTable, OrdersTextsOnTheXAxisLikeThePoints) {
  Figure chains = figure();
  chains.x = {"chain", "chain"};
  Record record;
  for (const char* chain : {"router", "firewall", "ipsec"}) {
    record.points.push_back(point(1, "cpu", 1).set("chain", chain));
  }
  const std::string text = table(chains, record, Style::terminal);
  EXPECT_LT(text.find("router"), text.find("firewall"));
  EXPECT_LT(text.find("firewall"), text.find("ipsec"));
}

TEST(FigureTable, ShowsALimitOfTheMachineForEveryX) {
  Figure of_machine = figure();
  of_machine.limit = LimitLine{"PCIe", "pcie_both_each_way", LimitLine::Of::machine, 8};
  Record record;
  record.limits.set("pcie_both_each_way", 50);
  record.points = {point(1, "cpu", 1), point(2, "cpu", 1)};
  EXPECT_THAT(table(of_machine, record, Style::markdown), HasSubstr("| 1 | 1.000 | 400.0 |\n| 2 | 1.000 | 400.0 |\n"));
}

TEST(FigureTable, NamesTheKeyOfSeriesWhoseTextsAreNumbers) {
  Figure by_size = figure();
  by_size.series = {"size"};
  Record record;
  record.points = {point(1, "cpu", 1).set("size", "64"), point(1, "cpu", 2).set("size", "imix")};
  EXPECT_THAT(table(by_size, record, Style::markdown), HasSubstr("| packets | size=64 | imix |"));
}

TEST(FigureTable, NamesThePanelOfAReference) {
  Figure chains = figure();
  chains.references = {{"paper", 3.8, 64, "table 1", "nids"}};
  EXPECT_THAT(table(chains, record(), Style::terminal), HasSubstr("  paper, nids: 3.8 at 64 (table 1).\n"));
}

TEST(FigureTable, NamesTheSeriesOfLimitsThatDiffer) {
  Record record;
  record.points = {point(1, "gpu", 1).set("limit", 10), point(1, "fpga", 1).set("limit", 20)};
  EXPECT_THAT(table(figure(), record, Style::markdown), HasSubstr("| packets | gpu | fpga | PCIe gpu | PCIe fpga |"));
}

TEST(Figure, HasNoPointsIfNoneMatches) {
  EXPECT_TRUE(has_points(figure(), record()));
  Record none = record();
  for (Point& p : none.points) p.set("sweep", "another");
  EXPECT_FALSE(has_points(figure(), none));
}

TEST(Figures, PreferAnEarlierKeyIfARecordHasIt) {
  Record record;
  record.points = {point(1, "cpu", 5), point(2, "cpu", 7).set("keys_per_us", 6)};
  Figure shown = figure();
  shown.y.earlier_key = "keys_per_us";
  const Curves curves = curves_of(shown, record);
  ASSERT_EQ(curves.series.size(), 1U);
  EXPECT_EQ(curves.series[0].points[0].y.value, 5);
  EXPECT_EQ(curves.series[0].points[1].y.value, 6);
}

Figure bar_figure() {
  return {.id = "timeline",
          .title = "Transfers",
          .where = {{"sweep", {"timeline"}}},
          .x = {"mode", "mode"},
          .y = {"rate", "transfers"},
          .series = {},
          .limit = std::nullopt,
          .references = {},
          .bars = BarChart{"bars", "a transfer", "waits", {{"rate", "in a ms"}, {"wait", "percent that wait"}}}};
}

Record bar_record() {
  Record record;
  record.experiment = "test";
  const auto point = [](const char* mode, double rate, const char* bars) {
    return Point().set("sweep", "timeline").set("mode", mode).set("rate", rate).set("bars", bars);
  };
  record.points = {point("apart", 20, "nids: 0 0 40; 10 30 70 | router: 100 0 5").set("wait", 33.3),
                   point("shared", 5, "nids, router: 7.5 0 80")};
  return record;
}

TEST(FigureTable, HasTheColumnsOfBars) {
  EXPECT_EQ(table(bar_figure(), bar_record(), Style::terminal),
            "Transfers\n"
            "transfers, by mode\n"
            "  mode  in a ms  percent that wait\n"
            " apart    20.00              33.30\n"
            "shared    5.000\n");
}

}  // namespace
}  // namespace penstock::experiments
