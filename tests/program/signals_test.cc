// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How a run reacts to signals, and the contents of its logs afterwards.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A run over generated packets, each of which causes an alert, until a signal ends it.
class RunningProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("nids.rules", "alert ip any any -> any any (msg:\"any packet\"; sid:1;)\n");
    write("endless.yaml",
          "ports: {lan: {generator: {rate: 2kpps}}}\n"
          "chain: [nids: {rules: [nids.rules]}]\n"
          "outputs: {eve: eve.json, fast_log: fast.log}\n");
  }
  /// `then` is run after the first alerts were written; `$pid` is the program's.
  [[nodiscard]] int run_and(const std::string& options, const std::string& then) const {
    return shell("rm -f eve.json fast.log\n'" PENSTOCK_PROGRAM "' run endless.yaml --duration 50s " + options +
                 " &\npid=$!\n"
                 "until_there() { until [ -s \"$1\" ]; do kill -0 $pid || exit 99; sleep 0.02; done; }\n"
                 "until_there eve.json; until_there fast.log\n" +
                 then + "\nwait $pid");
  }
  [[nodiscard]] std::size_t lines(const std::string& name) const {
    const std::string text = read(name);
    EXPECT_TRUE(text.empty() || text.back() == '\n') << name << " ends inside a line";
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }
};

TEST_F(RunningProgram, EndsCleanlyOnSigintAndSigterm) {
  for (const std::string signal : {"INT", "TERM"}) {
    EXPECT_EQ(run_and("--report report.json --set outputs.append=false", "kill -" + signal + " $pid"), 0)
        << signal << read("err");
    const auto packets = json("report.json")["packets"];
    EXPECT_GT(packets["in"], 0);
    EXPECT_EQ(packets["in"], packets["consumed"]);
    EXPECT_EQ(lines("fast.log"), packets["in"]);
  }
}

TEST_F(RunningProgram, ReopensItsLogsOnSighup) {
  const std::string rotate =
      "mv eve.json eve.1; mv fast.log fast.1; kill -HUP $pid; until_there eve.json; until_there fast.log; "
      "kill -INT $pid";
  ASSERT_EQ(run_and("--report report.json", rotate), 0) << read("err");
  const std::size_t packets = json("report.json")["packets"]["in"];
  EXPECT_EQ(lines("fast.1") + lines("fast.log"), packets) << "no alert is lost or written twice";
  EXPECT_EQ(lines("eve.1") + lines("eve.json"), packets + 1) << "and one record of statistics at the end";
  EXPECT_THAT(read("eve.json"), StartsWith("{\"timestamp\":"));
}

TEST_F(RunningProgram, ContinuesInTheOldLogIfItCannotReopenIt) {
  const std::string rotate = "mv fast.log fast.1; mkdir fast.log; kill -HUP $pid; until_there err; kill -INT $pid";
  ASSERT_EQ(run_and("--report report.json", rotate), 0) << read("err");
  EXPECT_THAT(
      read("err"),
      HasSubstr("fast.log: cannot reopen the log: not a file; it continues in the old file: expected a file that can "
                "be written, or a folder where it can be created; then send SIGHUP again\n"));
  EXPECT_EQ(lines("fast.1"), json("report.json")["packets"]["in"]);
}

TEST_F(RunningProgram, WritesAReportOnSigusr1AndContinues) {
  ASSERT_EQ(run_and("--report report.json",
                    "kill -USR1 $pid; until_there report.json; cp report.json first.json; kill -INT $pid"),
            0)
      << read("err");
  const std::uint64_t first = json("first.json")["packets"]["in"];
  EXPECT_GT(first, 0U);
  EXPECT_GE(json("report.json")["packets"]["in"], first);
  EXPECT_EQ(json("first.json")["chain"], "endless.yaml");
}

TEST_F(RunningProgram, WritesTheTablesToStderrOnSigusr1WithoutAReport) {
  ASSERT_EQ(run_and("-q", "kill -USR1 $pid; until_there err; kill -INT $pid"), 0);
  EXPECT_THAT(
      read("err"),
      ContainsRegex("^\nReport at [0-9-]{10} [0-9:]{8} UTC, after [0-9.]+ s \\(SIGUSR1\\); the run continues:\n\n"));
  EXPECT_THAT(read("err"), HasSubstr("packets in"));
  EXPECT_EQ(read("out"), "");
}

TEST_F(RunningProgram, ReloadsItsRulesOnSigusr2) {
  const std::string add_rule = "echo 'alert udp any any -> any any (msg:\"new\"; sid:2;)' >>nids.rules; ";
  ASSERT_EQ(
      run_and("-q --report report.json",
              add_rule + "kill -USR2 $pid; until grep -q '\\[1:2:' fast.log; do kill -0 $pid || exit 99; sleep 0.02; "
                         "done; until_there err; kill -INT $pid"),
      0)
      << read("err");
  EXPECT_THAT(read("err"),
              ContainsRegex("^[0-9-]{10}T[0-9:.]{12}Z info: reload \\(SIGUSR2\\): in use after [0-9.]+ s; the run "
                            "continues\n[^ ]+Z info: reload: nids: 1 rule added"));
  const auto report = json("report.json");
  EXPECT_EQ(report["reloads"], 1);
  EXPECT_EQ(report["packets"]["in"], report["packets"]["consumed"]);
  EXPECT_EQ(report["functions"][0]["details"]["rules"].size(), 2U);
  EXPECT_EQ(report["functions"][0]["details"]["rules"][0]["alerts"], report["packets"]["in"])
      << "alerts of a rule that stays are counted on";
}

TEST_F(RunningProgram, RefusesToReloadABadFileAndContinues) {
  ASSERT_EQ(run_and("-q --report report.json",
                    "sed -i 's/2kpps/3kpps/' endless.yaml; mv nids.rules gone.rules; kill -USR2 $pid; "
                    "until grep -q refused err; do kill -0 $pid || exit 99; sleep 0.02; done; kill -INT $pid"),
            0);
  EXPECT_THAT(read("err"), HasSubstr("endless.yaml:1:")) << "a port cannot change";
  EXPECT_THAT(read("err"), HasSubstr("nids.rules")) << "and all mistakes are reported";
  EXPECT_THAT(read("err"), ContainsRegex("error: reload .* refused, see above; nothing has changed\n$"));
  EXPECT_EQ(json("report.json")["reloads"], 0);
}

TEST_F(RunningProgram, SaysThatAReloadChangesNothing) {
  ASSERT_EQ(run_and("-q --report report.json", "kill -USR2 $pid; until_there err; kill -INT $pid"), 0);
  EXPECT_THAT(read("err"), ContainsRegex("^[^ ]+Z info: reload .*: nothing has changed; the run continues\n$"));
  EXPECT_EQ(json("report.json")["reloads"], 0);
}

// Before the first packet there is nothing to reopen and nothing to report, but the run must not end.
TEST_F(RunningProgram, OutlivesSignalsWhileItWaitsForAPipe) {
  EXPECT_EQ(shell("mkfifo pipe\n'" PENSTOCK_PROGRAM
                  "' run chain.yaml --report report.json --set ports.lan.pcap.read=pipe &\npid=$!\n"
                  "until grep -q '^SigCgt:.*[13579bdf]$' /proc/$pid/status; do sleep 0.02; done\n"
                  "kill -HUP $pid; kill -USR1 $pid; kill -USR2 $pid; cat in.pcap >pipe; wait $pid"),
            0)
      << read("err");
  EXPECT_EQ(json("report.json")["packets"]["in"], records("in.pcap").size());
}

TEST_F(Program, AppendsToItsLogsByDefault) {
  write("nids.rules", "alert icmp any any -> any any (msg:\"ping\"; sid:1;)\n");
  write("nids.yaml",
        "ports: {lan: {pcap: {read: in.pcap}}}\nchain: [nids: {rules: [nids.rules]}]\n"
        "outputs: {eve: eve.json, fast_log: fast.log}\n");
  ASSERT_EQ(shell("penstock run nids.yaml"), 0) << read("err");
  const std::string once = read("fast.log");
  ASSERT_FALSE(once.empty());
  ASSERT_EQ(shell("penstock run nids.yaml"), 0) << read("err");
  EXPECT_EQ(read("fast.log"), once + once);
  write("fast.log", "cut by a cra");
  ASSERT_EQ(shell("penstock run nids.yaml"), 0) << read("err");
  EXPECT_EQ(read("fast.log"), "cut by a cra\n" + once);
  ASSERT_EQ(shell("penstock run nids.yaml --set outputs.append=false"), 0) << read("err");
  EXPECT_EQ(read("fast.log"), once);
  const std::string scan = "penstock scan in.pcap -S nids.rules --fast fast.log";
  ASSERT_EQ(shell(scan), 0) << read("err");
  EXPECT_EQ(read("fast.log"), once + once);
  ASSERT_EQ(shell(scan + " --no-append"), 0) << read("err");
  EXPECT_EQ(read("fast.log"), once);
}

}  // namespace
}  // namespace penstock
