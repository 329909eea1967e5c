// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/packed_text.h"
#include "cli/command_for_test.h"
#include "packet/testing/packet_builder.h"
#include "port/testing/port_harness.h"

namespace penstock::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;
using penstock::testing::packet;
using port::testing::Captured;

constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;

constexpr std::string_view kRules =
    "alert udp any any -> any 53 (msg:\"a question\"; content:\"attack\"; classtype:bad-unknown; sid:1; rev:3;)\n"
    "alert udp any 53 -> any any (msg:\"an answer\"; content:\"reply\"; sid:2;)\n"
    "alert udp $HOME_NET any -> $EXTERNAL_NET any (msg:\"from home\"; content:\"home\"; sid:3;)\n";

/// Datagrams of many flows: each flow has a question and an answer.
std::vector<Captured> questions_and_answers(unsigned flows) {
  std::vector<Captured> packets;
  const auto add = [&](std::vector<std::uint8_t> frame) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    packets.push_back({kStart + packets.size() * 1000, length, LinkType::ethernet, std::move(frame)});
  };
  for (unsigned i = 0; i < flows; ++i) {
    const std::string host = "10.0." + std::to_string(i / 200) + "." + std::to_string(1 + i % 200);
    add(packet().eth().ipv4(host, "192.0.2.1").udp(4000, 53).payload("an attack from home").bytes());
    add(packet().eth().ipv4("192.0.2.1", host).udp(53, 4000).payload("no reply").bytes());
  }
  return packets;
}

class ScanCommand : public ::testing::Test {
 protected:
  ScanCommand() {
    rules_.write(kRules);
    port::testing::write_capture(capture_.path(), questions_and_answers(3));
  }
  [[nodiscard]] Outcome run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "scan");
    return outcome_of_command(add_scan, arguments);
  }
  /// Scans the capture with the rules.
  [[nodiscard]] Outcome scan(std::vector<std::string> more) const {
    more.insert(more.begin(), {capture_.path(), "-S", rules_.path()});
    return run(std::move(more));
  }
  [[nodiscard]] static std::vector<Json> records(const std::string& text, std::string_view event = "alert") {
    std::vector<Json> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (Json record = Json::parse(line); record["event_type"] == event) all.push_back(std::move(record));
    }
    return all;
  }
  [[nodiscard]] static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  /// Number of alerts by sid.
  [[nodiscard]] static std::map<int, int> counts(const std::vector<Json>& alerts) {
    std::map<int, int> all;
    for (const Json& alert : alerts) ++all[alert["alert"]["signature_id"].get<int>()];
    return all;
  }

  const TestFile rules_{"scan.rules"};
  const TestFile capture_{"scan.pcap"};
  const TestFile eve_{"scan_eve.json"};
};

TEST_F(ScanCommand, PrintsTheNumberOfAlertsByRule) {
  const Outcome outcome = scan({});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out,
              AllOf(StartsWith("6 packets, "), HasSubstr("3 flows"), HasSubstr("\n9 alerts from 3 rules\n"),
                    HasSubstr("     3    1    1    3  a question\n"), HasSubstr("3 rules loaded")));
}

TEST_F(ScanCommand, WritesEveRecordsAndStatisticsLast) {
  ASSERT_EQ(scan({"-o", eve_.path()}).exit_code, 0);
  const std::string text = content(eve_.path());
  const std::vector<Json> alerts = records(text);
  ASSERT_THAT(alerts, SizeIs(9));
  EXPECT_EQ(counts(alerts), (std::map<int, int>{{1, 3}, {2, 3}, {3, 3}}));
  EXPECT_EQ(alerts[0]["pcap_cnt"], 1);
  EXPECT_EQ(alerts[0]["alert"]["category"], "Potentially Bad Traffic");
  EXPECT_EQ(alerts[0]["alert"]["severity"], 2);
  EXPECT_EQ(alerts[0]["flow"]["pkts_toserver"], 1);
  EXPECT_FALSE(alerts[0].contains("payload"));
  const std::vector<Json> stats = records(text, "stats");
  ASSERT_THAT(stats, SizeIs(1));
  EXPECT_EQ(stats[0]["stats"]["decoder"]["pkts"], 6);
  EXPECT_EQ(stats[0]["stats"]["detect"]["alert"], 9);
  EXPECT_TRUE(text.ends_with(stats[0].dump() + "\n"));
}

TEST_F(ScanCommand, SkipsARuleWhoseExpressionDoesNotCompile) {
  rules_.write(
      "alert udp any any -> any 53 (content:\"attack\"; sid:1;)\n"
      "alert udp any any -> any 53 (content:\"attack\"; pcre:\"/a(ttack/\"; sid:2;)\n"
      "alert udp any 53 -> any any (content:\"reply\"; pcre:\"/re(p)ly$/\"; sid:3;)\n");
  const Outcome outcome = scan({"--json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::parse(outcome.out);
  EXPECT_EQ(summary["alerts"], 6);
  EXPECT_EQ(summary["rules"].size(), 2U);
  const Json& load = summary["load"];
  EXPECT_EQ(load["loaded"], 2);
  EXPECT_EQ(load["left_out"], 1);
  ASSERT_THAT(load["reasons"], SizeIs(1));
  EXPECT_EQ(load["reasons"][0]["reason"], "regular expression");
  EXPECT_EQ(load["reasons"][0]["first"],
            rules_.path() + ":2: regular expression: missing closing parenthesis at byte 7: found 'a(ttack'");

  const Outcome strict = scan({"--strict"});
  EXPECT_NE(strict.exit_code, 0);
  EXPECT_THAT(strict.err, HasSubstr(":2: regular expression: missing closing parenthesis"));
}

TEST_F(ScanCommand, WritesPayloadsAndPacketsOnRequest) {
  ASSERT_EQ(scan({"-o", eve_.path(), "--payload", "--packet"}).exit_code, 0);
  const Json alert = records(content(eve_.path())).front();
  EXPECT_EQ(alert["payload_printable"], "an attack from home");
  EXPECT_EQ(alert["packet_info"]["linktype"], 1);
}

TEST_F(ScanCommand, WritesAlertsToStandardOutputAndTheSummaryElsewhere) {
  const Outcome eve = scan({"-o", "-"});
  EXPECT_EQ(eve.exit_code, 0);
  EXPECT_THAT(records(eve.out), SizeIs(9));
  EXPECT_THAT(eve.err, HasSubstr("9 alerts from 3 rules"));
  const Outcome fast = scan({"--fast", "-"});
  EXPECT_EQ(std::ranges::count(fast.out, '\n'), 9);
  EXPECT_THAT(fast.out, HasSubstr("  [**] [1:1:3] a question [**] [Classification: Potentially Bad Traffic] "
                                  "[Priority: 2] {UDP} 10.0.0.1:4000 -> 192.0.2.1:53\n"));
}

TEST_F(ScanCommand, RefusesTwoKindsOfTextOnStandardOutput) {
  const Outcome outcome = scan({"-o", "-", "--json"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("standard output is already in use for alerts"));
  EXPECT_EQ(scan({"-o", "-", "--fast", "-"}).exit_code, 2);
}

TEST_F(ScanCommand, PrintsItsSummaryAsJson) {
  const Outcome outcome = scan({"--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  const Json summary = Json::parse(outcome.out);
  EXPECT_EQ(summary["packets"], 6);
  EXPECT_EQ(summary["flows"], 3);
  EXPECT_EQ(summary["alerts"], 9);
  EXPECT_EQ(summary["rules"].size(), 3U);
  EXPECT_EQ(summary["rules"][0]["alerts"], 3);
  EXPECT_EQ(summary["load"]["loaded"], 3);
  EXPECT_TRUE(summary["errors"].empty());
}

TEST_F(ScanCommand, PrintsNothingIfQuiet) {
  const Outcome outcome = scan({"-q", "-o", eve_.path()});
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_THAT(records(content(eve_.path())), SizeIs(9));
}

TEST_F(ScanCommand, FindsTheSameAlertsWithSeveralWorkers) {
  port::testing::write_capture(capture_.path(), questions_and_answers(300));
  const auto alerts = [&](const char* workers) {
    EXPECT_EQ(scan({"-q", "-o", eve_.path(), "--no-append", "--workers", workers}).exit_code, 0);
    std::vector<std::string> all;
    for (Json& alert : records(content(eve_.path()))) {
      alert.erase("flow_id");  // differs between workers
      all.push_back(alert.dump());
    }
    std::ranges::sort(all);
    return all;
  };
  const auto of_one = alerts("1");
  EXPECT_THAT(of_one, SizeIs(900));
  EXPECT_EQ(alerts("3"), of_one);  // including the frame numbers
}

TEST_F(ScanCommand, ReadsCapturesOneAfterTheOther) {
  const TestFile copy("copy.pcap");
  copy.write(content(capture_.path()));
  const Outcome outcome = run({capture_.path(), copy.path(), "-S", rules_.path(), "-o", eve_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Json> alerts = records(content(eve_.path()));
  ASSERT_THAT(alerts, SizeIs(18));
  EXPECT_EQ(alerts.back()["pcap_cnt"], 12);
}

/// A folder of captures that are a second apart. Removed with its files by the destructor.
class CaptureFolder {
 public:
  CaptureFolder() : path_(::testing::TempDir() + "/" + std::to_string(::getpid()) + "_captures") {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }
  CaptureFolder(const CaptureFolder&) = delete;
  CaptureFolder& operator=(const CaptureFolder&) = delete;
  ~CaptureFolder() { std::filesystem::remove_all(path_); }

  void add(const std::string& name, unsigned second) const {
    std::vector<Captured> packets = questions_and_answers(1);
    for (Captured& packet : packets) packet.timestamp_ns += second * std::uint64_t{1'000'000'000};
    port::testing::write_capture(path_ + "/" + name, packets);
  }
  void write(const std::string& name, std::string_view text) const { std::ofstream(path_ + "/" + name) << text; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

//   first.pcap    question, answer
//   cut.pcap      question, answer (truncated)
//   garbled.pcap  not a capture
//   last.pcap     question, answer
TEST_F(ScanCommand, ScansTheOtherCapturesIfSomeAreBadAndFails) {
  const CaptureFolder folder;
  folder.add("first.pcap", 0);
  folder.add("cut.pcap", 1);
  folder.add("last.pcap", 2);
  folder.write("garbled.pcap", "garbled");
  const std::string cut = folder.path() + "/cut.pcap";
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 3);
  const Outcome outcome = run({folder.path() + "/first.pcap", folder.path() + "/garbled.pcap", cut, "/nowhere.pcap",
                               folder.path() + "/last.pcap", "-S", rules_.path(), "-o", eve_.path()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("/garbled.pcap: "), HasSubstr("/nowhere.pcap: cannot open"),
                                 HasSubstr("/cut.pcap: the capture is broken after packet 1")));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 3) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(StartsWith("5 packets, "), HasSubstr("\n8 alerts from 3 rules\n"),
                                 HasSubstr("warning: 3 of 5 captures could not be read, or not completely\n")));
  EXPECT_THAT(records(content(eve_.path())), SizeIs(8));
}

TEST_F(ScanCommand, RefusesToRunIfNoCaptureCanBeRead) {
  const Outcome outcome = run({"/nowhere.pcap", rules_.path(), "-S", rules_.path()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("CAPTURE: /nowhere.pcap: "), HasSubstr(rules_.path())));
}

TEST_F(ScanCommand, ReadsAFolderInTheOrderOfPacketTimes) {
  const CaptureFolder folder;
  folder.add("b.pcap", 0);
  folder.add("a.pcap", 1);
  folder.add("c", 2);  // a capture by its content, not by its name
  folder.write("notes.txt", "no capture");
  folder.write(".hidden.pcap", "not looked at");
  std::filesystem::create_directory(folder.path() + "/below");
  const Outcome outcome = run({"-r", folder.path(), "-S", rules_.path(), "--json", "-o", eve_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("warning: " + folder.path() + "/notes.txt: left out: "),
                                 HasSubstr("warning: " + folder.path() + "/below: left out: found a folder")));
  const Json summary = Json::parse(outcome.out);
  EXPECT_EQ(summary["captures"], (Json{folder.path() + "/b.pcap", folder.path() + "/a.pcap", folder.path() + "/c"}));
  const std::vector<Json> alerts = records(content(eve_.path()));
  ASSERT_THAT(alerts, SizeIs(9));
  for (std::size_t i = 1; i < alerts.size(); ++i) EXPECT_LE(alerts[i - 1]["timestamp"], alerts[i]["timestamp"]);

  folder.write("garbled.pcap", "garbled");
  EXPECT_EQ(run({folder.path(), "-S", rules_.path(), "-q"}).exit_code, 1) << "it is named as a capture";
}

TEST_F(ScanCommand, RefusesAFolderWithoutACapture) {
  const CaptureFolder folder;
  const Outcome outcome = run({"-r", folder.path(), "-S", rules_.path()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(folder.path() + ": no captures in this folder"));
}

//   empty/       no captures
//   first.pcap   question, answer
TEST_F(ScanCommand, ScansTheOtherCapturesIfAFolderHasNoneAndFails) {
  const CaptureFolder folder;
  folder.add("first.pcap", 0);
  const std::string empty = folder.path() + "/empty";
  std::filesystem::create_directory(empty);
  const Outcome outcome = run({folder.path() + "/first.pcap", empty, "-S", rules_.path()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err, empty + ": no captures in this folder: expected pcap or pcapng files\n");
  EXPECT_THAT(outcome.out, StartsWith("2 packets, "));

  const Outcome none = run({"/nowhere.pcap", empty, "-S", rules_.path()});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, AllOf(HasSubstr("/nowhere.pcap: "), HasSubstr(empty + ": no captures in this folder")));
}

//   first.pcap   question, answer
//   last.pcap    question, answer
TEST_F(ScanCommand, ReadsACaptureOnceEvenIfGivenTwice) {
  const CaptureFolder folder;
  folder.add("first.pcap", 0);
  folder.add("last.pcap", 1);
  const std::string first = folder.path() + "/first.pcap";
  const std::string detour = folder.path() + "/./first.pcap";
  const Outcome outcome = run({first, detour, folder.path(), "-S", rules_.path(), "--json"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "warning: " + detour + ": given more than once: it is read only once\n" + "warning: " + first +
                             ": given more than once: it is read only once\n");
  const Json summary = Json::parse(outcome.out);
  EXPECT_EQ(summary["captures"], (Json{first, folder.path() + "/last.pcap"}));
  EXPECT_EQ(summary["packets"], 4);
}

TEST_F(ScanCommand, AcceptsSuricatasOptions) {
  const CaptureFolder logs;
  const TestFile more("more.rules");
  more.write("alert udp any any -> any any (msg:\"any\"; sid:10;)\n");
  const Outcome outcome =
      run({"-r", capture_.path(), "-S", rules_.path(), "-s", more.path(), "-k", "none", "-l", logs.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("4 rules loaded"));
  EXPECT_THAT(records(content(logs.path() + "/eve.json")), SizeIs(15));
  const std::string fast_log = content(logs.path() + "/fast.log");
  EXPECT_EQ(std::ranges::count(fast_log, '\n'), 15);
  EXPECT_EQ(run({"-r", capture_.path(), "-s", rules_.path(), "-q", "-l", logs.path(), "-o", eve_.path()}).exit_code, 0);
  EXPECT_THAT(records(content(eve_.path())), SizeIs(9)) << "-o in place of -l's eve.json";
  EXPECT_EQ(run({"-r", capture_.path(), "-s", rules_.path(), "-l", "/nowhere"}).exit_code, 2);
}

TEST_F(ScanCommand, ReadsCompressedRules) {
  std::ofstream(rules_.path(), std::ios::binary) << penstock::testing::gzip(kRules);
  EXPECT_THAT(scan({}).out, HasSubstr("9 alerts from 3 rules"));
  std::ofstream(rules_.path(), std::ios::binary) << penstock::testing::gzip(kRules).substr(0, 60);
  const Outcome cut = scan({});
  EXPECT_EQ(cut.exit_code, 2);
  EXPECT_THAT(cut.err, HasSubstr(rules_.path() + ": cannot decompress: the compressed data is truncated"));
}

TEST_F(ScanCommand, ProfilesRulesByTheirCost) {
  rules_.write(
      "alert udp any any -> any 53 (msg:\"matches\"; content:\"attack\"; sid:1;)\n"
      "alert udp any any -> any 53 (msg:\"dear\"; content:\"attack\"; pcre:\"/a(t+a?)+ck never/\"; sid:2;)\n"
      "alert udp any any -> any 53 (msg:\"not evaluated\"; content:\"absent\"; sid:3;)\n");
  const Outcome json = scan({"--profile", "--json"});
  ASSERT_EQ(json.exit_code, 0) << json.err;
  const Json profile = Json::parse(json.out)["profile"];
  ASSERT_THAT(profile, SizeIs(2));
  EXPECT_EQ(profile[0]["sid"], 2);
  EXPECT_EQ(profile[0]["evaluations"], 3);
  EXPECT_EQ(profile[0]["matches"], 0);
  EXPECT_EQ(profile[1]["sid"], 1);
  EXPECT_EQ(profile[1]["evaluations"], 3);
  EXPECT_EQ(profile[1]["matches"], 3);
  EXPECT_GT(profile[0]["work"].get<std::uint64_t>(), profile[1]["work"].get<std::uint64_t>());
  EXPECT_GT(profile[1]["work"].get<std::uint64_t>(), 0U);
  const Json of_three = Json::parse(scan({"--profile", "--json", "--workers", "3"}).out)["profile"];
  EXPECT_EQ(of_three, profile) << "work, not time";
  EXPECT_THAT(scan({"--profile"}).out, AllOf(HasSubstr("\n2 rules evaluated, by cost\n"), HasSubstr("share")));
  EXPECT_FALSE(Json::parse(scan({"--json"}).out).contains("profile"));
}

// For each flow: question (alerts of rules 1 and 3), answer (rule 2).
TEST_F(ScanCommand, WritesThePacketsOfAlertsOnceInOrder) {
  rules_.write(
      "alert udp 10.0.0.2 any -> any 53 (msg:\"one\"; content:\"attack\"; sid:1;)\n"
      "alert udp 10.0.0.2 any -> any 53 (msg:\"two\"; content:\"home\"; sid:2;)\n"
      "alert udp any 53 -> 10.0.0.1 any (msg:\"answer\"; content:\"reply\"; sid:3;)\n");
  const TestFile packets("alerts.pcap");
  const TestFile copy("copy.pcap");
  copy.write(content(capture_.path()));
  for (const char* const workers : {"1", "3"}) {
    const Outcome outcome =
        run({capture_.path(), copy.path(), "-S", rules_.path(), "--alert-pcap", packets.path(), "--workers", workers});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto read = port::testing::read_captures({packets.path()});
    const std::vector<Captured> all = questions_and_answers(3);
    ASSERT_THAT(read.packets, SizeIs(4)) << "frames 2 and 3 of both captures";
    for (std::size_t i = 0; i < 4; ++i) {
      const Captured& expected = all[1 + i % 2];
      EXPECT_EQ(read.packets[i].bytes, expected.bytes);
      EXPECT_EQ(read.packets[i].timestamp_ns, expected.timestamp_ns);
      EXPECT_EQ(read.packets[i].link_type, LinkType::ethernet);
    }
  }
}

TEST_F(ScanCommand, RefusesAnAlertPcapThatItCannotWriteOrThatWouldOverwriteACapture) {
  const auto refusal = [&](const std::string& path) {
    const Outcome outcome = scan({"--alert-pcap", path});
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  EXPECT_THAT(refusal(capture_.path()), HasSubstr("--alert-pcap: would overwrite a file that this scan uses"));
  EXPECT_THAT(refusal(rules_.path()), HasSubstr("--alert-pcap: would overwrite a file that this scan uses"));
  EXPECT_THAT(refusal("/nowhere/alerts.pcap"), HasSubstr("/nowhere/alerts.pcap: cannot write"));
  EXPECT_THAT(run({"-", "-S", rules_.path(), "--alert-pcap", eve_.path()}).err,
              HasSubstr("--alert-pcap reads every capture twice: found standard input, a pipe or a device"));
}

TEST_F(ScanCommand, AcceptsSeveralFilesOfRules) {
  const TestFile more("more.rules");
  more.write("alert udp any any -> any any (msg:\"any\"; sid:10;)\n");
  const Outcome outcome = scan({"-S", more.path(), "--json"});
  EXPECT_EQ(Json::parse(outcome.out)["rules"].size(), 4U) << outcome.err;
}

TEST_F(ScanCommand, SetsVariablesAndParameters) {
  const auto from_home = [&](const std::string& set) {
    const Outcome outcome = scan({"--json", "--set", set});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json summary = Json::parse(outcome.out);
    return std::ranges::count_if(summary["rules"], [](const Json& rule) { return rule["sid"] == 3; });
  };
  EXPECT_EQ(from_home("vars.HOME_NET=10.0.0.0/8"), 1);
  EXPECT_EQ(from_home("vars.HOME_NET=[172.16.0.0/12,192.168.0.0/16]"), 0);
  EXPECT_EQ(from_home("vars.EXTERNAL_NET=!192.0.2.0/24"), 0);
  EXPECT_EQ(from_home("stream_policy=linux"), 1);
}

TEST_F(ScanCommand, AcceptsAMappingOfVariablesLikeCheck) {
  const auto sids = [&](std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Outcome outcome = scan(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::vector<int> all;
    const Json summary = Json::parse(outcome.out);
    for (const Json& rule : summary["rules"]) all.push_back(rule["sid"]);
    return all;
  };
  EXPECT_THAT(sids({"--set", "vars={HOME_NET: 10.0.0.0/8}"}), ::testing::Contains(3));
  EXPECT_THAT(sids({"--set", "vars={HOME_NET: [172.16.0.0/12, 192.168.0.0/16]}"}), Not(::testing::Contains(3)));
  EXPECT_THAT(sids({"--set", "vars.HOME_NET=172.16.0.0/12", "--set", "vars={EXTERNAL_NET: any}"}),
              Not(::testing::Contains(3)))
      << "other variables are kept";
  EXPECT_THAT(sids({"--set", "vxlan_ports=[4789, 8472]"}), SizeIs(3));
  const Outcome wrong = scan({"--set", "vars={HOME_NET: {a: b}}"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--set vars={HOME_NET: {a: b}}:1:12: variable HOME_NET: wrong value"));
}

TEST_F(ScanCommand, AcceptsPathsOfAChainFileInSet) {
  const Outcome outcome = scan({"--json", "--set", "run.workers=2", "--set", "chain.nids.vars.HOME_NET=172.16.0.0/12"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json summary = Json::parse(outcome.out);
  EXPECT_EQ(summary["workers"], 2);
  EXPECT_EQ(summary["alerts"], 6) << "none of rule 3";
  EXPECT_THAT(scan({"--set", "run.wrokers=2"}).err, HasSubstr("--set run.wrokers=2: unknown parameter"));
}

TEST_F(ScanCommand, ReadsVariablesOfASuricataYamlAndListsUnusedSections) {
  const TestFile yaml("suricata.yaml");
  yaml.write(
      "%YAML 1.1\n---\nvars:\n  address-groups:\n    HOME_NET: \"[192.168.0.0/16,172.16.0.0/12]\"\n"
      "    EXTERNAL_NET: \"!$HOME_NET\"\n  port-groups:\n    HTTP_PORTS: \"80\"\nrule-files: [a.rules]\n");
  const auto from_home = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"-c", yaml.path(), "--json"});
    const Outcome outcome = scan(std::move(more));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(yaml.path() + ": 3 variables used; not used: rule-files\n"));
    const Json summary = Json::parse(outcome.out);
    return std::ranges::count_if(summary["rules"], [](const Json& rule) { return rule["sid"] == 3; });
  };
  EXPECT_EQ(from_home({}), 0);
  EXPECT_EQ(from_home({"--set", "vars.HOME_NET=10.0.0.0/8"}), 1) << "--set wins";
  yaml.write("vars:\n  address-groups:\n    HOME_NET: 10.0.0.0/33\n");
  const Outcome wrong = scan({"-c", yaml.path()});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr(yaml.path() + ":3: variable $HOME_NET: not an address: found '10.0.0.0/33'"));
  EXPECT_EQ(scan({"-c", "/nowhere.yaml"}).exit_code, 2);
}

TEST_F(ScanCommand, RefusesASuricataYamlWithAWrongLayoutAndWarnsIfItHasNoVariables) {
  const TestFile yaml("suricata.yaml");
  yaml.write("vars:\n  HOME_NET: any\n");
  const Outcome wrong = scan({"-c", yaml.path()});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err,
            yaml.path() + ":2:3: vars: unknown group: found 'HOME_NET', expected one of address-groups, port-groups\n");
  yaml.write("rule-files: [a.rules]\n");
  const Outcome outcome = scan({"-c", yaml.path(), "-q"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err,
              StartsWith("warning: " + yaml.path() + ": no variables are taken from this file: found no `vars`"));
}

TEST_F(ScanCommand, RefusesASetThatWouldDiscardAnOption) {
  const auto refusal = [&](std::vector<std::string> arguments) {
    const Outcome outcome = scan(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  const std::string also = ": given together with -S, which sets the same value: expected one of them\n";
  for (const char* const set : {"rules=other.rules", "chain.nids.rules=other.rules", "chain.0.rules=other.rules",
                                "chain.nids.rules.0=other.rules", "chain.nids={rules: other.rules}"}) {
    EXPECT_EQ(refusal({"--set", set}), std::string("--set ") + set + also);
  }
  EXPECT_THAT(refusal({"--set", "checksums=verify", "-k", "none"}), HasSubstr("given together with -k"));
  EXPECT_THAT(refusal({"--set", "outputs.eve=a.json", "-o", "b.json"}), HasSubstr("given together with -o"));
  const CaptureFolder logs;
  const Outcome outcome = scan({"-l", logs.path(), "--set", "outputs.eve=" + eve_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(records(content(eve_.path())), SizeIs(9)) << "it stands in for that of -l";
}

TEST_F(ScanCommand, WarnsAboutAnUnknownClasstypeAndKeepsTheRule) {
  rules_.write("alert udp any any -> any 53 (msg:\"a question\"; content:\"attack\"; classtype:bad-unknow; sid:1;)\n");
  const Outcome outcome = scan({});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err, "warning: " + rules_.path() +
                             ":1:76: unknown classtype; did you mean 'bad-unknown'?: found 'bad-unknow', expected a "
                             "class of classification.config\n");
  EXPECT_THAT(outcome.out, HasSubstr("3 alerts from 1 rule\n"));
}

TEST_F(ScanCommand, RefusesWrongParameters) {
  const auto refusal = [&](std::vector<std::string> arguments) {
    const Outcome outcome = scan(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(refusal({"--set", "strem_policy=linux"}), HasSubstr("--set strem_policy=linux: unknown parameter"));
  EXPECT_THAT(refusal({"--set", "stream_policy=plan9"}),
              HasSubstr("--set stream_policy=plan9: stream_policy: wrong value: found 'plan9'"));
  EXPECT_THAT(refusal({"--set", "vars"}), HasSubstr("--set: wrong value"));
  EXPECT_THAT(refusal({"--set", "vars.HOME_NET=10.0.0.0/33"}), HasSubstr("HOME_NET"));
  EXPECT_THAT(refusal({"-s", ""}), HasSubstr("-S: rules: wrong value: found '', expected a file or a list of files"));
  EXPECT_THAT(refusal({"--workers", "0"}), HasSubstr("--workers: workers: wrong value"));
  EXPECT_THAT(refusal({"--processor", "fpga"}), HasSubstr("--processor: processor: wrong value"));
  EXPECT_THAT(refusal({"--threshold", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(refusal({"-o", "/nowhere/eve.json"}), HasSubstr("/nowhere/eve.json"));
  EXPECT_THAT(refusal({"-o", capture_.path()}), HasSubstr("would overwrite the file"));
}

TEST_F(ScanCommand, SkipsAndReportsRulesThatCannotBeLoaded) {
  rules_.write(std::string(kRules) +
               "alert udp any any -> any any (msg:\"no such option\"; frobnicate:1; sid:9;)\n"
               "alert udp any any -> any any (msg:\"x\"; urilen:1; sid:10;)\n");
  const Outcome outcome = scan({"-o", eve_.path()});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("warning: " + rules_.path() + ":4"), HasSubstr("frobnicate"),
                                 HasSubstr("warning: 1 rule left out because of this mistake"),
                                 HasSubstr("Not supported and left out:\n  " + rules_.path() + ": 1 construct\n")));
  EXPECT_THAT(outcome.out, HasSubstr("2 left out"));
  EXPECT_THAT(records(content(eve_.path())), SizeIs(9));
}

TEST_F(ScanCommand, RefusesThemIfStrict) {
  rules_.write(std::string(kRules) + "alert udp any any -> any any (msg:\"no such option\"; frobnicate:1; sid:9;)\n");
  const Outcome outcome = scan({"--strict"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr(rules_.path() + ":4"), HasSubstr("refused because of the construct above")));
}

TEST_F(ScanCommand, RefusesFilesWithoutARule) {
  const auto refusal = [&](std::string_view rules) {
    rules_.write(rules);
    const Outcome outcome = scan({"-o", eve_.path()});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(content(eve_.path()), "");
    return outcome.err;
  };
  EXPECT_THAT(refusal("# nothing\n"), HasSubstr("-S: no rule could be loaded: found no rules"));
  EXPECT_THAT(refusal("#alert udp any any -> any any (sid:9;)\n"), HasSubstr("found only 1 in comments"));
  EXPECT_THAT(refusal("config classification: unknown,Unknown,3\n"), HasSubstr("no rule could be loaded"));
  EXPECT_THAT(refusal(content(capture_.path())), HasSubstr("no rule could be loaded"));
}

TEST_F(ScanCommand, RefusesToScanWithoutAnyRule) {
  rules_.write("alert http any any -> any any (http.uri; content:\"x\"; sid:8;)\nalert udp any any -> any any (sid\n");
  const Outcome outcome = scan({"-o", eve_.path()});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("protocol http"), HasSubstr(rules_.path() + ":2:"),
                                 HasSubstr("-S: no rule could be loaded: found 1 with mistakes, 1 not supported, "
                                           "expected at least one")));
  EXPECT_EQ(content(eve_.path()), "");
}

TEST_F(ScanCommand, ReportsMistakesWithASuggestionBeforeUnsupportedRules) {
  rules_.write("alert http any any -> any any (http.uri; content:\"x\"; sid:8;)\n" + std::string(kRules) +
               "alert udp any any -> any any (msg:\"typo\"; contnet:\"x\"; sid:9;)\n"
               "alert upd any any -> any any (msg:\"typo\"; content:\"x\"; sid:10;)\n"
               "alert udp $HOME_NETT any -> any any (msg:\"typo\"; content:\"x\"; sid:11;)\n");
  const Outcome outcome = scan({});
  EXPECT_EQ(outcome.exit_code, 0);
  const std::string& file = rules_.path();
  EXPECT_THAT(outcome.err,
              AllOf(StartsWith("warning: " + file +
                               ":5:43: unknown option; did you mean 'content'?: found 'contnet'\nwarning: " + file +
                               ":6:7: unknown protocol; did you mean 'udp'?: found 'upd'"),
                    HasSubstr(file + ":7:11: unknown variable; did you mean 'HOME_NET'?: found '$HOME_NETT'"),
                    HasSubstr("\nwarning: 3 rules left out because of these mistakes; --strict makes them errors\n"
                              "warning: " +
                              file + ":1:7: not supported: protocol http")));
  EXPECT_THAT(outcome.out, HasSubstr("3 rules loaded, 4 left out"));
}

TEST_F(ScanCommand, SkipsARuleWhoseRegularExpressionDoesNotCompile) {
  rules_.write("alert udp any any -> any any (msg:\"broken\"; pcre:\"/(/\"; sid:9;)\n" + std::string(kRules));
  const Outcome outcome = scan({"-o", eve_.path()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: " + rules_.path() + ":1: regular expression: "));
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("3 rules loaded, 1 left out"), HasSubstr("  regular expression ")));
  EXPECT_EQ(counts(records(content(eve_.path()))), (std::map<int, int>{{1, 3}, {2, 3}, {3, 3}}));
  EXPECT_EQ(scan({"--strict"}).exit_code, 2);
}

TEST_F(ScanCommand, ReportsAWrongVariableOnceWhereItWasSet) {
  const auto refusal = [&](const std::string& set) {
    const Outcome outcome = scan({"--set", set});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(refusal("vars.HOME_NET=10.0.0.0/33"),
              StartsWith("--set vars.HOME_NET=10.0.0.0/33: variable $HOME_NET: not an address: found '10.0.0.0/33'"));
  EXPECT_THAT(refusal("vars.HOME_NET=any"), HasSubstr("a value for EXTERNAL_NET too"));
  EXPECT_THAT(refusal("vars.HOME_NET=$EXTERNAL_NET"), HasSubstr("refers to itself"));
}

TEST_F(ScanCommand, ReportsManySimilarRulesOnce) {
  std::string rules(kRules);
  for (int sid = 100; sid < 150; ++sid) {
    rules += "alert udp any any -> any any (msg:\"x\"; urilen:1; sid:" + std::to_string(sid) + ";)\n";
  }
  rules_.write(rules);
  const Outcome short_ = scan({});
  EXPECT_EQ(short_.exit_code, 0);
  EXPECT_THAT(short_.err,
              AllOf(HasSubstr("(and 49 more like this)"), EndsWith("\nNot supported and left out:\n  " + rules_.path() +
                                                                   ": 50 constructs\n        50  not supported: "
                                                                   "option urilen (first: line 4)\n")));
  EXPECT_EQ(std::ranges::count(short_.err, '\n'), 5) << short_.err;
  EXPECT_EQ(std::ranges::count(scan({"--verbose"}).err, '\n'), 54);
}

TEST_F(ScanCommand, ReportsMissingFiles) {
  const Outcome rules = run({capture_.path(), "-S", "/nowhere.rules"});
  EXPECT_EQ(rules.exit_code, 2);
  EXPECT_THAT(rules.err, HasSubstr("-S: /nowhere.rules: "));
  const Outcome capture = run({"/nowhere.pcap", "-S", rules_.path()});
  EXPECT_EQ(capture.exit_code, 2);
  EXPECT_THAT(capture.err, HasSubstr("CAPTURE: /nowhere.pcap: "));
  const Outcome no_capture = run({rules_.path(), "-S", rules_.path()});
  EXPECT_EQ(no_capture.exit_code, 2);
  EXPECT_THAT(no_capture.err, HasSubstr(rules_.path()));
}

TEST_F(ScanCommand, WritesTheAlertsOfATruncatedCaptureAndFails) {
  const std::string whole = content(capture_.path());
  std::ofstream(capture_.path(), std::ios::binary) << whole.substr(0, whole.size() - 10);
  const Outcome outcome = scan({"-o", eve_.path()});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr(capture_.path()));
  EXPECT_THAT(outcome.out, HasSubstr("8 alerts from 3 rules"));
  EXPECT_THAT(records(content(eve_.path())), SizeIs(8));
}

TEST_F(ScanCommand, FailsIfItsAlertsCannotBeWritten) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  const Outcome outcome = scan({"-o", "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot write, and 10 records are lost"));
}

TEST_F(ScanCommand, DropsPacketsOnRequest) {
  rules_.write("drop udp any any -> any 53 (msg:\"a question\"; content:\"attack\"; sid:1;)\n");
  const Outcome outcome = scan({"-o", eve_.path(), "--set", "action=drop"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("6 packets dropped\n")) << "the rest of each flow too";
  const std::vector<Json> alerts = records(content(eve_.path()));
  ASSERT_THAT(alerts, Not(IsEmpty()));
  EXPECT_EQ(alerts[0]["alert"]["action"], "blocked");
}

}  // namespace
}  // namespace penstock::cli
