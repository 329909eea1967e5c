// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/testing/file_content.h"
#include "cli/command_for_test.h"
#include "cli/program.h"
#include "experiments/record.h"
#include "experiments/repeats.h"
#include "experiments/workload.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class BenchCommand : public ::testing::Test {
 protected:
  static Outcome run(const std::vector<std::string>& arguments) {
    std::vector<const char*> argv{"/somewhere/penstock", "bench"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    return outcome_of([&] { return run_program(static_cast<int>(argv.size()), argv.data()); });
  }
  /// The message for a command line that is refused.
  static std::string refusal(const std::vector<std::string>& arguments) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  }
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] static std::string read(const std::string& path) { return penstock::testing::content_of(path); }
  void write(const char* name, const std::string& text) const { std::ofstream(folder_ / name) << text; }

  static experiments::Record kept() {
    experiments::Record record;
    record.experiment = "offload";
    record.complete = true;
    record.points.push_back(experiments::Point()
                                .set("function", "firewall")
                                .set("sweep", "rules")
                                .set("engine", "linear")
                                .set("rules", 32)
                                .set("processor", "cpu")
                                .set("cores", 1)
                                .set("mpps", 12.5));
    return record;
  }

  const experiments::Workplace place_;
  const fs::path folder_ = fs::path(place_.path("")).parent_path();
};

/// Selects a single, fast point.
const std::vector<std::string> kOnePoint{
    "offload",       "--quick", "--only",  "sweep=rules", "--only", "engine=linear", "--only", "rules=32", "--only",
    "processor=cpu", "--only",  "cores=1", "--repeats",   "2",      "--duration",    "2ms"};

std::vector<std::string> one_point_and(std::vector<std::string> more) {
  more.insert(more.begin(), kOnePoint.begin(), kOnePoint.end());
  return more;
}

TEST_F(BenchCommand, ListsTheExperimentsWithTheirSources) {
  const Outcome outcome = run({});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("offload"));
  EXPECT_THAT(outcome.out, HasSubstr("Alonistioti"));
  EXPECT_THAT(outcome.out, HasSubstr("Run one with `penstock bench NAME`.\n"));
}

TEST_F(BenchCommand, MeasuresTheSelectedPointsAndSavesThem) {
  const Outcome outcome = run(one_point_and({"--json", path("o.json"), "--plots", path("new/plots")}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Firewall classification by rules"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("Routing look-ups")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\r"))) << "no progress where there is no terminal";
  const auto record = experiments::parse_record(read(path("o.json")), "o.json");
  ASSERT_TRUE(record) << to_string(record.error());
  EXPECT_TRUE(record->complete);
  EXPECT_THAT(record->command, HasSubstr("penstock bench offload --quick --only sweep=rules"));
  ASSERT_EQ(record->points.size(), 1U);
  const experiments::Point& point = record->points[0];
  EXPECT_GT(point.number("mpps"), 0);
  EXPECT_EQ(experiments::repeats_of(point, "mpps").size(), 2U);
  EXPECT_THAT(outcome.out, HasSubstr(" ± ")) << outcome.out;
  EXPECT_GT(record->limits.number("memory_copy_one_core"), 0);
  EXPECT_TRUE(fs::exists(path("new/plots/offload-firewall-rules.svg")));
  EXPECT_THAT(outcome.err, HasSubstr("new/plots/offload-firewall-rules."));

  const Outcome again = run({"--from", path("o.json")});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, outcome.out) << "rendered from the file as from the run";
}

TEST_F(BenchCommand, PrintsTheRecordInPlaceOfTables) {
  const Outcome outcome = run(one_point_and({"--json", "-"}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(experiments::parse_record(outcome.out, "stdout"));
}

TEST_F(BenchCommand, DrawsThePlotsOfASavedRecord) {
  write("o.json", to_json(kept()));
  const Outcome outcome = run({"--from", path("o.json"), "--plots", path("plots")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, path("plots/offload-firewall-rules.svg") + "\n");
  EXPECT_THAT(read(path("plots/offload-firewall-rules.svg")), HasSubstr("</svg>"));
}

TEST_F(BenchCommand, RendersASavedRecord) {
  write("o.json", to_json(kept()));
  EXPECT_THAT(run({"offload", "--from", path("o.json")}).out, HasSubstr("   32    12.50\n"));
  EXPECT_THAT(run({"--from", path("o.json"), "--markdown"}).out,
              HasSubstr("| rules | linear cpu cores=1 |\n| ---: | ---: |\n| 32 | 12.50 |\n"));
}

TEST_F(BenchCommand, UsesTheGivenCosts) {
  experiments::Record record = kept();
  record.experiment = "chain";
  experiments::Point point;
  point.set("chain", "C1").set("tables", "paper").set("sweep", "size").set("size", "64").set("gbps", 50);
  record.points = {point, point};
  record.points[0].set("mode", "shared").set("processor", "gpu").set("workers", 10).set("gpus", 1);
  record.points[1].set("mode", "cpu").set("processor", "cpu").set("workers", 10);
  write("o.json", to_json(record));
  EXPECT_THAT(run({"--from", path("o.json")}).out, Not(HasSubstr("per dollar")));
  const Outcome outcome = run({"--from", path("o.json"), "--core-cost", "100:10", "--gpu-cost", "1500:100",
                               "--markdown", "--json", path("with.json")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("a core $100, 10 W; a GPU $1500, 100 W"));
  EXPECT_THAT(outcome.out, HasSubstr("| frame size in bytes, with FCS | C1 shared | C1 cpu |\n| ---: | ---: | "
                                     "---: |\n| 64 | 20.00 | 50.00 |\n"));
  EXPECT_THAT(read(path("with.json")), HasSubstr("\"dollars\":2500"));
  EXPECT_THAT(refusal({"--from", path("o.json"), "--gpu-cost", "1500"}),
              HasSubstr("found '1500', expected DOLLARS:WATTS"));
}

TEST_F(BenchCommand, RefusesAnInvalidRecord) {
  write("o.json", "{\"points\": 1}");
  EXPECT_THAT(refusal({"--from", path("o.json")}),
              HasSubstr("o.json: points: wrong value: found '1', expected a list"));
  EXPECT_THAT(refusal({"--from", path("none.json")}), HasSubstr("none.json: cannot open"));
  experiments::Record other = kept();
  other.experiment = "oflood";
  write("other.json", to_json(other));
  EXPECT_THAT(refusal({"--from", path("other.json")}),
              HasSubstr("unknown experiment: found 'oflood', expected offload"));
  write("o.json", to_json(kept()));
  EXPECT_THAT(refusal({"chain", "--from", path("o.json")}),
              HasSubstr("the record is from another experiment: found 'offload', expected 'chain'"));
}

TEST_F(BenchCommand, RefusesUnknownNames) {
  EXPECT_THAT(refusal({"offlaod"}), HasSubstr("unknown experiment: found 'offlaod', expected offload\n"));
  EXPECT_THAT(refusal({"--quick"}), HasSubstr("NAME is missing: expected one of offload, "));
  EXPECT_THAT(refusal({"offload", "--quikc"}), HasSubstr("unknown option: found '--quikc', expected --quick\n"));
  EXPECT_THAT(refusal({"offload", "--repeats", "0"}), HasSubstr("expected a whole number in 1..1000"));
  EXPECT_THAT(refusal({"offload", "--workers", "many"}), HasSubstr("expected a whole number in 1..256"));
  EXPECT_THAT(refusal({"offload", "--gpus", "0,x"}), HasSubstr("found 'x', expected a whole number"));
  EXPECT_THAT(refusal({"--gpus", "200,201", "chain"}), HasSubstr("--gpus: this GPU cannot be used"));
  EXPECT_THAT(refusal({"--gpus", "0,1", "offload"}),
              HasSubstr("--gpus: the experiment offload uses fewer GPUs: found 2, expected at most 1"));
  EXPECT_THAT(refusal({"offload", "--duration", "5"}), HasSubstr("expected a time such as 200ms"));
  EXPECT_THAT(refusal({"offload", "--duration", "0ms"}), HasSubstr("expected a time such as 200ms"));
  EXPECT_THAT(refusal({"offload", "--only", "batch"}), HasSubstr("found 'batch', expected KEY=VALUE"));
  EXPECT_THAT(refusal({"offload", "--only", "bach=256"}), HasSubstr("unknown key: found 'bach', expected batch"));
  EXPECT_THAT(refusal({"offload", "--only", "batch=255"}), HasSubstr("no point has this value: found '255'"));
  EXPECT_THAT(refusal({"offload", "--from", "o.json", "--quick"}), HasSubstr("--from"));
  EXPECT_THAT(refusal({"offload", "--rules", path("none")}), HasSubstr("none: cannot open"));
  EXPECT_THAT(refusal({"offload", "--rules", "-", "--routes", "-"}),
              HasSubstr("standard input is already used for --rules"));
}

TEST_F(BenchCommand, RefusesEmptyFileNames) {
  for (const char* const option : {"--json", "--plots", "--from"}) {
    EXPECT_THAT(refusal({"offload", option, ""}), HasSubstr(std::string(option) + ": wrong value: found ''")) << option;
  }
}

TEST_F(BenchCommand, LeavesNoFilesOfARefusedRecord) {
  const auto refusal_of = [&](const std::string& text) {
    write("o.json", text);
    const std::string said =
        refusal({"--from", path("o.json"), "--plots", path("new/plots"), "--json", path("new.json")});
    EXPECT_FALSE(fs::exists(path("new"))) << said;
    EXPECT_FALSE(fs::exists(path("new.json"))) << said;
    return said;
  };
  EXPECT_EQ(refusal_of(R"({"context": {"date": ""}, "benchmarks": []})"),
            path("o.json") +
                ": not a record of an experiment: found an object with context, benchmarks, expected output of "
                "`penstock bench --json`\n");
  experiments::Record record = kept();
  record.experiment = "transfer";
  EXPECT_THAT(refusal_of(to_json(record)), HasSubstr("no point belongs to a figure: found function=firewall"));
  record = kept();
  record.points[0].set("mpps", "fast");
  EXPECT_THAT(refusal_of(to_json(record)), HasSubstr("points[0].mpps: wrong value: found 'fast', expected a number"));
  record = kept();
  record.limits.set("core_watts", -6.3);
  EXPECT_THAT(refusal_of(to_json(record)),
              HasSubstr("limits.core_watts: wrong value: found '-6.3', expected a number"));
  record = kept();
  record.points.clear();
  EXPECT_THAT(refusal_of(to_json(record)), HasSubstr("nothing to plot: found a record without points"));
}

TEST_F(BenchCommand, RefusesCostsThatAreNotPositive) {
  write("o.json", to_json(kept()));
  for (const char* option : {"--core-cost", "--gpu-cost"}) {
    for (const char* cost : {"-191:6.3", "191:-6.3", "0:6.3"}) {
      EXPECT_THAT(refusal({"--from", path("o.json"), option, cost}),
                  HasSubstr(std::string("found '") + cost + "', expected DOLLARS:WATTS, both above 0"));
    }
  }
}

TEST_F(BenchCommand, CreatesNoFolderForAnUnknownExperiment) {
  EXPECT_THAT(refusal({"oflood", "--plots", path("new")}), HasSubstr("unknown experiment"));
  EXPECT_FALSE(fs::exists(path("new")));
}

TEST_F(BenchCommand, DoesNotOverwriteItsInputs) {
  const std::string record = to_json(kept());
  write("kept.json", record);
  EXPECT_THAT(refusal({"--from", path("kept.json"), "--json", path("kept.json")}),
              HasSubstr("--json would overwrite the file that --from reads"));
  EXPECT_EQ(read(path("kept.json")), record);
  write("mine.rules", "@0.0.0.0/0 0.0.0.0/0 0 : 65535 0 : 65535 0x06/0xFF\n");
  const std::string rules = read(path("mine.rules"));
  EXPECT_THAT(refusal(one_point_and({"--rules", path("mine.rules"), "--json", place_.path("") + "/./mine.rules"})),
              HasSubstr("--json would overwrite the file that --rules reads"));
  EXPECT_EQ(read(path("mine.rules")), rules);
}

TEST_F(BenchCommand, ChecksItsOutputsBeforeItMeasures) {
  EXPECT_THAT(refusal(one_point_and({"--json", path("none/o.json")})), HasSubstr("none/o.json"));
  write("file", "");
  EXPECT_THAT(refusal(one_point_and({"--plots", path("file/plots")})),
              HasSubstr("cannot create the folder: found " + path("file") + " is a file, expected a folder"));
}

}  // namespace
}  // namespace penstock::cli
