// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A run that is controlled over its socket: `penstock ctl`, and clients that speak the protocol themselves. All answers
// are checked against docs/control.schema.json.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <regex>
#include <sstream>
#include <string>

#include "program/program_for_test.h"
#include "program/schema_for_test.h"

namespace penstock {
namespace {

using Json = nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// A client of the protocol, without our code.
class ControlClient {
 public:
  explicit ControlClient(const fs::path& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    connected_ = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ControlClient(const ControlClient&) = delete;
  ControlClient& operator=(const ControlClient&) = delete;
  ~ControlClient() { ::close(socket_); }

  [[nodiscard]] bool connected() const noexcept { return connected_; }
  void send(std::string_view text) const { static_cast<void>(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL)); }
  /// "": the connection was closed.
  [[nodiscard]] std::string line() {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char bytes[4096];
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) return "";
      buffer_.append(bytes, static_cast<std::size_t>(count));
    }
  }
  [[nodiscard]] Json ask(const Json& request) {
    send(request.dump() + "\n");
    return Json::parse(line());
  }

 private:
  int socket_;
  bool connected_ = false;
  std::string buffer_;
};

/// A run over generated packets, with `nids` and two ports.
class ControlledProgram : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("nids.rules", kRule + "\n");
    write("endless.yaml",
          "ports: {lan: {generator: {rate: 2kpps}}, wan: {null: {}}}\n"
          "chain: [nids: {rules: [nids.rules]}]\n"
          "outputs: {control: run.sock, fast_log: fast.log}\n");
    ASSERT_EQ(shell("'" PENSTOCK_PROGRAM "' run endless.yaml -q --report report.json --duration 100s "
                    ">run.out 2>run.err & echo $! >pid\n"
                    "until [ -S run.sock ] && [ -s fast.log ]; do kill -0 $(cat pid) || exit 99; sleep 0.02; done"),
              0)
        << read("run.err");
  }
  void TearDown() override {
    static_cast<void>(shell("kill -9 $(cat pid)"));
    Program::TearDown();
  }

  /// Runs `penstock ctl`. Its output is in the files `out` and `err`.
  [[nodiscard]] int ctl(const std::string& arguments) const {
    return shell("penstock ctl --socket run.sock " + arguments);
  }
  [[nodiscard]] Json ctl_json(const std::string& arguments) const {
    EXPECT_EQ(ctl(arguments + " --json"), 0) << read("err");
    return Json::parse(read("out"), nullptr, false);
  }
  /// An answer, which must be as the schema says.
  [[nodiscard]] Json ask(const std::string& command, Json members = Json::object()) const {
    ControlClient client(folder_ / "run.sock");
    members.update({{"version", 1}, {"id", 7}, {"command", command}});
    Json answer = client.ask(members);
    EXPECT_EQ(mismatch(schema(), schema(), answer), "") << answer.dump(2).substr(0, 2000);
    if (answer["ok"] == true) {
      EXPECT_EQ(mismatch(schema(), schema()["$defs"][command], answer["result"]), "") << command;
    }
    return answer;
  }
  static const Json& schema() {
    static const Json loaded = [] {
      std::ifstream file(PENSTOCK_SOURCE_DIR "/docs/control.schema.json");
      return Json::parse(file);
    }();
    return loaded;
  }
  /// Waits for the end of the run, which must be clean.
  void expect_end() const {
    EXPECT_EQ(shell("while kill -0 $(cat pid) 2>/dev/null; do sleep 0.02; done"), 0);
    const Json report = Json::parse(read("report.json"), nullptr, false);
    ASSERT_TRUE(report.is_object()) << read("run.err");
    EXPECT_TRUE(report["errors"].empty());
    const Json& packets = report["packets"];
    EXPECT_EQ(packets["in"].get<std::uint64_t>(), packets["forwarded"].get<std::uint64_t>() +
                                                      packets["dropped"].get<std::uint64_t>() +
                                                      packets["consumed"].get<std::uint64_t>());
    EXPECT_FALSE(exists("run.sock"));
  }

  const std::string kRule = "alert udp any any -> any any (msg:\"any packet\"; sid:1;)";
  const std::string kOther = "alert udp any any -> any any (msg:\"other\"; dsize:>0; sid:2;)";
};

TEST_F(ControlledProgram, SaysWhatItIs) {
  const Json status = ask("status")["result"];
  EXPECT_EQ(status["pid"], std::stoi(read("pid")));
  EXPECT_EQ(status["state"], "running");
  EXPECT_EQ(status["chain"], fs::canonical(folder_ / "endless.yaml").string());
  EXPECT_EQ(status["functions"], Json({"nids"}));
  EXPECT_EQ(status["ports"][0]["kind"], "generator");
  EXPECT_EQ(status["reloads"], 0);
  ASSERT_EQ(ctl("status"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("port lan: generator, reads\n"));
  EXPECT_THAT(read("out"), ContainsRegex("chain .*endless.yaml: nids; 1 worker on the CPU"));
}

TEST_F(ControlledProgram, CountsByPortFunctionAndWorker) {
  const Json stats = ask("stats")["result"];
  EXPECT_GT(stats["ports"]["lan"]["in"]["packets"], 0);
  EXPECT_EQ(stats["by_worker"].size(), 1U);
  EXPECT_GT(stats["by_worker"][0]["in"]["packets"], 0);
  ASSERT_EQ(ctl("stats"), 0) << read("err");
  for (const std::string what : {"\nport ", "\nfunction ", "\nworker ", "\nlan ", "\nnids "}) {
    EXPECT_THAT(read("out"), HasSubstr(what));
  }
  EXPECT_GE(ctl_json("stats")["packets"]["in"], stats["packets"]["in"]);
}

TEST_F(ControlledProgram, WatchesRatesUntilItIsStopped) {
  ASSERT_EQ(shell("'" PENSTOCK_PROGRAM "' ctl --socket run.sock stats --watch 0.1 >watched & watch=$!\n"
                  "until [ $(grep -c packets/s watched) -gt 4 ]; do sleep 0.02; done; kill -INT $watch; wait $watch"),
            0)
      << read("err");
  EXPECT_THAT(read("watched"), HasSubstr("packets/s in"));
  EXPECT_THAT(read("watched"), Not(HasSubstr("\033"))) << "no control characters in a file";
}

TEST_F(ControlledProgram, ReloadsAndReturns) {
  write("nids.rules", kRule + "\n" + kOther + "\n");
  const Json dry = ask("reload", {{"dry_run", true}})["result"];
  EXPECT_EQ(dry["outcome"], "would_change");
  ASSERT_EQ(dry["changes"].size(), 1U);
  EXPECT_EQ(dry["changes"][0]["function"], "nids");
  EXPECT_EQ(dry["changes"][0]["change"], "1 rule added (of 2)");
  EXPECT_EQ(ask("status")["result"]["reloads"], 0) << "a dry run changes nothing";
  EXPECT_EQ(read("run.err"), "");

  ASSERT_EQ(ctl("reload"), 0) << read("err");
  EXPECT_THAT(read("out"), ContainsRegex("^in use after [0-9.]+ s\n  nids: 1 rule added \\(of 2\\)\n$"));
  EXPECT_THAT(read("run.err"), ContainsRegex("^[0-9-]{10}T[0-9:.]{12}Z info: reload \\(penstock ctl\\): in use after"));
  ASSERT_EQ(shell("until grep -q '\\[1:2:' fast.log; do kill -0 $(cat pid) || exit 99; sleep 0.02; done"), 0);
  Json status = ask("status")["result"];
  EXPECT_EQ(status["reloads"], 1);
  EXPECT_EQ(status["last_reload"]["outcome"], "in_use");
  ASSERT_EQ(ctl("status"), 0) << read("err");
  EXPECT_THAT(read("out"), ContainsRegex("\nlast reload at .*: in use\n")) << "in words";
  EXPECT_EQ(ask("reload")["result"]["outcome"], "unchanged");

  ASSERT_EQ(ctl("rollback"), 0) << read("err");
  EXPECT_THAT(read("out"), ContainsRegex("^in use after [0-9.]+ s\n  nids: taken back: 1 rule added \\(of 2\\)\n$"));
  ASSERT_EQ(ctl("rollback"), 0) << read("err");
  EXPECT_THAT(read("out"), ContainsRegex("^in use after [0-9.]+ s\n  nids: 1 rule added \\(of 2\\)\n$"));
  EXPECT_EQ(ask("rollback")["result"]["outcome"], "in_use");
  status = ask("status")["result"];
  EXPECT_EQ(status["reloads"], 4);
  EXPECT_EQ(status["last_reload"]["what"], "rollback");
  EXPECT_EQ(ask("reload", {{"dry_run", true}})["result"]["outcome"], "would_change") << "the former rules are in use";
}

TEST_F(ControlledProgram, ChangesTheLevelOfTheLogUntilItsEnd) {
  EXPECT_EQ(ask("log-level")["result"], Json({{"level", "info"}, {"before", "info"}}));
  EXPECT_EQ(ask("log-level", {{"level", "debug"}})["result"], Json({{"level", "debug"}, {"before", "info"}}));
  EXPECT_THAT(read("run.err"), ContainsRegex("^[^ ]+Z info: log level debug, was info \\(penstock ctl\\)\n$"));
  ASSERT_EQ(ctl("log-level"), 0) << read("err");
  EXPECT_EQ(read("out"), "debug\n");
  EXPECT_THAT(read("run.err"), ContainsRegex("debug: control: log-level \\{\\} from process [0-9]+ of user " +
                                             std::to_string(::geteuid())));
  write("nids.rules", kRule + "\n" + kOther + "\n");
  ASSERT_EQ(ctl("reload"), 0) << read("err");
  EXPECT_THAT(read("run.err"), HasSubstr("debug: reload: 1 changed function after "));
  EXPECT_EQ(ask("log-level")["result"]["level"], "debug") << "a reload does not change it";
  EXPECT_EQ(ask("rollback")["ok"], true);
  ASSERT_EQ(ctl("log-level warning"), 0) << read("err");
  EXPECT_EQ(read("out"), "warning, was debug\n");
  EXPECT_THAT(read("run.err"), HasSubstr("info: log level warning, was debug (penstock ctl)\n"));
  const std::string before = read("run.err");
  EXPECT_EQ(ask("reload", {{"dry_run", true}})["ok"], true);
  ASSERT_EQ(ctl("reload"), 0) << read("err");
  EXPECT_EQ(read("run.err"), before) << "a reload that succeeds is no warning";

  EXPECT_EQ(ask("log-level", {{"level", "notice"}})["error"]["kind"], "request");
  EXPECT_EQ(ask("log-level", {{"level", 7}})["error"]["expected"], "one of error, warning, info, debug");
  EXPECT_EQ(ctl("log-level notice"), 2);
  EXPECT_THAT(read("err"), HasSubstr("found 'notice', expected one of error, warning, info, debug"));
}

TEST_F(ControlledProgram, LooksNoNamesUpForFilters) {
  const Json answer = ask("trace", {{"packets", 1}, {"filter", "host example.com"}});
  EXPECT_EQ(answer["error"]["kind"], "request");
  EXPECT_EQ(answer["error"]["found"], "'example.com'");
  EXPECT_EQ(ctl("trace 1 --filter 'udp and not host example.com'"), 2);
  EXPECT_THAT(read("err"), HasSubstr("filter: a run does not look names up"));
}

TEST_F(ControlledProgram, RefusesAReloadWithMistakes) {
  write("nids.rules", kRule + "\n");
  ASSERT_EQ(shell("sed -i 's/2kpps/3kpps/' endless.yaml; rm nids.rules"), 0);
  for (const bool dry_run : {true, false}) {
    const Json answer = ask("reload", {{"dry_run", dry_run}});
    EXPECT_EQ(answer["error"]["kind"], "mistakes");
    EXPECT_EQ(answer["error"]["line"], 1);
    EXPECT_EQ(answer["error"]["further"].size(), 1U) << "all mistakes are reported";
  }
  EXPECT_EQ(ctl("reload"), 2);
  EXPECT_THAT(read("err"), HasSubstr("cannot change in a reload: it needs a new run"));
  EXPECT_THAT(read("err"), HasSubstr("refused, see above; nothing has changed\n"));
  EXPECT_EQ(ask("status")["result"]["last_reload"]["outcome"], "refused");
}

TEST_F(ControlledProgram, SaysThatThereIsNothingToReturnTo) {
  EXPECT_EQ(ctl("rollback"), 1);
  EXPECT_THAT(read("err"), HasSubstr("there is no former configuration to return to"));
  EXPECT_EQ(ask("rollback")["error"]["kind"], "failed");
}

TEST_F(ControlledProgram, ExplainsWhatWouldHappenToAPacket) {
  const Json explained = ask("explain", {{"tuple", "udp 10.0.0.1:1 10.0.0.2:2"}})["result"];
  EXPECT_EQ(explained["packet"], "IPv4 10.0.0.1:1 > 10.0.0.2:2 UDP");
  EXPECT_EQ(explained["in"], "lan") << "the only port that reads";
  ASSERT_EQ(explained["steps"].size(), 1U);
  EXPECT_EQ(explained["steps"][0]["function"], "nids");
  EXPECT_EQ(explained["verdict"], "forward");
  EXPECT_EQ(explained["port"], "wan") << "the only port that writes";
  EXPECT_TRUE(explained["open_questions"].empty()) << "its rules only alert";
  EXPECT_THAT(explained["steps"][0]["notes"][0].get<std::string>(), HasSubstr("rule 1:1 (line 1 of "));
  EXPECT_EQ(ask("explain", {{"tuple", "udp 10.0.0.1:1"}})["error"]["kind"], "request");
  EXPECT_EQ(ask("explain", {{"tuple", "udp 10.0.0.1:1 10.0.0.2:2"}, {"in", "wan"}})["error"]["message"],
            "in: no such port");
  EXPECT_EQ(ctl("explain icmp 10.0.0.1 10.0.0.2 3/1 --in lan"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("nids: forward\n"));
  EXPECT_EQ(ctl("explain icmp 10.0.0.1 10.0.0.2 3/1 4"), 2);
  EXPECT_THAT(read("err"), HasSubstr("unexpected word: found '4'"));
}

/// A run that forwards and drops generated packets, on two workers.
class DroppingProgram : public ControlledProgram {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("rules.txt", rules());
    write("endless.yaml",
          "ports: {lan: {generator: {rate: 20kpps, flows: 500}}, wan: {null: {}}}\nchain: [filter: {expression: ip}, "
          "firewall: {rules: rules.txt}]\nrun: {workers: 2}\noutputs: {control: run.sock}\n");
    ASSERT_EQ(
        shell("'" PENSTOCK_PROGRAM "' run endless.yaml -q --report report.json --duration 100s "
              ">run.out 2>run.err & echo $! >pid\n"
              "until '" PENSTOCK_PROGRAM
              "' ctl --socket run.sock stats >/dev/null 2>&1; do kill -0 $(cat pid) || exit 99; sleep 0.02; done"),
        0)
        << read("run.err");
  }
  [[nodiscard]] virtual std::string rules() const {
    return "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m udp --sport 0:30000 -j DROP\n"
           "-A FORWARD -p udp -m udp --sport 30001:45000 -j REJECT\nCOMMIT\n";
  }
  [[nodiscard]] static Json request(const std::string& command, Json members) {
    members.update({{"version", 1}, {"id", 7}, {"command", command}});
    return members;
  }
};

TEST_F(DroppingProgram, TracesTheNextPacketsThatMatchAFilter) {
  ControlClient client(folder_ / "run.sock");
  client.send(request("trace", {{"packets", 20}, {"filter", "udp src portrange 1-30000"}}).dump() + "\n");
  for (int i = 0; i < 20; ++i) {
    const Json line = Json::parse(client.line(), nullptr, false);
    ASSERT_EQ(mismatch(schema(), schema(), line), "") << line.dump(2);
    const Json& event = line["event"];
    ASSERT_EQ(mismatch(schema(), schema()["$defs"]["trace_event"], event), "") << event.dump(2);
    ASSERT_EQ(event["steps"].size(), 2U);
    EXPECT_EQ(event["steps"][0]["function"], "filter");
    EXPECT_EQ(event["steps"][0]["verdict"], "forward");
    EXPECT_EQ(event["steps"][1]["reason"], "denied");
    EXPECT_THAT(event["steps"][1]["why"].get<std::string>(), HasSubstr("rule 0 (line 3)"));
    EXPECT_TRUE(event["outcome"].is_null());
  }
  const Json answer = Json::parse(client.line(), nullptr, false);
  EXPECT_EQ(answer["result"], Json({{"packets", 20}, {"lost", 0}, {"ended", "count"}}));
  EXPECT_EQ(client.ask(request("status", Json::object()))["ok"], true) << "the connection goes on";

  ASSERT_EQ(ctl("trace 3"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("packet 3 "));
  EXPECT_THAT(read("out"), HasSubstr("\n3 packets\n"));
  EXPECT_EQ(ctl("trace 0"), 2);
  EXPECT_EQ(ctl("trace 1 --filter 'port port'"), 2);
  EXPECT_THAT(read("err"), HasSubstr("cannot compile the filter expression"));
}

TEST_F(DroppingProgram, EndsATraceByTimeAndWithItsClient) {
  EXPECT_EQ(ctl("trace 10 --filter 'tcp port 1' --timeout 1"), 0) << read("err");
  EXPECT_EQ(read("out"), "0 packets; the time is over\n");
  {
    ControlClient waits(folder_ / "run.sock");
    waits.send(request("trace", {{"packets", 1}, {"filter", "tcp port 1"}}).dump() + "\n");
    while (ask("trace", {{"packets", 1}, {"filter", "tcp port 1"}, {"timeout", 1}})["error"]["kind"] != "busy") {
    }
  }
  ASSERT_EQ(
      shell("until '" PENSTOCK_PROGRAM
            "' ctl --socket run.sock trace 1 >/dev/null 2>&1; do kill -0 $(cat pid) || exit 99; sleep 0.02; done"),
      0)
      << "the trace ends with its client";
}

TEST_F(DroppingProgram, CapturesWhatAFunctionDrops) {
  ASSERT_EQ(ctl("capture dropped.pcapng --function firewall --count 200"), 0) << read("err");
  EXPECT_EQ(read("out"), "200 packets\n");
  ASSERT_EQ(shell("tshark -r dropped.pcapng -T fields -e frame.interface_name -e frame.comment -e udp.srcport >shown"),
            0)
      << read("err");
  std::istringstream lines(read("shown"));
  std::size_t denied = 0, rejected = 0;
  std::string port, reason;
  for (unsigned source = 0; lines >> port >> reason >> source;) {
    EXPECT_EQ(port, "lan");
    EXPECT_EQ(reason, source <= 30'000 ? "denied" : "rejected");
    EXPECT_LE(source, 45'000U);
    ++(reason == "denied" ? denied : rejected);
  }
  EXPECT_EQ(denied + rejected, 200U);
  EXPECT_GT(denied, 0U);
  EXPECT_GT(rejected, 0U);

  EXPECT_EQ(ctl("capture dropped.pcapng --function firewall --filter 'udp src port > 40000'"), 2) << "no expression";
  EXPECT_GT(read("dropped.pcapng").size(), 200U) << "a request that is refused leaves the file as it is";
  ASSERT_EQ(ctl("capture few.pcapng --function firewall --reason rejected --count 5 --filter 'udp[0:2] > 40000'"), 0)
      << read("err");
  ASSERT_EQ(shell("tshark -r few.pcapng -Y 'frame.comment == \"rejected\" && udp.srcport > 40000' | wc -l"), 0);
  EXPECT_EQ(std::stoi(read("out")), 5);
  EXPECT_EQ(ctl("capture x.pcapng --function fierwall"), 2);
  EXPECT_THAT(read("err"), HasSubstr("no such function: found 'fierwall', expected firewall"));
  EXPECT_EQ(ctl("capture x.pcapng --function firewall --reason filtered"), 2);
  EXPECT_EQ(ctl("capture /no/such/folder/x.pcapng --function firewall"), 1);

  const std::string rules = read("rules.txt");
  ASSERT_EQ(shell("ln -s rules.txt link.pcapng"), 0);
  for (const char* const file : {"rules.txt", "link.pcapng"}) {
    EXPECT_EQ(ctl("capture " + std::string(file) + " --function firewall --count 1"), 2);
    EXPECT_THAT(read("err"), HasSubstr(": not overwritten: an existing file that is not a capture: found a file of "));
    EXPECT_EQ(read("rules.txt"), rules);
  }
  EXPECT_EQ(ctl("capture few.pcapng --function firewall --count 1"), 0) << "another capture";
}

/// A run whose firewall tracks 500 connections of UDP, on two workers.
class TrackingProgram : public DroppingProgram {
 protected:
  [[nodiscard]] std::string rules() const override {
    return "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m conntrack --ctstate NEW,ESTABLISHED -j ACCEPT\nCOMMIT\n";
  }
  void wait_for_connections(int count) const {
    ASSERT_EQ(
        shell("until [ $('" PENSTOCK_PROGRAM "' ctl --socket run.sock --json conntrack count | jq .connections) -ge " +
              std::to_string(count) + " ]; do kill -0 $(cat pid) || exit 99; done"),
        0)
        << read("err");
  }
};

TEST_F(TrackingProgram, ListsCountsAndEndsConnections) {
  wait_for_connections(500);
  ControlClient client(folder_ / "run.sock");
  client.send(request("conntrack", {{"action", "list"}, {"limit", 20}}).dump() + "\n");
  for (int i = 0; i < 20; ++i) {
    const Json line = Json::parse(client.line(), nullptr, false);
    ASSERT_EQ(mismatch(schema(), schema(), line), "") << line.dump(2);
    ASSERT_EQ(mismatch(schema(), schema()["$defs"]["connection"], line["event"]), "") << line.dump(2);
  }
  EXPECT_EQ(Json::parse(client.line(), nullptr, false)["result"], Json({{"connections", 20}}));
  EXPECT_EQ(client.ask(request("status", Json::object()))["ok"], true) << "the connection goes on";

  ASSERT_EQ(ctl("conntrack list --state UNREPLIED"), 0) << read("err");
  EXPECT_THAT(
      read("out"),
      ContainsRegex("^udp      17 [0-9]+ src=[0-9.]+ dst=[0-9.]+ sport=[0-9]+ dport=[0-9]+ \\[UNREPLIED\\] src="));
  EXPECT_EQ(read("err"), "500 connections\n");
  ASSERT_EQ(shell("penstock ctl --socket run.sock --json conntrack list | jq -r .function | sort | uniq -c"), 0);
  EXPECT_THAT(read("out"), HasSubstr("500 firewall"));

  EXPECT_EQ(ask("conntrack", {{"action", "count"}})["result"],
            Json({{"connections", 500}, {"by_protocol", {{"udp", 500}}}}));
  ASSERT_EQ(ctl("conntrack count --family ipv6"), 0);
  EXPECT_EQ(read("out"), "0 connections\n");
  client.send(request("conntrack", {{"action", "save"}, {"sport", 1024}}).dump() + "\n");
  for (Json line; !line.contains("result");) {
    line = Json::parse(client.line(), nullptr, false);
    ASSERT_EQ(mismatch(schema(), schema(), line), "") << line.dump(2);
    if (!line.contains("event")) continue;
    ASSERT_EQ(mismatch(schema(), schema()["$defs"]["saved_connections"], line["event"]), "") << line.dump(2);
  }
  ASSERT_EQ(ctl("conntrack save kept"), 0) << read("err");
  EXPECT_EQ(read("out"), "500 connections saved\n");
  EXPECT_THAT(read("kept"), ContainsRegex("^penstock-connections version=2 saved_ms=[0-9]+ connections=0000000500\n"));
  EXPECT_EQ(ctl("conntrack save"), 2);
  EXPECT_EQ(ctl("conntrack save rules.txt"), 2) << "another file is not overwritten";
  EXPECT_EQ(ctl("conntrack count kept"), 2);
  EXPECT_EQ(ask("conntrack", {{"action", "flush"}, {"proto", "tcp"}})["result"], Json({{"removed", 0}}));
  ASSERT_EQ(ctl("conntrack flush --proto udp"), 0);
  EXPECT_THAT(read("out"), ContainsRegex("^[0-9]+ connections removed\n$"));
  wait_for_connections(500);
}

TEST_F(TrackingProgram, FollowsEventsOfConnections) {
  wait_for_connections(500);
  ControlClient client(folder_ / "run.sock");
  client.send(request("conntrack", {{"action", "events"}, {"limit", 400}}).dump() + "\n");
  while (ask("conntrack", {{"action", "events"}, {"limit", 1}, {"timeout", 1}})["error"]["kind"] != "busy") {
  }
  EXPECT_EQ(ask("conntrack", {{"action", "flush"}})["ok"], true);
  int begun = 0, ended = 0;
  for (int i = 0; i < 400; ++i) {
    const Json line = Json::parse(client.line(), nullptr, false);
    ASSERT_EQ(mismatch(schema(), schema(), line), "") << line.dump(2);
    ASSERT_EQ(mismatch(schema(), schema()["$defs"]["connection_event"], line["event"]), "") << line.dump(2);
    begun += line["event"]["kind"] == "new";
    ended += line["event"]["kind"] == "destroy";
  }
  EXPECT_EQ(begun + ended, 400);
  EXPECT_GT(ended, 0);
  EXPECT_EQ(Json::parse(client.line(), nullptr, false)["result"],
            Json({{"events", 400}, {"lost", 0}, {"ended", "count"}}));

  ASSERT_EQ(ctl("conntrack events --timeout 1 --proto tcp"), 0) << "the other one has ended: " << read("err");
  EXPECT_EQ(read("out"), "");
  EXPECT_EQ(read("err"), "0 events\n");
}

TEST_F(TrackingProgram, SaysWhatIsWrongWithARequest) {
  EXPECT_EQ(ctl("conntrack list --proto foo"), 2);
  EXPECT_THAT(read("err"), HasSubstr("proto: wrong value: found 'foo'"));
  EXPECT_EQ(ctl("conntrack"), 2);
  EXPECT_EQ(ctl("conntrack delete"), 2);
  EXPECT_EQ(ctl("conntrack count --limit 1"), 2);
  EXPECT_EQ(ctl("conntrack list --state established"), 2);
  EXPECT_EQ(ask("conntrack")["error"]["message"], "action: missing");
  EXPECT_EQ(ask("conntrack", {{"action", "list"}, {"sport", 65'536}})["error"]["kind"], "request");
}

TEST_F(ControlledProgram, HasNoConnectionsWithoutAFirewall) {
  EXPECT_EQ(ctl("conntrack list"), 1);
  EXPECT_THAT(read("err"), HasSubstr("no function of the chain tracks connections"));
}

TEST_F(ControlledProgram, ReopensItsLogs) {
  ASSERT_EQ(shell("mv fast.log fast.1"), 0);
  EXPECT_EQ(ask("reopen-logs")["ok"], true);
  EXPECT_TRUE(exists("fast.log"));
  ASSERT_EQ(shell("rm fast.log; mkdir fast.log"), 0);
  EXPECT_EQ(ctl("reopen-logs"), 1);
  EXPECT_THAT(read("err"), HasSubstr("fast.log: cannot reopen the log"));
}

TEST_F(ControlledProgram, EndsWhenAsked) {
  EXPECT_EQ(ask("stop")["result"]["state"], "ending");
  expect_end();
}

TEST_F(ControlledProgram, DrainsAndSaysWhatBecameOfThePackets) {
  const Json result = ask("drain")["result"];
  EXPECT_EQ(result["state"], "ended");
  const Json report = Json::parse(read("report.json"));
  EXPECT_EQ(result["packets"], report["packets"]) << "outputs are written before the answer";
  EXPECT_EQ(report["by_worker"][0]["in"], report["ports"]["lan"]["in"]);
  EXPECT_FALSE(exists("run.sock")) << "and the next run may listen";
  expect_end();
}

TEST_F(ControlledProgram, FailsToDrainIfItsOutputsCannotBeWritten) {
  ASSERT_EQ(shell("mkdir report.json"), 0);
  EXPECT_EQ(ctl("drain"), 1);
  EXPECT_THAT(read("err"), ContainsRegex("report.json: cannot write: Is a directory\nthe run has ended with errors"));
  EXPECT_THAT(read("out"), HasSubstr("the run has ended: "));
}

TEST_F(ControlledProgram, IsNamedIfItIsStopped) {
  ASSERT_EQ(shell("kill -STOP $(cat pid)"), 0);
  for (const char* const command : {"status", "stats", "explain udp 10.0.0.1:1 10.0.0.2:2", "log-level"}) {
    EXPECT_EQ(ctl(command + std::string(" --timeout 1")), 1) << command;
    EXPECT_THAT(read("err"), HasSubstr("run.sock: the run (process " + std::to_string(std::stoi(read("pid"))) +
                                       ") does not answer: expected an answer within 1 s"));
  }
  ASSERT_EQ(shell("kill -CONT $(cat pid)"), 0);
  EXPECT_EQ(ctl("status --timeout 60"), 0) << read("err");
  EXPECT_EQ(ctl("status --timeout 0"), 2);
  EXPECT_EQ(ctl("reload --timeout 1"), 2) << "it takes as long as it takes";
}

TEST_F(ControlledProgram, AnswersWrongRequestsAndGoesOn) {
  ControlClient client(folder_ / "run.sock");
  for (const std::string line : {"nonsense", "{}", "[]", R"({"version":1,"command":"explode"})",
                                 R"({"version":1,"command":"stop","force":true})"}) {
    client.send(line + "\n");
    const Json answer = Json::parse(client.line());
    EXPECT_EQ(answer["ok"], false) << line;
    EXPECT_EQ(answer["error"]["kind"], "request") << line;
    EXPECT_EQ(mismatch(schema(), schema(), answer), "") << answer;
  }
  EXPECT_EQ(client.ask({{"version", 1}, {"command", "status"}})["result"]["state"], "running");
}

TEST_F(ControlledProgram, IsNotDisturbedByHostileClients) {
  std::vector<std::unique_ptr<ControlClient>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<ControlClient>(folder_ / "run.sock"));
    clients.back()->send(i % 3 == 0   ? "half a li"
                         : i % 3 == 1 ? std::string(300'000, '\0')
                                      : std::string("\xff\n\xfe\n"));
  }
  clients.clear();
  EXPECT_EQ(ctl("status"), 0) << read("err");
  EXPECT_EQ(ctl("drain"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("the run has ended: "));
  expect_end();
}

TEST_F(ControlledProgram, IsForItsUserOnly) {
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "run.sock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  fs::permissions(folder_, fs::perms::all);
  const std::string as_other = "cp '" PENSTOCK_PROGRAM
                               "' program && chmod 755 program && setpriv --reuid=65534 --clear-groups ./program ctl "
                               "--socket run.sock stop";
  EXPECT_EQ(shell(as_other), 1);
  EXPECT_THAT(read("err"), HasSubstr("cannot connect: found Permission denied"));
  fs::permissions(folder_ / "run.sock", fs::perms::all);
  EXPECT_EQ(shell(as_other), 1);
  EXPECT_THAT(read("err"), HasSubstr("this user may not control the run: found user 65534, expected root"));
  EXPECT_EQ(ask("status")["result"]["state"], "running");
}

TEST_F(ControlledProgram, IsFoundByTheEnvironmentAndByTheNameOfAService) {
  EXPECT_EQ(shell("PENSTOCK_SOCKET=run.sock penstock ctl status"), 0) << read("err");
  EXPECT_EQ(shell("PENSTOCK_SOCKET=none.sock penstock ctl --socket run.sock status"), 0) << read("err");
  EXPECT_EQ(shell("penstock ctl --socket no-such-service status"), 1);
  EXPECT_THAT(read("err"), HasSubstr("/run/penstock/no-such-service.sock: cannot connect"));
  EXPECT_EQ(shell("ln -s run.sock here && penstock ctl --socket here status"), 0) << "a file comes first";
}

TEST_F(Program, SaysAsWhichUserToTakeOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  fs::permissions(folder_, fs::perms::all);
  write("live.yaml", "ports: {lan: {af_packet: {interface: lo}}}\nchain: [filter: {expression: ip}]\n");
  EXPECT_EQ(
      shell(
          "cp '" PENSTOCK_PROGRAM "' program && chmod 755 program && unshare -n sh -c '\n"
          "ip link set lo up\n"
          "setpriv --reuid=65534 --clear-groups --inh-caps=+net_raw --ambient-caps=+net_raw ./program run live.yaml -q "
          "--control run.sock >run.out 2>&1 & run=$!\n"
          "until ./program ctl --socket run.sock status >/dev/null 2>&1; do kill -0 $run || exit 99; sleep 0.02; done\n"
          "./program check live.yaml --take-over run.sock; code=$?\n"
          "kill $run; wait; exit $code'"),
      1);
  EXPECT_THAT(read("err"),
              ContainsRegex("run.sock: the run belongs to user [^ ]*: start the new one as that user: found "
                            "user root"));
}

TEST_F(ControlledProgram, RefusesASecondRunAtItsSocket) {
  EXPECT_EQ(shell("penstock run endless.yaml --set outputs.fast_log=other.log --duration 1s"), 2);
  EXPECT_THAT(read("err"), ContainsRegex("run.sock: a process listens on this socket: found process [0-9]+"));
  EXPECT_EQ(ctl("status"), 0);
}

TEST_F(Program, SaysWhatToDoWithoutASocket) {
  EXPECT_EQ(shell("penstock ctl --socket none.sock status"), 1);
  EXPECT_THAT(read("err"), HasSubstr("none.sock: cannot connect: found No such file or directory, expected a running "
                                     "`penstock run` with --control"));
  EXPECT_EQ(shell("penstock ctl --socket none.sock stats --watch 0"), 2);
  EXPECT_EQ(shell("penstock ctl"), 2);
}

TEST_F(Program, StopsARunThatHasNotBegun) {
  EXPECT_EQ(shell("mkfifo pipe; penstock run chain.yaml --set ports.lan.pcap.read=pipe --control run.sock 2>run.err & "
                  "until [ -S run.sock ]; do sleep 0.02; done\n"
                  "penstock ctl --socket run.sock status; penstock ctl --socket run.sock stats; echo $? >code\n"
                  "penstock ctl --socket run.sock stop; wait"),
            0);
  EXPECT_THAT(read("out"), HasSubstr(": starting, 0.0 s with packets"));
  EXPECT_EQ(read("code"), "1\n");
  EXPECT_THAT(read("err"), HasSubstr("the run has not begun"));
}

TEST_F(Program, RefusesAPathThatCannotBeASocket) {
  EXPECT_EQ(shell("penstock check chain.yaml --set outputs.control=none/run.sock"), 2);
  EXPECT_THAT(read("err"), HasSubstr("cannot create a socket in its folder: No such file or directory"));
}

TEST_F(Program, ShowsNoKeysToTheOperator) {
  fs::copy(PENSTOCK_SOURCE_DIR "/examples/gateway", folder_ / "gateway");
  ASSERT_EQ(shell("mkfifo pipe; cd gateway && { '" PENSTOCK_PROGRAM "' run chain.yaml -q --control ../run.sock "
                  "--set ports.lan.pcap.read=../pipe >/dev/null & }\n"
                  "cd ..; until [ -S run.sock ]; do sleep 0.02; done\n"
                  "{ cat in.pcap; sleep 100; } >pipe & feeder=$!\n"
                  "until penstock ctl --socket run.sock stats --json >stats 2>/dev/null; do sleep 0.02; done\n"
                  "penstock ctl --socket run.sock status --json >status\n"
                  "sed -i 's/reqid 1/reqid 2/' gateway/xfrm-state.txt\n"
                  "penstock ctl --socket run.sock reload --dry-run --json >reload 2>&1\n"
                  "penstock ctl --socket run.sock stop >/dev/null; kill $feeder; wait; exit 0"),
            0);
  std::ifstream state(folder_ / "gateway" / "xfrm-state.txt");
  const std::string text{std::istreambuf_iterator<char>(state), {}};
  const std::regex key("0x([0-9a-f]{16,})");
  int keys = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), key), end; match != end; ++match, ++keys) {
    for (const char* const file : {"stats", "status", "reload"}) {
      EXPECT_NE(read(file), "") << file;
      EXPECT_THAT(read(file), Not(HasSubstr((*match)[1].str().substr(0, 16)))) << file;
    }
  }
  EXPECT_GT(keys, 0);
}

}  // namespace
}  // namespace penstock
