// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program as a shell runs it: pipes, signals, exit codes, and the files that it leaves.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "golden/capture_file.h"
#include "program/program_for_test.h"

namespace penstock {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kToStdout = " --set ports.wan.pcap.write=-";

TEST_F(Program, WritesNothingButTheCaptureToTheStandardOutput) {
  ASSERT_EQ(shell("penstock run chain.yaml"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("packets in"));
  ASSERT_EQ(shell("penstock run chain.yaml --trace 2" + kToStdout), 0) << read("err");
  EXPECT_FALSE(records("out.pcap").empty());
  EXPECT_EQ(read("out"), read("out.pcap"));
  EXPECT_THAT(read("err"), HasSubstr("packets in")) << "the tables";
  EXPECT_THAT(read("err"), HasSubstr("packet 1  ")) << "the trace";
}

TEST_F(Program, RefusesToPrintJsonOverACaptureOnTheStandardOutput) {
  EXPECT_EQ(shell("penstock run chain.yaml --json" + kToStdout), 2);
  EXPECT_EQ(read("out"), "");
  EXPECT_THAT(read("err"), HasSubstr("--json: an output of the chain already uses standard output"));
}

TEST_F(Program, ReportsThatTheReaderOfItsStandardOutputHasGone) {
  // More than fits into a pipe.
  EXPECT_EQ(shell("penstock run chain.yaml --report report.json --set ports.lan='{generator: {packets: 50000}}'" +
                  kToStdout + " | head -c 100 >head"),
            1);
  EXPECT_EQ(read("head").size(), 100U);
  EXPECT_THAT(read("err"), HasSubstr("standard output: port wan: cannot write; packets are missing"));
  EXPECT_THAT(read("err"), HasSubstr("Broken pipe"));
  const auto packets = json("report.json")["packets"];
  EXPECT_GT(packets["dropped"], 0);
  EXPECT_EQ(packets["in"].get<int>(), packets["forwarded"].get<int>() + packets["dropped"].get<int>());
}

TEST_F(Program, PassesACaptureThroughPipes) {
  const std::string from_stdin = " run chain.yaml --set ports.lan.pcap.read=-";
  const std::array<std::pair<std::string, const char*>, 5> cases{{
      {"cat in.pcap | penstock" + from_stdin, "out.pcap"},
      {"gzip -c in.pcap | penstock" + from_stdin, "out.pcap"},
      {"<in.pcap penstock" + from_stdin, "out.pcap"},
      {"penstock run chain.yaml" + kToStdout + " | penstock" + from_stdin + " --set ports.wan.pcap.write=twice.pcap",
       "twice.pcap"},
      {"mkfifo from to; cat in.pcap >from & cat to >copy.pcap &"
       " penstock run chain.yaml --set ports.lan.pcap.read=from --set ports.wan.pcap.write=to && wait",
       "copy.pcap"},
  }};
  for (const auto& [command, copy] : cases) {
    fs::remove(folder_ / "out.pcap");
    EXPECT_EQ(shell(command), 0) << command << read("err");
    EXPECT_EQ(records(copy), records("in.pcap")) << command;
  }
}

TEST_F(Program, CountsPacketsThatAFullDiskOrAFileLimitRefuses) {
  EXPECT_EQ(shell("penstock run chain.yaml --report report.json --set ports.wan.pcap.write=/dev/full"), 1);
  EXPECT_THAT(read("err"), HasSubstr("No space left on device"));
  const auto full = json("report.json");
  EXPECT_EQ(full["packets"]["forwarded"], 0);
  EXPECT_EQ(full["packets"]["in"], records("in.pcap").size());
  EXPECT_EQ(full["dropped_by_chain"]["port_refused"], full["packets"]["in"]);
  EXPECT_EQ(full["ports"]["wan"]["out"]["bytes"], 0);

  EXPECT_EQ(shell("ulimit -f 64; penstock run chain.yaml --report report.json"), 1);
  EXPECT_THAT(read("err"), HasSubstr("out.pcap: port wan: cannot write; packets are missing: File too large"));
  const auto limited = json("report.json");
  EXPECT_GT(limited["dropped_by_chain"]["port_refused"], 0);
  EXPECT_EQ(limited["packets"]["in"], records("in.pcap").size());
}

TEST_F(Program, LeavesAHangUpToNohup) {
  EXPECT_EQ(
      shell("trap '' HUP\n'" PENSTOCK_PROGRAM "' run chain.yaml --report report.json --set ports.lan='{generator: {}}'"
            " --set ports.wan.pcap.write=/dev/null --duration 600ms &\nsleep 0.2; kill -HUP $!; wait $!"),
      0);
  EXPECT_GT(json("report.json")["elapsed_s"], 0.5);
}

TEST_F(Program, FailsIfItsHelpCannotBeWritten) {
  EXPECT_EQ(shell("penstock --help >/dev/full"), 1);
  EXPECT_THAT(read("err"), HasSubstr("cannot write to standard output"));
  EXPECT_EQ(shell("penstock run --help >/dev/full"), 1);
}

TEST_F(Program, CanBeStoppedWhileItWaitsForTheOtherEndOfAPipe) {
  ASSERT_EQ(shell("mkfifo pipe"), 0);
  for (const char* port : {"lan.pcap.read", "wan.pcap.write"}) {
    const std::string run = "penstock run chain.yaml --report report.json --set ports." + std::string(port) + "=pipe";
    for (const char* signal : {"INT", "TERM"}) {
      // timeout(1) sends the signal only to the program, and exits with 124 if it had to.
      const std::string program = std::string("timeout --preserve-status -k 20 -s ") + signal + " 1 '" +
                                  PENSTOCK_PROGRAM "' " + run.substr(run.find(' '));
      EXPECT_EQ(shell(program), 1) << port << ' ' << signal;
      EXPECT_THAT(read("err"), HasSubstr("pipe: port " + std::string(port, 3) + ": stopped before the"));
      EXPECT_EQ(json("report.json")["packets"]["in"], 0);
      EXPECT_FALSE(exists("out.pcap"));
    }
    EXPECT_EQ(shell(run + " --duration 100ms"), 1);
    EXPECT_THAT(read("err"), HasSubstr("stopped before the")) << port;
  }
}

TEST_F(Program, WritesTheRecordOfAnExperimentThatWasStopped) {
  const std::string program = "timeout --preserve-status -k 20 -s INT 1 '" PENSTOCK_PROGRAM "'";
  EXPECT_EQ(shell(program + " bench offload --only processor=cpu --duration 1h --json kept.json"), 1);
  EXPECT_THAT(read("err"), HasSubstr("stopped after 0 of "));
  EXPECT_EQ(json("kept.json")["complete"], false);
  EXPECT_EQ(shell("penstock bench --from - <kept.json"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("incomplete  0 points"));
}

/// The number of complete records at the start of a classic capture, which may be truncated.
std::size_t whole_records(const std::string& capture) {
  constexpr std::size_t kFileHeader = 24;
  constexpr std::size_t kRecordHeader = 16;
  std::size_t records = 0;
  for (std::size_t at = kFileHeader; at + kRecordHeader <= capture.size(); ++records) {
    std::uint32_t length = 0;
    std::memcpy(&length, capture.data() + at + 8, sizeof length);
    at += kRecordHeader + length;
    if (at > capture.size()) break;
  }
  return records;
}

TEST_F(Program, LosesAtMostTheLastBlockOfACompressedCaptureIfItIsKilled) {
  // 4,000 packets of 8,996 bytes that compress well. The pipe, which delivers nothing more, keeps the run alive. A
  // block ends with the first write, of at most 1 MiB, after its first 1 MiB.
  constexpr std::size_t kPackets = 4'000;
  constexpr std::size_t kLeast = kPackets - 2 * (1U << 20) / (16 + 8996) - 1;
  write("kill.yaml",
        "ports:\n  load: {generator: {size: 9000, packets: 4000}}\n  pipe: {pcap: {read: pipe}}\n"
        "  wan: {pcap: {write: x}}\nchain: []\nwire: {load: wan, pipe: wan}\n");
  ASSERT_EQ(shell("mkfifo pipe"), 0);
  for (const std::string name : {"out.pcap.gz", "out.pcap.zst", "out.pcap"}) {
    const std::string count = "penstock run chain.yaml -q --set ports.lan.pcap.read=" + name +
                              " --set ports.wan='{null: {}}' --report report.json";
    const std::string unpack = name.ends_with("gz") ? "gunzip -c" : name.ends_with("zst") ? "zstd -dcq" : "cat";
    // Until the file contains what it must, for at most 20 s.
    EXPECT_EQ(shell("exec 3<>pipe; head -c 24 in.pcap >&3\n'" PENSTOCK_PROGRAM
                    "' run kill.yaml -q --set ports.wan.pcap.write=" +
                    name + " & run=$!\nfor i in $(seq 100); do sleep 0.2; " + count +
                    "; grep -qE '\"in\": *(3[89]|4)[0-9]{2}' report.json && break; done\nkill -KILL $run\n"
                    "wait $run; exec 3>&-\n" +
                    count + "; if ! command -v " + unpack.substr(0, unpack.find(' ')) + "; then exit 3; fi; " + unpack +
                    " " + name + " >unpacked || true"),
              0)
        << read("err");
    EXPECT_GE(json("report.json")["packets"]["in"], kLeast) << name << ": " << read("err");
    EXPECT_GE(whole_records(read("unpacked")), kLeast) << name;
  }
}

TEST_F(Program, GivesUpAReaderThatReadsNothingWhenItsTimeIsOver) {
  ASSERT_EQ(shell("mkfifo pipe"), 0);
  const std::string run =
      " run chain.yaml -q --report report.json --set ports.lan='{generator: {}}' --set ports.wan.pcap.write=";
  const std::string stop = "timeout --preserve-status -k 10 -s TERM 1 '" PENSTOCK_PROGRAM "'";
  for (const std::string& how : {"penstock" + run + "pipe --duration 300ms",              // by its name
                                 "penstock" + run + "- --duration 300ms >pipe",           // as standard output
                                 "penstock" + run + "pipe --duration 300ms --workers 2",  // a worker holds the lock
                                 stop + run + "pipe", stop + run + "- >pipe"}) {
    // The shell has the pipe open at both ends, and reads it only afterwards.
    EXPECT_EQ(shell("exec 3<>pipe\n" + how + "\nstatus=$?\nexec 4<pipe 3<&-\ncat <&4 >got\nexit $status"), 1) << how;
    EXPECT_THAT(read("err"), HasSubstr("packets are missing: the run ended while the reader was not reading"));
    const auto report = json("report.json");
    const auto& packets = report["packets"];
    EXPECT_GT(packets["forwarded"], 0);
    EXPECT_EQ(packets["forwarded"], whole_records(read("got"))) << how;
    EXPECT_EQ(packets["in"].get<std::uint64_t>(),
              packets["forwarded"].get<std::uint64_t>() + packets["dropped"].get<std::uint64_t>());
    EXPECT_GT(report["dropped_by_chain"]["port_refused"], 0);
  }
}

TEST_F(Program, TreatsARepeatedSignalAsOneAndALaterOneAsASecond) {
  const std::string start = "'" PENSTOCK_PROGRAM
                            "' run chain.yaml -q --report report.json --set ports.lan='{generator: {}}' --set "
                            "ports.wan='{null: {}}' & run=$!; sleep 2; ";
  EXPECT_EQ(shell(start + "kill $run; kill $run; wait $run"), 0) << read("err");
  EXPECT_GT(json("report.json")["packets"]["in"], 0);
  // Nobody reads the report.
  ASSERT_EQ(shell("rm report.json; mkfifo report.json"), 0);
  EXPECT_EQ(shell(start + "kill $run; sleep 1; kill $run; wait $run"), 128 + SIGTERM);
}

TEST_F(Program, WritesEverythingToASlowReaderWhenItsTimeIsOver) {
  for (const char* name : {"pipe.pcap", "pipe.pcap.gz", "pipe.pcapng.zst"}) {
    const std::string pipe = name;
    // It reads nothing until after the end.
    EXPECT_EQ(shell("mkfifo " + pipe + "; { sleep 0.4; cat; } <" + pipe + " >got-" + pipe +
                    " & penstock run chain.yaml --report report.json --set ports.lan='{generator: {size: 1518, payload:"
                    " random}}' --duration 200ms --set ports.wan.pcap.write=" +
                    pipe + "; status=$?; wait; exit $status"),
              0)
        << read("err");
    const auto packets = json("report.json")["packets"];
    EXPECT_GT(packets["in"], 64 * 1024 / 1518) << "more than a pipe holds";
    EXPECT_EQ(packets["in"], packets["forwarded"]);
    EXPECT_EQ(packets["in"], records("got-" + pipe).size());
  }
}

/// The output of a pipe that was made non-blocking, and that is read slowly.
class SlowNonBlockingPipe {
 public:
  SlowNonBlockingPipe() {
    EXPECT_EQ(::pipe2(ends_.data(), O_NONBLOCK), 0);
    ::fcntl(ends_[1], F_SETPIPE_SZ, 4096);
  }
  ~SlowNonBlockingPipe() {
    close_writer();
    ::close(ends_[0]);
  }
  /// The target of a shell redirection, to be written after `>`.
  [[nodiscard]] std::string name() const { return "&" + std::to_string(ends_[1]); }
  void close_writer() { ::close(std::exchange(ends_[1], -1)); }
  [[nodiscard]] std::string read_all() const {
    std::string all;
    std::array<char, 3000> some{};
    for (;;) {
      const ssize_t got = ::read(ends_[0], some.data(), some.size());
      if (got == 0) return all;
      if (got > 0) all.append(some.data(), static_cast<std::size_t>(got));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST_F(Program, WaitsForAReaderOfANonBlockingStandardOutput) {
  std::string addresses;
  for (int i = 0; i < 1000; ++i) addresses += "10.0.0.1\n";
  write("addresses", addresses);
  write("routes", "default via 192.0.2.1 dev wan\n");
  for (const char* command :
       {"run chain.yaml --set ports.wan.pcap.write=-", "run chain.yaml --json", "run chain.yaml --report -",
        "route --routes routes <addresses", "route --json --routes routes <addresses"}) {
    std::string got;
    SlowNonBlockingPipe pipe;
    std::thread reader([&] { got = pipe.read_all(); });
    EXPECT_EQ(shell(std::string("penstock ") + command + " >" + pipe.name()), 0) << command << read("err");
    pipe.close_writer();
    reader.join();
    ASSERT_EQ(shell(std::string("penstock ") + command), 0);
    if (std::string(command).starts_with("run") && std::string(command).find("write=-") == std::string::npos) {
      EXPECT_EQ(nlohmann::json::parse(got)["packets"], json("out")["packets"]) << command;
    } else {
      EXPECT_EQ(got, read("out")) << command;
    }
  }
}

TEST_F(Program, KeepsItsMessagesOutOfACaptureIfAStreamIsClosed) {
  const std::string run = "penstock run chain.yaml --trace 2 --json";
  ASSERT_EQ(shell(run), 0) << read("err");
  EXPECT_EQ(shell(run + " 2>&-"), 0) << "nothing to be told there";
  EXPECT_EQ(records("out.pcap"), records("in.pcap"));
  // The capture is the third file that the program opens.
  for (const char* closed : {">&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    EXPECT_EQ(shell(run + ' ' + closed), 1) << closed;
    EXPECT_EQ(records("out.pcap"), records("in.pcap")) << closed;
  }
}

TEST_F(Program, WritesTheReportWhereALinkLeads) {
  write("real.json", "of an earlier run");
  fs::create_symlink("real.json", folder_ / "report.json");
  ASSERT_EQ(shell("penstock run chain.yaml --report report.json"), 0) << read("err");
  EXPECT_TRUE(fs::is_symlink(folder_ / "report.json"));
  EXPECT_EQ(json("real.json")["packets"]["in"], records("in.pcap").size());
}

TEST_F(Program, WritesNoFileTwice) {
  ASSERT_EQ(shell("mkdir sub; ln -s o.pcap link; ln -s link link-too; ln -s . here"), 0);
  write("two.yaml",
        "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {pcap: {write: o.pcap}}\n  dmz: {pcap: {write: x}}\n"
        "chain: []\nwire: {lan: wan}\n");
  for (const std::string& same :
       {std::string("o.pcap"), std::string("./o.pcap"), std::string("sub/../o.pcap"), std::string("link"),
        std::string("link-too"), std::string("here/o.pcap"), (folder_ / "o.pcap").string()}) {
    EXPECT_EQ(shell("penstock run two.yaml --set ports.dmz.pcap.write=" + same), 2) << same;
    EXPECT_THAT(read("err"), HasSubstr("would overwrite the file that ")) << same;
    EXPECT_EQ(shell("penstock run two.yaml --report " + same), 2) << same;
    EXPECT_FALSE(exists("o.pcap"));
  }
  EXPECT_EQ(shell("penstock run two.yaml --set ports.dmz.pcap.write=/dev/null --set ports.wan.pcap.write=/dev/null"),
            0);
}

TEST_F(Program, RefusesACaptureThatAnotherRunIsWriting) {
  write("out.pcap", "of an earlier run");
  EXPECT_EQ(shell("flock -n out.pcap '" PENSTOCK_PROGRAM "' run chain.yaml"), 2);
  EXPECT_THAT(read("err"), HasSubstr("out.pcap: port wan: cannot write: another port or another run is writing"));
  EXPECT_EQ(read("out.pcap"), "of an earlier run");
}

TEST_F(Program, CreatesNothingThroughALinkIfItCannotStart) {
  ASSERT_EQ(shell("ln -s new.pcap link"), 0);
  write("link.yaml", "ports:\n  wan: {pcap: {write: link}}\n  lan: {pcap: {read: '-'}}\nchain: []\n");
  EXPECT_EQ(shell("echo no capture | penstock run link.yaml"), 2);
  EXPECT_FALSE(exists("new.pcap"));
  EXPECT_EQ(shell("cat in.pcap | penstock run link.yaml"), 0) << read("err");
  EXPECT_EQ(records("new.pcap"), records("in.pcap"));
}

/// A command that answers each line of its standard input with a line of output.
struct Answering {
  std::string command, question, answer;
  std::string not_a_question;  // what it prints for the word "wrong", after the line number
};

/// The program, with the files that these commands read.
class AnsweringProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("routes", "default via 192.0.2.1 dev wan\n");
    write("rules", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
  }
  const std::array<Answering, 2> all_{
      {{"route --routes routes", "10.0.0.1", "10.0.0.1 0.0.0.0/0 via 192.0.2.1 dev wan\n",
        ":1: not an address: found 'wrong', expected an IPv4 or IPv6 address\n"},
       {"classify --rules rules", "10.0.0.1 10.0.0.2 tcp 1 2", "- accept\n",
        ":1: tuple of 1 word: found 'wrong', expected SOURCE DESTINATION PROTOCOL SOURCE-PORT DESTINATION-PORT\n"}}};
};

TEST_F(AnsweringProgram, FailsInTheSameWayIfTheStandardInputCannotBeRead) {
  for (const Answering& program : all_) {
    EXPECT_EQ(shell("penstock " + program.command + " <."), 1) << program.command;
    EXPECT_THAT(read("err"), HasSubstr("stdin: cannot read: Is a directory")) << program.command;
    EXPECT_EQ(shell("echo wrong | penstock " + program.command), 2) << program.command;
  }
}

TEST_F(Program, ReadsRoutesAndRulesFromItsStandardInput) {
  write("routes", "default via 192.0.2.1 dev wan\n");
  write("rules", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -p tcp -j ACCEPT\nCOMMIT\n");
  EXPECT_EQ(shell("penstock route --routes - 10.0.0.1 <routes"), 0) << read("err");
  EXPECT_EQ(read("out"), "10.0.0.1 0.0.0.0/0 via 192.0.2.1 dev wan\n");
  EXPECT_EQ(shell("echo 10.0.0.0/8 dev lan | penstock route --routes routes --routes - 10.0.0.1 11.0.0.1"), 0);
  EXPECT_EQ(read("out"), "10.0.0.1 10.0.0.0/8 dev lan\n11.0.0.1 0.0.0.0/0 via 192.0.2.1 dev wan\n");
  EXPECT_EQ(shell("cat rules | penstock classify --rules - 10.0.0.1 10.0.0.2 tcp 1 2"), 0) << read("err");
  EXPECT_EQ(read("out"), "0 accept\n");
  // The questions cannot come from standard input as well.
  EXPECT_EQ(shell("penstock route --routes - <routes"), 2);
  EXPECT_EQ(read("err"), "--routes -: standard input can be read only once: expected addresses as arguments\n");
  EXPECT_EQ(shell("penstock classify --rules - <rules"), 2);
  EXPECT_EQ(read("err"), "--rules -: standard input can be read only once: expected tuples as arguments\n");
  // Errors in it are reported under the name stdin.
  EXPECT_EQ(shell("echo 10.0.0/8 | penstock route --routes - 10.0.0.1"), 2);
  EXPECT_THAT(read("err"), HasSubstr("stdin:1:1: "));
  EXPECT_EQ(shell("echo wrong | penstock classify --rules - 10.0.0.1 10.0.0.2 tcp 1 2"), 2);
  EXPECT_THAT(read("err"), HasSubstr("stdin:1"));
  EXPECT_EQ(shell("penstock route --routes - 10.0.0.1"), 0);
  EXPECT_EQ(read("err"), "penstock: no routes in stdin\n");

  write("nf.yaml",
        "ports: {lan: {pcap: {read: in.pcap}}, wan: {null: {}}}\n"
        "chain: [firewall: {rules: rules}, router: {routes: routes}]\n");
  for (const char* from : {"rules | penstock check nf.yaml --set chain.firewall.rules=-",
                           "routes | penstock check nf.yaml --set chain.router.routes=-"}) {
    EXPECT_EQ(shell(std::string("cat ") + from), 0) << read("err");
    EXPECT_EQ(shell(std::string("cat ") + from + " --set ports.lan.pcap.read=-"), 2);
    EXPECT_THAT(read("err"), HasSubstr("standard input can be read only once"));
  }
}

TEST_F(AnsweringProgram, AnswersALineBeforeTheNextIsAsked) {
  for (const Answering& program : all_) {
    EXPECT_EQ(shell("coproc timeout 60 '" PENSTOCK_PROGRAM "' " + program.command + "\nfor i in 1 2 3; do echo '" +
                    program.question +
                    "' >&${COPROC[1]}; read -t 50 -r answer <&${COPROC[0]} && echo \"$answer\"; done\nexec "
                    "{COPROC[1]}>&-; wait $COPROC_PID"),
              0)
        << read("err");
    EXPECT_EQ(read("out"), program.answer + program.answer + program.answer);
  }
}

TEST_F(AnsweringProgram, EndsSilentlyIfNobodyReadsItsAnswers) {
  for (const Answering& program : all_) {
    EXPECT_EQ(shell("set +o pipefail; yes " + program.question + " | penstock " + program.command + " | head -1"), 0);
    EXPECT_EQ(read("out"), program.answer);
    EXPECT_EQ(read("err"), "");
  }
}

TEST_F(AnsweringProgram, NumbersTheLinesOfItsStandardInputThroughout) {
  for (const Answering& program : all_) {
    EXPECT_EQ(shell("(yes " + program.question + " | head -100000; echo wrong) | penstock " + program.command), 2);
    EXPECT_EQ(read("err"), "stdin:100001" + program.not_a_question);
  }
  EXPECT_EQ(shell("(echo 10.0.0.1; sleep 0.3; printf 10.0.0.2) | penstock route --routes routes"), 0);
  EXPECT_THAT(read("out"), HasSubstr("\n10.0.0.2 0.0.0.0/0 "));
}

TEST_F(Program, RefusesAnEndlessFileWhateverReadsIt) {
  write("gateway.yaml",
        "ports: {lan: {pcap: {read: in.pcap}}, wan: 'null'}\nchain: [{firewall: {rules: x}}, {nids: {rules: x}}, "
        "{router: {routes: x}}, {ipsec: {state: x, policy: x}}]\n");
  const std::string check = "penstock check --file-limit 1MiB gateway.yaml --set chain.";
  for (const std::string& command :
       {check + "0.firewall.rules=/dev/zero", check + "nids.rules=/dev/zero", check + "nids.threshold=/dev/zero",
        check + "nids.classification=/dev/zero", check + "nids.reference=/dev/zero", check + "router.routes=/dev/zero",
        check + "router.neighbours=/dev/zero", check + "ipsec.state=/dev/zero", check + "ipsec.policy=/dev/zero",
        std::string("penstock check --file-limit 1MiB /dev/zero"),
        std::string("penstock function serve sock --file-limit 1MiB /dev/zero"),
        std::string("penstock route --file-limit 1MiB --routes - 1.1.1.1 </dev/zero"),
        std::string("penstock classify --file-limit 1MiB --rules /dev/zero 1.1.1.1 2.2.2.2 tcp 1 2"),
        std::string("penstock scan --file-limit 1MiB in.pcap -S /dev/zero"),
        std::string("mkfifo pipe; cat /dev/zero >pipe & penstock scan --file-limit 1MiB in.pcap -S pipe")}) {
    EXPECT_EQ(shell(command), 2) << command;
    EXPECT_THAT(read("err"), HasSubstr("file too large: found more than 1.0 MiB, expected at most 1.0 MiB")) << command;
  }
  for (const char* const command : {"route --routes x", "classify --rules x"}) {
    write("x", *command == 'r' ? "default dev a\n" : "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    EXPECT_EQ(shell(std::string("penstock ") + command + " </dev/zero"), 1);
    EXPECT_THAT(read("err"), HasSubstr("stdin:1: line too long")) << command;
  }
}

TEST_F(Program, DestroysNothingIfItCannotStart) {
  write("out.pcap", "of an earlier run");
  write("report.json", "of an earlier run");
  write("text", "no capture");
  write("two.yaml",
        "ports:\n  wan: {pcap: {write: out.pcap}}\n  lan: {pcap: {read: in.pcap}}\n  dmz: {pcap: {read: in.pcap}}\n"
        "chain: []\n");
  const std::string run = "penstock run two.yaml --report report.json --set ports.dmz.pcap.read=";
  for (const char* capture : {"none.pcap", "text", "."}) {
    EXPECT_EQ(shell(run + capture), 2) << capture;
    EXPECT_THAT(read("err"), HasSubstr("--set ports.dmz")) << "where it was named";
  }
  EXPECT_EQ(shell("penstock run chain.yaml --report none/report.json"), 2);
  EXPECT_THAT(read("err"), HasSubstr("none/report.json: cannot write: No such file or directory"));
  EXPECT_EQ(read("out.pcap"), "of an earlier run");
  // The contents of a pipe are only read after the outputs are open.
  EXPECT_EQ(shell("cat text | " + run + "-"), 2);
  EXPECT_THAT(read("err"), HasSubstr("standard input: port dmz: not a readable capture"));
  EXPECT_EQ(shell("cat text | " + run + "- --set ports.wan.pcap.write=new.pcap"), 2);
  EXPECT_FALSE(exists("new.pcap"));
  EXPECT_EQ(read("out.pcap"), "of an earlier run");
  EXPECT_EQ(read("report.json"), "of an earlier run");
}

TEST_F(Program, PrintsTheReportIfItsFileIsTheStandardOutput) {
  ASSERT_EQ(shell("penstock run chain.yaml --report -"), 0) << read("err");
  EXPECT_EQ(json("out")["packets"]["in"], records("in.pcap").size());
  EXPECT_THAT(read("err"), HasSubstr("packets in"));
  EXPECT_FALSE(exists("-"));
}

TEST_F(Program, SaysThatATimelineIsOfAGpu) {
  EXPECT_EQ(shell("penstock run chain.yaml --processor cpu --timeline timeline.json"), 0) << read("err");
  EXPECT_THAT(read("err"), HasSubstr("warning: --timeline timeline.json: timeline has no effect on the CPU"));
  EXPECT_FALSE(exists("timeline.json"));
  EXPECT_EQ(shell("penstock run chain.yaml --timeline in.pcap"), 2);
  EXPECT_THAT(read("err"), HasSubstr("--timeline in.pcap: would overwrite the file that "));
  EXPECT_FALSE(records("in.pcap").empty());
}

TEST_F(Program, EndsWithASummaryOfWhatIsLeftOutInsteadOfNoMistakes) {
  write("rules",
        "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m geoip --source-country XX -j DROP\n"
        "-A FORWARD -m geoip --source-country YY -j DROP\nCOMMIT\n");
  write("weak.yaml",
        "ports: {lan: {pcap: {read: in.pcap}}, wan: {pcap: {write: out.pcap}}}\n"
        "chain: [firewall: {rules: rules, unsupported: skip}]\n");
  const std::string summary =
      "\nNot supported and left out:\n  rules: 2 constructs\n         2  match extension geoip is not supported: "
      "without this rule, packets that it drops continue to the next rules (first: line 3)\n";
  for (const std::string command : {"check weak.yaml", "check weak.yaml --json", "run weak.yaml", "run weak.yaml -q"}) {
    EXPECT_EQ(shell("penstock " + command), 0) << command;
    EXPECT_THAT(read("err"), EndsWith(summary)) << command;
    EXPECT_THAT(read("out"), Not(HasSubstr("no mistakes"))) << command;
  }
  ASSERT_EQ(shell("penstock check weak.yaml 2>&1"), 0);
  EXPECT_THAT(read("out"), HasSubstr("weak.yaml: incomplete: 2 constructs left out, 1 warning\n"));
  EXPECT_THAT(read("out"), EndsWith(summary)) << "after everything else, also where both streams are one";
  const std::string refuses = " weak.yaml --set chain.firewall.unsupported=refuse";
  for (const std::string command : {"check", "run"}) {
    EXPECT_EQ(shell("penstock " + command + refuses), 2);
    EXPECT_EQ(read("out"), "");
    EXPECT_THAT(read("err"), HasSubstr("weak.yaml:2:27: refused because of 2 unsupported constructs, listed above: "
                                       "expected `unsupported: skip` to apply the rest\n"));
  }
}

TEST_F(Program, ChecksLogsAndStateAndLeavesNoTrace) {
  write("ids.rules", "alert ip any any -> any any (msg:\"any packet\"; sid:1;)\n");
  write("state",
        "src 1.1.1.1 dst 2.2.2.2\n\tproto esp spi 0x00000100 reqid 1 mode tunnel\n"
        "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
        "\tenc cbc(aes) 0x000102030405060708090a0b0c0d0e0f\n");
  write("policy",
        "src 10.0.0.0/8 dst 10.9.0.0/16 \n\tdir out priority 0 ptype main \n"
        "\ttmpl src 1.1.1.1 dst 2.2.2.2\n\t\tproto esp reqid 1 mode tunnel\n");
  write("logs.yaml",
        "ports: {lan: {pcap: {read: in.pcap}}, wan: {pcap: {write: new.pcap}}}\n"
        "chain: [nids: {rules: ids.rules}, ipsec: {state: state, policy: policy, state_dir: numbers}]\n"
        "outputs: {eve: eve.json, fast_log: fast.log, report: report.json, esp_sa: sas}\n");
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) names.insert(entry.path().string());
    return names;
  };
  for (const char* const out : {"out", "err", "command"}) write(out, "");
  const std::set<std::string> before = files();
  const std::string without_nids = " --set 'chain=[ipsec: {state: state, policy: policy, state_dir: numbers}]'";
  EXPECT_EQ(shell("penstock check logs.yaml"), 0) << read("err");
  EXPECT_EQ(shell("penstock check logs.yaml" + without_nids), 0) << "no function writes logs" << read("err");
  EXPECT_EQ(shell("penstock check logs.yaml --json"), 0) << read("err");
  EXPECT_EQ(shell("penstock check logs.yaml --set run.workers=0"), 2);
  EXPECT_EQ(shell("penstock plan logs.yaml"), 0) << read("err");
  EXPECT_EQ(files(), before);
  EXPECT_EQ(shell("penstock run logs.yaml -q"), 0) << read("err");
  EXPECT_TRUE(exists("eve.json") && exists("fast.log") && exists("numbers") && exists("sas")) << "a run writes them";
}

TEST_F(Program, PrintsWarningsAndWhatIsLeftOutAsJsonObjects) {
  write("rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m geoip --source-country XX -j DROP\nCOMMIT\n");
  write("weak.yaml",
        "ports: {lan: {pcap: {read: in.pcap}}, wan: {pcap: {write: out.pcap}}}\n"
        "chain: [firewall: {rules: rules, unsupported: skip}]\n"
        "outputs: {eve: eve.json}\n");
  ASSERT_EQ(shell("penstock check weak.yaml --json"), 0) << read("err");
  const nlohmann::json checked = json("out");
  for (const char* const list : {"unsupported", "without_effect", "cautions"}) {
    ASSERT_EQ(checked[list].size(), 1U) << list;
    std::set<std::string> names;
    for (const auto& [name, value] : checked[list][0].items()) names.insert(name);
    EXPECT_EQ(names, (std::set<std::string>{"file", "line", "column", "message", "found", "expected"})) << list;
  }
  EXPECT_EQ(checked["unsupported"][0]["file"], "rules");
  EXPECT_EQ(checked["unsupported"][0]["line"], 3);
  EXPECT_EQ(checked["without_effect"][0]["file"], "weak.yaml");
  EXPECT_EQ(checked["without_effect"][0]["message"], "eve: no function of the chain writes it");
  EXPECT_EQ(checked["without_effect"][0]["found"], "'eve.json'");
}

TEST_F(Program, ChecksCapturesAndOutputsAndTouchesNone) {
  write("out.pcap", "of an earlier run");
  EXPECT_EQ(shell("penstock check chain.yaml"), 0) << read("err");
  EXPECT_EQ(read("out.pcap"), "of an earlier run");
  EXPECT_EQ(shell("penstock check chain.yaml --set ports.wan.pcap.write=new.pcap"), 0);
  EXPECT_FALSE(exists("new.pcap"));
  EXPECT_EQ(shell("mkfifo pipe; penstock check chain.yaml --set ports.lan.pcap.read=pipe"), 0) << read("err");
  EXPECT_EQ(shell("penstock check chain.yaml --set ports.wan.pcap.write=pipe"), 0) << read("err");

  write("broken.yaml",
        "ports:\n  lan: {pcap: {read: none.pcap}}\n  wan: {pcap: {write: none/out.pcap}}\nchain: []\n"
        "outputs: {report: none/report.json}\n");
  EXPECT_EQ(shell("penstock check broken.yaml"), 2);
  EXPECT_THAT(read("err"), HasSubstr("broken.yaml:2:22: none.pcap: cannot open: No such file or directory"));
  EXPECT_THAT(read("err"), HasSubstr("broken.yaml:3:23: none/out.pcap: cannot write"));
  EXPECT_THAT(read("err"), HasSubstr("broken.yaml:5:19: none/report.json: cannot write"));
  EXPECT_THAT(read("out"), Not(HasSubstr("no mistakes")));
}

}  // namespace
}  // namespace penstock
