// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Accesses are verified: for every function of the catalog, in many configurations, over packets of all kinds, for the
// accesses of its CPU twin, its GPU stage and its finish stage.

#include <gtest/gtest.h>

#include <set>

#include "base/testing/rounds.h"
#include "nf/catalog.h"
#include "property/access_check.h"
#include "property/access_configurations.h"
#include "property/access_runs.h"
#include "property/access_traffic.h"
#include "property/configured_function.h"
#include "property/corpus_packets.h"
#include "property/device_cores.h"
#include "property/ftp_packets.h"

namespace penstock::property {
namespace {

class Access : public ::testing::Test {
 protected:
  MakeFunction maker(const Configuration& configuration) const {
    return [this, configuration] { return functions_.make(configuration); };
  }

  std::vector<Packet> packets_for(const Configuration& configuration, RandomPackets& random) const {
    switch (configuration.traffic) {
      case Traffic::random: return random_packets(random, testing::rounds(20'000));
      case Traffic::long_packets: return long_packets(random, testing::rounds(3'000));
      case Traffic::esp:
        return esp_packets(random, testing::rounds(8'000), states_of(configuration.turn), policies_of("out"));
      case Traffic::ftp: return FtpPackets(random)(testing::rounds(3'000));
      case Traffic::conversations: return Conversations(random)(testing::rounds(8'000));
    }
    return {};
  }

  ConfiguredFunctions functions_;
};

/// One stage of a function, with its input.
struct Stage {
  std::string name;
  penstock::Access access;
  MakeRun run;
  std::vector<Packet> packets;
};

/// The function's stages, each with packets that reach it.
std::vector<Stage> stages_of(const MakeFunction& make, const std::vector<Packet>& packets, Outcome& device) {
  const function::NfTraits traits = make().function->traits();
  std::vector<Stage> stages;
  stages.push_back({"CPU", traits.cpu, [make] { return std::make_unique<CpuRun>(make()); }, packets});
  const penstock::Access* const on_device_access = traits.access_on(function::Processor::gpu);
  if (on_device_access == nullptr) return stages;
  const MakeRun on_device = [make] {
    return std::make_unique<DeviceRun>(make(),
                                       [](function::NetworkFunction& function) { return device_core_of(function); });
  };
  stages.push_back({"GPU", *on_device_access, on_device, packets});
  if (!traits.finish) return stages;
  Outcome all = outcome_of(on_device, *on_device_access, packets);
  std::vector<Packet> returned;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (all.packets[i].descriptor.verdict.kind == VerdictKind::punt) continue;
    returned.push_back(packets[i]);
    returned.back().descriptor.verdict = all.packets[i].descriptor.verdict;
    device.packets.push_back(std::move(all.packets[i]));
    device.findings.push_back(std::move(all.findings[i]));
  }
  const MakeRun finish = [make, &device] { return std::make_unique<FinishRun>(make(), device); };
  stages.push_back({"finish", *traits.finish, finish, std::move(returned)});
  return stages;
}

TEST_F(Access, IsCheckedForEveryFunctionInTheCatalog) {
  std::set<std::string_view> checked;
  for (const Configuration& configuration : configurations()) {
    checked.insert(configuration.kind);
    const MadeFunction made = functions_.make(configuration);
    EXPECT_TRUE(made.function->traits().access_on(function::Processor::gpu) == nullptr ||
                device_core_of(*made.function))
        << configuration.kind;
  }
  // What a kernel of somebody else accesses, nobody knows here. Its function takes back only what it declares.
  checked.insert("kernel");
  for (const function::NfKind* kind : nf::catalog()) EXPECT_TRUE(checked.contains(kind->name)) << kind->name;
}

TEST_F(Access, IsCheckedWithPacketsForEveryRuleAndEverySa) {
  if (testing::stride() != 1) GTEST_SKIP() << "too few packets under sanitizers";
  for (const Configuration& configuration : configurations()) {
    const std::string_view kind = configuration.kind;
    if (kind != "ipsec" && configuration.name != "alert, streams") continue;
    RandomPackets random(7);
    const MadeFunction made = functions_.make(configuration);
    const MakeRun run = [&] { return std::make_unique<CpuRun>(functions_.make(configuration)); };
    const Outcome outcome = outcome_of(run, made.function->traits().cpu, packets_for(configuration, random));
    const auto report = nlohmann::json::parse(outcome.output.substr(outcome.output.rfind("\n{") + 1));
    if (kind == "nids") {
      constexpr std::size_t kWithoutAlerts = 1;  // one rule only sets a flowbit
      EXPECT_EQ(report["rules"].size() + kWithoutAlerts, std::ranges::count(std::string_view(kNidsRules), '\n'))
          << report["rules"].dump(1);
      continue;
    }
    EXPECT_EQ(report["sas"].size(), 4U) << configuration.name;
    for (const auto& sa : report["sas"]) EXPECT_GT(sa["packets"], 10) << configuration.name << ": " << sa;
    if (configuration.traffic != Traffic::esp) continue;
    std::uint64_t refused = 0;
    for (const auto& sa : report["sas"]) refused += sa["replayed"].get<std::uint64_t>();
    EXPECT_GT(refused, 10U) << configuration.name;
  }
}

TEST_F(Access, IsWhatTheFunctionReadsAndWrites) {
  for (const Configuration& configuration : configurations()) {
    RandomPackets random(7);
    Outcome device;
    for (Stage& stage : stages_of(maker(configuration), packets_for(configuration, random), device)) {
      const auto found = violation(stage.run, stage.access, stage.packets, random);
      EXPECT_FALSE(found) << configuration.kind << ", " << configuration.name << ", " << stage.name << ": " << *found;
      if (!stage.access.writes.has(Field::verdict)) continue;
      const auto forwarded = static_cast<std::size_t>(
          std::ranges::count_if(stage.packets, [](const Packet& packet) { return packet.descriptor.verdict.alive(); }));
      EXPECT_GT(forwarded, stage.packets.size() / 50) << configuration.name << " forwards hardly anything";
      EXPECT_LT(forwarded, stage.packets.size() * 49 / 50) << configuration.name << " forwards nearly everything";
    }
  }
}

TEST_F(Access, IsWhatTheFunctionReadsAndWritesOfRealPackets) {
  const std::vector<Packet> corpus = corpus_packets(10);
  if (corpus.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS";
  for (const Configuration& configuration : configurations()) {
    RandomPackets random(8);
    Outcome device;
    for (Stage& stage : stages_of(maker(configuration), corpus, device)) {
      const auto found = violation(stage.run, stage.access, stage.packets, random);
      EXPECT_FALSE(found) << configuration.kind << ", " << configuration.name << ", " << stage.name << ": " << *found;
    }
  }
}

/// If a field that a stage reads is removed from its access, the check must fail.
struct Needed {
  const char* kind;
  std::string configuration;
  const char* stage;
  FieldSet fields;
};
std::vector<Needed> needed_fields() {
  const FieldSet esp{Field::eth_type, Field::ipv4_src, Field::ipv4_dst,     Field::ipv4_ttl,      Field::ipv6_src,
                     Field::ipv6_dst, Field::payload,  Field::tcp_seq,      Field::wire_length,   Field::l4_dst_port,
                     Field::eth_src,  Field::verdict,  Field::ipv4_options, Field::ipv6_hop_limit};
  return {{"firewall",
           "iptables",
           "CPU",
           {Field::ipv4_src, Field::ipv4_dst, Field::l4_src_port, Field::l4_dst_port, Field::tcp_flags,
            Field::icmp_type_code, Field::in_port, Field::verdict}},
          {"firewall", "iptables", "GPU", {Field::ipv4_dst, Field::tcp_flags, Field::in_port, Field::verdict}},
          {"firewall", "connections", "CPU", {Field::ipv4_dst, Field::tcp_flags, Field::l4_checksum, Field::payload}},
          {"firewall", "iptables", "finish", {Field::frame_shape}},
          {"firewall",
           "FTP, translated",
           "CPU",
           {Field::payload, Field::tcp_seq, Field::tcp_ack, Field::tcp_options, Field::ipv4_length}},
          {"firewall",
           "prerouting with NAT",
           "GPU",
           {Field::ipv4_checksum, Field::ipv4_src, Field::ipv4_dst, Field::ipv6_src, Field::ipv6_dst,
            Field::l4_src_port, Field::l4_dst_port, Field::l4_checksum, Field::icmp_rest}},
          {"router", "all pass", "GPU", {Field::eth_dst, Field::ipv4_dst, Field::ipv6_dst, Field::flow_hash}},
          {"router", "martians pass", "CPU", {Field::ipv4_checksum, Field::ipv4_options}},
          {"ipsec", "out, only selected", "CPU", esp},
          {"ipsec", "out, only selected", "GPU", esp},
          {"ipsec", "out, refused", "CPU", {Field::in_port, Field::eth_dst}},
          {"ipsec", "out, cut behind a router", "finish", {Field::payload, Field::eth_src, Field::verdict}},
          {"nids",
           "drop, streams",
           "CPU",
           {Field::eth_dst, Field::ipv4_src, Field::ipv4_ttl, Field::ipv4_id, Field::ipv4_checksum, Field::l4_src_port,
            Field::tcp_seq, Field::tcp_ack, Field::tcp_window, Field::tcp_flags, Field::payload, Field::timestamp,
            Field::in_port, Field::icmp_type_code, Field::verdict}},
          {"nids", "alert, packets", "GPU", {Field::payload, Field::wire_length, Field::ipv4_protocol}},
          {"nids", "alert, streams", "finish", {Field::tcp_seq, Field::timestamp, Field::in_port, Field::payload}}};
}

TEST_F(Access, FailsTheCheckIfAFieldIsMissing) {
  if (testing::stride() != 1) GTEST_SKIP() << "too few packets under sanitizers";
  for (const Needed& needed : needed_fields()) {
    const auto all = configurations();
    const auto configuration = std::ranges::find_if(all, [&](const Configuration& each) {
      return std::string_view(each.kind) == needed.kind && each.name == needed.configuration;
    });
    ASSERT_NE(configuration, all.end()) << needed.configuration;
    RandomPackets random(11);
    Outcome device;
    const auto stages = stages_of(maker(*configuration), packets_for(*configuration, random), device);
    const auto stage = std::ranges::find_if(stages, [&](const Stage& each) { return each.name == needed.stage; });
    ASSERT_NE(stage, stages.end()) << needed.stage;
    for (unsigned f = 0; f < kFieldCount; ++f) {
      const auto field = static_cast<Field>(f);
      if (!needed.fields.has(field)) continue;
      penstock::Access access = stage->access;
      access.reads -= FieldSet{field};
      std::vector<Packet> packets = stage->packets;
      EXPECT_TRUE(violation(stage->run, access, packets, random))
          << needed.kind << ", " << needed.configuration << ", " << needed.stage << ": " << name(field);
    }
  }
}

}  // namespace
}  // namespace penstock::property
