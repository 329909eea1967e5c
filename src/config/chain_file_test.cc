// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/chain_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/testing/made_up_machine.h"
#include "gpu/devices.h"

namespace penstock::config {
namespace {

/// Provides a temporary folder with the files that a chain names.
class ChainFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/penstock_chain_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    put("rules", "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n");
    put("routes", "default via 10.0.0.1 dev wan\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  Result<LoadedChain> load(const std::string& yaml, LoadOptions options = {}) {
    put("chain.yaml", yaml);
    return load_chain(folder_ + "/chain.yaml", options);
  }
  std::string errors_of(const std::string& yaml, LoadOptions options = {}) {
    auto loaded = load(yaml, std::move(options));
    EXPECT_FALSE(loaded);
    return loaded ? "" : to_string(loaded.error());
  }

  /// kGood with a function that writes logs.
  std::string with_nids() {
    put("nids.rules", "alert ip any any -> any any (msg:\"x\"; sid:1;)\n");
    std::string good = kGood;
    return good.replace(good.find("  - router"), 0, "  - nids: {rules: nids.rules}\n");
  }

  static constexpr const char* kGood =
      "ports:\n"
      "  lan: {pcap: {read: in.pcap}}\n"
      "  wan: {pcap: {write: out.pcap}}\n"
      "chain:\n"
      "  - firewall: {rules: rules}\n"
      "  - router: {routes: routes}\n"
      "run: {workers: 2, batch: {timeout: 1ms}}\n";
  std::string folder_;
};

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "missing: " << part << "\nin: " << text;
}

TEST_F(ChainFile, IsBuiltAsWritten) {
  const auto loaded = load(kGood);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  ASSERT_EQ(loaded->chain.ports.size(), 2U);
  EXPECT_EQ(loaded->chain.ports[1].name, "wan");
  ASSERT_EQ(loaded->chain.functions.size(), 2U);
  EXPECT_EQ(loaded->chain.functions[1].name, "router");
  EXPECT_EQ(loaded->chain.settings.workers, 2U);
  EXPECT_EQ(loaded->chain.settings.batch_timeout, std::chrono::milliseconds{1});
  EXPECT_EQ(loaded->chain.wiring, (std::vector<PortIndex>{1, 1})) << "the only port that writes";
}

TEST_F(ChainFile, NamesTheLogsThatFunctionsWriteTo) {
  const std::string good = with_nids();
  const auto loaded = load(good + "outputs: {eve: eve.json, fast_log: '-'}\n");
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  ASSERT_EQ(loaded->chain.logs.size(), 2U);
  EXPECT_TRUE(loaded->chain.logs[0]->path().ends_with("/eve.json"));
  EXPECT_EQ(loaded->chain.logs[1]->path(), "-");
  EXPECT_TRUE(loaded->writes_stdout);
  expect_has(errors_of(good + "outputs: {eve: out.pcap}\n"), "chain.yaml:9:16: would overwrite the file that ");
  const auto nowhere = load(good + "outputs: {eve: none/eve.json}\n");
  ASSERT_TRUE(nowhere);
  expect_has(to_string(check_files(*nowhere)), "eve.json: cannot write: No such file or directory");
}

TEST_F(ChainFile, RefusesOutputsWhoseNamesPromiseCompression) {
  const std::string good = with_nids();
  for (const char* const output : {"eve", "fast_log", "report"}) {
    const auto loaded = load(good + "outputs: {" + output + ": out.json.gz}\n");
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    expect_has(to_string(check_files(*loaded)),
               "out.json.gz: this output is not written compressed: found '.gz', expected a name without it");
  }
}

TEST_F(ChainFile, DetectsThatARunningProcessIsWritingAnOutput) {
  const auto loaded = load(with_nids() + "outputs: {eve: eve.json, report: report.json}\n");
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(to_string(busy_outputs(*loaded)), "");
  report::EventLog other(loaded->chain.logs[0]->path());
  ASSERT_TRUE(other.open());
  const std::string warning = to_string(busy_outputs(*loaded));
  expect_has(warning, "chain.yaml:9:16: a running process is writing this file; until it ends, a run is refused");
  EXPECT_EQ(warning.find('\n'), std::string::npos) << "the report has no lock";
  static_cast<void>(other.close());
  EXPECT_EQ(to_string(busy_outputs(*loaded)), "");
}

TEST_F(ChainFile, SetsUpATimelineForAGpu) {
  const std::vector<Override> on_gpu{*parse_override("run.processor=gpu")};
  const auto load_with = [&](const std::string& outputs, std::vector<Override> overrides) {
    auto loaded = load(kGood + outputs, {std::move(overrides), false, true});
    EXPECT_TRUE(loaded) << to_string(loaded.error());
    return std::move(*loaded);
  };
  const LoadedChain taken = load_with("outputs: {timeline: t.json}\n", on_gpu);
  EXPECT_NE(taken.chain.timeline, nullptr);
  EXPECT_TRUE(taken.timeline_path.ends_with("/t.json"));
  EXPECT_TRUE(taken.without_effect.empty()) << to_string(taken.without_effect);
  EXPECT_EQ(load_with("", on_gpu).chain.timeline, nullptr) << "it costs time";

  const LoadedChain on_cpu = load_with("outputs: {timeline: t.json, timeline_batches: 5}\n", {});
  EXPECT_EQ(on_cpu.chain.timeline, nullptr);
  EXPECT_EQ(on_cpu.timeline_path, "");
  expect_has(to_string(on_cpu.without_effect), "chain.yaml:8:21: timeline has no effect on the CPU: found '");
  EXPECT_EQ(on_cpu.without_effect.size(), 1U) << to_string(on_cpu.without_effect);
  expect_has(to_string(load_with("outputs: {timeline_batches: 5}\n", on_gpu).without_effect),
             "chain.yaml:8:29: timeline_batches has no effect without timeline: found '5'");
}

TEST_F(ChainFile, RefusesAnImpossibleTimeline) {
  const LoadOptions plan{{*parse_override("run.processor=gpu")}, false, true};
  for (const char* batches : {"0", "10001", "-1", "many"}) {
    expect_has(errors_of(std::string(kGood) + "outputs: {timeline: t.json, timeline_batches: " + batches + "}\n", plan),
               "chain.yaml:8:47: timeline_batches: ");
  }
  expect_has(errors_of(std::string(kGood) + "outputs: {timeline: out.pcap}\n", plan), "would overwrite the file that ");
  expect_has(errors_of(std::string(kGood) + "outputs: {timeline: '-', report: '-'}\n", plan),
             "standard output is already in use");
  const auto nowhere = load(std::string(kGood) + "outputs: {timeline: none/t.json}\n", plan);
  ASSERT_TRUE(nowhere);
  expect_has(to_string(check_files(*nowhere)), "t.json: cannot write: No such file or directory");
}

TEST_F(ChainFile, CanBeAText) {
  const std::string rules = folder_ + "/rules";
  const auto loaded = load_chain_text("{\"ports\": {\"a\": {\"pcap\": {}}}, \"chain\": [{\"firewall\": {}}]}", "made",
                                      {.overrides = {override_by_option("-r", "ports.a.pcap.read", "x.pcap"),
                                                     override_by_option("--rules", "chain.firewall.rules", rules)}});
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(loaded->chain.functions[0].name, "firewall");
  const auto wrong = load_chain_text("[]", "made", {});
  ASSERT_FALSE(wrong);
  expect_has(to_string(wrong.error()), "made");
}

TEST_F(ChainFile, NumbersFunctionsWithTheSameName) {
  const auto loaded =
      load("ports: {lan: {pcap: {read: x}}}\nchain: [firewall: {rules: rules}, firewall: {rules: rules}]\n");
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(loaded->chain.functions[1].name, "firewall#2");
  EXPECT_EQ(loaded->chain.wiring.front(), kNoPort) << "no port writes: packets are consumed";
}

TEST_F(ChainFile, ReportsAllMistakesWithTheirPlaces) {
  const std::string errors = errors_of(
      "ports:\n"
      "  lan: {pcpa: {read: in.pcap}}\n"
      "  'w an': {pcap: {write: out.pcap}}\n"
      "chain:\n"
      "  - firewal: {rules: rules}\n"
      "  - router: {routs: routes}\n"
      "run: {workers: 0, batch: {timeout: 5}}\n"
      "outputz: {}\n");
  expect_has(errors, "chain.yaml:2:9: port lan: unknown kind: found 'pcpa', expected pcap");
  expect_has(errors, "chain.yaml:3:3: wrong port name: found 'w an'");
  expect_has(errors, "chain.yaml:5:5: unknown network function: found 'firewal', expected firewall");
  expect_has(errors, "chain.yaml:6:14: unknown parameter: found 'routs', expected routes");
  expect_has(errors, "chain.yaml:6:5: routes is missing");
  expect_has(errors, "chain.yaml:7:16: workers: wrong value: found '0', expected a whole number in 1..256");
  expect_has(errors, "chain.yaml:7:36: batch.timeout: wrong value: found '5'");
  expect_has(errors, "chain.yaml:8:1: unknown section: found 'outputz', expected outputs");
}

TEST_F(ChainFile, ReportsMistakesInAFileOfSeveralFunctionsOnce) {
  put("rules", R"({"nftables": [{"table": {"family": "inet", "name": "t", "handle": 1}},
    {"chain": {"family": "inet", "table": "t", "name": "f", "handle": 1, "type": "filter", "hook": "forward",
               "prio": 0, "policy": "drop"}},
    {"rule": {"family": "inet", "table": "t", "chain": "f", "handle": 2, "expr": [{"limit": {"rate": "x"}}]}}]})");
  const std::string errors = errors_of(
      "ports: {lan: {pcap: {read: x}}}\nchain:\n  - firewall: {rules: rules, hook: prerouting}\n"
      "  - firewall: {rules: rules, hook: forward}\n  - firewall: {rules: none, hook: postrouting}\n"
      "  - firewall: {rules: none, hook: postrouting}\n");
  const std::size_t first = errors.find("wrong limit"), missing = errors.find("none: cannot open");
  ASSERT_NE(first, std::string::npos) << errors;
  EXPECT_EQ(errors.find("wrong limit", first + 1), std::string::npos) << errors;
  ASSERT_NE(missing, std::string::npos) << errors;
  EXPECT_EQ(errors.find("none: cannot open", missing + 1), std::string::npos) << errors;
}

TEST_F(ChainFile, ReportsAllWrongValuesOfASection) {
  const std::string errors = errors_of(
      "ports: {lan: {pcap: {read: x}}}\nchain: []\n"
      "run: {workers: -1, batch: 5, duration: 10, latency: never, foo: bar}\n");
  for (const char* wrong :
       {"workers: wrong", "batch: wrong", "duration: wrong", "latency: wrong", "parameter: found 'foo'"})
    expect_has(errors, wrong);
  const std::string once = errors_of("ports: {lan: {pcap: {read: x}}}\nchain: [router: {routes: [[a]], ipv4: x}]\n");
  expect_has(once, "routes: wrong value in the list");
  expect_has(once, "ipv4: wrong value");
  EXPECT_EQ(once.find("missing"), std::string::npos) << once;
}

TEST_F(ChainFile, ReportsFilesAndTheProcessorDespiteOtherMistakes) {
  for (const char* wrong : {"run: {processor: gpu, workers: 0}\nchain: [firewall: {rules: rules}]\nwire: {lan: wan}\n",
                            "run: {processor: gpu}\nchain: [firewal: {}]\nwire: {lan: wan}\n",
                            "run: {processor: gpu}\nchain: [firewall: {rules: rules}]\nwire: {lan: dmz}\n"}) {
    const std::string errors = errors_of(
        "ports:\n  lan: {pcap: {read: none.pcap}}\n  wan: {pcap: {write: none/out.pcap}}\n"
        "outputs: {report: none/report.json}\n" +
        std::string(wrong));
    for (const char* place : {"chain.yaml:2:22: ", "chain.yaml:3:23: ", "chain.yaml:4:19: "}) expect_has(errors, place);
    if (gpu::list_devices().availability != gpu::Availability::kUsable) expect_has(errors, "no GPU can be used here");
  }
}

TEST_F(ChainFile, ReportsWrongWiresDespiteWrongPorts) {
  const std::string errors = errors_of(
      "ports: {lan: {pcap: {read: x}}, wan: {pcpa: {}}, dmz: {null: {}}}\nchain: []\nwire: {lan: wna, dmz: wan}\n");
  expect_has(errors, "port wan: unknown kind");
  expect_has(errors, "wire: no such port: found 'wna'");
  expect_has(errors, "wire: this port does not read: found 'dmz'");
  EXPECT_EQ(errors.find("does not write"), std::string::npos) << "who knows? " << errors;
}

TEST_F(ChainFile, ReportsNothingThatOnlyFollowsFromAnotherMistake) {
  put("routes", "nonsense\n");
  const std::string errors = errors_of(
      "ports: {lan: {pcap: {read: rules, write: a}}, wan: {pcap: {write: b}}}\nchain: [router: {routes: routes}]\n");
  expect_has(errors, "routes:1:1: not a prefix");
  EXPECT_EQ(errors.find("several ports write"), std::string::npos) << errors;
  put("routes", "default via 10.0.0.1 dev wan\n");
  const std::string no_ports = errors_of("ports: {}\nchain: [router: {routes: routes}]\n");
  EXPECT_EQ(no_ports.find('\n'), std::string::npos) << no_ports;
}

TEST_F(ChainFile, ReportsMistakesInTheOrderOfItsLines) {
  const std::string errors = errors_of(
      "run: {workers: 0}\nports: {lan: {pcpa: {}}}\nchain: [firewal]\noutputs: {repotr: x}\nwire: {x: lan}\n");
  std::size_t from = 0;
  for (const char* line : {"yaml:1:", "yaml:2:", "yaml:3:", "yaml:4:", "yaml:5:"}) {
    const std::size_t at = errors.find(line, from);
    ASSERT_NE(at, std::string::npos) << line << " in: " << errors;
    from = at;
  }
}

TEST_F(ChainFile, ReportsMistakesInTheFilesItNames) {
  put("routes", "default via 10.0.0.1 dev wan\n10.0.0.0/33 via 10.0.0.1 dev wan\n10.0.0.0/8 via 10.0.0.1 dev lna\n");
  const std::string errors = errors_of(kGood);
  expect_has(errors, "routes:2:");
  expect_has(errors, "routes:3:");
}

TEST_F(ChainFile, RefusesInvalidYamlAndOtherDocuments) {
  expect_has(errors_of("ports: {lan: [\n"), "not YAML");
  expect_has(errors_of("ports:\n\tlan: {pcap: {read: x}}\nchain: []\n"),
             "chain.yaml:2:1: not YAML: a line is indented with a tab: expected spaces");
  expect_has(errors_of("- a\n- b\n"), "found a list");
  expect_has(errors_of(""), "not a chain file");
  expect_has(errors_of("run: {}\n"), "`ports` is missing");
  EXPECT_FALSE(load_chain(folder_ + "/nowhere.yaml", {}));
  EXPECT_FALSE(load("? [complex, key]\n: x\n? {a: b}\n: y\n"));
}

TEST_F(ChainFile, OverridesReplaceItsValues) {
  LoadOptions options;
  for (const char* text :
       {"run.workers=3", "run.batch.bytes=1MiB", "chain.router.ipv4=trie4", "outputs.report=r.json"}) {
    options.overrides.push_back(*parse_override(text));
  }
  const auto loaded = load(kGood, options);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(loaded->chain.settings.workers, 3U);
  EXPECT_EQ(loaded->chain.settings.batch_bytes, 1U << 20);
  EXPECT_EQ(loaded->report_path, "r.json") << "relative to the working directory";
}

TEST_F(ChainFile, AWrongOverrideIsReportedByItsText) {
  const auto errors = [&](const char* text) { return errors_of(kGood, {{*parse_override(text)}, false, false}); };
  expect_has(errors("run.workers=many"), "--set run.workers=many: workers: wrong value");
  expect_has(errors("chain.nids.rules=x"), "no such name or position in the list");
  expect_has(errors("run.workers.deep=1"), "no such value");
  EXPECT_FALSE(parse_override("run.workers"));
  EXPECT_FALSE(parse_override("=x"));
}

TEST_F(ChainFile, ASharedQueueNeedsFunctionsWithoutFlows) {
  const auto chain = [](const char* tracking, const char* run) {
    return fmt::format(
        "ports: {{a: {{generator: {{}}}}}}\nchain:\n  - nids: {{rules: nids.rules, tracking: {}}}\nrun: {}\n", tracking,
        run);
  };
  put("nids.rules", "alert ip any any -> any any (msg:\"x\"; sid:1;)\n");
  expect_has(errors_of(chain("streams", "{workers: 3, queueing: shared}")),
             folder_ +
                 "/chain.yaml:4:29: queueing: nids follows flows, whose packets would go to different workers: "
                 "found 'shared' with 3 workers, expected per_worker");
  const auto loaded = load(chain("packets", "{workers: 3, queueing: shared, polling: busy, batch: {close: full}}"));
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(loaded->chain.settings.queueing, run::Queueing::shared);
  expect_has(to_string(loaded->cautions), "queueing: nids joins fragments");
  EXPECT_FALSE(loaded->chain.settings.closes_early);
  for (const char* name : {"polling", "batch.close"})
    expect_has(to_string(loaded->without_effect), std::string(name) + " has no effect with `queueing: shared`");
  const auto alone = load(chain("streams", "{workers: 1, queueing: shared}"));
  ASSERT_TRUE(alone) << to_string(alone.error());
  EXPECT_TRUE(alone->cautions.empty());
  const auto usual = load(chain("streams", "{workers: 3}"));
  ASSERT_TRUE(usual) << to_string(usual.error());
  EXPECT_EQ(usual->chain.settings.queueing, run::Queueing::per_worker);
}

TEST_F(ChainFile, SeveralWorkersNeedToBeAbleToHandOverPacketsOfTranslatedConnections) {
  put("nat.rules",
      "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n"
      "-A POSTROUTING -j SNAT --to-source 192.0.2.1\nCOMMIT\n");
  const std::string firewalls =
      "  - firewall: {rules: nat.rules, hook: prerouting}\n  - firewall: {rules: nat.rules, hook: postrouting}\n";
  const auto chain = [](const std::string& port, const std::string& functions, const std::string& run) {
    return "ports: {a: {" + port + "}}\nchain:\n" + functions + "run: {" + run + "}\n";
  };
  const auto loaded = load(chain("generator: {}", firewalls, "workers: 3, processor: cpu"));
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_TRUE(loaded->chain.functions[0].function->traits().shares_connections);
  put("in.pcap", "");
  ASSERT_TRUE(load(chain("generator: {}", firewalls, "workers: 1")));
  expect_has(
      errors_of(chain("pcap: {read: in.pcap}", firewalls, "workers: 3, processor: cpu")),
      "workers: packets of firewall's connections may come to different workers, and cannot be handed over: port "
      "a reads a capture, in which a reply does not wait for the packet to which it replies: found 3 workers, "
      "expected workers: 1");
  const std::string gateway = PENSTOCK_SOURCE_DIR "/examples/gateway/";
  const std::string ipsec =
      "  - ipsec: {state: " + gateway + "xfrm-state.txt, policy: " + gateway + "xfrm-policy.txt, state_dir: none}\n";
  expect_has(errors_of(chain("generator: {}", ipsec + firewalls, "workers: 2, processor: cpu")),
             "cannot be handed over: ipsec, which comes first, changes addresses or ports: found 2 workers");
  const auto after = load(chain("generator: {}", firewalls + ipsec, "workers: 2, processor: cpu"));
  EXPECT_TRUE(after) << to_string(after.error());
  put("count.rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m connlimit --connlimit-above 2 -j DROP\nCOMMIT\n");
  expect_has(errors_of(chain("generator: {}", "  - firewall: {rules: count.rules}\n", "workers: 2, processor: cpu")),
             "workers: firewall needs packets together that may come to different workers: found 2 workers");
}

TEST_F(ChainFile, EachWorkerNeedsABlockOfPortsOfAHost) {
  put("nat.rules",
      "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n-A POSTROUTING -j SNAT --to-source "
      "192.0.2.1\nCOMMIT\n");
  const auto chain = [](const std::string& blocks, const std::string& workers) {
    return "ports: {a: {generator: {}}}\nchain:\n  - firewall: {rules: nat.rules, hook: prerouting, port_blocks: " +
           blocks + "}\n  - firewall: {rules: nat.rules, hook: postrouting, port_blocks: " + blocks +
           "}\nrun: {processor: cpu, workers: " + workers + "}\n";
  };
  for (const auto& [blocks, workers] : {std::pair{"{per_host: 3}", "3"}, std::pair{"{per_host: 1}", "1"}}) {
    const auto loaded = load(chain(blocks, workers));
    EXPECT_TRUE(loaded) << to_string(loaded.error());
  }
  expect_has(
      errors_of(chain("{per_host: 3}", "4")),
      "workers: a host needs a block of ports in each, and gets 3 by firewall: found 4 workers, expected at most "
      "3 workers, or a larger per_host");
}

TEST_F(ChainFile, ABatchLargerThanTheQueueIsReportedAtTheValueToCorrect) {
  const auto errors = [&](const std::string& run, const std::vector<const char*>& texts) {
    LoadOptions options;
    for (const char* text : texts) options.overrides.push_back(*parse_override(text));
    return errors_of("ports: {a: {generator: {}}}\nchain: []\nrun:\n" + run, options);
  };
  const std::string file = folder_ + "/chain.yaml";
  expect_has(errors("  queue: {bytes: 1MiB}\n", {"run.batch.bytes=2MiB"}),
             "--set run.batch.bytes=2MiB: batch.bytes: larger than the waiting queue: found 2,097,152 bytes, "
             "expected at most queue.bytes (1,048,576 bytes; " +
                 file + ":4)");
  expect_has(errors("  workers: 1\n", {"run.batch.bytes=256MiB"}),
             "--set run.batch.bytes=256MiB: batch.bytes: larger than the waiting queue: found 268,435,456 bytes, "
             "expected at most queue.bytes (134,217,728 bytes; its default)");
  expect_has(errors("  batch: {bytes: 256MiB}\n", {}),
             file + ":4:18: batch.bytes: larger than the waiting queue: found 268,435,456 bytes");
  expect_has(errors("  batch: {bytes: 2MiB}\n  queue: {bytes: 4MiB}\n", {"run.queue.bytes=1MiB"}),
             "--set run.queue.bytes=1MiB: queue.bytes: smaller than one batch: found 1,048,576 bytes, "
             "expected at least batch.bytes (2,097,152 bytes; " +
                 file + ":4)");
  expect_has(errors("  queue: {bytes: 64KiB}\n", {}),
             file +
                 ":4:18: queue.bytes: smaller than one batch: found 65,536 bytes, "
                 "expected at least batch.bytes (524,288 bytes; its default)");
  expect_has(errors("  workers: 1\n", {"run.batch.bytes=2MiB", "run.queue.bytes=1MiB"}),
             "--set run.queue.bytes=1MiB: queue.bytes: smaller than one batch: found 1,048,576 bytes, "
             "expected at least batch.bytes (2,097,152 bytes; --set run.batch.bytes=2MiB)");
}

/// A chain on the machine of MadeUpMachine::two_nodes: cores 0-15.
class ChainFileOnTwoNodes : public ChainFile {
 protected:
  void SetUp() override {
    ChainFile::SetUp();
    machine_.two_nodes();
  }
  [[nodiscard]] LoadOptions options(std::vector<const char*> overrides = {}) const {
    LoadOptions options;
    options.machine = machine_.root();
    for (const char* const text : overrides) options.overrides.push_back(*parse_override(text));
    return options;
  }
  [[nodiscard]] static std::string with(const std::string& run) {
    return "ports: {lan: {pcap: {read: in.pcap}}, wan: {null: {}}}\nchain: []\nrun: {" + run + "}\n";
  }
  /// The workers' cores and the other threads': "5 0 | 1-4,6-15".
  std::string placed(const std::string& run, std::vector<const char*> overrides = {}) {
    const auto loaded = load(with(run), options(std::move(overrides)));
    if (!loaded) return to_string(loaded.error());
    const run::Placement& placement = loaded->chain.settings.placement;
    EXPECT_EQ(placement.workers.size(), loaded->chain.settings.workers);
    std::string text;
    for (const run::WorkerPlace& worker : placement.workers) text += format_cpu_list(worker.cores) + " ";
    return text + "| " + format_cpu_list(placement.other_cores);
  }

  const MadeUpMachine machine_;
};

TEST_F(ChainFileOnTwoNodes, NamesTheCoreOfEachWorker) {
  EXPECT_EQ(placed("cores: 2-4"), "2 3 4 | 0-1,5-15") << "as many workers as cores";
  EXPECT_EQ(placed("cores: [5, 0-1]"), "5 0 1 | 2-4,6-15");
  EXPECT_EQ(placed("cores: '5,0-1', workers: 3"), "5 0 1 | 2-4,6-15");
  EXPECT_EQ(placed("cores: 7"), "7 | 0-6,8-15");
  EXPECT_EQ(placed("cores: 7", {"run.cores=2-3"}), "2 3 | 0-1,4-15");
  EXPECT_EQ(placed("cores: 7", {"run.cores=[8, 2-3]"}), "8 2 3 | 0-1,4-7,9-15");
  EXPECT_EQ(placed("workers: 2"), "  | ") << "on CPUs, nothing is bound by default";
}

TEST_F(ChainFileOnTwoNodes, DoesNotUseCoresWithoutAWorker) {
  EXPECT_EQ(placed("cores: 2-5", {"run.workers=2"}), "2 3 | 0-1,4-15");
  const auto loaded = load(with("cores: 2-5, workers: 2"), options());
  ASSERT_TRUE(loaded);
  expect_has(to_string(loaded->without_effect),
             "chain.yaml:3:14: cores: more cores than workers; the last ones are not used: found 4 cores, expected 2 "
             "cores");
}

TEST_F(ChainFileOnTwoNodes, RefusesFewerCoresThanWorkers) {
  expect_has(errors_of(with("cores: [2, 3], workers: 3"), options()),
             "chain.yaml:3:14: cores: fewer cores than workers: found 2 cores, expected 3 cores, one for each worker "
             "(workers: " +
                 folder_ + "/chain.yaml:3)");
  expect_has(errors_of(with("cores: 2"), options({"run.workers=2"})), "(workers: --set run.workers=2)");
}

TEST_F(ChainFileOnTwoNodes, RefusesCoresThatCannotBeUsed) {
  expect_has(errors_of(with("cores: 14-17"), options()),
             "chain.yaml:3:14: cores: no such core: found 16-17, expected cores of 0-15");
  machine_.cpus("0-15", "0-3,5-15", "");
  expect_has(errors_of(with("cores: [4, 5]"), options()),
             "chain.yaml:3:14: cores: offline: found 4, expected cores of 0-3,5-15");
  machine_.process("0-3", "0-1");
  expect_has(
      errors_of(with("workers: 3"), options({"run.cores=3,8,9"})),
      "--set run.cores=3,8,9: cores: outside the CPU affinity mask of this process: found 8-9, expected cores of "
      "0-3");
  machine_.write("proc/thread-self/cgroup", "0::/a\n");
  machine_.write("sys/fs/cgroup/a/cpuset.cpus.effective", "0-3\n");
  expect_has(errors_of(with("cores: 8"), options()), "cores: outside the cpuset of this process's cgroup: found 8");
}

TEST_F(ChainFileOnTwoNodes, AcceptsIsolatedCores) {
  machine_.cpus("0-15", "0-15", "4-7");
  machine_.process("0-3,8-15", "0-1");
  EXPECT_EQ(placed("cores: 4-5"), "4 5 | 0-3,8-15");
}

TEST_F(ChainFileOnTwoNodes, RefusesWhatIsNotAListOfCores) {
  for (const char* const wrong :
       {"''", "[]", "{a: 1}", "-1", "5-2", "'2,2'", "[2-3, 3]", "[2, [3]]", "0x1", "1.5", "all", "99999999999999999999",
        "0-8192", "[0-8191, 0-8191]", "~", "[~]", "2-", "2;3", "0-10:2"}) {
    SCOPED_TRACE(wrong);
    const std::string errors = errors_of(with(std::string("cores: ") + wrong), options());
    expect_has(errors, "chain.yaml:3:");
    expect_has(errors, "cores: wrong value");
  }
  expect_has(errors_of(with("cores: 5-2"), options()),
             "chain.yaml:3:14: cores: wrong value: found '5-2', expected distinct numbers and ranges such as 2-5,8");
}

TEST_F(ChainFileOnTwoNodes, CanBePlannedForAnotherMachine) {
  LoadOptions only_plan = options();
  only_plan.only_plan = true;
  const auto loaded = load(with("cores: 14-17"), only_plan);
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_TRUE(loaded->chain.settings.placement.workers.empty());
  expect_has(to_string(loaded->cautions), "cores: no such core: found 16-17");
}

TEST_F(ChainFile, AnUnknownKeyOfAnOverrideIsReportedByItsText) {
  const auto errors = [&](const char* text) { return errors_of(kGood, {{*parse_override(text)}, false, false}); };
  expect_has(errors("run.wrkers=3"), "--set run.wrkers=3: unknown parameter: found 'wrkers', expected workers");
  expect_has(errors("outputs.reprt=r.json"), "--set outputs.reprt=r.json: unknown parameter: found 'reprt'");
  expect_has(errors("rum.workers=3"), "--set rum.workers=3: unknown section: found 'rum', expected run");
  expect_has(errors("chain.0.firewall.rule=x"), "--set chain.0.firewall.rule=x: unknown parameter: found 'rule'");
  expect_has(errors("run.workers="), "--set run.workers=: workers: wrong value: found ''");
  expect_has(errors("run.workers=3\n---\n4"), "a second YAML document");
}

TEST_F(ChainFile, AnOverrideInsideAValueOfTheFileIsReportedByItsText) {
  const std::string macs =
      "ports: {lan: {pcap: {read: x}}, wan: {pcap: {write: y}}}\nchain:\n"
      "  - router: {routes: routes, macs: {lan: '02:00:00:00:00:01'}}\n";
  const auto errors = [&](std::vector<const char*> texts) {
    LoadOptions options;
    for (const char* text : texts) options.overrides.push_back(*parse_override(text));
    return errors_of(macs, options);
  };
  expect_has(errors({"chain.router.macs.wan=ff:ff:ff:ff:ff:ff"}),
             "--set chain.router.macs.wan=ff:ff:ff:ff:ff:ff: wrong MAC address of port wan");
  expect_has(errors({"ports.lan=null"}), "--set ports.lan=null: port lan: wrong value: found nothing");
  expect_has(errors({"chain.0.firewall.rules=x"}),
             "--set chain.0.firewall.rules=x: chain: two functions in one list item: found 'firewall'");
  expect_has(errors({"run.workers=0", "run.workers=x"}), "--set run.workers=x: workers: wrong value: found 'x'");
  expect_has(errors({"run={workers: 2}", "run.workers=0"}), "--set run.workers=0: workers: wrong value: found '0'");
  expect_has(errors({"ports={}"}),
             "--set ports={}: ports: wrong value: found an empty mapping, expected a mapping of names");
}

TEST_F(ChainFile, AnOverrideCannotAddAPort) {
  const auto errors = [&](const char* text) { return errors_of(kGood, {{*parse_override(text)}, false, false}); };
  expect_has(errors("ports.lna.pcap.read=x"),
             "--set ports.lna.pcap.read=x: no such name in `ports`: found 'lna', expected lan");
  expect_has(errors("ports.lna={pcap: {read: x}}"), "no such name in `ports`: found 'lna', expected lan");
  expect_has(errors("ports.lan.read=x"), "--set ports.lan.read=x: port lan: more than one kind: found 'read'");
  expect_has(errors("chain.ruoter.routes=x"), "found 'ruoter', expected router");
}

TEST_F(ChainFile, AnOverrideNamesAFunctionAsReportsDo) {
  const std::string chain =
      "ports: {lan: {pcap: {read: in.pcap, write: out.pcap}}}\n"
      "chain:\n"
      "  - firewall: {rules: rules}\n"
      "  - router: {routes: routes}\n"
      "  - firewall: {rules: rules}\n";
  const auto errors = [&](const char* text) { return errors_of(chain, {{*parse_override(text)}, false, false}); };
  expect_has(errors("chain.firewall#2.rules=/second"), "--set chain.firewall#2.rules=/second: /second: cannot open");
  expect_has(errors("chain.firewall#1.rules=/first"), "/first: cannot open");
  expect_has(errors("chain.firewall#3.rules=x"), "no such name or position in the list: found 'firewall#3'");
  expect_has(errors("chain.firewall#0.rules=x"), "no such name or position in the list: found 'firewall#0'");
}

TEST_F(ChainFile, AnOverrideGivesAFunctionItsFirstParameter) {
  for (const char* const functions : {"  - firewall\n  - router\n", "  - firewall:\n  - router:\n"}) {
    const std::string chain =
        std::string("ports: {lan: {pcap: {read: in.pcap}}, wan: {pcap: {write: out.pcap}}}\nchain:\n") + functions;
    const auto loaded = load(chain, {{*parse_override("chain.router.routes=" + folder_ + "/routes"),
                                      *parse_override("chain.firewall.rules=" + folder_ + "/rules")},
                                     false,
                                     false});
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    EXPECT_EQ(loaded->chain.functions[1].name, "router");
  }
}

TEST_F(ChainFile, AnOverrideReachesANameWithDots) {
  const std::string ports = "ports: {eth0: {pcap: {read: a}}, eth0.100: {pcap: {read: b}}, out: {pcap: {write: c}}}\n";
  const std::string chain = "chain: []\n";
  const auto wired = [&](const char* text) { return load(ports + chain, {{*parse_override(text)}, false, false}); };
  const auto loaded = wired("ports.eth0.100.pcap.write=d");
  ASSERT_FALSE(loaded) << "two ports write now";
  expect_has(to_string(loaded.error()), "several ports write");
  expect_has(errors_of(ports + chain, {{*parse_override("ports.eth0.200.pcap.read=x")}, false, false}),
             "port eth0: more than one kind: found '200'");
}

TEST_F(ChainFile, ReportsWhereAMissingFileIsNamed) {
  const std::string errors = errors_of(
      "ports: {lan: {pcap: {read: x}}}\nchain:\n  - firewall: {rules: missing}\n  - router: {routes: gone}\n");
  expect_has(errors, "chain.yaml:3:23: ");
  expect_has(errors, "/missing: cannot open: No such file or directory");
  expect_has(errors, "chain.yaml:4:22: ");
  expect_has(errors_of(kGood, {{*parse_override("chain.router.routes=/gone")}, false, false}),
             "--set chain.router.routes=/gone: /gone: cannot open: No such file or directory");
}

TEST_F(ChainFile, RefusesASecondDocument) {
  expect_has(errors_of(std::string(kGood) + "---\nrun: {workers: 3}\n"), "chain.yaml:9:1: a second YAML document");
  expect_has(errors_of(std::string(kGood) + "---\n"), "a second YAML document");
  EXPECT_TRUE(load("---\n" + std::string(kGood) + "...\n"));
}

TEST_F(ChainFile, RefusesContentAfterItsDocument) {
  constexpr const char* kBehind = "text after the end of the YAML document";
  expect_has(errors_of("- a\n- b\n,"), std::string("chain.yaml:3:1: ") + kBehind);
  expect_has(errors_of(","), std::string("chain.yaml:1:1: ") + kBehind);
  expect_has(errors_of("ports: {}\n...\nchain: []\n"), std::string("chain.yaml:3:1: ") + kBehind);
  expect_has(errors_of(kGood, {{*parse_override("run.gpus=,")}, false, false}),
             std::string("--set run.gpus=,: ") + kBehind + ": found ','");
}

TEST_F(ChainFile, ListsTheKeysOfASectionInRun) {
  expect_has(
      errors_of(kGood, {{*parse_override("run.batch=3")}, false, false}),
      "--set run.batch=3: batch: wrong value: found '3', expected a mapping with bytes, packets, timeout, close");
  expect_has(errors_of(kGood, {{*parse_override("run.batch.packets=0")}, false, false}),
             "batch.packets: wrong value: found '0', expected a whole number in 1..1048576");
}

TEST_F(ChainFile, RefusesAnOverrideThatContainsItself) {
  const auto errors = [&](const char* text) { return errors_of(kGood, {{*parse_override(text)}, false, false}); };
  expect_has(errors("wire=&a [*a]"), "--set wire=&a [*a]: values nested too deeply");
  expect_has(errors("run=&a {x: *a}"), "--set run=&a {x: *a}: values nested too deeply");
}

TEST_F(ChainFile, WiresPortsExplicitly) {
  const std::string ports = "ports: {lan: {pcap: {read: a, write: b}}, wan: {pcap: {read: c, write: d}}}\n";
  const std::string chain = "chain: [firewall: {rules: rules}]\n";
  const auto loaded = load(ports + chain + "wire: {lan: wan, wan: lan}\n");
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(loaded->chain.wiring, (std::vector<PortIndex>{1, 0}));
  expect_has(errors_of(ports + chain), "several ports write");
  expect_has(errors_of(ports + chain + "wire: {lan: dmz}\n"),
             "wire: no such port: found 'dmz', expected one of lan, wan");
  expect_has(errors_of(ports + chain + "wire: {}\n"), "chain.yaml:3:7: wire: wrong value: found an empty mapping");
  expect_has(errors_of(ports + chain + "wire: {lan: wan, lan: lan}\n"), "chain.yaml:3:18: wire: lan given twice");
}

TEST_F(ChainFile, TellsFunctionsWhereItIsWired) {
  put("bridge", R"({"nftables": [{"metainfo": {"json_schema_version": 1}},
    {"chain": {"family": "bridge", "table": "t", "name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
    {"rule": {"family": "bridge", "table": "t", "chain": "c", "expr": [
      {"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "wan"}}, {"accept": null}]}}]})");
  const auto loaded = load(
      "ports: {lan: {pcap: {read: a, write: b}}, wan: {pcap: {read: c, write: d}}}\n"
      "chain: [firewall: {rules: bridge, family: bridge}]\nwire: {lan: wan, wan: lan}\n");
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  const auto stage = loaded->chain.functions.front().function->make_cpu_stage();
  std::vector<std::uint8_t> frame(60);
  for (const PortIndex in : {PortIndex{0}, PortIndex{1}}) {
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.in_port = in;
    PacketView view{frame.data(), &descriptor};
    stage->process({&view, 1});
    EXPECT_EQ(descriptor.verdict.alive(), in == 0);
  }
}

TEST_F(ChainFile, AcceptsNullAsAPortKindOnly) {
  EXPECT_TRUE(load("ports: {a: {pcap: {read: x}}, b: {null: {}}}\nchain: []\n"));
  expect_has(errors_of("ports: {a: {pcap: {read: x}}, b: }\nchain: []\n"), "port b: wrong value: found nothing");
  expect_has(errors_of("ports: {a: {pcap: {read: x}}, null: {null: {}}}\nchain: []\n"),
             "wrong port name: found nothing (YAML's null), expected a name; 'null' must be quoted");
  EXPECT_TRUE(load("ports: {a: {pcap: {read: x}}, 'null': {null: {}}}\nchain: []\n"));
}

TEST_F(ChainFile, RefusesToOverwriteItsOwnFiles) {
  const std::string chain = "chain: [firewall: {rules: rules}]\n";
  expect_has(errors_of("ports:\n  lan: {pcap: {read: a}}\n  wan: {pcap: {write: ./a}}\n" + chain),
             "chain.yaml:3:23: would overwrite the file that " + folder_ + "/chain.yaml:2 reads");
  expect_has(errors_of("ports: {lan: {pcap: {read: a}}, wan: {pcap: {write: rules}}}\n" + chain), "would overwrite");
  expect_has(errors_of("ports: {lan: {pcap: {read: a}}, wan: {pcap: {write: b}}}\noutputs: {report: b}\n" + chain),
             "would overwrite");
  expect_has(errors_of("ports: {lan: {pcap: {read: a}}, wan: {pcap: {write: chain.yaml}}}\n" + chain),
             "would overwrite");
  EXPECT_TRUE(
      load("ports: {lan: {pcap: {read: a}}, wan: {pcap: {write: /dev/null}}}\noutputs: {report: /dev/null}\n" + chain));
}

TEST_F(ChainFile, UsesTheStandardInputAndOutputOnlyOnce) {
  const std::string chain = "chain: []\n";
  expect_has(errors_of("ports: {a: {pcap: {read: ['-', '-']}}}\n" + chain), "standard input can be read only once");
  expect_has(errors_of("ports:\n  a: {pcap: {read: '-'}}\n  b: {memory: {read: '-'}}\n" + chain),
             "chain.yaml:3:22: standard input can be read only once: found - here and at " + folder_ + "/chain.yaml:2");
  expect_has(errors_of("ports: {a: {pcap: {read: '-', write: '-'}}}\noutputs: {report: '-'}\n" + chain),
             "standard output is already in use");
  EXPECT_TRUE(load("ports: {a: {pcap: {read: '-', write: '-'}}}\n" + chain));
  const auto loaded = load("ports: {a: {pcap: {read: x}}}\n" + chain,
                           {{{"ports.a.pcap.write", "-", "--set ports.a.pcap.write=-"}}, false, false});
  ASSERT_TRUE(loaded) << "no list, as it would be in YAML: " << to_string(loaded.error());
  EXPECT_TRUE(loaded->writes_stdout);
}

TEST_F(ChainFile, ChecksTheFilesOfItsPortsAndOutputsWhereTheyAreNamed) {
  put("in.pcap", "no capture");
  const auto loaded = load(
      "ports:\n  lan: {pcap: {read: [in.pcap, none.pcap]}}\n  wan: {pcap: {write: none/out.pcap}}\nchain: []\n"
      "outputs: {report: none/report.json}\n");
  ASSERT_TRUE(loaded) << to_string(loaded.error()) << "only a run needs them";
  const std::string errors = to_string(check_files(*loaded));
  for (const char* place : {"chain.yaml:2:23: ", "chain.yaml:2:32: ", "chain.yaml:3:23: ", "chain.yaml:5:19: "})
    expect_has(errors, place);
  expect_has(errors, "/in.pcap: not a readable capture");
  expect_has(errors, "/none.pcap: cannot open");
  expect_has(errors, "/none/out.pcap: cannot write");
  expect_has(errors, "/none/report.json: cannot write");
}

TEST_F(ChainFile, DetectsWhetherAnOutputIsStdout) {
  const auto writes = [&](const char* port, const char* report) {
    const auto loaded = load("ports: {lan: {pcap: {read: '-'}}, wan: {pcap: {write: " + std::string(port) +
                             "}}}\noutputs: {report: " + report + "}\nchain: []\n");
    EXPECT_TRUE(loaded);
    return loaded && loaded->writes_stdout;
  };
  EXPECT_FALSE(writes("x.pcap", "r.json")) << "what is read from `-` is stdin";
  EXPECT_TRUE(writes("'-'", "r.json"));
  EXPECT_TRUE(writes("/dev/stdout", "r.json"));
  EXPECT_TRUE(writes("x.pcap", "/dev/stdout"));
}

TEST_F(ChainFile, LimitsTheNumberOfPorts) {
  const auto with_ports = [](int count) {
    std::string yaml = "chain: []\nports:\n  lan: {pcap: {read: in.pcap}}\n";
    for (int i = 1; i < count; ++i) yaml += "  p" + std::to_string(i) + ": {pcap: {read: in.pcap}}\n";
    return yaml;
  };
  const auto loaded = load(with_ports(1024));
  ASSERT_TRUE(loaded) << to_string(loaded.error());
  EXPECT_EQ(loaded->chain.ports.size(), 1024U);
  expect_has(errors_of(with_ports(1025)),
             "chain.yaml:3:3: ports: too many: found 1,025 ports, expected 1,024 or fewer");
}

TEST_F(ChainFile, ReportsThatNoPortReads) {
  expect_has(errors_of("ports: {wan: {pcap: {write: x}}}\nchain: []\n"), "no port reads");
}

TEST_F(ChainFile, ReportsWhyItCannotRunOnTheGpu) {
  const LoadOptions on_gpu{{*parse_override("run.processor=gpu")}, false, false};
  expect_has(errors_of("ports: {a: {pcap: {read: x}}}\nchain: []\n", on_gpu),
             "--set run.processor=gpu: no function of the chain has a GPU stage: found 'gpu', expected auto or cpu");
  const gpu::DeviceList list = gpu::list_devices();
  if (list.availability != gpu::Availability::kUsable) {
    expect_has(errors_of(kGood, on_gpu), "--set run.processor=gpu: no GPU can be used here: " + list.reason);
  }
  EXPECT_TRUE(load(kGood, {{*parse_override("run.processor=gpu")}, false, true})) << "a plan may be made for it";
}

/// kGood with a processor for each function; "" for none.
std::string with_processors(std::string good, const std::string& firewall, const std::string& router) {
  const auto add = [&](const std::string& after, const std::string& processor) {
    if (!processor.empty()) good.insert(good.find(after) + after.size(), ", processor: " + processor);
  };
  add("rules: rules", firewall);
  add("routes: routes", router);
  return good;
}

TEST_F(ChainFile, PlacesSingleFunctionsOnAnotherProcessor) {
  using function::Processor;
  const auto processors = [&](const std::string& firewall, const std::string& router, const std::string& run) {
    auto loaded =
        load(with_processors(kGood, firewall, router), {{*parse_override("run.processor=" + run)}, false, true});
    EXPECT_TRUE(loaded) << to_string(loaded.error());
    return loaded ? loaded->chain.processors() : plan::Processors{};
  };
  const plan::Processors on_gpu{Processor::gpu, Processor::gpu};
  const plan::Processors on_cpu{Processor::cpu, Processor::cpu};
  const plan::Processors mixed{Processor::gpu, Processor::cpu};
  EXPECT_EQ(processors("", "", "gpu"), on_gpu);
  EXPECT_EQ(processors("auto", "gpu", "gpu"), on_gpu);
  EXPECT_EQ(processors("auto", "cpu", "gpu"), mixed);
  EXPECT_EQ(processors("cpu", "auto", "cpu"), on_cpu);
  EXPECT_EQ(processors("gpu", "cpu", "auto"), mixed) << "one function asks for a GPU";
  EXPECT_EQ(processors("gpu", "auto", "auto"), on_gpu) << "the others follow";

  LoadOptions options;
  options.overrides = {*parse_override("run.processor=gpu"), *parse_override("chain.router.processor=cpu")};
  options.only_plan = true;
  EXPECT_EQ(load(kGood, options)->chain.processors(), mixed);
  const std::string forked =
      "ports: {lan: {pcap: {read: in.pcap}}, wan: {pcap: {write: out.pcap}}}\n"
      "chain: [fork: [{when: {in_port: lan}, chain: [firewall: {rules: rules}]}, {chain: [router: {routes: "
      "routes}]}]]\n";
  options.overrides[1] = *parse_override("chain.fork.1.chain.router.processor=cpu");
  EXPECT_EQ(load(forked, options)->chain.processors(), mixed);
}

TEST_F(ChainFile, ReportsWhereProcessorsOfFunctionsCannotBe) {
  const auto refused = [&](const std::string& firewall, const std::string& router, const std::string& run,
                           bool only_plan = true) {
    return errors_of(with_processors(kGood, firewall, router),
                     {{*parse_override("run.processor=" + run)}, false, only_plan});
  };
  expect_has(refused("fpga", "", "auto"),
             "chain.yaml:5:41: processor: wrong value: found 'fpga', expected auto, cpu or gpu");
  expect_has(refused("", "gpu", "cpu"),
             "chain.yaml:6:41: processor: not possible in a run on the CPU (run.processor: --set run.processor=cpu): "
             "found 'gpu', expected auto or cpu, or another run.processor");
  expect_has(refused("cpu", "cpu", "gpu", false),
             "--set run.processor=gpu: all functions of the chain that have a GPU stage are to run on the CPU: found "
             "'gpu', expected auto or cpu");
  EXPECT_TRUE(load(with_processors(kGood, "cpu", "cpu"))) << "no GPU is asked for";
  const gpu::DeviceList list = gpu::list_devices();
  if (list.availability != gpu::Availability::kUsable)
    expect_has(refused("", "gpu", "auto", false), "chain.yaml:6:41: no GPU can be used here: " + list.reason);
}

TEST_F(ChainFile, RefusesAProcessorForWhichAFunctionHasNoStage) {
  struct OnHost final : function::NetworkFunction {
    const function::NfTraits& traits() const noexcept override { return own; }
    std::unique_ptr<function::CpuStage> make_cpu_stage() override { return nullptr; }
    std::string description() const override { return "on the host"; }
    function::NfTraits own{.name = "on_host", .summary = ""};
  };
  static constexpr function::NfKind kOnHost{
      "on_host",
      "",
      {},
      [](const Parameters&, function::NfContext&) -> Result<std::unique_ptr<function::NetworkFunction>> {
        return std::make_unique<OnHost>();
      }};
  const std::array kinds{&kOnHost};
  LoadOptions options;
  options.functions = kinds;
  options.only_plan = true;
  const std::string chain = "ports: {lan: {pcap: {read: in.pcap}}, wan: {null: {}}}\nchain: [on_host: {processor: ";
  expect_has(errors_of(chain + "gpu}, on_host: {processor: gpu}]\n", options),
             "chain.yaml:2:57: processor: on_host#2 has no stage for it: found 'gpu', expected auto or cpu");
  EXPECT_TRUE(load(chain + "cpu}]\n", options));
}

TEST_F(ChainFile, MakesLargerBatchesForAGpu) {
  const auto settings = [&](std::vector<Override> overrides) {
    overrides.push_back(*parse_override("run.batch={}"));
    const auto loaded = load(kGood, {std::move(overrides), false, true});
    EXPECT_TRUE(loaded);
    return loaded ? loaded->chain.settings : run::RunSettings{};
  };
  EXPECT_EQ(settings({}).batch_packets, 512U);
  EXPECT_EQ(settings({*parse_override("run.processor=gpu")}).batch_packets, 16384U);
  EXPECT_EQ(settings({*parse_override("run.processor=gpu")}).batch_bytes, std::size_t{4} << 20);
}

TEST_F(ChainFile, RefusesWrongNumbersOfGpusEvenWithoutAGpu) {
  for (const char* given : {"a", "-1", "256", "1.5", "0,", "0,0", "[0, 0]", "[]", "{a: 1}"}) {
    const std::string option = std::string("run.gpus=") + given;
    expect_has(errors_of(kGood, {{*parse_override(option)}, false, true}), "--set " + option + ": gpus: wrong value");
  }
  for (const char* given : {"3", "0,1", "'0, 1'", "[0, 1]"}) {
    EXPECT_TRUE(load(kGood, {{*parse_override(std::string("run.gpus=") + given)}, false, true})) << given;
  }
}

TEST_F(ChainFile, SizesBatchesForAGpuByRateAndLatency) {
  const auto batch_bytes = [&](const std::vector<std::string>& given) {
    std::vector<Override> overrides{*parse_override("run.processor=gpu"), *parse_override("run.batch={}"),
                                    *parse_override("run.streams=3")};
    for (const std::string& text : given) overrides.push_back(*parse_override(text));
    const auto loaded = load(kGood, {std::move(overrides), false, true});
    EXPECT_TRUE(loaded) << to_string(loaded.error());
    return loaded ? loaded->chain.settings.batch_bytes : 0;
  };
  // 1.6 x 100 Gbit/s x 1 ms is 20 MB, for five batches of each of four workers.
  EXPECT_EQ(batch_bytes({"run.workers=4", "run.latency=1ms", "run.rate=100Gbps"}), 1'000'000U);
  EXPECT_EQ(batch_bytes({"run.workers=4", "run.latency=1ms"}), 4'000'000U) << "400 Gbit/s";
  EXPECT_EQ(batch_bytes({"run.workers=1", "run.latency=10ms"}), std::size_t{4} << 20) << "more carries no faster";
  EXPECT_EQ(batch_bytes({"run.workers=4", "run.latency=1us"}), std::size_t{64} << 10);
  EXPECT_EQ(batch_bytes({"run.workers=4", "run.latency=1ms", "run.batch.bytes=2MiB"}), std::size_t{2} << 20);
  EXPECT_EQ(batch_bytes({"run.workers=4", "run.latency=1ms", "run.transfer=direct"}), std::size_t{4} << 20);
  expect_has(errors_of(std::string(kGood), {{*parse_override("run.rate=2Mpps")}, false, true}),
             "--set run.rate=2Mpps: rate: wrong value: found '2Mpps', expected a rate in 1Mbps..100Tbps");
}

TEST_F(ChainFile, HasSettingsForComparisons) {
  const auto settings = [&](const std::vector<std::string>& given) {
    std::vector<Override> overrides{*parse_override("run.processor=gpu")};
    for (const std::string& setting : given) overrides.push_back(*parse_override(setting));
    const auto loaded = load(kGood, {std::move(overrides), false, true});
    EXPECT_TRUE(loaded) << to_string(loaded.error());
    return loaded ? loaded->chain.settings : run::RunSettings{};
  };
  EXPECT_TRUE(settings({}).collects_launches);
  EXPECT_TRUE(settings({}).defers_finish);
  EXPECT_FALSE(settings({"run.launches=separate"}).collects_launches);
  EXPECT_FALSE(settings({"run.finish=immediate"}).defers_finish);
  for (const std::string_view sharing : plan::kSharingNames) {
    const auto read = settings({"run.sharing=" + std::string(sharing)}).sharing;
    EXPECT_EQ(plan::kSharingNames[static_cast<std::size_t>(read)], sharing);
  }
}

class GpuSharesInAChainFile : public ChainFile {
 protected:
  void SetUp() override {
    ChainFile::SetUp();
    put("ids", "alert tcp any any -> any any (content:\"needle\"; sid:1;)\n");
  }
  static constexpr const char* kInspected =
      "ports: {lan: {pcap: {read: in.pcap}}, wan: {pcap: {write: out.pcap}}}\n"
      "chain: [firewall: {rules: rules}, nids: {rules: ids}, nids: {rules: ids}, router: {routes: routes}]\n";
  [[nodiscard]] static LoadOptions with(const std::string& shares, const std::string& processor = "gpu") {
    LoadOptions options;
    options.overrides = {*parse_override("run.processor=" + processor), *parse_override("run.gpu_shares=" + shares)};
    options.only_plan = true;
    return options;
  }
};

TEST_F(GpuSharesInAChainFile, AreThoseOfFunctionsByName) {
  const auto given = load(kInspected, with("nids#2 = 33, nids=0x10"));
  ASSERT_TRUE(given) << to_string(given.error());
  const plan::GpuShares& shares = given->chain.settings.gpu_shares;
  EXPECT_EQ(shares.choice, plan::GpuShares::Choice::given);
  EXPECT_EQ(shares.of(0), 0U);
  EXPECT_EQ(shares.of(1), 16U);
  EXPECT_EQ(shares.of(2), 33U);
  EXPECT_EQ(shares.of(3), 0U);
  EXPECT_EQ(load(kInspected, with("auto"))->chain.settings.gpu_shares.choice, plan::GpuShares::Choice::automatic);
  const auto whole = load(kInspected, with("whole"));
  EXPECT_EQ(whole->chain.settings.gpu_shares.choice, plan::GpuShares::Choice::whole);
  EXPECT_EQ(whole->chain.settings.gpu_shares.of(1), 0U);
}

TEST_F(GpuSharesInAChainFile, AreRefusedWithTheReason) {
  const auto refused = [&](const std::string& shares) { return errors_of(kInspected, with(shares)); };
  const std::string place = "--set run.gpu_shares=";
  expect_has(refused("half"), place +
                                  "half: gpu_shares: wrong value: found 'half', expected whole, auto, or "
                                  "multiprocessors per function, such as nids=66,ipsec=33");
  expect_has(refused("nids=1,"), "gpu_shares: wrong value: found ''");
  expect_has(refused("nidz=3"), "gpu_shares: no such function in the chain: found 'nidz', expected nids");
  expect_has(refused("ipsec=3"), "found 'ipsec', expected one of firewall, nids, nids#2, router");
  for (const char* wrong : {"0", "-1", "", "1.5", "all", "1025"}) {
    expect_has(refused(std::string("nids=") + wrong),
               std::string("gpu_shares: wrong number of multiprocessors for nids: found '") + wrong +
                   "', expected a whole number in 1..1024");
  }
  expect_has(refused("nids=3,nids=4"), "gpu_shares: given twice: found 'nids'");
  expect_has(refused("router=3"),
             "gpu_shares: shares cannot limit this function's GPU stage: found 'router', expected one of nids, "
             "nids#2");
  expect_has(errors_of(kGood, with("router=3")), "expected whole: no function of the chain can have a share");
  LoadOptions on_cpu = with("nids=3");
  on_cpu.overrides.push_back(*parse_override("chain.nids.processor=cpu"));
  expect_has(errors_of(kInspected, on_cpu), "gpu_shares: this function runs on the CPU: found 'nids', expected nids#2");
  const std::string both = refused("nids=0,router=3");
  expect_has(both, "wrong number");
  expect_has(both, "shares cannot limit");
}

TEST_F(GpuSharesInAChainFile, HaveNoEffectOnTheCpu) {
  const auto loaded = load(kInspected, with("auto", "cpu"));
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->without_effect.size(), 1U);
  expect_has(to_string(loaded->without_effect), "gpu_shares has no effect on the CPU: found 'auto'");
}

TEST_F(GpuSharesInAChainFile, AreChosenByRateEvenWithoutALatency) {
  LoadOptions options = with("auto");
  options.overrides.push_back(*parse_override("run.rate=100Gbps"));
  const auto loaded = load(kInspected, options);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->without_effect.empty());
  EXPECT_DOUBLE_EQ(loaded->chain.settings.wished_bits_per_second(), 100e9);
}

// Warnings about chain files that contain settings without effect, or weaken protection.
class WeakChainFile : public ChainFile {
 protected:
  [[nodiscard]] std::string warnings_of(const std::string& yaml) {
    const auto loaded = load(yaml);
    if (!loaded) return "refused: " + to_string(loaded.error());
    return to_string(loaded->without_effect) + '\n' + to_string(loaded->cautions);
  }
  static std::string between_ports(const std::string& chain) {
    return "ports: {lan: {pcap: {read: in.pcap}}, wan: {pcap: {write: out.pcap}}}\nchain:\n" + chain;
  }
  static constexpr const char* kRules =
      "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -i eth0 -j DROP\n-A FORWARD -i ppp+ -j DROP\nCOMMIT\n";
};

TEST_F(WeakChainFile, RefusesRulesThatAskForRoutesWithoutOneRouter) {
  put("routed", "*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m rpfilter --invert -j DROP\nCOMMIT\n");
  put("routes", "10.0.0.0/8 dev wan\n");
  const std::string firewall =
      "  - firewall: {rules: routed, format: iptables, hook: prerouting, addresses: {wan: 192.0.2.1/24}}\n";
  const std::string router = "  - router: {routes: routes}\n";
  expect_has(errors_of(between_ports(firewall)),
             "rules ask for routes (rpfilter, or fib with an interface): found 0 routers in the chain, expected one "
             "`router` in the chain");
  expect_has(errors_of(between_ports(firewall + router + router)), "found 2 routers in the chain");
  EXPECT_EQ(warnings_of(between_ports(firewall + router)).find("refused"), std::string::npos);
}

TEST_F(WeakChainFile, RefusesTwoPortsThatReadFromOneInterface) {
  const auto two = [](const std::string& lan, const std::string& wan) {
    return "ports: {lan: {af_packet: {interface: eth1" + lan + "}}, wan: {af_packet: {interface: eth1" + wan +
           "}}}\nwire: {lan: wan}\nchain:\n  - filter: {expression: ip}\n";
  };
  expect_has(errors_of(two("", "")),
             "chain.yaml:1:46: port wan reads what port lan reads: found 'eth1', expected another interface");
  EXPECT_EQ(warnings_of(two(", direction: read", ", direction: write")), "\n");
  EXPECT_EQ(warnings_of(two(", netns: one", ", netns: two")), "\n");
}

TEST_F(WeakChainFile, WarnsAboutHooksThatFirewallsStandForTwice) {
  put("rules", "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n");
  constexpr const char* kFirewall = "firewall: {rules: rules, hook: forward}";
  expect_has(warnings_of(between_ports(fmt::format("  - {0}\n  - {0}\n", kFirewall))),
             "chain.yaml:4:23: two firewalls with the same rules at hook forward");
  // Each packet passes only one of them.
  EXPECT_EQ(warnings_of(between_ports(fmt::format(
                "  - fork:\n    - when: {{in_port: lan}}\n      chain: [{0}]\n    - chain: [{0}]\n", kFirewall))),
            "\n");
}

TEST_F(WeakChainFile, RefusesAFirewallThatItCannotApplyAsAWhole) {
  put("rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m geoip --source-country XX -j DROP\nCOMMIT\n");
  const std::string refused = errors_of(kGood);
  expect_has(refused,
             "rules:3:15: match extension geoip is not supported: without this rule, packets that it drops "
             "continue to the next rules");
  expect_has(refused,
             "chain.yaml:5:23: refused because of 1 unsupported construct, listed above: expected "
             "`unsupported: skip` to apply the rest");
  const std::string skips = between_ports("  - firewall: {rules: rules, unsupported: skip}\n");
  const auto skipped = load(skips);
  ASSERT_TRUE(skipped) << to_string(skipped.error());
  EXPECT_EQ(skipped->unsupported.size(), 1U);
  LoadOptions strict;
  strict.strict = true;
  expect_has(errors_of(skips, strict), "--strict: refused because of the construct above");
}

TEST_F(WeakChainFile, WarnsAboutRoutersWhoseFramesReachNoHost) {
  put("routes", "default via 192.0.2.1 dev wan\n");
  put("neighbours", "192.0.2.1 dev wan lladdr 02:00:00:00:00:01 REACHABLE\n");
  const auto live = [](const std::string& router) {
    return "ports: {lan: {af_packet: {interface: no-such-lan}}, wan: {af_packet: {interface: no-such-wan}}}\n"
           "chain:\n  - router: {routes: routes" +
           router + "}\n";
  };
  expect_has(
      warnings_of(live("")),
      "chain.yaml:3:22: router without `neighbours`: frames keep the destination MAC address with which they "
      "came, and no host takes them: found lan, wan, expected `neighbours: kernel`, or the output of `ip neigh`");
  expect_has(warnings_of(live(", neighbours: neighbours, macs: {lan: 02:00:00:00:00:02}")),
             "router without `macs`: frames keep the source MAC address of the host that has sent them: found wan, ");
  for (const char* const whole : {", neighbours: kernel",
                                  ", neighbours: neighbours, macs: {lan: 02:00:00:00:00:02, "
                                  "wan: 02:00:00:00:00:03}"})
    EXPECT_EQ(warnings_of(live(whole)), "\n");
  EXPECT_EQ(warnings_of(between_ports("  - router: {routes: routes}\n")), "\n") << "captures have no hosts";
}

TEST_F(WeakChainFile, WarnsAboutAFirewallThatAcceptsWithoutRules) {
  put("rules", "*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [0:0]\n-A INPUT -s 10.0.0.0/8 -j DROP\nCOMMIT\n");
  expect_has(warnings_of(kGood),
             "chain.yaml:5:23: all packets pass: the policy is accept, and there are no rules to apply");
  put("rules", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
  expect_has(warnings_of(kGood), "chain.yaml:5:23: all packets pass: the policy is accept");
  put("rules", "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.0/8 -j DROP\nCOMMIT\n");
  expect_has(warnings_of(kGood),
             "chain.yaml:5:23: all IPv6 packets pass: the policy is accept, and no rule applies to them");
}

TEST_F(WeakChainFile, WarnsAboutAFamilyWithoutAChainOfNftables) {
  const auto rules_for = [](const std::string& family) {
    return R"({"nftables": [{"chain": {"family": ")" + family +
           R"(", "table": "t", "name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": "accept"}},
           {"rule": {"family": ")" +
           family + R"(", "table": "t", "chain": "c", "expr": [{"drop": null}]}}]})";
  };
  put("rules", rules_for("ip"));
  expect_has(warnings_of(kGood), "chain.yaml:5:23: all IPv6 packets pass: the policy is accept");
  put("rules", R"({"nftables": [{"chain": {"family": "ip", "table": "t", "name": "c", "type": "filter",
                                           "hook": "forward", "prio": 0, "policy": "drop"}}]})");
  expect_has(warnings_of(kGood), "chain.yaml:5:23: all IPv6 packets pass: the policy is accept");
  put("rules", rules_for("inet"));
  EXPECT_EQ(warnings_of(kGood).find("packets pass"), std::string::npos) << "the rule is for both";
}

TEST_F(WeakChainFile, WarnsAboutUnusedInterfacesAndAcceptsWildcards) {
  put("rules", kRules);
  const std::string warnings = warnings_of(
      between_ports("  - firewall: {rules: rules, interfaces: {eth*: lan, pppp0: wan, pp+: wan, tun*: none}}\n"));
  expect_has(warnings, "interfaces: no rule names this interface: found 'tun*', expected one of eth0, ppp+");
  EXPECT_EQ(warnings.find("eth*"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("pp+'"), std::string::npos) << warnings;
  put("routes", "default dev eth7\n10.0.0.0/8 dev veth12\n");
  EXPECT_EQ(warnings_of(between_ports("  - router: {routes: routes, interfaces: {eth+: wan, veth*: none}}\n")), "\n");
  expect_has(
      warnings_of(between_ports("  - router: {routes: routes, interfaces: {eth+: wan, veth*: none, eth8: wan}}\n")),
      "interfaces: no route or neighbour names this interface: found 'eth8', expected eth7");
}

TEST_F(WeakChainFile, WarnsAboutRoutesThroughAPortThatDoesNotWrite) {
  put("routes", "default via 10.0.0.1 dev wan\n10.1.0.0/16 dev lan\n10.2.0.0/16 dev lan\n");
  expect_has(warnings_of(kGood),
             "chain.yaml:6:22: routes through port lan, which does not write: their packets are dropped "
             "(no_such_exit): found 2 routes, expected a port that writes");
}

TEST_F(WeakChainFile, WarnsAboutAnEmptyFileOfNeighbours) {
  put("routes", "default via 10.0.0.1 dev wan\n");
  put("neighbours", "");
  expect_has(warnings_of(between_ports("  - router: {routes: routes, neighbours: neighbours}\n")),
             "chain.yaml:3:42: no neighbours: packets that are routed are dropped (no_neighbour)");
}

TEST_F(WeakChainFile, WarnsAboutALogThatNoFunctionWrites) {
  const std::string outputs = "outputs: {eve: eve.json}\n";
  expect_has(warnings_of(kGood + outputs), "chain.yaml:8:16: eve: no function of the chain writes it: found '");
  const auto loaded = load(kGood + outputs);
  ASSERT_TRUE(loaded);
  EXPECT_TRUE(loaded->chain.logs.empty()) << "a file that is there is not emptied";
  put("nids.rules", "alert ip any any -> any any (msg:\"x\"; sid:1;)\n");
  EXPECT_EQ(warnings_of(between_ports("  - nids: {rules: nids.rules}\n" + outputs)), "\n");
}

TEST_F(WeakChainFile, WarnsAboutDropRulesThatOnlyAlert) {
  put("nids.rules", "drop ip any any -> any any (msg:\"x\"; sid:1;)\n");
  expect_has(
      warnings_of(between_ports("  - nids: {rules: nids.rules}\n")),
      "chain.yaml:3:19: no packets are dropped by 1 drop or reject rule: found action: alert, expected action: drop");
  EXPECT_EQ(warnings_of(between_ports("  - nids: {rules: nids.rules, action: drop}\n")), "\n");
  EXPECT_EQ(warnings_of("ports: {lan: {pcap: {read: in.pcap}}}\nchain: [nids: {rules: nids.rules}]\n"), "\n")
      << "nothing is forwarded";
}

TEST_F(WeakChainFile, WarnsAboutUnknownClasstypes) {
  put("nids.rules",
      "alert ip any any -> any any (msg:\"x\"; classtype:trojan-activty; sid:1;)\n"
      "alert ip any any -> any any (msg:\"y\"; classtype:trojan-activty; sid:2;)\n");
  expect_has(warnings_of(between_ports("  - nids: {rules: nids.rules}\n")),
             "nids.rules:1:49: unknown classtype in 2 rules; did you mean 'trojan-activity'?: found 'trojan-activty', "
             "expected a class of classification.config");
}

TEST_F(WeakChainFile, RefusesADuplicateKey) {
  put("rules", kRules);
  expect_has(errors_of(between_ports("  - firewall: {rules: rules, interfaces: {eth0: lan, ppp0: wan, eth0: wan}}\n")),
             "interfaces: a key is given twice: found 'eth0', expected each key once");
  expect_has(errors_of(between_ports("  - firewall: {rules: rules, interfaces: {ppp*: lan, ppp+: wan}}\n")),
             "interfaces: two keys mean the same: found 'ppp*' and 'ppp+', expected one of them");
  put("routes", "10.0.0.0/8 dev ppp0\n");
  LoadOptions without_captures;
  without_captures.only_plan = true;
  for (const std::string port : {"lan", "wan"}) {
    EXPECT_EQ(errors_of(between_ports("  - router: {routes: routes, interfaces: {ppp*: wan, ppp+: " + port + "}}\n"),
                        without_captures),
              folder_ +
                  "/chain.yaml:3:54: interfaces: two keys mean the same: found 'ppp*' and 'ppp+', expected one of "
                  "them");
  }
}

TEST_F(WeakChainFile, RefusesAWildcardThatIsNotTheLastCharacter) {
  put("rules", kRules);
  put("routes", "10.0.0.0/8 dev lan\n");
  const std::string error =
      "interfaces: only the last character can be a wildcard: found 'e*h0', expected a name, or its beginning and *";
  expect_has(errors_of(between_ports("  - firewall: {rules: rules, interfaces: {e*h0: lan}}\n")), error);
  expect_has(errors_of(between_ports("  - router: {routes: routes, interfaces: {e*h0: lan}}\n")), error);
}

TEST_F(WeakChainFile, RefusesASaTableWithoutAFunctionThatWritesOne) {
  expect_has(errors_of(std::string(kGood) + "outputs: {esp_sa: sa.txt}\n"),
             "chain.yaml:8:19: esp_sa: the chain has no ipsec function: expected one with SAs");
}

TEST_F(WeakChainFile, RefusesAVariableWhoseNameIsNearThatOfOneThatRulesUse) {
  put("nids.rules", "alert tcp $EXTERNAL_NET any -> $HOME_NET any (msg:\"x\"; sid:1;)\n");
  const auto with_vars = [](const std::string& vars) {
    return between_ports("  - nids: {rules: nids.rules, vars: {" + vars + "}}\n");
  };
  expect_has(errors_of(with_vars("HOME_NETT: 10.0.0.0/8")),
             "chain.yaml:3:38: vars: no rule uses this variable: found 'HOME_NETT', expected HOME_NET");
  expect_has(errors_of(with_vars("home_net: 10.0.0.0/8")),
             "chain.yaml:3:38: vars: no rule uses this variable: found 'home_net', expected HOME_NET");
  expect_has(warnings_of(with_vars("MY_PRINTERS: 10.0.0.0/8")),
             "chain.yaml:3:38: vars: no rule uses this variable: found 'MY_PRINTERS'");
  EXPECT_EQ(warnings_of(with_vars("OFFICE: 10.0.0.0/8, HOME_NET: $OFFICE, DC_SERVERS: 10.1.1.1")), "\n")
      << "a variable of a variable, and one that other rules use";
}

TEST_F(WeakChainFile, RefusesAPortAsANetworkAndANetworkAsAPort) {
  put("nids.rules", "alert tcp $HOME_NET any -> any $HTTP_PORTS (msg:\"x\"; sid:1;)\n");
  const auto with_vars = [](const std::string& vars) {
    return between_ports("  - nids: {rules: nids.rules, vars: {" + vars + "}}\n");
  };
  expect_has(errors_of(with_vars("HOME_NET: 10")), "chain.yaml:3:38: ");
  expect_has(errors_of(with_vars("HTTP_PORTS: 10.0.0.0/8")), "chain.yaml:3:38: ");
  EXPECT_EQ(warnings_of(with_vars("HOME_NET: any, HTTP_PORTS: any, EXTERNAL_NET: any")), "\n");
}

TEST_F(WeakChainFile, RefusesAVariableThatIsGivenInTwoSpellings) {
  put("nids.rules", "alert tcp $HOME_NET any -> any any (msg:\"x\"; sid:1;)\n");
  expect_has(
      errors_of(
          between_ports("  - nids: {rules: nids.rules, vars: {HOME_NET: 192.168.1.0/24, $HOME_NET: 10.0.0.0/8}}\n")),
      "vars: a variable is given twice: found '$HOME_NET=10.0.0.0/8', expected each variable once, with or without $");
}

TEST_F(WeakChainFile, RefusesFilesOfIpXfrmThatProtectNothing) {
  const std::string out =
      "src 10.0.0.0/8 dst 10.9.0.0/16 \n\tdir out priority 0 ptype main \n"
      "\ttmpl src 1.1.1.1 dst 2.2.2.2\n\t\tproto esp reqid 1 mode tunnel\n";
  const std::string in =
      "src 10.9.0.0/16 dst 10.0.0.0/8 \n\tdir in priority 0 ptype main \n"
      "\ttmpl src 2.2.2.2 dst 1.1.1.1\n\t\tproto esp reqid 1 mode tunnel\n";
  const std::string ipsec = "  - ipsec: {state: state, policy: policy, state_dir: none";
  put("state", "");
  put("policy", out);
  expect_has(errors_of(between_ports(ipsec + "}\n")),
             "state: no SAs in this file: expected output of `ip xfrm state`, run as root, with at least one SA");
  put("policy", in);
  expect_has(
      errors_of(between_ports(ipsec + "}\n")),
      "policy: no policy for this direction: all packets would leave in the clear: expected policies with dir out");
  put("policy", out);
  expect_has(
      errors_of(between_ports(ipsec + ", direction: in}\n")),
      "policy: no policy for this direction: all packets would be accepted: expected policies with dir in or fwd");
  put("state",
      "src 1.1.1.1 dst 2.2.2.2\n\tproto esp spi 0x00000100 reqid 2 mode tunnel\n"
      "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
      "\tenc cbc(aes) 0x000102030405060708090a0b0c0d0e0f\n");
  expect_has(
      warnings_of(between_ports(ipsec + "}\n")),
      "policy:1: no SA matches the template of this policy: packets that it selects are dropped (no_sa): expected ");
  put("policy",
      "src 10.0.0.0/8 dst 10.9.0.0/16 \n\tdir out priority 0 ptype main \n"
      "\ttmpl src 1.1.1.1 dst 2.2.2.2\n\t\tproto esp reqid 1 mode tunnel level use\n");
  expect_has(warnings_of(between_ports(ipsec + "}\n")), "packets that it selects leave in the clear (level use)");
  put("state", "");
  put("policy", "src 10.0.0.0/8 dst 10.9.0.0/16 \n\tdir out action block priority 0 ptype main \n");
  EXPECT_TRUE(load(between_ports(ipsec + "}\n"))) << "a policy that blocks needs no SA";
  put("policy", out + "\tmark 0x1/0xff\n");
  expect_has(errors_of(between_ports(ipsec + "}\n")), "`unsupported: skip` to apply the rest");
}

constexpr const char* kSa =
    "src 1.1.1.1 dst 2.2.2.2\n\tproto esp spi 0x00000100 reqid 1 mode tunnel\n"
    "\tauth-trunc hmac(sha1) 0x000102030405060708090a0b0c0d0e0f10111213 96\n"
    "\tenc cbc(aes) 0x000102030405060708090a0b0c0d0e0f\n";
constexpr const char* kPolicy =
    "src 10.0.0.0/8 dst 10.9.0.0/16 \n\tdir out priority 0 ptype main \n"
    "\ttmpl src 1.1.1.1 dst 2.2.2.2\n\t\tproto esp reqid 1 mode tunnel\n";

TEST_F(WeakChainFile, NamesSkippedConstructsOfIpXfrmFiles) {
  const std::string ipsec = "  - ipsec: {state: state, policy: policy, state_dir: none, unsupported: skip";
  put("state", kSa);
  put("policy", std::string(kPolicy) + "\tmark 0x1/0xff\n");
  expect_has(errors_of(between_ports(ipsec + "}\n")),
             "policy: no policy for this direction: all packets would leave in the clear: found 1 construct left out "
             "('mark'), expected policies with dir out");
  const auto drops = load(between_ports(ipsec + ", unselected: drop}\n"));
  ASSERT_TRUE(drops) << to_string(drops.error());
  const function::NetworkFunction& function = *drops->chain.functions.front().function;
  expect_has(function.description(), "out, 1 SA, 0 policies, 1 construct left out ('mark'); ");
  nlohmann::json report;
  function.report(report);
  EXPECT_EQ(report["warnings"],
            nlohmann::json::array({"1 construct left out ('mark'): packets that need them are dropped (no_policy, "
                                   "no_sa, unsupported), or leave in the clear"}));
  put("policy", kPolicy);
  put("state", std::string(kSa) + "\tmark 0x1/0xff\n");
  expect_has(warnings_of(between_ports(ipsec + "}\n")),
             "packets that it selects are dropped (no_sa): found 1 construct left out ('mark'), expected ");
  put("state", kSa);
  const auto whole = load(between_ports(ipsec + "}\n"));
  ASSERT_TRUE(whole) << to_string(whole.error());
  report = {};
  whole->chain.functions.front().function->report(report);
  EXPECT_FALSE(report.contains("warnings"));
}

TEST_F(WeakChainFile, BlamesTheParameterThatNamesTheWrongFileOfIpXfrm) {
  put("sas", kSa);
  put("policies", kPolicy);
  const auto errors_with = [&](const std::string& state, const std::string& policy) {
    return errors_of(between_ports("  - ipsec: {state_dir: none, state: " + state + ", policy: " + policy + "}\n"));
  };
  expect_has(errors_with("sas", "sas"),
             "chain.yaml:3:50: policy: this file is the output of `ip xfrm state`, and the other parameter names it "
             "too: found '/");
  expect_has(errors_with("sas", "sas"), "/sas', expected a file with the output of `ip xfrm policy`");
  expect_has(errors_with("policies", "policies"),
             "chain.yaml:3:37: state: this file is the output of `ip xfrm policy`, and the other parameter names it "
             "too: found '/");
  expect_has(errors_with("policies", "policies"), "/policies', expected a file with the output of `ip xfrm state`");
  const std::string swapped = errors_with("policies", "sas");
  expect_has(swapped, "state: this file is the output of `ip xfrm policy`: found ");
  expect_has(swapped, "policy: this file is the output of `ip xfrm state`: found ");
  expect_has(errors_of(between_ports("  - ipsec: {state_dir: none, state: policies, direction: in}\n")),
             "state: this file is the output of `ip xfrm policy`: found ");
  put("sas", "src 1.1.1.1 nonsense\n");
  expect_has(errors_with("sas", "policies"), "sas:1:13: ");
}

}  // namespace
}  // namespace penstock::config
