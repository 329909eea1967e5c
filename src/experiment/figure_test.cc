// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiment/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "experiment/curves.h"
#include "experiment/workload.h"

namespace penstock::experiment {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

Figure figure() {
  return {.id = "batch",
          .title = "Look-ups by batch",
          .where = {{"sweep", {"batch"}}},
          .x = {"batch", "packets", true},
          .y = {"mpps", "Mpps", true},
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
            "  4,096             123.5\n"  // the series of the GPU has no such point
            " 65,536      1,234         2,000\n"
            "  Nearest to its limit (PCIe): 62 %, with processor gpu, streams 2, batch 65536.\n"
            "  Medians; repeats of a point lie at most 4.1 % apart.\n"
            "  Not shown: 1 point without a number for mpps.\n"
            "  paper: 500 at 65,536 (a paper, figure 3).\n"
            "  paper's CPU: 2.48 (ibid.).\n");
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

TEST(FigureTable, EscapesWhatMarkdownAndTerminalsWouldObey) {
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

TEST(FigureTable, TakesTextsForXInTheOrderOfThePoints) {
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

TEST(FigureTable, NamesTheSeriesOfLimitsThatDiffer) {
  Record record;
  record.points = {point(1, "gpu", 1).set("limit", 10), point(1, "fpga", 1).set("limit", 20)};
  EXPECT_THAT(table(figure(), record, Style::markdown), HasSubstr("| packets | gpu | fpga | PCIe gpu | PCIe fpga |"));
}

TEST(Figure, HasNoPointsWhereNoneIsOfIt) {
  EXPECT_TRUE(has_points(figure(), record()));
  Record none = record();
  for (Point& p : none.points) p.set("sweep", "another");
  EXPECT_FALSE(has_points(figure(), none));
}

TEST(PlotScript, HoldsThePointsInOrderWithTheirSpread) {
  const std::string script = plot_script(figure(), record(), "out.svg");
  EXPECT_THAT(script, HasSubstr("set output \"out.svg\"\n"));
  EXPECT_THAT(script, HasSubstr("set logscale x 2\nset logscale y 10\n"));
  EXPECT_THAT(script, HasSubstr("$series0 << END\n256 0.5 0.5 0.5\n65536 1234.4 1234.4 1234.4\nEND\n"));
  EXPECT_THAT(script, HasSubstr("$series1 << END\n256 49.123 48 50\n4096 123.45 123.45 123.45\nEND\n"));
  EXPECT_THAT(script, HasSubstr("$limit0 << END\n256 2000 2000 2000\n65536 2000 2000 2000\nEND\n"));
  EXPECT_THAT(script, HasSubstr("title \"gpu streams=2\""));
  EXPECT_THAT(script, HasSubstr("2.48 with lines"));
  EXPECT_THAT(script, HasSubstr("title \"paper's CPU\""));
  EXPECT_THAT(plot_script(figure(), record(), ""), Not(HasSubstr("set output")));
}

TEST(PlotScript, QuotesNamesSoThatNoneIsACommand) {
  Figure odd = figure();
  odd.title = "`id` \"x\"\nsystem('id') @HOME \\";
  Record record;
  record.command = "penstock\nsystem 'id'";
  record.points = {point(1, "\"; system('id') #\nquit", 1)};
  const std::string script = plot_script(odd, record, "o\"ut\n.svg");
  EXPECT_THAT(script,
              HasSubstr("set title \"\\140id\\140 \\042x\\042\\134x0asystem('id') \\100HOME \\134\" noenhanced\n"));
  EXPECT_THAT(script, HasSubstr("title \"\\042; system('id') #\\134x0aquit\""));
  EXPECT_THAT(script, HasSubstr("set output \"o\\042ut\\134x0a.svg\"\n"));
  EXPECT_THAT(script, HasSubstr("# penstock\\x0asystem 'id'\n"));
}

TEST(Figures, BelieveAnEarlierKeyWhereARecordHasIt) {
  Record record;
  record.points = {point(1, "cpu", 5), point(2, "cpu", 7).set("keys_per_us", 6)};
  Figure shown = figure();
  shown.y.earlier_key = "keys_per_us";
  const Curves curves = curves_of(shown, record);
  ASSERT_EQ(curves.series.size(), 1U);
  EXPECT_EQ(curves.series[0].points[0].y, 5);
  EXPECT_EQ(curves.series[0].points[1].y, 6);
}

TEST(PlotScript, LeavesOutWhatNoLogarithmExistsOf) {
  Record record;
  record.points = {point(0, "cpu", 1), point(1, "cpu", 0), point(2, "cpu", 3).set("mpps_min", 0).set("mpps_max", 4)};
  EXPECT_THAT(plot_script(figure(), record, ""), HasSubstr("$series0 << END\n2 3 3 4\nEND\n"));
}

Figure bar_figure() {
  return {.id = "timeline",
          .title = "Transfers",
          .where = {{"sweep", {"timeline"}}},
          .x = {"mode", "way"},
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
            "transfers, by way\n"
            "   way  in a ms  percent that wait\n"
            " apart    20.00              33.30\n"
            "shared    5.000\n");
}

TEST(PlotScript, DrawsBarsInBandsFromTheTopWithWhatWaitsInGrey) {
  const std::string script = plot_script(bar_figure(), bar_record(), "");
  EXPECT_THAT(script, HasSubstr("$bars0 << END\n0.0 40.0 -1.9 -1.1\n40.0 80.0 -0.9 -0.1\nEND\n"))
      << "the second waits till 40";
  EXPECT_THAT(script, HasSubstr("$bars1 << END\n100.0 105.0 -2.9 -2.1\nEND\n"));
  EXPECT_THAT(script, HasSubstr("$bars2 << END\n7.5 87.5 -3.9 -3.1\nEND\n"));
  EXPECT_THAT(script, HasSubstr("$waits << END\n10.0 40.0 -0.9 -0.1\nEND\n"));
  EXPECT_THAT(script,
              HasSubstr("set ytics (\"apart: nids\" -1, \"apart: router\" -2.5, \"shared: nids, router\" -3.5)\n"
                        "set yrange [-4:0]\n"));
  EXPECT_THAT(script, HasSubstr("title \"a transfer\""));
  EXPECT_THAT(script, HasSubstr("title \"waits\""));
}

TEST(PlotScript, DrawsNoBarsOfATextThatIsNone) {
  Record record = bar_record();
  for (Point& point : record.points) point.set("bars", "nids: 0 0 a\nsystem 'id'");
  EXPECT_THAT(plot_script(bar_figure(), record, ""), Not(HasSubstr("plot ")));
}

class Plots : public ::testing::Test {
 protected:
  void TearDown() override { fs::current_path(fs::temp_directory_path()); }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const Workplace place_;
  const fs::path folder_ = fs::path(place_.path("")).parent_path();
};

TEST_F(Plots, AreSvgOfGnuplot) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  Record odd = record();
  odd.points.push_back(point(512, "'\"; quit #\n$x << END \\ @HOME `touch made`", 3));
  fs::current_path(folder_);
  for (const char* x : {"batch", "processor"}) {
    Figure shown = figure();
    shown.x.key = x;
    const auto plot = write_plot(shown, odd, folder_.string());
    ASSERT_TRUE(plot) << to_string(plot.error());
    EXPECT_FALSE(plot->is_script);
    EXPECT_EQ(plot->path, (folder_ / "test-batch.svg").string());
    EXPECT_THAT(read(plot->path), HasSubstr("</svg>"));
    EXPECT_THAT(read(plot->path), HasSubstr("Look-ups by batch"));
    EXPECT_THAT(read(plot->path), HasSubstr("; quit #\\x0a$x &lt;&lt; END \\ @HOME `touch made`"));
    EXPECT_FALSE(fs::exists("made")) << "no name is a command";
  }
}

TEST_F(Plots, DrawBars) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  Record odd = bar_record();
  odd.points[1].set("bars", "`touch made` \" @x \\ $x: 0 0 1");
  fs::current_path(folder_);
  const auto plot = write_plot(bar_figure(), odd, folder_.string());
  ASSERT_TRUE(plot) << to_string(plot.error());
  const std::string svg = read(plot->path);
  EXPECT_THAT(svg, HasSubstr("</svg>"));
  EXPECT_THAT(svg, HasSubstr("apart: nids"));
  EXPECT_THAT(svg, HasSubstr("`touch made` \" @x \\ $x"));
  EXPECT_FALSE(fs::exists("made")) << "no name is a command";
}

TEST_F(Plots, AreScriptsWhereGnuplotIsNotInstalled) {
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder_.c_str(), 1);
  const auto plot = write_plot(figure(), record(), folder_.string());
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(plot) << to_string(plot.error());
  EXPECT_TRUE(plot->is_script);
  EXPECT_EQ(plot->path, (folder_ / "test-batch.gp").string());
  EXPECT_EQ(read(plot->path), plot_script(figure(), record(), "test-batch.svg"));
}

TEST_F(Plots, TellWhatGnuplotSaysWhenItFails) {
  std::ofstream(folder_ / "gnuplot") << "#!/bin/sh\necho 'no such terminal' >&2\nexit 1\n";
  fs::permissions(folder_ / "gnuplot", fs::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", folder_.c_str(), 1);
  const auto plot = write_plot(figure(), record(), folder_.string());
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(plot);
  EXPECT_THAT(to_string(plot.error()), HasSubstr("gnuplot fails: found 'no such terminal'"));
}

}  // namespace
}  // namespace penstock::experiment
