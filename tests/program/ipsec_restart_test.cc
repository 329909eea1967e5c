// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs with `ipsec` that are killed, lose their record, or have it set back: over all runs, AES-GCM never uses a nonce
// twice. Also, which runs may run at the same time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class IpsecRestart : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    const std::string addresses = "src 192.0.2.1 dst 192.0.2.2";
    write("state.txt", addresses +
                           "\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 0 \n"
                           "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n");
    write("policy.txt", "src 0.0.0.0/0 dst 0.0.0.0/0\n\tdir out priority 1\n\ttmpl " + addresses +
                            "\n\t\tproto esp reqid 1 mode tunnel\n");
    write("ipsec.yaml",
          "ports:\n  lan: {generator: {rate: 100kpps}}\n  wan: {pcap: {write: out.pcap}}\n"
          "chain: [ipsec: {state: state.txt, policy: policy.txt, state_dir: kept}]\n");
  }

  /// Adds those of the capture, which may be truncated. Returns its number of packets.
  std::size_t add_nonces(const std::string& name) {
    constexpr std::size_t kFileHeader = 24, kRecordHeader = 16, kNumberAt = 14 + 20 + 4, kIvAt = kNumberAt + 4;
    const std::string capture = read(name);
    std::size_t packets = 0;
    for (std::size_t at = kFileHeader; at + kRecordHeader <= capture.size(); ++packets) {
      std::uint32_t length = 0;
      std::memcpy(&length, capture.data() + at + 8, sizeof length);
      at += kRecordHeader;
      if (at + length > capture.size() || length < kIvAt + 8) break;
      numbers_.push_back(capture.substr(at + kNumberAt, 4));
      ivs_.push_back(capture.substr(at + kIvAt, 8));
      at += length;
    }
    return packets;
  }
  [[nodiscard]] static bool differ(std::vector<std::string> all) {
    std::ranges::sort(all);
    return std::ranges::adjacent_find(all) == all.end();
  }
  [[nodiscard]] static std::string run(const std::string& more = "") {
    return "'" PENSTOCK_PROGRAM "' run ipsec.yaml -q " + more;
  }
  /// A run with some packets that ends normally.
  [[nodiscard]] std::string some(const std::string& more = "") const {
    return "penstock run ipsec.yaml -q --set ports.lan='{generator: {packets: 500}}' " + more;
  }

  std::vector<std::string> numbers_, ivs_;  // of all packets
};

TEST_F(IpsecRestart, KilledRunsNeverReuseANonce) {
  int with_packets = 0;
  for (int round = 0; round < 12; ++round) {
    const std::string workers = round % 3 == 0 ? "--workers 2" : "";
    const std::string after = std::to_string(0.1 + 0.03 * (round * 5 % 12));
    static_cast<void>(shell("rm -f out.pcap; " + run(workers) + " & sleep " + after + "; kill -KILL $!; wait $!"));
    with_packets += add_nonces("out.pcap") > 0 ? 1 : 0;
  }
  EXPECT_EQ(shell(some()), 0) << read("err");
  EXPECT_EQ(add_nonces("out.pcap"), 500U);
  EXPECT_GT(with_packets, 6);
  EXPECT_GT(ivs_.size(), 20'000U);
  EXPECT_TRUE(differ(ivs_)) << "an IV comes twice";
  EXPECT_TRUE(differ(numbers_)) << "a number comes twice";
}

TEST_F(IpsecRestart, RunsThatEndContinueWithoutAGap) {
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(shell(some("--report report.json")), 0) << read("err");
    EXPECT_EQ(json("report.json")["functions"][0]["details"]["sas"][0]["sent"], 500 * (round + 1));
    add_nonces("out.pcap");
  }
  EXPECT_TRUE(differ(ivs_));
  EXPECT_TRUE(differ(numbers_));
}

TEST_F(IpsecRestart, WithoutTheRecordIvsStillDiffer) {
  for (const char* const loss : {"rm -r kept", "true", "cp kept/[0-9a-f]* old", "cat old >$(ls kept/[0-9a-f]*)",
                                 "cat old >$(ls kept/[0-9a-f]*)", "rm -r kept"}) {
    ASSERT_EQ(shell(some() + "&& " + loss), 0) << read("err");
    EXPECT_EQ(add_nonces("out.pcap"), 500U);
  }
  ASSERT_EQ(shell(some("--set chain.0.ipsec.state_dir=none")), 0) << read("err");
  EXPECT_EQ(add_nonces("out.pcap"), 500U);
  EXPECT_TRUE(differ(ivs_));
  EXPECT_FALSE(differ(numbers_)) << "nobody could know them: the test has set them back";
}

TEST_F(IpsecRestart, AClockThatIsSetBackOrStandsStillRepeatsNoNonce) {
#ifdef PENSTOCK_WRONG_CLOCK
  for (const char* const then : {"true", "true", "rm -r kept", "rm -r kept"}) {
    ASSERT_EQ(shell("export LD_PRELOAD='" PENSTOCK_WRONG_CLOCK "'; date +%Y; " + some() + "&& " + then), 0)
        << read("err");
    EXPECT_EQ(read("out"), "1970\n");
    EXPECT_EQ(add_nonces("out.pcap"), 500U);
  }
  EXPECT_TRUE(differ(ivs_));
  EXPECT_TRUE(differ({numbers_.begin(), numbers_.begin() + 1500})) << "while they were kept";
#else
  GTEST_SKIP() << "nothing can be preloaded before a sanitizer";
#endif
}

TEST_F(IpsecRestart, ABackupThatWasRestoredIsRefusedAndNothingIsSent) {
  ASSERT_EQ(shell(some() + "&& cp -r kept backup && " + some() + "&& rm -r kept && cp -r backup kept"), 0)
      << read("err");
  const std::string before = read("out.pcap");
  for (const char* const command : {"run ipsec.yaml", "check ipsec.yaml"}) {
    EXPECT_EQ(shell(std::string("penstock ") + command), 2);
    EXPECT_THAT(
        read("err"),
        HasSubstr(
            "state.txt:1: the sequence numbers that SA 0x00001000 from 192.0.2.1 to 192.0.2.2 "
            "has used are unknown: found a copy (restored from a backup, or from another folder or machine) in "));
  }
  EXPECT_EQ(read("out.pcap"), before);
}

TEST_F(IpsecRestart, DamagedFilesAreRefusedAndNothingIsSent) {
  ASSERT_EQ(shell(some()), 0) << read("err");
  const std::string before = read("out.pcap");
  for (const char* const damage : {"truncate -s 0 $file", "truncate -s 100 $file",
                                   "dd if=/dev/urandom of=$file bs=1k count=300 conv=notrunc 2>/dev/null"}) {
    EXPECT_EQ(
        shell(std::string("cp -r kept whole; file=$(ls kept/[0-9a-f]*); ") + damage + "; penstock run ipsec.yaml"), 2)
        << damage;
    EXPECT_THAT(read("err"), HasSubstr("has used are unknown: found "));
    EXPECT_EQ(read("out.pcap"), before);
    EXPECT_EQ(shell("rm -r whole"), 0);
  }
}

TEST_F(IpsecRestart, ASecondProcessOnOneSaIsRefusedAsLongAsTheFirstRuns) {
  EXPECT_EQ(shell(run() + " & first=$!; sleep 0.5\n" + some("--set ports.wan.pcap.write=second.pcap") +
                  "; status=$?; kill -KILL $first; wait $first\n" + some("--set ports.wan.pcap.write=third.pcap") +
                  " || exit 99; exit $status"),
            2)
      << read("err");
  EXPECT_THAT(read("err"), HasSubstr("state.txt:1: another process sends with SA 0x00001000 from 192.0.2.1 to "
                                     "192.0.2.2, or with its key: found locked in "));
  EXPECT_FALSE(exists("second.pcap"));
  EXPECT_TRUE(exists("third.pcap"));
}

TEST_F(IpsecRestart, ACheckDuringARunFindsNoMistake) {
  EXPECT_EQ(
      shell(run() + " & first=$!; sleep 0.5; penstock check ipsec.yaml; status=$?; kill $first; wait $first; exit "
                    "$status"),
      0)
      << read("err");
  EXPECT_THAT(read("out"), HasSubstr("; state in "));
}

TEST_F(IpsecRestart, CheckCreatesNothing) {
  EXPECT_EQ(shell("penstock check ipsec.yaml"), 0) << read("err");
  EXPECT_FALSE(exists("kept"));
}

TEST_F(IpsecRestart, WarnsIfNothingIsRecorded) {
  EXPECT_EQ(shell(some("--set chain.0.ipsec.state_dir=none --report report.json")), 0);
  EXPECT_THAT(read("err"),
              HasSubstr("warning: --set chain.0.ipsec.state_dir=none: each run begins with the sequence numbers of the "
                        "state file"));
  EXPECT_THAT(read("err"), HasSubstr("only randomness keeps IVs unique"));
  EXPECT_EQ(json("report.json")["functions"][0]["details"]["state_dir"], nullptr);
  EXPECT_FALSE(exists("kept"));
  EXPECT_EQ(shell(some("--report report.json")), 0);
  EXPECT_EQ(read("err"), "");
  EXPECT_EQ(json("report.json")["functions"][0]["details"]["state_dir"], "kept");
}

TEST_F(IpsecRestart, WithoutAParameterStateIsInTheStateDirectory) {
  write("ipsec.yaml",
        "ports:\n  lan: {generator: {packets: 10}}\n  wan: {pcap: {write: out.pcap}}\n"
        "chain: [ipsec: {state: state.txt, policy: policy.txt}]\n");
  EXPECT_EQ(shell("STATE_DIRECTORY=$PWD/unit penstock run ipsec.yaml"), 0) << read("err");
  EXPECT_TRUE(exists("unit/ipsec/locks"));
}

TEST_F(IpsecRestart, IfNothingCanBeRecordedNothingIsSent) {
  write("file", "");
  for (const char* const command : {"penstock run ipsec.yaml", "penstock check ipsec.yaml"}) {
    EXPECT_EQ(shell(std::string(command) + " --set chain.0.ipsec.state_dir=file"), 2);
    EXPECT_THAT(read("err"), HasSubstr("file: state_dir is not a folder"));
    EXPECT_EQ(shell(std::string(command) + " --set chain.0.ipsec.state_dir=none/kept"), 2);
    EXPECT_THAT(read("err"), HasSubstr("none/kept: cannot create state_dir: found No such file or directory"));
    EXPECT_EQ(shell(std::string("mkdir -p open; chmod 777 open; ") + command + " --set chain.0.ipsec.state_dir=open"),
              2);
    EXPECT_THAT(read("err"), HasSubstr("open: other users can write to state_dir"));
  }
  EXPECT_FALSE(exists("out.pcap"));
}

}  // namespace
}  // namespace penstock
