// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole chains over captures on a GPU: in whatever way batches cross, and however small they are, the written captures
// and the report's counts equal those of the CPU.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "golden/golden_case.h"
#include "gpu/way.h"
#include "port/capture_reader.h"
#include "property/conservation_check.h"
#include "property/corpus_packets.h"
#include "property/nat_gateway.h"

namespace penstock::on_gpu {
namespace {

using golden::CaptureFile;
using golden::Case;
using golden::CaseRun;
using golden::OutFolder;
using golden::read_capture_file;
using port::testing::write_capture;

/// `ordered`: compares record by record; otherwise by flow.
void expect_the_same_capture(const std::string& expected_path, const std::string& out_path, bool ordered) {
  const CaptureFile expected = read_capture_file(expected_path);
  const CaptureFile out = read_capture_file(out_path);
  EXPECT_EQ(out.link_type, expected.link_type);
  if (!ordered) return golden::expect_the_same_flows(expected, out);
  golden::expect_the_same(expected.records, out.records);
  const bool compressed = expected_path.ends_with(".gz") || expected_path.ends_with(".zst");
  if (compressed || ::testing::Test::HasFailure()) return;
  EXPECT_TRUE(port::testing::read_file(expected_path) == port::testing::read_file(out_path))
      << "the records are equal and the files are not";
}

/// The size of batches, and how many are in flight.
struct Batches {
  const char* packets;
  const char* bytes;
  const char* queue;
  unsigned most_workers;
};
constexpr Batches kTiny[] = {{"1", "64KiB", "64KiB", 3},
                             {"31", "64KiB", "128KiB", 1},
                             {"32", "64KiB", "64KiB", 1},
                             {"33", "64KiB", "128KiB", 3}};
constexpr Batches kLarge{"4096", "1MiB", "4MiB", 3};

std::vector<std::string> operator+(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}
std::vector<std::string> settings_of(const Batches& batches) {
  return {std::string("run.batch.packets=") + batches.packets, std::string("run.batch.bytes=") + batches.bytes,
          std::string("run.queue.bytes=") + batches.queue};
}
std::string workers(unsigned count) { return "run.workers=" + std::to_string(count); }

/// The folders whose chains are run, relative to the root of the sources.
std::vector<std::string> chain_folders() {
  std::vector<std::string> folders{"examples/branches", "examples/filter-capture", "examples/gateway",
                                   "examples/inspected_gateway"};
  for (const std::string& name : golden::cases()) folders.push_back("tests/golden/" + name);
  return folders;
}

class ShippedChains : public ::testing::TestWithParam<std::string> {
 protected:
  /// Runs the chain on the CPU with these settings, and compares it in each of the ways, with up to `most_workers`
  /// workers.
  void compare(const std::vector<std::string>& settings, std::span<const Way> ways, unsigned most_workers) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(settings, " ")));
    const OutFolder expected_out;
    CaseRun expected;
    ASSERT_NO_FATAL_FAILURE(
        case_.run(expected_out, overrides_of(settings + std::vector<std::string>{"run.processor=cpu"}), expected));
    for (const Way& way : ways) {
      for (unsigned count = 1; count <= (case_.numbers_packets() ? 1 : most_workers); count += 2) {
        SCOPED_TRACE(fmt::format("{}, {} workers", to_string(way), count));
        const OutFolder out;
        CaseRun run;
        const auto on_this = settings + on_gpu::settings_of(way) + std::vector<std::string>{workers(count)};
        ASSERT_NO_FATAL_FAILURE(case_.run(out, overrides_of(on_this), run));
        ASSERT_NO_FATAL_FAILURE(expect_the_same_counts(expected.report, run.report));
        expect_all_on_device(run.report);
        EXPECT_EQ(run.unsupported, expected.unsupported);
        for (const auto& [port, name] : case_.written()) {
          SCOPED_TRACE(name);
          expect_the_same_capture(expected_out / name, out / name, case_.readers() == 1 && count == 1);
        }
        if (case_.writes_alerts()) {
          EXPECT_EQ(golden::alerts_by_rule(golden::lines_of(out / "fast_log")),
                    golden::alerts_by_rule(golden::lines_of(expected_out / "fast_log")));
        }
        if (HasFailure()) return;  // the other ways would fail in the same way
      }
    }
  }

  /// Small tables, because they are copied to the device for every run.
  [[nodiscard]] std::vector<std::string> small_tables() const {
    return std::vector<std::string>(case_.has_router() ? 1 : 0, "chain.router.ipv4=trie4");
  }

  Case case_{golden::root() / GetParam()};
};

TEST_P(ShippedChains, SendAndCountAsOnTheCpuAsTheyStand) {
  constexpr Way kDefault{run::Transfer::automatic, plan::WholeFrames::where_needed};
  compare({}, {&kDefault, 1}, 1);
}

TEST_P(ShippedChains, SendAndCountAsOnTheCpuInAllWays) {
  compare(settings_of(kLarge) + small_tables(), kWays, kLarge.most_workers);
}

/// Each folder's chain runs in all ways and with all sizes. Of their combinations, it runs every other one, and the
/// next folder's chain the others.
TEST_P(ShippedChains, SendAndCountAsOnTheCpuInTinyBatches) {
  const auto folders = chain_folders();
  auto next = static_cast<std::size_t>(std::ranges::find(folders, GetParam()) - folders.begin());
  for (const Batches& batches : kTiny) {
    std::vector<Way> ways;
    for (const Way& way : kWays) {
      if (next++ % 2 == 0) ways.push_back(way);
    }
    ASSERT_NO_FATAL_FAILURE(compare(settings_of(batches) + small_tables(), ways, batches.most_workers));
    if (HasFailure()) return;
  }
}

/// Functions that run on the CPU, between others on the GPU.
std::vector<std::vector<std::string>> on_cpu_in(const std::string& folder) {
  if (folder == "tests/golden/gateway_tunnel")
    return {{"firewall"}, {"ipsec"}, {"ipsec#2"}, {"router", "ipsec"}, {"firewall", "ipsec#2"}};
  if (folder == "tests/golden/inspected_gateway_drop")
    return {{"nids"}, {"ipsec"}, {"router", "ipsec#2"}, {"nids", "ipsec"}, {"firewall", "router", "ipsec#2"}};
  if (folder == "tests/golden/branches")
    return {
        {"fork.0.chain.nids"}, {"fork.0.chain.ipsec"}, {"fork.0.chain.firewall", "ipsec"}, {"fork.1.chain.firewall"}};
  return {};
}

TEST_P(ShippedChains, SendAndCountAsOnTheCpuWithSingleFunctionsThere) {
  const auto choices = on_cpu_in(GetParam());
  if (choices.empty()) GTEST_SKIP() << "other chains are tested with it";
  for (const std::vector<std::string>& functions : choices) {
    std::vector<std::string> settings = settings_of(kTiny[3]) + small_tables();
    for (const std::string& function : functions) settings.push_back("chain." + function + ".processor=cpu");
    ASSERT_NO_FATAL_FAILURE(compare(settings, kWays, 1));
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, ShippedChains, ::testing::ValuesIn(chain_folders()), [](const auto& one) {
  // Two folders may have the same name.
  std::string name = one.param.starts_with("examples/") ? "example_" : "";
  name += std::filesystem::path(one.param).filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

class ChainsOverCaptures : public property::Chains {
 protected:
  ChainsOverCaptures() {
    put("rules",
        "*filter\n:FORWARD ACCEPT [0:0]\n"
        "-A FORWARD -p udp -m udp --dport 53 -s 10.0.0.0/9 -j DROP\n-A FORWARD -p icmp -j REJECT\n"
        "-A FORWARD -p tcp -m tcp --tcp-flags SYN,ACK SYN --dport 6000:7000 -j DROP\n"
        "-A FORWARD -p tcp -m multiport --dports 22,80,443 -j ACCEPT\n-A FORWARD -d 224.0.0.0/4 -j DROP\n"
        "-A FORWARD -f -j ACCEPT\n"
        "COMMIT\n");
    put("stateful",
        "*filter\n:FORWARD DROP [0:0]\n"
        "-A FORWARD -m conntrack --ctstate INVALID -j DROP\n"
        "-A FORWARD -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n"
        "-A FORWARD -p udp -m udp --dport 53 -j ACCEPT\n-A FORWARD -p tcp -m tcp --dport 1:1023 -j ACCEPT\n"
        "COMMIT\n");
    put("routes",
        "default via 10.0.0.1 dev wan\n10.0.0.0/8 dev lan\n192.168.0.0/16 via 10.0.0.9 dev lan\n"
        "192.168.3.0/24\n\tnexthop via 10.0.0.1 dev wan weight 1\n\tnexthop via 10.0.0.9 dev lan weight 3\n"
        "blackhole 172.16.0.0/16\nprohibit 172.17.0.0/16\n2001:db8::/32 via fe80::9 dev lan\n2000::/3 via fe80::1 dev "
        "wan\nfe80::/10 dev lan\n");
    put("neighbours",
        "10.0.0.1 dev wan lladdr 02:00:00:00:01:01 REACHABLE\n10.0.0.9 dev lan lladdr 02:00:00:00:00:09 STALE\n"
        "fe80::1 dev wan lladdr 02:00:00:00:01:06 STALE\nfe80::9 dev lan lladdr 02:00:00:00:00:06 STALE\n"
        "10.0.0.2 dev lan lladdr 02:00:00:00:00:02 STALE\n");
  }

  /// `in`: the definition of the port `in`.
  static std::string chain_from(const std::string& in) {
    return "ports:\n  in: " + in +
           "\n  lan: {pcap: {write: lan.pcapng}}\n  wan: {pcap: {write: wan.pcapng}}\n"
           "chain:\n  - firewall: {rules: rules}\n"
           "  - router: {routes: routes, neighbours: neighbours, ipv4: trie4, macs: {wan: \"02:00:00:00:00:0a\"}}\n";
  }

  /// The captures of this run are the expectation.
  void run_on_cpu(const std::string& yaml, const std::vector<std::string>& settings) {
    expected_ = run(yaml, settings + std::vector<std::string>{"run.processor=cpu"});
    for (const std::string& name : outputs_) std::filesystem::rename(folder_ / name, folder_ / expected(name));
  }
  void compare(const std::string& yaml, const std::vector<std::string>& settings, const Way& way, unsigned count) {
    SCOPED_TRACE(fmt::format("{}, {} workers", to_string(way), count));
    const auto result = run(yaml, settings + on_gpu::settings_of(way) + std::vector<std::string>{workers(count)});
    ASSERT_FALSE(result.report.is_null());
    ASSERT_NO_FATAL_FAILURE(expect_the_same_counts(expected_.report, result.report));
    expect_all_on_device(result.report);
    EXPECT_EQ(penstock::to_string(result.errors), penstock::to_string(expected_.errors));
    for (const std::string& name : outputs_) {
      SCOPED_TRACE(name);
      expect_the_same_capture(folder_ / expected(name), folder_ / name, count == 1);
    }
  }
  static std::string expected(const std::string& name) { return "expected-" + name; }

  std::vector<std::string> outputs_{"lan.pcapng", "wan.pcapng"};
  property::Outcome expected_;
};

TEST_F(ChainsOverCaptures, SendAndCountAsOnTheCpuThroughThousandsOfBatches) {
  const std::string gateway = golden::root() / "examples/gateway";
  for (const Batches& batches : kTiny) {
    SCOPED_TRACE(fmt::format("batches of {} packets", batches.packets));
    const int loop = std::string(batches.packets) == "1" ? 10 : 60;
    const std::string yaml = chain_from(fmt::format(
        "{{memory: {{read: [\"{0}/lan.pcap\", \"{0}/wan.pcap\", \"{0}/dmz.pcap\"], loop: {1}}}}}", gateway, loop));
    ASSERT_NO_FATAL_FAILURE(run_on_cpu(yaml, settings_of(batches)));
    EXPECT_GT(expected_.report["functions"][0]["dropped"]["packets"], 0);
    EXPECT_GT(expected_.report["functions"][1]["dropped"]["packets"], 0);
    EXPECT_GT(expected_.report["ports"]["lan"]["out"]["packets"], 0);
    EXPECT_GT(expected_.report["ports"]["wan"]["out"]["packets"], 0);
    for (const Way& way : kWays) {
      ASSERT_NO_FATAL_FAILURE(compare(yaml, settings_of(batches), way, 1));
      if (batches.most_workers > 1) {
        ASSERT_NO_FATAL_FAILURE(compare(yaml, settings_of(batches), way, batches.most_workers));
      }
      if (HasFailure()) return;
    }
  }
}

/// Connections begin, go on and end in batches that are in flight together. Where another function of the GPU comes
/// first, the firewall only looks up packets that have passed it.
TEST_F(ChainsOverCaptures, TrackConnectionsAsOnTheCpu) {
  const std::string gateway = golden::root() / "examples/gateway";
  const std::string in =
      fmt::format("{{memory: {{read: [\"{0}/lan.pcap\", \"{0}/wan.pcap\", \"{0}/dmz.pcap\"], loop: 20}}}}", gateway);
  const std::string stateless = "firewall: {rules: rules}", stateful = "firewall: {rules: stateful, connections: 100}";
  for (const std::string& functions : {stateful, stateless + "\n  - " + stateful, stateful + "\n  - " + stateless}) {
    std::string yaml = chain_from(in);
    yaml.replace(yaml.find(stateless), stateless.size(), functions);
    SCOPED_TRACE(functions);
    for (const Batches& batches : {kTiny[1], kLarge}) {
      ASSERT_NO_FATAL_FAILURE(run_on_cpu(yaml, settings_of(batches)));
      const auto& firewall = expected_.report["functions"][functions.starts_with(stateless) ? 1 : 0];
      EXPECT_GT(firewall["dropped"]["packets"], 0);
      EXPECT_GT(firewall["details"]["connections"]["packets_of_known"], 0);
      for (const Way& way : kWays) {
        ASSERT_NO_FATAL_FAILURE(compare(yaml, settings_of(batches), way, 1));
        if (HasFailure()) return;
      }
    }
  }
}

/// The first packets of connections go to the CPU, the others are translated on the GPU.
TEST_F(ChainsOverCaptures, TranslateAsOnTheCpu) {
  for (const auto& [name, text] : property::NatGateway::files()) put(name, text);
  const std::string yaml = property::NatGateway::chain("{memory: {read: [in.pcap]}}");
  for (const Batches& batches : {kTiny[1], kTiny[3], kLarge}) {
    SCOPED_TRACE(fmt::format("batches of {} packets", batches.packets));
    // More than all batches in flight have, so that the answer to a packet is looked up once that has left.
    const std::uint32_t flows = batches.packets == kLarge.packets ? 24'000 : 1'000;
    write_capture(folder_ / "in.pcap", property::NatGateway::packets(flows));
    ASSERT_NO_FATAL_FAILURE(run_on_cpu(yaml, settings_of(batches)));
    EXPECT_EQ(expected_.report["functions"][3]["details"]["connections"]["confirmed"], flows / 8 * 7);
    EXPECT_GT(expected_.report["ports"]["wan"]["out"]["packets"], flows);
    EXPECT_GT(expected_.report["ports"]["lan"]["out"]["packets"], flows);
    for (const Way& way : kWays) {
      ASSERT_NO_FATAL_FAILURE(compare(yaml, settings_of(batches), way, 1));
      if (HasFailure()) return;
    }
  }
}

/// Answers quote packets as they arrived: those that the forward firewall rejects on the GPU after router and NAT, and
/// those that the router leaves to the host.
TEST_F(ChainsOverCaptures, AnswerAsOnTheCpu) {
  outputs_ = {"lan.pcapng", "wan.pcapng", "back.pcapng"};
  for (auto [name, text] : property::NatGateway::files()) {
    const auto change = [&text = text](std::string_view from, std::string_view to) {
      if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
    };
    change("--dport 666 -j DROP\n",
           "--dport 666 -j REJECT --reject-with icmp-admin-prohibited\n-A FORWARD -o lan -m conntrack --ctstate NEW -p "
           "udp -j REJECT\n-A FORWARD -p tcp -m tcp --dport 22 -j REJECT --reject-with tcp-reset\n");
    change("default via 10.9.0.1", "prohibit 192.0.2.192/26\ndefault via 10.9.0.1");
    put(name, text);
  }
  std::string yaml = property::NatGateway::chain("{pcap: {read: [in.pcap], write: back.pcapng}}");
  const std::string addresses = ", addresses: {in: 10.0.0.254 2001:db8:1::fe}}\n";
  for (const std::string_view function : {"\"02:00:00:00:00:0a\"}", "answers: true, hook: forward"}) {
    const std::string_view of_firewall = "hook: forward";
    if (function.ends_with(of_firewall)) yaml.replace(yaml.find(of_firewall), of_firewall.size(), function);
    const auto end = yaml.find(function) + function.size();
    yaml.replace(end, 2, addresses);
  }
  write_capture(folder_ / "in.pcap", property::NatGateway::packets(1000));
  for (const Batches& batches : {kTiny[1], kTiny[3]}) {
    SCOPED_TRACE(fmt::format("batches of {} packets", batches.packets));
    ASSERT_NO_FATAL_FAILURE(run_on_cpu(yaml, settings_of(batches)));
    EXPECT_GT(expected_.report["functions"][1]["dropped"]["reasons"]["prohibit"], 100);
    EXPECT_GT(expected_.report["functions"][2]["dropped"]["reasons"]["rejected"], 300);
    EXPECT_GT(expected_.report["ports"]["in"]["out"]["packets"], 400);
    for (const Way& way : kWays) {
      ASSERT_NO_FATAL_FAILURE(compare(yaml, settings_of(batches), way, 1));
      if (HasFailure()) return;
    }
  }
}

TEST_F(ChainsOverCaptures, SendAllOfAFileWhileTheWaitingQueueOverflowsWithOtherPackets) {
  // Generated packets are discarded, whether lost or not; packets of the file leave as if they were alone.
  const std::string in = "{pcap: {read: \"" + (golden::root() / "examples/gateway/lan.pcap").string() + "\"}}";
  std::string yaml = chain_from(in);
  ASSERT_NO_FATAL_FAILURE(run_on_cpu(yaml, {}));
  const std::uint64_t of_file = expected_.report["packets"]["in"];
  yaml.replace(yaml.find("  lan:"), 0,
               "  load: {generator: {packets: 200000, rate: 500Mpps, flows: 64, destination: 172.16.0.0/16}}\n");
  std::uint64_t lost = 0;
  for (const Way& way : kWays) {
    SCOPED_TRACE(to_string(way));
    for (const unsigned count : {1U, 3U}) {
      const auto result =
          run(yaml, settings_of(kTiny[3]) + on_gpu::settings_of(way) + std::vector<std::string>{workers(count)});
      ASSERT_FALSE(result.report.is_null());
      EXPECT_EQ(result.report["packets"]["in"], 200'000 + of_file);
      EXPECT_EQ(result.report["packets"]["forwarded"], expected_.report["packets"]["forwarded"]);
      expect_all_on_device(result.report);
      lost += result.report["dropped_by_chain"]["queue_full"].get<std::uint64_t>();
      for (const std::string& name : outputs_)
        expect_the_same_capture(folder_ / expected(name), folder_ / name, count == 1);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(lost, 0U) << "the waiting queue was never full";
}

/// Captures that are read in one run. Valid captures of one link type are read together, because libpcap can then read
/// the output; a broken capture is read alone, because it ends the run.
std::vector<std::vector<std::string>> groups_of(const std::vector<std::string>& files) {
  constexpr std::size_t kMost = 24;
  std::vector<std::vector<std::string>> groups;
  std::map<LinkType, std::vector<std::string>> sound;
  for (const std::string& file : files) {
    port::ReadControl control;
    auto sequence = port::CaptureSequence::open({file}, control);
    if (!sequence) continue;  // of a link type without IP, or broken on purpose
    LinkType link_type{};
    for (port::CapturedFrame frame; sequence->next(frame);) link_type = frame.link_type;
    if (!sequence->errors().empty()) {
      groups.push_back({file});
    } else {
      auto& together = sound[link_type];
      together.push_back(file);
      if (together.size() == kMost) groups.push_back(std::exchange(together, {}));
    }
  }
  for (auto& [link_type, together] : sound) {
    if (!together.empty()) groups.push_back(std::move(together));
  }
  return groups;
}

TEST_F(ChainsOverCaptures, SendAndCountAsOnTheCpuWhatIsInTheCorpus) {
  const auto groups = groups_of(property::corpus_captures());
  if (groups.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS";
  const std::vector<std::string> settings = settings_of(kLarge);
  std::size_t next = 0;
  std::uint64_t packets = 0;
  std::uint64_t forwarded = 0;
  for (const auto& files : groups) {
    SCOPED_TRACE(files.front() + fmt::format(", first of {} captures", files.size()));
    const std::string yaml = chain_from("{pcap: {read: [\"" + fmt::format("{}", fmt::join(files, "\", \"")) + "\"]}}");
    ASSERT_NO_FATAL_FAILURE(run_on_cpu(yaml, settings));
    packets += expected_.report["packets"]["in"].get<std::uint64_t>();
    forwarded += expected_.report["packets"]["forwarded"].get<std::uint64_t>();
    // There are many broken captures, and they are short, so each is tested in only one way.
    for (std::size_t i = 0; i < (files.size() > 1 ? std::size(kWays) : 1); ++i) {
      const Way& way = kWays[next++ % std::size(kWays)];
      ASSERT_NO_FATAL_FAILURE(compare(yaml, settings, way, 1));
      if (HasFailure()) return;
    }
  }
  std::printf("%zu runs' captures, %llu packets, %llu of them forwarded\n", groups.size(),
              static_cast<unsigned long long>(packets), static_cast<unsigned long long>(forwarded));
  EXPECT_GT(forwarded, packets / 10);
  EXPECT_LT(forwarded, packets);
}

}  // namespace
}  // namespace penstock::on_gpu
