// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs as tenants of a proxy, each in a process of its own. The proxy's device is simulated.

#include <gmock/gmock.h>

#include "program/proxy_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

class ProxyRuns : public ProxyProgram {
 protected:
  void chain(const std::string& name, const std::string& block, const std::string& run) const {
    write(name + ".yaml", "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {pcap: {write: " + name +
                              ".pcap}}\nchain:\n  - block: {" + block + "}\nrun: {" + run +
                              "}\noutputs: {report: " + name + ".json}\n");
  }
};

TEST_F(ProxyRuns, ServesTwoRunsAtOnceAsTheCpuDoes) {
  chain("cpu1", "ports: [53, 80]", "processor: cpu");
  chain("cpu2", "ports: [443], step: 2", "processor: cpu");
  chain("one", "ports: [53, 80]", "proxy: sock");
  chain("two", "ports: [443], step: 2", "processor: gpu, proxy: sock, proxy_profile: 4q, proxy_latency: 5ms");
  ASSERT_EQ(script("proxy; tenant run -q cpu1.yaml && tenant run -q cpu2.yaml || exit 1\n"
                   "tenant run -q one.yaml & ONE=$!; tenant run -q two.yaml & TWO=$!\n"
                   "wait $ONE && wait $TWO || exit 1\n"
                   "for i in $(seq 100); do penstock proxy status --json sock >status; grep -q pid status || break; "
                   "sleep 0.05; done; cat status"),
            0)
      << read("err");
  EXPECT_TRUE(read("cpu1.pcap") == read("one.pcap"));
  EXPECT_TRUE(read("cpu2.pcap") == read("two.pcap"));
  EXPECT_FALSE(read("one.pcap") == read("two.pcap"));
  for (const char* const report : {"one.json", "two.json"}) {
    EXPECT_GT(json(report)["gpu"]["segments"], 0) << json(report).dump(2);
    EXPECT_EQ(json(report)["gpu"]["failures"], 0);
  }
  EXPECT_TRUE(json("out")["tenants"].empty());
}

TEST_F(ProxyRuns, RoutesAsTheCpuDoes) {
  const std::string gateway = PENSTOCK_SOURCE_DIR "/examples/gateway/";
  for (const char* const engine : {"dir24", "trie1", "trie4"}) {
    for (const std::string name : {"cpu", "proxied"}) {
      std::string ports;
      for (const std::string port : {"lan", "wan", "dmz"})
        ports += "  " + port + ": {pcap: {read: " + gateway + port + ".pcap, write: " + name + "-" + port + ".pcap}}\n";
      write(name + ".yaml", "ports:\n" + ports + "chain:\n  - router: {ipv4: " + engine + ", routes: [" + gateway +
                                "routes.txt, " + gateway + "local.txt], neighbours: " + gateway +
                                "neighbours.txt, interfaces: {lo: none}}\nrun: " +
                                (name == "cpu" ? "{processor: cpu}" : "{processor: gpu, proxy: sock}") +
                                "\noutputs: {report: " + name + ".json}\n");
    }
    ASSERT_EQ(script("proxy; penstock run -q cpu.yaml && penstock run -q proxied.yaml"), 0) << read("err");
    EXPECT_GT(json("proxied.json")["gpu"]["segments"], 0);
    EXPECT_EQ(json("proxied.json")["gpu"]["failures"], 0);
    EXPECT_EQ(json("proxied.json")["packets"], json("cpu.json")["packets"]);
    for (const std::string port : {"lan", "wan", "dmz"})
      EXPECT_TRUE(read("cpu-" + port + ".pcap") == read("proxied-" + port + ".pcap")) << engine << ' ' << port;
  }
}

TEST_F(ProxyRuns, MayDieWithoutTheLossOfAPacket) {
  write("endless.yaml",
        "ports:\n  in: {generator: {rate: 20kpps}}\n  out: {\"null\": {}}\nchain:\n  - block: {}\n"
        "run: {proxy: sock, duration: 3s}\noutputs: {report: report.json}\n");
  ASSERT_EQ(script("proxy; tenant run -q endless.yaml & RUN=$!; sleep 1; penstock proxy status sock; kill -9 $PROXY; "
                   "wait $RUN"),
            0)
      << read("err");
  const auto report = json("report.json");
  EXPECT_GT(report["gpu"]["failures"], 0) << read("err");
  const auto& packets = report["packets"];
  EXPECT_GT(packets["in"], 40000);
  EXPECT_EQ(packets["in"],
            packets["forwarded"].get<int>() + packets["dropped"].get<int>() + packets["consumed"].get<int>());
  EXPECT_EQ(packets["dropped"], 0);
  EXPECT_THAT(read("out"), HasSubstr("endless.yaml"));
}

// A low rate makes the batches that try the lanes take some seconds.
TEST_F(ProxyRuns, BeginWithoutAProxyThatGoesWhileTheyAreSetUp) {
  write("begins.yaml",
        "ports:\n  in: {generator: {rate: 20kpps, size: 1500}}\n  out: {\"null\": {}}\nchain:\n  - block: {}\n"
        "run: {proxy: sock, proxy_rate: 100Mbps, frames: whole, workers: 2, duration: 300ms}\n"
        "outputs: {report: report.json}\n");
  for (const char* const signal : {"KILL", "TERM"}) {
    ASSERT_EQ(script(std::string("proxy; tenant run -q begins.yaml & RUN=$!; tenants 1 || exit 2; sleep 0.5\n"
                                 "[ ! -e report.json ] || exit 3; kill -") +
                     signal + " $PROXY; wait $RUN"),
              0)
        << signal << read("err");
    const auto report = json("report.json");
    EXPECT_GT(report["packets"]["in"], 1000);
    EXPECT_EQ(report["packets"]["in"], report["packets"]["forwarded"]);
    EXPECT_EQ(report["gpu"]["segments"], report["gpu"]["failures"]) << report.dump(2);
    std::filesystem::remove(folder_ / "report.json");
  }
}

TEST_F(ProxyRuns, GoOnWithoutAProxyThatHangs) {
  const std::string chain = "ports:\n  in: {generator: {rate: 20kpps}}\n  out: {\"null\": {}}\nchain:\n  - block: {}\n";
  write("stays.yaml", chain + "run: {proxy: sock, duration: 12s}\noutputs: {report: stays.json}\n");
  write("ends.yaml", chain + "run: {proxy: sock}\noutputs: {report: ends.json}\n");
  ASSERT_EQ(
      script("proxy; tenant run -q stays.yaml & STAYS=$!; '" PENSTOCK_PROXY_PROGRAM "' run -q ends.yaml & ENDS=$!\n"
             "tenants 2 || exit 2; sleep 0.5; kill -STOP $PROXY; sleep 0.5; kill -TERM $ENDS\n"
             "timeout 30 tail --pid=$ENDS -f /dev/null || exit 3; wait $ENDS || exit 4\n"
             "sleep 1; kill -CONT $PROXY; tenants 1 || exit 5; wait $STAYS"),
      0)
      << read("err");
  for (const char* const name : {"stays.json", "ends.json"}) {
    const auto report = json(name);
    const auto& packets = report["packets"];
    EXPECT_EQ(packets["in"], packets["forwarded"]) << report.dump(2);
    EXPECT_GT(packets["in"], 10000);
    EXPECT_EQ(report["gpu"]["proxy"]["losses"], 1) << report.dump(2);
    EXPECT_GT(report["gpu"]["failures"], 0);
  }
  EXPECT_EQ(json("stays.json")["gpu"]["proxy"]["connected"], true) << "it came back";
  EXPECT_EQ(json("ends.json")["gpu"]["proxy"]["connected"], false);
  EXPECT_THAT(read("err"), HasSubstr("the proxy at sock hangs, or is stopped: it has not gone on for 5 "
                                     "s: the CPU does the work"));
}

TEST_F(ProxyRuns, EndsAlthoughAReloadWaitsForAProxyThatHangs) {
  write("waits.yaml",
        "ports:\n  in: {pcap: {read: \"-\"}}\n  out: {\"null\": {}}\nchain:\n  - block: {}\n"
        "run: {proxy: sock}\noutputs: {control: control, report: report.json}\n");
  ASSERT_EQ(
      script("proxy; mkfifo pipe; sleep 100 >pipe & SLEEP=$!; '" PENSTOCK_PROXY_PROGRAM
             "' run -q waits.yaml <pipe & RUN=$!\n"
             "head -c 24 in.pcap >pipe\n"
             "for i in $(seq 100); do penstock ctl --socket control stats >/dev/null 2>&1 && break; sleep 0.05; done\n"
             "penstock ctl --socket control --json status >status.json\n"
             "kill -STOP $PROXY; penstock ctl --socket control reload >reload 2>&1 & RELOAD=$!\n"
             "sleep 1; kill -0 $RELOAD || exit 3; kill -TERM $RUN; timeout 10 tail --pid=$RUN -f /dev/null; RC=$?\n"
             "kill -CONT $PROXY; kill $SLEEP; [ $RC -eq 0 ] || exit 4; wait $RUN || exit 5; wait $RELOAD; true"),
      0)
      << read("err");
  EXPECT_EQ(json("report.json")["packets"]["in"], 0);
  EXPECT_EQ(json("status.json")["processes"][0]["socket"], "sock") << read("status.json");
  EXPECT_EQ(json("status.json")["processes"][0]["connected"], true);
}

/// Runs that read the same packets as the CPU's run, but from pipes that are filled slowly.
class ReturningRuns : public ProxyProgram {
 protected:
  void SetUp() override {
    ProxyProgram::SetUp();
    write("whole.yaml",
          "ports: {in: {memory: {read: in.pcap, loop: 60}}, out: {pcap: {write: whole.pcap, precision: ns}}}\n"
          "chain: []\n");
    for (const char* const name : {"cpu1", "one"}) chain(name, "ports: [1024, 1031]");
    for (const char* const name : {"cpu2", "two"}) chain(name, "step: 3");
  }
  void chain(const std::string& name, const std::string& block) const {
    write(name + ".yaml", "ports: {in: {pcap: {read: \"-\"}}, out: {pcap: {write: " + name +
                              ".pcap, precision: ns}}}\nchain: [block: {" + block + "}]\nrun: {" +
                              (name.starts_with("cpu") ? "processor: cpu" : "proxy: sock, batch: {packets: 64}") +
                              "}\noutputs: {report: " + name + ".json}\n");
  }
  /// While both runs are tenants, `commands` do something to their proxy.
  [[nodiscard]] int while_runs_flow(const std::string& commands, bool starts_proxy = true) const {
    return script(
        "tenant run -q whole.yaml && tenant run -q cpu1.yaml <whole.pcap && tenant run -q cpu2.yaml "
        "<whole.pcap || exit 1\n"
        "split -b 20000 whole.pcap part.\n"
        "slowly() { for part in part.*; do cat $part; sleep 0.02; done; }\n" +
        std::string(starts_proxy ? "proxy\n" : "") +
        "slowly | tenant run one.yaml & ONE=$!; slowly | tenant run two.yaml & TWO=$!\n" +
        (starts_proxy ? "" : "sleep 0.5; proxy\n") + "tenants 2 || exit 2\n" + commands + "\nwait $ONE && wait $TWO");
  }
  void expect_what_the_cpu_does(unsigned losses) const {
    EXPECT_TRUE(read("cpu1.pcap") == read("one.pcap"));
    EXPECT_TRUE(read("cpu2.pcap") == read("two.pcap"));
    EXPECT_FALSE(read("one.pcap") == read("two.pcap"));
    for (const char* const name : {"one.json", "two.json"}) {
      const auto report = json(name);
      EXPECT_EQ(report["gpu"]["proxy"]["losses"], losses) << report.dump(2) << read("err");
      EXPECT_EQ(report["gpu"]["proxy"]["connected"], true);
      EXPECT_GT(report["gpu"]["proxy"]["without_s"], 0);
    }
  }
};

TEST_F(ReturningRuns, ComeBackToAProxyThatIsKilledAndStartedAgain) {
  ASSERT_EQ(while_runs_flow("kill -9 $PROXY; sleep 0.5; proxy; tenants 2 || exit 3\n"
                            "kill $PROXY; wait $PROXY || exit 4; [ ! -e sock ] || exit 5; proxy; tenants 2 || exit 6"),
            0)
      << read("err");
  expect_what_the_cpu_does(2);
  EXPECT_THAT(read("err"),
              HasSubstr("the proxy at sock has gone: the CPU does the work of its lanes until there are new ones"));
  EXPECT_THAT(read("err"), HasSubstr("connected to the proxy at sock, after "));
}

TEST_F(ReturningRuns, BeginBeforeTheirProxy) {
  ASSERT_EQ(while_runs_flow("", /*starts_proxy=*/false), 0) << read("err");
  expect_what_the_cpu_does(0);
  EXPECT_THAT(read("out"), HasSubstr("there was no proxy, and the CPU did the GPU's work\n"));
  EXPECT_THAT(read("err"), HasSubstr("the proxy at sock is not there, or does not answer: the CPU does its work"));
  EXPECT_THAT(read("err"), HasSubstr("connected to the proxy at sock, after "));
}

TEST_F(ReturningRuns, ComeBackToAProxyThatHasLostItsDevice) {
  ASSERT_EQ(while_runs_flow("penstock proxy set sock --scheduler equal\n"
                            "before=$(stat -c %i sock); kill -USR1 $PROXY\n"
                            "until penstock proxy status sock | grep '1 restart'; do sleep 0.02; done\n"
                            "tenants 2 || exit 3\n"
                            "[ $(stat -c %i sock) = $before ] || exit 4\n"
                            "[ $(ls /proc/$PROXY/fd | wc -l) -lt 60 ] || exit 5\n"
                            "tr '\\0' ' ' </proc/$PROXY/environ | grep INHERITANCE= && echo inherited\n"
                            "penstock proxy status sock"),
            0)
      << read("err");
  expect_what_the_cpu_does(1);
  EXPECT_THAT(read("out"), HasSubstr("scheduler equal, 1 restart\n"));
}

TEST_F(ProxyProgram, EndsWhenItIsToldToWhileItsDeviceIsLost) {
  // At once lost, so it waits until it may start again.
  EXPECT_EQ(script("proxy; kill -USR1 $PROXY; sleep 0.2; kill $PROXY; wait $PROXY && [ ! -e sock ]"), 0);
  EXPECT_THAT(read("err"), HasSubstr("a simulated device is lost: an error has ended this process's use of it. The "
                                     "program starts again in "));
}

TEST_F(ProxyProgram, SaysHowItDividesMultiprocessors) {
  ASSERT_EQ(script("proxy; penstock proxy status sock"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("scheduler weighted\n"));
  ASSERT_EQ(script("proxy --multiprocessors green-contexts; penstock proxy status sock"), 0) << read("err");
  EXPECT_THAT(read("out"), HasSubstr("scheduler weighted, multiprocessors by green-contexts\n"));
  EXPECT_EQ(script("penstock proxy serve sock --multiprocessors some"), 2);
  EXPECT_THAT(read("err"), HasSubstr("--multiprocessors"));
}

TEST_F(ProxyRuns, LosesOnlyTheTenantThatIsKilled) {
  write("endless.yaml",
        "ports:\n  in: {generator: {rate: 20kpps}}\n  out: {\"null\": {}}\nchain:\n  - block: {}\n"
        "run: {proxy: sock, duration: 3s}\noutputs: {report: report.json}\n");
  ASSERT_EQ(
      script("proxy; tenant run -q endless.yaml & RUN=$!\n"
             "for i in 1 2 3; do '" PENSTOCK_PROXY_PROGRAM "' run -q endless.yaml --duration 1h --report other.json & "
             "sleep 0.5; kill -9 $!; done\n"
             "wait $RUN && penstock proxy status --json sock"),
      0)
      << read("err");
  EXPECT_EQ(json("report.json")["gpu"]["failures"], 0) << read("err");
  EXPECT_EQ(json("report.json")["packets"]["dropped"], 0);
}

TEST_F(ProxyRuns, LeavesWhatItCannotRunToTheCpu) {
  write("mixed.yaml",
        "ports:\n  lan: {pcap: {read: in.pcap}}\n  wan: {pcap: {write: out.pcap}}\n"
        "chain:\n  - filter: {expression: ip, gpu_engine: generated}\n  - block: {}\nrun: {proxy: sock}\n");
  ASSERT_EQ(script("proxy; tenant run -q mixed.yaml"), 0) << read("err");
  EXPECT_THAT(read("err"), HasSubstr("filter runs on the CPU: its GPU stage cannot run in a proxy"));
  ASSERT_EQ(script("tenant run -q mixed.yaml --processor gpu"), 2);
  EXPECT_THAT(read("err"), HasSubstr("filter: its GPU stage cannot run in a proxy: found 'gpu'"));
}

/// logrotate(8) sends it.
TEST_F(ProxyRuns, OutlivesSighup) {
  EXPECT_EQ(script("proxy; kill -HUP $PROXY; sleep 0.3; penstock proxy status sock"), 0) << read("err");
}

TEST_F(ProxyRuns, IsMissedWhenARunBeginsThatDemandsAGpu) {
  chain("one", "ports: [53]", "processor: gpu, proxy: sock");
  EXPECT_EQ(script("tenant run -q one.yaml"), 1);
  EXPECT_THAT(read("err"), HasSubstr("sock: cannot connect to the proxy: found No such file or directory, expected the "
                                     "socket of a running `penstock proxy serve`"));
  EXPECT_FALSE(exists("one.pcap"));
}

}  // namespace
}  // namespace penstock
