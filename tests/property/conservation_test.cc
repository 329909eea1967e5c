// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// No packet is lost, duplicated or miscounted, on any kind of chain, with any number of workers and any batches; and
// what the chain does with each packet depends on neither.

#include "property/conservation_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <optional>
#include <set>
#include <thread>

#include "base/testing/rounds.h"
#include "property/corpus_packets.h"
#include "property/two_senders.h"

namespace penstock::property {
namespace {

using port::testing::read_captures;
using port::testing::write_capture;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kRules =
    "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m udp --dport 53 -j DROP\n-A FORWARD -d 9.9.9.9 -j REJECT\n"
    "COMMIT\n";
constexpr const char* kRoutes =
    "default via 10.0.0.1 dev wan\n10.0.0.0/8 dev lan\nblackhole 172.16.0.0/16\n192.168.3.0/24 dev in\n"
    "2001:db8::/32 dev lan\n2001:db9::/32 via fe80::1 dev wan\n";

struct Settings {
  unsigned workers;
  const char* bytes;
  const char* packets;
  [[nodiscard]] std::vector<std::string> overrides() const {
    return {"run.workers=" + std::to_string(workers), std::string("run.batch.bytes=") + bytes,
            std::string("run.batch.packets=") + packets};
  }
};
const std::vector<Settings> kSettings{
    {1, "512KiB", "2048"}, {1, "64KiB", "1"}, {2, "64KiB", "7"}, {3, "64KiB", "2048"}, {4, "1MiB", "300"}};

class Conservation : public Chains {
 protected:
  static constexpr std::uint32_t kFlows = 60, kEach = 50;

  Conservation() {
    put("rules", kRules);
    put("routes", kRoutes);
    write_capture(folder_ / "in.pcap", packets_);
  }

  /// Runs the chain with all settings. The packets that leave by each of `outputs`, and the reasons for the others,
  /// must always be the same. Returns one of the reports.
  Json run_alike(const std::string& yaml, const std::vector<std::string>& outputs,
                 const std::vector<std::string>& more = {}) {
    std::optional<Json> first;
    std::vector<std::vector<Tag>> first_tags;
    for (const Settings& settings : kSettings) {
      SCOPED_TRACE(std::to_string(settings.workers) + " workers, batches of " + settings.packets);
      auto overrides = settings.overrides();
      overrides.insert(overrides.end(), more.begin(), more.end());
      Json report = run(yaml, overrides).report;
      for (Json& port : report["ports"]) port.erase("fragments");  // only with several workers
      std::vector<std::vector<Tag>> tags;
      std::uint64_t packets = 0;
      std::uint64_t bytes = 0;
      for (const std::string& output : outputs) {
        const auto read = read_captures({folder_ / output});
        EXPECT_THAT(read.errors, IsEmpty());
        tags.push_back(tags_of(read.packets, any_order_));
        packets += read.packets.size();
        bytes += bytes_of(read.packets);
      }
      if (!outputs.empty()) {
        EXPECT_EQ(report["packets"]["forwarded"], packets);
        EXPECT_EQ(report["bytes"]["forwarded"], bytes);
      }
      if (!first) {
        first = report;
        first_tags = tags;
      }
      EXPECT_EQ(tags, first_tags);
      for (const char* part : {"packets", "bytes", "dropped_by_chain", "ports"}) {
        EXPECT_EQ(report[part], (*first)[part]);
      }
      for (std::size_t i = 0; i < report["functions"].size(); ++i) {
        for (const char* part : {"in", "forwarded", "dropped", "consumed"}) {
          EXPECT_EQ(report["functions"][i][part], (*first)["functions"][i][part]);
        }
      }
    }
    return *first;
  }

  std::vector<Captured> packets_ = tagged_packets(kFlows, kEach);
  bool any_order_ = false;  // packets of a flow may leave in any order
};

TEST_F(Conservation, OfAChainWithoutFunctions) {
  const Json report =
      run_alike("ports: {in: {pcap: {read: in.pcap}}, out: {pcap: {write: out.pcap}}}\nchain: []\n", {"out.pcap"});
  EXPECT_EQ(report["packets"]["forwarded"], packets_.size());
  EXPECT_EQ(report["bytes"]["forwarded"], bytes_of(packets_));
  auto want = packets_;
  auto got = read_captures({folder_ / "out.pcap"}).packets;
  const auto by_time = [](const Captured& a, const Captured& b) { return a.timestamp_ns < b.timestamp_ns; };
  std::sort(got.begin(), got.end(), by_time);
  EXPECT_EQ(got, want) << "byte for byte";
}

/// Whichever worker takes a packet, it is decided alike; only the order is another.
TEST_F(Conservation, OfASharedQueue) {
  any_order_ = true;
  const std::vector<std::string> shared{"run.queueing=shared"};
  const std::string functions = "chain: [firewall: {rules: rules}, router: {routes: routes}]\n";
  const std::string outputs = "wan: {pcap: {write: wan.pcap}}, lan: {pcap: {write: lan.pcap}}}\n" + functions;
  for (const char* const source : {"pcap: {read: in.pcap}", "memory: {read: in.pcap, loop: 3}"}) {
    SCOPED_TRACE(source);
    const std::string yaml = fmt::format("ports: {{in: {{{}}}, ", source) + outputs;
    const Json usual = run_alike(yaml, {"wan.pcap", "lan.pcap"});
    const Json report = run_alike(yaml, {"wan.pcap", "lan.pcap"}, shared);
    for (const char* part : {"packets", "bytes", "dropped_by_chain", "ports"}) EXPECT_EQ(report[part], usual[part]);
    EXPECT_GT(report["packets"]["forwarded"], 0);
    EXPECT_GT(report["packets"]["dropped"], 0);
  }
  const Json generated =
      run_alike("ports: {in: {generator: {packets: 20000, flows: 100}}, out: {'null': {}}}\nchain: []\n", {}, shared);
  EXPECT_EQ(generated["packets"]["in"], 20'000);
  EXPECT_EQ(generated["packets"]["forwarded"], 20'000) << "a generator without a rate waits";
}

/// A tunnel for both families with AES-GCM.
constexpr const char* kSa =
    "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 0 \n"
    "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n";
std::string tunnel_policies() {
  std::string text;
  for (const char* const selector : {"src 0.0.0.0/0 dst 0.0.0.0/0", "src ::/0 dst ::/0"}) {
    for (const char* const direction : {"out", "fwd"}) {
      text += std::string(selector) + "\n\tdir " + direction +
              " priority 1\n\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp reqid 1 mode tunnel\n";
    }
  }
  return text;
}

TEST_F(Conservation, OfPacketsThatGoThroughATunnel) {
  lengths_change_ = true;
  put("state", kSa);
  put("policy", tunnel_policies());
  // No replay window: packets of several workers arrive in any order.
  const Json report = run_alike(
      "ports: {in: {pcap: {read: in.pcap}}, wan: {pcap: {write: wan.pcap}}, lan: {pcap: {write: lan.pcap}}}\n"
      "chain: [firewall: {rules: rules}, ipsec: {state: state, policy: policy},\n"
      "        ipsec: {state: state, policy: policy, direction: in}, router: {routes: routes}]\n",
      {"wan.pcap", "lan.pcap"});
  for (const std::size_t end : {1U, 2U}) {
    EXPECT_EQ(report["functions"][end]["in"]["packets"], report["functions"][end]["forwarded"]["packets"]);
  }
  EXPECT_EQ(report["functions"][1]["in"], report["functions"][2]["forwarded"]) << "bytes too";
  EXPECT_GT(report["functions"][1]["forwarded"]["bytes"], report["functions"][1]["in"]["bytes"]);
}

/// Each packet of an SA has its own number, and the other end accepts all of them, whichever worker protected them.
TEST_F(Conservation, OfTheNumbersOfAnSaThatAllWorkersShare) {
  lengths_change_ = true;
  put("state", kSa);
  put("policy", tunnel_policies());
  const std::string chain = "chain: [ipsec: {state: state, policy: policy, direction: ";
  std::set<std::string> ivs;      // over all runs
  std::uint32_t sent_before = 0;  // in earlier runs: numbers continue
  for (const Settings& settings : kSettings) {
    SCOPED_TRACE(std::to_string(settings.workers) + " workers, batches of " + settings.packets);
    const Json out = run("ports: {in: {pcap: {read: in.pcap}}, out: {pcap: {write: esp.pcap}}}\n" + chain + "out}]\n",
                         settings.overrides())
                         .report;
    EXPECT_EQ(out["functions"][0]["details"]["sas"][0]["sent"], sent_before + packets_.size());
    const auto esp = read_captures({folder_ / "esp.pcap"}).packets;
    ASSERT_EQ(esp.size(), packets_.size());
    constexpr std::size_t kNumberAt = 14 + 20 + 4;
    std::vector<std::uint32_t> numbers;
    const std::size_t ivs_before = ivs.size();
    for (const Captured& packet : esp) {
      const std::uint8_t* const at = packet.bytes.data() + kNumberAt;
      numbers.push_back(static_cast<std::uint32_t>(at[0]) << 24 | static_cast<std::uint32_t>(at[1]) << 16 |
                        static_cast<std::uint32_t>(at[2]) << 8 | at[3]);
      ivs.insert(std::string(at + 4, at + 12));
    }
    EXPECT_EQ(ivs.size() - ivs_before, packets_.size()) << "an IV comes twice";
    if (settings.workers == 1) {
      EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    }
    std::sort(numbers.begin(), numbers.end());
    for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], sent_before + i + 1);
    sent_before += static_cast<std::uint32_t>(packets_.size());

    const Json in = run("ports: {in: {pcap: {read: esp.pcap}}, out: {pcap: {write: out.pcap}}}\n" + chain + "in}]\n",
                        settings.overrides())
                        .report;
    EXPECT_EQ(in["packets"]["forwarded"], packets_.size());
    std::vector<Captured> back = read_captures({folder_ / "out.pcap"}).packets;
    const auto by_time = [](const Captured& a, const Captured& b) { return a.timestamp_ns < b.timestamp_ns; };
    std::sort(back.begin(), back.end(), by_time);
    EXPECT_EQ(back, packets_);
  }
}

TEST_F(Conservation, OfAChainThatWritesNothing) {
  const Json report = run_alike("ports: {in: {pcap: {read: in.pcap}}}\nchain: [firewall: {rules: rules}]\n", {});
  EXPECT_EQ(report["packets"]["forwarded"], 0);
  EXPECT_GT(report["packets"]["consumed"], 0);
  EXPECT_GT(report["packets"]["dropped"], 0);
}

TEST_F(Conservation, OfAChainWithSeveralWriters) {
  const Json report = run_alike(
      "ports: {in: {pcap: {read: in.pcap}}, lan: {pcap: {write: lan.pcap}}, wan: {pcap: {write: wan.pcap}}}\n"
      "chain: [firewall: {rules: rules}, router: {routes: routes, ipv4: trie4}]\n",
      {"lan.pcap", "wan.pcap"});
  EXPECT_GT(report["ports"]["lan"]["out"]["packets"], 100);
  EXPECT_GT(report["ports"]["wan"]["out"]["packets"], 100);
  const Json& reasons = report["functions"][1]["dropped"]["reasons"];
  EXPECT_GT(reasons["blackhole"], 0);
  EXPECT_GT(reasons["ttl_exceeded"], 0);
  EXPECT_GT(report["dropped_by_chain"]["no_such_exit"], 0) << "192.168.3.0/24 leaves by a port that only reads";
}

TEST_F(Conservation, OfAGatewayWithBothSides) {
  write_capture(folder_ / "back.pcap", tagged_packets(kFlows, kEach, 1000));
  const Json report = run_alike(
      "ports:\n  lan: {pcap: {read: in.pcap, write: lan.pcap}}\n  wan: {pcap: {read: back.pcap, write: wan.pcap}}\n"
      "chain: [firewall: {rules: rules}, firewall: {rules: rules}]\nwire: {lan: wan, wan: lan}\n",
      {"lan.pcap", "wan.pcap"});
  EXPECT_EQ(report["packets"]["in"], 2 * packets_.size());
  EXPECT_EQ(report["functions"][1]["dropped"]["packets"], 0) << "the first let nothing through that it would drop";
}

TEST_F(Conservation, OfAChainThatForks) {
  write_capture(folder_ / "back.pcap", tagged_packets(kFlows, kEach, 1000));
  const Json report = run_alike(
      "ports:\n  lan: {pcap: {read: in.pcap, write: lan.pcap}}\n  wan: {pcap: {read: back.pcap, write: wan.pcap}}\n"
      "chain:\n"
      "  - router: {routes: routes, ipv4: trie4, interfaces: {in: lan}}\n"
      "  - fork:\n"
      "      - {when: {in_port: lan, out_port: wan}, chain: [firewall: {rules: rules}, firewall: {rules: rules}]}\n"
      "      - {when: [{in_port: wan}, {out_port: lan}], chain: [firewall: {rules: rules}]}\n"
      "  - firewall: {rules: rules}\n",
      {"lan.pcap", "wan.pcap"});
  const auto in = [&](std::size_t function) { return report["functions"][function]["in"]["packets"].get<int>(); };
  const auto out = [&](std::size_t function) {
    return report["functions"][function]["forwarded"]["packets"].get<int>();
  };
  EXPECT_GT(in(1), 100);
  EXPECT_GT(in(3), 100);
  EXPECT_EQ(in(2), out(1));
  EXPECT_EQ(in(4), out(0) - in(1) + out(2) - in(3) + out(3));
}

TEST_F(Conservation, OfPacketsThatAPortRefuses) {
  const auto raw = tagged_packets(kFlows, kEach, 1000, LinkType::raw_ip);
  write_capture(folder_ / "raw.pcap", raw);
  for (const Settings& settings : kSettings) {
    const auto result =
        run("ports:\n  in: {pcap: {read: in.pcap}}\n  raw: {pcap: {read: raw.pcap}}\n  out: {pcap: {write: out.pcap}}\n"
            "chain: []\n",
            settings.overrides());
    // Which of the two comes first determines the contents of the file.
    const Json& report = result.report;
    EXPECT_EQ(report["dropped_by_chain"]["port_refused"], packets_.size());
    const auto bytes = report["bytes"]["forwarded"].get<std::uint64_t>();
    EXPECT_TRUE(bytes == bytes_of(packets_) || bytes == bytes_of(raw)) << bytes;
    EXPECT_EQ(bytes, bytes_of(read_captures({folder_ / "out.pcap"}).packets));
    EXPECT_THAT(to_string(result.errors), HasSubstr("left out"));
  }
}

TEST_F(Conservation, OfACaptureThatIsPlayedFromMemorySeveralTimes) {
  const Json report = run_alike(
      "ports: {in: {memory: {read: in.pcap, loop: 3}}, out: {null: {}}}\nchain: [firewall: {rules: rules}]\n", {});
  EXPECT_EQ(report["packets"]["in"], 3 * packets_.size());
}

TEST_F(Conservation, OfGeneratedPackets) {
  const Json report = run_alike(
      "ports: {in: {generator: {packets: 5000, size: 512, flows: 100, transport: tcp}}, out: {null: {}}}\n"
      "chain: [firewall: {rules: rules}]\n",
      {});
  EXPECT_EQ(report["packets"]["in"], 5000);
}

TEST_F(Conservation, OfPacketsThatTheWaitingQueueCannotHold) {
  const std::string generator = "{generator: {packets: 30000, rate: 500Mpps, flows: 64}}";
  const auto chain =
      "ports: {a: " + generator + ", b: " + generator + ", c: " + generator +
      ", in: {pcap: {read: in.pcap}}, out: {null: {}}}\nchain: [firewall: {rules: rules, policy: drop}]\n";
  std::uint64_t lost = 0;
  for (const unsigned workers : {1U, 3U}) {
    const Json report = run(chain, {"run.workers=" + std::to_string(workers), "run.batch.bytes=64KiB",
                                    "run.batch.packets=10", "run.queue.bytes=128KiB"})
                            .report;
    EXPECT_EQ(report["packets"]["in"], 90'000 + packets_.size());
    EXPECT_EQ(report["ports"]["in"]["in"]["packets"], packets_.size()) << "a file waits";
    lost += report["dropped_by_chain"]["queue_full"].get<std::uint64_t>();
  }
  EXPECT_GT(lost, 0U);
}

TEST_F(Conservation, OfSourcesThatEndAtOnce) {
  write_capture(folder_ / "empty.pcap", {});
  const Json report = run_alike(
      "ports: {in: {pcap: {read: empty.pcap}}, more: {memory: {read: empty.pcap}}, out: {pcap: {write: out.pcap}}}\n"
      "chain: [firewall: {rules: rules}]\n",
      {"out.pcap"});
  EXPECT_EQ(report["packets"]["in"], 0);
  EXPECT_EQ(report["batches"]["count"], 0);
}

TEST_F(Conservation, OfARunWhoseTimeIsOver) {
  for (const unsigned workers : {1U, 2U}) {
    const Json report =
        run("ports: {in: {memory: {read: in.pcap, loop: 0}}, out: {null: {}}}\nchain: [firewall: {rules: rules}]\n",
            {"run.duration=40ms", "run.workers=" + std::to_string(workers)})
            .report;
    EXPECT_GT(report["packets"]["in"], 0);
  }
}

TEST_F(Conservation, OfARunThatIsStoppedInTheMiddle) {
  for (const unsigned workers : {1U, 2U}) {
    std::atomic<bool> stop{false};
    std::thread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      stop = true;
    });
    const Json report = run("ports: {in: {generator: {flows: 50, rate: 2Mpps}}, out: {pcap: {write: out.pcap}}}\n"
                            "chain: [firewall: {rules: rules}]\n",
                            {"run.workers=" + std::to_string(workers)}, stop)
                            .report;
    stopper.join();
    const auto written = read_captures({folder_ / "out.pcap"});
    EXPECT_THAT(written.errors, IsEmpty()) << "a whole capture, no cut packet";
    EXPECT_EQ(report["packets"]["forwarded"], written.packets.size());
    EXPECT_EQ(report["bytes"]["forwarded"], bytes_of(written.packets));
  }
}

TEST_F(Conservation, OfEveryCaptureInTheCorpus) {
  const auto files = corpus_captures();
  if (files.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS";
  std::size_t captures = 0;
  std::uint64_t packets = 0;
  for (std::size_t i = 0; i < files.size(); i += penstock::testing::stride()) {
    const std::string& file = files[i];
    if (std::filesystem::file_size(file) > 4'000'000) continue;  // has its own case in the golden tests
    port::ReadControl control;
    auto read = port::CaptureSequence::open({file}, control);
    if (!read) continue;
    std::uint64_t count = 0;
    for (port::CapturedFrame frame; read->next(frame);) ++count;
    SCOPED_TRACE(file);
    const Json report =
        run("ports: {in: {pcap: {read: \"" + file + "\"}}, wan: {pcap: {write: wan.pcapng}}, " +
                "lan: {pcap: {write: lan.pcapng}}}\n" +
                "chain: [firewall: {rules: rules}, router: {routes: routes, ipv4: trie4}]\n",
            {"run.workers=" + std::to_string(1 + captures % 3), "run.batch.bytes=1MiB", "run.queue.bytes=4MiB"})
            .report;
    EXPECT_EQ(report["packets"]["in"], count);
    const auto written = read_captures({folder_ / "wan.pcapng", folder_ / "lan.pcapng"});
    EXPECT_EQ(report["packets"]["forwarded"], written.packets.size());
    EXPECT_EQ(report["bytes"]["forwarded"], bytes_of(written.packets));
    ++captures;
    packets += count;
  }
  EXPECT_GT(captures, penstock::testing::rounds(500));
  EXPECT_GT(packets, penstock::testing::rounds(10'000));
}

TEST_F(TwoSenders, NeverReuseANonce) {
  for (const Settings& settings : kSettings) {
    SCOPED_TRACE(std::to_string(settings.workers) + " workers, batches of " + settings.packets);
    for (const std::uint64_t packets : send(settings.overrides())) EXPECT_GT(packets, 500U);
  }
}

TEST_F(TwoSenders, AreRefusedIfTheirFilesContradictEachOther) {
  put("state-b.txt",
      "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 0 \n"
      "\taead rfc4106(gcm(aes)) 0xffffe5a7c4f83620d17e4c95b8a3f60213579bdf 128\n");
  put("chain.yaml",
      "ports: {in: {pcap: {read: in.pcap}}, out: {pcap: {write: esp.pcap}}}\n"
      "chain: [ipsec: {state: state-a.txt, policy: a.txt}, ipsec: {state: state-b.txt, policy: b.txt}]\n");
  const auto loaded = config::load_chain(folder_ / "chain.yaml", {});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(to_string(loaded.error()), (folder_ / "state-b.txt") +
                                           ":1: SA 0x00001000 from 192.0.2.1 to 192.0.2.2 was loaded from " +
                                           (folder_ / "state-a.txt") +
                                           ":1, with different values: found keys or algorithms, expected the same "
                                           "values, since its state continues, or a new SPI for new keys");
}

}  // namespace
}  // namespace penstock::property
