// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock filter` as a script calls it: files and pipes, several outputs, programs, damaged captures, wrong usage.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kProgram = "4\n40 0 0 12\n21 0 1 2048\n6 0 0 7\n6 0 0 0\n";  // 7 for IPv4

class FilterProgram : public Program {
 protected:
  [[nodiscard]] std::size_t packets(const std::string& name) const { return records(name).size(); }
};

TEST_F(FilterProgram, WritesTheWholeCaptureUnchanged) {
  EXPECT_EQ(shell("penstock filter -r in.pcap -w out.pcap"), 0) << read("err");
  EXPECT_EQ(read("out.pcap"), read("in.pcap"));
  EXPECT_EQ(read("out") + read("err"), "");
}

TEST_F(FilterProgram, WritesTheSameFromFilesPipesAndCompressedFiles) {
  ASSERT_EQ(shell("penstock filter -r in.pcap -w file.pcap tcp && gzip -k in.pcap && zstd -q in.pcap"), 0);
  EXPECT_GT(packets("file.pcap"), 0U);
  EXPECT_LT(packets("file.pcap"), 231U);
  EXPECT_EQ(shell("cat in.pcap | penstock filter -r - -w - tcp | cmp - file.pcap &&\n"
                  "penstock filter -w - tcp <in.pcap | cmp - file.pcap &&\n"
                  "penstock filter -r in.pcap.gz -w - tcp | cmp - file.pcap &&\n"
                  "penstock filter -r in.pcap.zst -w - tcp | cmp - file.pcap &&\n"
                  "cat in.pcap.gz | penstock filter -w out.pcap.gz tcp && gunzip -c out.pcap.gz | cmp - file.pcap"),
            0)
      << read("err");
}

TEST_F(FilterProgram, WritesSeveralOutputsInOnePass) {
  ASSERT_EQ(shell("penstock filter -r in.pcap -w tcp.one tcp && penstock filter -r in.pcap -w udp.one udp port 53 &&\n"
                  "penstock filter -r in.pcap -w few.one -c 3"),
            0);
  EXPECT_EQ(shell("penstock filter -r in.pcap -w tcp.pcap=tcp -w 'udp.pcap=udp port 53' -w none.pcap='len = 9999' "
                  "--count"),
            0)
      << read("err");
  EXPECT_EQ(read("tcp.pcap"), read("tcp.one"));
  EXPECT_EQ(read("udp.pcap"), read("udp.one"));
  EXPECT_EQ(read("none.pcap"), read("tcp.one").substr(0, 24));
  EXPECT_EQ(read("out"), "tcp.pcap: " + std::to_string(packets("tcp.pcap")) + " packets\nudp.pcap: " +
                             std::to_string(packets("udp.pcap")) + " packets\nnone.pcap: 0 packets\n");
  EXPECT_EQ(shell("penstock filter -r in.pcap -c 3 -w all.pcap -w more.pcap=ip"), 0) << read("err");
  EXPECT_EQ(read("all.pcap"), read("few.one"));
  EXPECT_EQ(packets("more.pcap"), 3U);
}

TEST_F(FilterProgram, TakesAFileNameWithAnEqualsSignLikeTcpdump) {
  EXPECT_EQ(shell("penstock filter -r in.pcap -w date=1.pcap tcp"), 0) << read("err");
  EXPECT_TRUE(exists("date=1.pcap"));
}

TEST_F(FilterProgram, TakesOptionsThatOnlyChangeHowTcpdumpPrints) {
  ASSERT_EQ(shell("penstock filter -r in.pcap -w plain.pcap tcp"), 0);
  EXPECT_EQ(shell("penstock filter -nnvvK -s 0 -e -tttt -l -r in.pcap -w out.pcap tcp"), 0) << read("err");
  EXPECT_EQ(read("out.pcap"), read("plain.pcap"));
}

TEST_F(FilterProgram, EndsByOneSignalWhileItCompiles) {
  write("many", "print(' or '.join(f'host 10.{i // 250}.{i % 250}.1' for i in range(3000)))\n");
  EXPECT_EQ(shell("python3 many >long && timeout 2 '" PENSTOCK_PROGRAM "' filter -r in.pcap -w out.pcap -F long"), 124);
  EXPECT_FALSE(exists("out.pcap"));
}

TEST_F(FilterProgram, CountsLikeTcpdump) {
  EXPECT_EQ(shell("penstock filter -r in.pcap"), 0);
  EXPECT_EQ(read("out"), "231 packets\n");
  EXPECT_EQ(shell("penstock filter -nr in.pcap --count -c 1 -w out.pcap"), 0);
  EXPECT_EQ(read("out"), "1 packet\n");
  EXPECT_EQ(shell("penstock filter -r in.pcap --json -w out.pcap tcp or udp"), 0);
  const nlohmann::json summary = json("out");
  EXPECT_EQ(summary["packets"], 231);
  EXPECT_EQ(summary["filters"][0]["expression"], "tcp or udp");
  EXPECT_EQ(summary["filters"][0]["matches"], packets("out.pcap"));
  EXPECT_THAT(summary["errors"], SizeIs(0));
}

TEST_F(FilterProgram, RunsAProgramAndPrintsItsReturns) {
  write("program", kProgram);
  EXPECT_EQ(shell("penstock filter -F program -r in.pcap --returns >returns && sort -u returns && wc -l <returns"), 0)
      << read("err");
  EXPECT_EQ(read("out"), "0\n7\n231\n");
  EXPECT_EQ(shell("penstock filter -F program -r in.pcap -w a.pcap && penstock filter -r in.pcap -w b.pcap ip && "
                  "cmp a.pcap b.pcap"),
            0)
      << read("err");
  EXPECT_EQ(
      shell("penstock filter -r in.pcap -ddd ip | penstock filter -F - -r in.pcap -w a.pcap && cmp a.pcap b.pcap"), 0)
      << read("err");
  write("expression", "ip # all of it\n and tcp\n");
  EXPECT_EQ(shell("penstock filter -F expression -r in.pcap -w a.pcap && penstock filter -r in.pcap -w b.pcap ip and "
                  "tcp && cmp a.pcap b.pcap"),
            0)
      << read("err");
}

TEST_F(FilterProgram, JoinsTheWordsOfAnExpression) {
  EXPECT_EQ(shell("penstock filter -r in.pcap -w a.pcap 'tcp[13]' '&' 2 != 0 and not '(' port 80 ')' &&\n"
                  "penstock filter -r in.pcap -w b.pcap 'tcp[13] & 2 != 0 and not (port 80)' && cmp a.pcap b.pcap"),
            0)
      << read("err");
  EXPECT_GT(packets("a.pcap"), 0U);
}

TEST_F(FilterProgram, PrintsProgramsLikeTcpdump) {
  EXPECT_EQ(shell("penstock filter -r in.pcap -ddd ip"), 0);
  EXPECT_EQ(read("out"), "4\n40 0 0 12\n21 0 1 2048\n6 0 0 262144\n6 0 0 0\n");
  EXPECT_EQ(shell("penstock filter -d -y RAW -s 96 ip"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("#96"));
}

TEST_F(FilterProgram, RefusesWhatIsWrongBeforeItWrites) {
  write("program", "2\n5 0 0 7\n6 0 0 0\n");
  EXPECT_EQ(shell("penstock filter -r in.pcap -F program -w out.pcap"), 2);
  EXPECT_THAT(read("err"), HasSubstr("program:2: instruction 0"));
  for (const char* const wrong :
       {"-w out.pcap 'tcp prt 80'", "-w out.pcap=tcp -w b.pcap='foo bar'", "-w out.pcap -F /nonexistent",
        "-w out.pcap -F program tcp", "-w out.pcap --returns", "-w - --count", "-w in.pcap tcp", "-w ./in.pcap",
        "-w out.pcap -w ./out.pcap", "-w out.pcap --engine fast", "-w out.pcap -c 0", "-w out.pcap --nano",
        "-w out.pcap=tcp -w b.pcap=udp ip", "-w =tcp", "-w 'out.pcap= ' -w b.pcap=udp", "-w 'out.pcap =tcp'",
        "-y FOO -d"}) {
    const std::string input = std::string(wrong).starts_with("-y") ? "" : "-r in.pcap ";
    EXPECT_EQ(shell("penstock filter " + input + wrong), 2) << wrong;
    EXPECT_NE(read("err"), "") << wrong;
    EXPECT_FALSE(exists("out.pcap")) << wrong;
  }
  EXPECT_EQ(packets("in.pcap"), 231U);
}

TEST_F(FilterProgram, RefusesTwoOutputsToOneFileByAnyName) {
  for (const char* const wrong : {"-w -=tcp -w two.pcap=udp >two.pcap", "-w -=tcp -w /dev/stdout=udp >two.pcap",
                                  "-w -=tcp -w /dev/stdout=udp | cat >piped", "-w one.pcap=tcp -w link.pcap=udp"}) {
    ASSERT_EQ(shell("printf old >one.pcap && ln -f one.pcap link.pcap"), 0);
    EXPECT_EQ(shell(std::string("set -o pipefail; penstock filter -r in.pcap ") + wrong), 2) << wrong;
    EXPECT_EQ(read("one.pcap"), "old") << wrong;
  }
}

TEST_F(FilterProgram, RefusesToOverwriteItsInputs) {
  write("expression", "tcp\n");
  EXPECT_EQ(shell("penstock filter -r in.pcap -F expression -w expression"), 2);
  EXPECT_EQ(read("expression"), "tcp\n");
  // Also by the number that the descriptor of its input may get.
  for (int descriptor = 3; descriptor < 12; ++descriptor) {
    for (const char* const folder : {"/dev/fd/", "/proc/self/fd/"}) {
      static_cast<void>(shell("penstock filter -r in.pcap udp -w " + (folder + std::to_string(descriptor))));
    }
  }
  EXPECT_EQ(packets("in.pcap"), 231U);
}

TEST_F(FilterProgram, WritesWhatIsBeforeTheDamage) {
  ASSERT_EQ(shell("head -c 3000 in.pcap >cut.pcap"), 0);
  EXPECT_EQ(shell("penstock filter -r cut.pcap -w out.pcap --count"), 1);
  EXPECT_EQ(packets("out.pcap"), 8U);
  EXPECT_EQ(read("out"), "8 packets\n");
  EXPECT_THAT(read("err"), HasSubstr("cut.pcap: the capture is broken after packet 8: truncated dump file"));
  EXPECT_EQ(shell("penstock filter -r cut.pcap -w out.pcap -c 8"), 0) << "tcpdump does not read on either";
  EXPECT_EQ(shell("cat cut.pcap | penstock filter -w piped.pcap"), 1);
  EXPECT_EQ(read("piped.pcap"), read("out.pcap"));
  EXPECT_EQ(shell("echo garbled | penstock filter -w none.pcap"), 1);
  EXPECT_FALSE(exists("none.pcap"));
  EXPECT_EQ(shell("penstock filter -r nonexistent -w none.pcap"), 1);
  EXPECT_EQ(shell("penstock filter -r in.pcap -w nonexistent/out.pcap"), 1);
  EXPECT_EQ(shell("penstock filter -r in.pcap -w /dev/full"), 1);
  EXPECT_THAT(read("err"), HasSubstr("No space left on device"));
}

TEST_F(FilterProgram, ReadsAllThatAShortWriterPutsIntoANamedPipe) {
  // The writer waits in open() until the pipe is read, and has closed it before its bytes are looked at.
  ASSERT_EQ(shell("penstock filter -r in.pcap -c 3 -w short.pcap && mkfifo pipe"), 0);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(shell("cat short.pcap >pipe & sleep 0.1; penstock filter -r pipe -w out.pcap"), 0) << read("err");
    ASSERT_EQ(read("out.pcap"), read("short.pcap"));
  }
}

TEST_F(FilterProgram, RefusesToOverwriteItsStandardInput) {
  const std::string before = read("in.pcap");
  for (const char* const command :
       {"penstock filter -w in.pcap tcp <in.pcap", "penstock filter -r - -w ./in.pcap <in.pcap",
        "penstock filter -w in.pcap=tcp -w other.pcap=udp <in.pcap", "penstock filter -w - tcp <in.pcap 1<>in.pcap",
        "penstock filter -r in.pcap -w - tcp >>in.pcap",
        "ln -f in.pcap link.pcap; penstock filter -w link.pcap <in.pcap"}) {
    EXPECT_EQ(shell(command), 2) << command;
    EXPECT_THAT(read("err"), HasSubstr("would overwrite the input")) << command;
    EXPECT_EQ(read("in.pcap"), before) << command;
  }
  EXPECT_EQ(shell("penstock filter -w out.pcap <in.pcap && penstock filter -r in.pcap -w - >more.pcap"), 0)
      << read("err");
}

TEST_F(FilterProgram, EndsAfterTheNumberOfMatches) {
  EXPECT_EQ(shell("penstock filter -r in.pcap --returns -c 3"), 0) << read("err");
  EXPECT_EQ(read("out"), "262144\n262144\n262144\n");
  // The same packets without -c tell which one is the third to match.
  ASSERT_EQ(shell("penstock filter -r in.pcap --returns udp >all && "
                  "awk '{print} $1 != 0 && ++n == 3 {exit}' all >third && grep -c . third"),
            0);
  const int third = std::stoi(read("out"));
  ASSERT_GT(third, 3);
  EXPECT_EQ(shell("penstock filter -r in.pcap --returns -c 3 udp | cmp - third"), 0) << read("err");
  EXPECT_EQ(shell("penstock filter -r in.pcap --json -c 3 udp"), 0);
  EXPECT_EQ(json("out")["packets"], third);
  EXPECT_EQ(json("out")["filters"][0]["matches"], 3);
  EXPECT_EQ(shell("penstock filter -r in.pcap --json -c 3 -w all.pcap -w udp.pcap=udp"), 0) << read("err");
  EXPECT_EQ(json("out")["packets"], third) << "the slower filter";
  EXPECT_EQ(shell("penstock filter -r in.pcap --json -c 231"), 0);
  EXPECT_EQ(json("out")["packets"], 231);
  EXPECT_EQ(shell("penstock filter -r in.pcap --json -c 500"), 0);
  EXPECT_EQ(json("out")["packets"], 231);
}

TEST_F(FilterProgram, TakesTheProtocolThatLinuxLoadsFromTheLinkTypeOfTheCapture) {
  const auto put = [](std::string& to, std::uint32_t value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  write("protocol", "4\n40 0 0 4294963200\n21 0 1 2048\n6 0 0 7\n6 0 0 0\n");
  EXPECT_EQ(shell("penstock filter -r in.pcap -F protocol "
                  "--returns | grep -c 7; penstock filter -r in.pcap --count ip"),
            0);
  const std::string ethernet = read("out");
  EXPECT_THAT(ethernet, HasSubstr(ethernet.substr(0, ethernet.find('\n')) + " packets"));
  for (const std::uint32_t link_type : {101U, 147U}) {  // raw IP, and one without a protocol
    std::string capture;
    for (const std::uint32_t field : {0xa1b2c3d4U, 2U | 4U << 16, 0U, 0U, 262144U, link_type, 1U, 0U, 20U, 20U}) {
      put(capture, field);
    }
    write("other.pcap", capture + '\x45' + std::string(19, '\0'));
    const int status = shell("penstock filter -r other.pcap -F protocol --returns");
    EXPECT_EQ(status, link_type == 101 ? 0 : 2);
    EXPECT_EQ(read("out"), link_type == 101 ? "7\n" : "");
  }
  EXPECT_THAT(read("err"), HasSubstr("'protocol' is not defined for this link type"));
  EXPECT_EQ(shell("penstock filter -ddd -y RAW -F protocol"), 0) << read("err");
  EXPECT_EQ(read("out"), read("protocol"));
  EXPECT_EQ(shell("penstock filter -d -y USER0 -F protocol"), 2);
}

TEST_F(FilterProgram, EndsCleanlyWhileItWaitsForAPipe) {
  EXPECT_EQ(shell("mkfifo pipe && (head -c 3000 in.pcap; sleep 20) >pipe & \n"
                  "penstock() { '" PENSTOCK_PROGRAM "' \"$@\"; }\n"
                  "for i in 1 2 3 4 5; do [ -p pipe ] || sleep 0.1; done\n"
                  "'" PENSTOCK_PROGRAM "' filter -r pipe -w out.pcap & child=$!\n"
                  "for i in $(seq 100); do [ -s out.pcap ] && break; sleep 0.05; done\n"
                  "kill -INT $child; wait $child; status=$?; kill %1; exit $status"),
            0)
      << read("err");
  EXPECT_EQ(packets("out.pcap"), 8U);
}

}  // namespace
}  // namespace penstock
