// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What `penstock run` logs, where and how; and what it never logs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class LoggingProgram : public Program {
 protected:
  /// Starts a run that listens at run.sock.
  void start(const std::string& chain, const std::string& options = "", const std::string& environment = "") const {
    write("chain.yaml", "ports: {lan: {generator: {rate: 2kpps}}, wan: {\"null\": {}}}\n" + chain);
    ASSERT_EQ(shell("touch run.err\n" + environment + " '" PENSTOCK_PROGRAM "' run chain.yaml -q --control run.sock " +
                    "--duration 100s " + options +
                    " >run.out 2>>run.err & echo $! >pid\n"
                    "until [ -S run.sock ]; do kill -0 $(cat pid) || exit 99; sleep 0.02; done"),
              0)
        << read("run.err");
  }
  void TearDown() override {
    static_cast<void>(shell("[ ! -e pid ] || kill -9 $(cat pid)"));
    Program::TearDown();
  }
  [[nodiscard]] int ctl(const std::string& arguments) const {
    return shell("penstock ctl --socket run.sock " + arguments);
  }
  void rules(const std::string& rule) const {
    write("rules", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD " + rule + "\nCOMMIT\n");
  }
};

TEST_F(LoggingProgram, LogsWithTimeAndLevel) {
  write("chain.yaml", "ports: {lan: {pcap: {read: none.pcap}}}\nchain: []\n");
  EXPECT_EQ(shell("penstock run chain.yaml"), 2);
  EXPECT_THAT(
      read("err"),
      MatchesRegex("[0-9-]{10}T[0-9:]{8}\\.[0-9]{3}Z error: chain.yaml:1:.*none.pcap: cannot open: No such file or "
                   "directory\n"));
  EXPECT_EQ(shell("penstock check chain.yaml"), 2);
  EXPECT_THAT(read("err"), StartsWith("chain.yaml:1:")) << "for the person at the terminal";
}

TEST_F(LoggingProgram, GivesTheJournalPriorities) {
  rules("-p udp -j ACCEPT");
  start("chain: [firewall: {rules: rules}]\n", "", "JOURNAL_STREAM=$(stat -c %d:%i run.err)");
  rules("-p tcp -j ACCEPT");
  EXPECT_EQ(ctl("reload"), 0) << read("err");
  rules("-p nothing -j ACCEPT");
  EXPECT_EQ(ctl("reload"), 2);
  EXPECT_THAT(read("run.err"), ContainsRegex("^<6>reload \\(penstock ctl\\): in use after"));
  EXPECT_THAT(read("run.err"),
              ContainsRegex("\n<3>rules:3:[^\n]*nothing[^\n]*\n"
                            "<3>reload \\(penstock ctl\\): refused, see above; nothing has changed\n$"));
}

TEST_F(LoggingProgram, LogsToAFileThatCanBeRotated) {
  rules("-p udp -j ACCEPT");
  write("penstock.log", "of an earlier run\n");
  start("chain: [firewall: {rules: rules}]\noutputs: {log: {to: penstock.log}}\n");
  EXPECT_EQ(ctl("reload"), 0) << read("err");
  EXPECT_THAT(read("penstock.log"), MatchesRegex("of an earlier run\n[^ ]+Z info: reload .*nothing has changed.*\n"));
  EXPECT_EQ(shell("mv penstock.log penstock.log.1"), 0);
  EXPECT_EQ(ctl("reopen-logs"), 0) << read("err");
  EXPECT_EQ(ctl("reload"), 0) << read("err");
  EXPECT_THAT(read("penstock.log"), MatchesRegex("[^ ]+Z info: reload .*nothing has changed.*\n"));
  EXPECT_EQ(read("run.err"), "");
  EXPECT_EQ(shell("rm penstock.log; mkdir penstock.log"), 0);
  EXPECT_EQ(ctl("reopen-logs"), 1);
  EXPECT_THAT(read("err"),
              HasSubstr("penstock.log: cannot write the log: Is a directory; it continues in the old file"));
}

TEST_F(LoggingProgram, RefusesALogThatItCannotWrite) {
  const auto refusal = [&](const std::string& log) {
    write("chain.yaml", "ports: {lan: {pcap: {read: in.pcap}}}\nchain: []\noutputs: {log: " + log + "}\n");
    EXPECT_EQ(shell("penstock run chain.yaml"), 2) << log;
    return read("err");
  };
  EXPECT_THAT(refusal("{to: none/penstock.log}"), HasSubstr("none/penstock.log: cannot write"));
  EXPECT_THAT(refusal("{to: '-'}"), HasSubstr("log.to: wrong value: found '-', expected stderr or a file"));
  EXPECT_THAT(refusal("{to: in.pcap}"), HasSubstr("would overwrite the file that"));
  EXPECT_THAT(refusal("{level: notice}"), HasSubstr("log.level: wrong value: found 'notice', expected error, warning, "
                                                    "info or debug"));
}

/// The hexadecimal digits of the text in a row, whatever stands between them.
std::string digits_of(const std::string& text) {
  std::string digits;
  std::ranges::copy_if(text, std::back_inserter(digits), [](unsigned char c) { return std::isxdigit(c) != 0; });
  return digits;
}

// At the most talkative level: keys that are read, change, are mistaken, and are in a request.
TEST_F(LoggingProgram, NeverLogsKeys) {
  const std::string key = "9b1de5a7c4f83620d17e4c95b8a3f60213579bdf";
  const std::string addresses = "src 192.0.2.1 dst 192.0.2.2";
  const auto state = [&](const std::string& of_key) {
    write("state.txt", addresses +
                           "\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 0 \n"
                           "\taead rfc4106(gcm(aes)) 0x" +
                           of_key +
                           " 128\n\tlifetime config:\n\t  limit: soft (INF)(bytes), hard (INF)(bytes)\n\t  limit: soft "
                           "5(packets), hard 10(packets)\n\t  expire add: soft 0(sec), hard 0(sec)\n\t  expire use: "
                           "soft 0(sec), hard 0(sec)\n");
  };
  state(key);
  write("policy.txt", "src 0.0.0.0/0 dst 0.0.0.0/0\n\tdir out priority 1\n\ttmpl " + addresses +
                          "\n\t\tproto esp reqid 1 mode tunnel\n");
  start("chain: [ipsec: {state: state.txt, policy: policy.txt, state_dir: kept}]\noutputs: {esp_sa: esp_sa}\n",
        "--log-level debug");
  ASSERT_EQ(shell("until grep -q 'reached its hard limit' run.err; do kill -0 $(cat pid) || exit 99; sleep 0.02; done"),
            0);
  static_cast<void>(ctl("reload"));
  std::string other = key;
  std::ranges::reverse(other);
  for (const std::string& wrong : {other, key + "00", key.substr(2), key.substr(0, 20) + "zz" + key.substr(22)}) {
    state(wrong);
    static_cast<void>(ctl("reload --dry-run"));
    static_cast<void>(ctl("reload"));
  }
  static_cast<void>(ctl("explain udp 10.0.0.1:1 10.0.0.2:2"));
  static_cast<void>(ctl("rollback"));
  EXPECT_EQ(ctl("drain"), 0) << read("err");
  const std::string log = read("run.err");
  EXPECT_THAT(log, HasSubstr(" debug: ")) << "the level is the one that the test is about";
  EXPECT_THAT(log, HasSubstr("refused, see above"));
  const std::string digits = digits_of(log);
  for (const std::string& secret : {key, other}) {
    constexpr std::size_t kPart = 8;
    for (std::size_t at = 0; at + kPart <= secret.size(); ++at)
      EXPECT_THAT(digits, Not(HasSubstr(secret.substr(at, kPart)))) << log;
  }
}

}  // namespace
}  // namespace penstock
