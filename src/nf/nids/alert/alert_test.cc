// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/testing/bytes.h"
#include "nf/nids/alert/alert_writer.h"
#include "nf/nids/alert/eve_alert.h"
#include "nf/nids/alert/eve_flow.h"
#include "nf/nids/alert/eve_stats.h"
#include "nf/nids/alert/fast_log.h"
#include "nf/nids/alert/frame_set.h"
#include "nf/nids/alert/packet_text.h"

namespace penstock::nids {
namespace {

using penstock::testing::bytes_of;
using ::testing::IsEmpty;
using Json = nlohmann::ordered_json;
using Frame = std::vector<std::uint8_t>;

constexpr std::uint64_t kTime = 1'795'292'681'123'456'789;  // 2026-11-21 20:24:41 UTC

void append(Frame& frame, std::initializer_list<int> bytes) {
  for (const int byte : bytes) frame.push_back(static_cast<std::uint8_t>(byte));
}

/// Ethernet and IPv4 without options, to be followed by `payload_bytes` bytes of IP payload.
Frame ipv4_frame(std::uint8_t protocol, std::uint16_t payload_bytes) {
  Frame frame(12, 2);
  const int length = 20 + payload_bytes;
  append(frame,
         {8, 0, 0x45, 0, length >> 8, length & 255, 0, 0, 0, 0, 64, protocol, 0, 0, 198, 51, 100, 1, 198, 51, 100, 2});
  return frame;
}

class Alerts : public ::testing::Test {
 protected:
  Alerts() {
    ::setenv("TZ", "XYZ-1", 1);  // one hour ahead of UTC
    ::tzset();
    stack::DecodedPacket& packet = tracked_.packet;
    packet.timestamp_ns = kTime;
    packet.number = 7;
    packet.ip_version = 4;
    packet.protocol = 6;
    packet.source = {{0, 0xc0000201}, 80};
    packet.destination = {{0, 0xc0000202}, 4321};
    packet.transport = transport_;
    packet.payload = bytes_of("uid=0(root)\r\n\"\\\x01\xff");
    packet.frame = frame_;
    packet.ip = stack::Bytes(frame_).subspan(14);
    flow_.id = 123456789012345;
    flow_.start_ns = kTime - 1'000'000'000;
    flow_.counts = {stack::Flow::Counts{4, 400}, stack::Flow::Counts{3, 1500}};
    tracked_.flow = &flow_;
    tracked_.direction = stack::Direction::to_client;
    rule_.sid = 2100498;
    rule_.rev = 7;
    rule_.message = "GPL ATTACK_RESPONSE id check returned root";
    rule_.classtype = "bad-unknown";
    rule_.class_description = "Potentially Bad Traffic";
    rule_.priority = 2;
  }
  ~Alerts() override {
    ::unsetenv("TZ");
    ::tzset();
  }

  [[nodiscard]] Alert alert() const { return {&rule_, &tracked_}; }
  [[nodiscard]] Json eve(const Alert& alert, const EveOptions& options = {}) {
    std::string line;
    append_eve(line, alert, options, times_);
    return Json::parse(line);
  }
  [[nodiscard]] Json eve(const EveOptions& options = {}) { return eve(alert(), options); }
  [[nodiscard]] std::string fast(const Alert& alert) {
    std::string line;
    append_fast(line, alert, times_);
    return line;
  }

  Rule rule_;
  Frame transport_ = Frame(20);
  Frame frame_ = ipv4_frame(6, 0);
  stack::Flow flow_;
  stack::TrackedPacket tracked_;
  report::TimeText times_;
};

TEST_F(Alerts, AreEveRecordsFieldForField) {
  EXPECT_EQ(eve().dump(1), Json::parse(R"({
    "timestamp": "2026-11-21T21:24:41.123456+0100",
    "flow_id": 123456789012345,
    "pcap_cnt": 7,
    "event_type": "alert",
    "src_ip": "192.0.2.1",
    "src_port": 80,
    "dest_ip": "192.0.2.2",
    "dest_port": 4321,
    "proto": "TCP",
    "ip_v": 4,
    "pkt_src": "wire/pcap",
    "alert": {
      "action": "allowed",
      "gid": 1,
      "signature_id": 2100498,
      "rev": 7,
      "signature": "GPL ATTACK_RESPONSE id check returned root",
      "category": "Potentially Bad Traffic",
      "severity": 2
    },
    "direction": "to_client",
    "flow": {
      "pkts_toserver": 4,
      "pkts_toclient": 3,
      "bytes_toserver": 400,
      "bytes_toclient": 1500,
      "start": "2026-11-21T21:24:40.123456+0100",
      "src_ip": "192.0.2.2",
      "dest_ip": "192.0.2.1",
      "src_port": 4321,
      "dest_port": 80
    }
  })")
                               .dump(1));
}

TEST_F(Alerts, AreOneLineWhateverTheRuleSays) {
  rule_.message = "two\nlines \"quoted\" \\ \xff";
  std::string line;
  append_eve(line, alert(), {}, times_);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(line)["alert"]["signature"], "two\nlines \"quoted\" \\ \\xff");
  EXPECT_EQ(fast(alert()).find('\n'), std::string::npos);
}

TEST_F(Alerts, GroupARulesMetadataByKey) {
  rule_.metadata = {{"created_at", "2010_09_23"}, {"tag", "a"}, {"updated_at", "2019_07_26"}, {"tag", "b\"c"}};
  EXPECT_EQ(eve()["alert"]["metadata"].dump(),
            R"({"created_at":["2010_09_23"],"tag":["a","b\"c"],"updated_at":["2019_07_26"]})");
}

TEST_F(Alerts, HaveTheRulesReferencesOnRequest) {
  rule_.references = {{"cve", "2021-44228"}, {"bugtraq", "1"}};
  EXPECT_FALSE(eve()["alert"].contains("references"));
  const std::map<std::string, std::string, std::less<>> prefixes{{"cve", "https://cve.example/?name="}};
  EXPECT_EQ(eve({.references = &prefixes})["alert"]["references"].dump(),
            R"(["https://cve.example/?name=2021-44228","1"])");
}

TEST_F(Alerts, NameSourceAndTargetWhereTheRuleDoes) {
  rule_.target = "dest_ip";
  EXPECT_EQ(eve()["alert"]["source"].dump(), R"({"ip":"192.0.2.1","port":80})");
  EXPECT_EQ(eve()["alert"]["target"].dump(), R"({"ip":"192.0.2.2","port":4321})");
  rule_.target = "src_ip";
  tracked_.packet.protocol = 1;  // ICMP has no ports
  EXPECT_EQ(eve()["alert"]["source"].dump(), R"({"ip":"192.0.2.2"})");
  EXPECT_EQ(eve()["alert"]["target"].dump(), R"({"ip":"192.0.2.1"})");
}

TEST_F(Alerts, SayWhetherThePacketWasBlocked) {
  Alert dropped = alert();
  rule_.action = Action::drop;
  EXPECT_EQ(eve(dropped)["alert"]["action"], "allowed");  // without dropping
  EXPECT_NE(fast(dropped).find("  [wDrop] [**]"), std::string::npos);
  dropped.dropped = true;
  EXPECT_EQ(eve(dropped)["alert"]["action"], "blocked");
  EXPECT_NE(fast(dropped).find("  [Drop] [**]"), std::string::npos);
  rule_.action = Action::reject;
  EXPECT_EQ(eve()["alert"]["action"], "blocked");
  EXPECT_NE(fast(alert()).find("  [wDrop] [**]"), std::string::npos);
  EXPECT_NE(fast(dropped).find("  [Drop] [**]"), std::string::npos);
}

TEST_F(Alerts, WriteIpv6AddressesInFull) {
  tracked_.packet.ip_version = 6;
  tracked_.packet.source.address = {0x20010db8'00000000, 0x1};
  const Json record = eve();
  EXPECT_EQ(record["src_ip"], "2001:0db8:0000:0000:0000:0000:0000:0001");
  EXPECT_EQ(record["ip_v"], 6);
  EXPECT_EQ(record["flow"]["dest_ip"], "2001:0db8:0000:0000:0000:0000:0000:0001");
}

TEST_F(Alerts, HaveTypeAndCodeForIcmpInsteadOfPorts) {
  const Frame icmp{3, 1, 0, 0, 0, 0, 0, 0};
  tracked_.packet.protocol = 1;
  tracked_.packet.source.port = tracked_.packet.destination.port = 0;
  tracked_.packet.transport = icmp;
  const Json record = eve();
  EXPECT_EQ(record["proto"], "ICMP");
  EXPECT_EQ(record["icmp_type"], 3);
  EXPECT_EQ(record["icmp_code"], 1);
  EXPECT_FALSE(record.contains("src_port"));
  EXPECT_FALSE(record["flow"].contains("src_port"));
  EXPECT_NE(fast(alert()).find("{ICMP} 192.0.2.1:3 -> 192.0.2.2:1"), std::string::npos);
}

TEST_F(Alerts, GiveVlansInOrder) {
  tracked_.packet.vlan_ids = {100, 20, 3};
  tracked_.packet.vlan_count = 2;
  EXPECT_EQ(eve()["vlan"].dump(), "[100,20]");
}

TEST_F(Alerts, WithoutAFlowHaveNeitherFlowNorDirection) {
  tracked_.flow = nullptr;
  const Json record = eve();
  for (const char* member : {"flow", "flow_id", "direction"}) EXPECT_FALSE(record.contains(member)) << member;
}

TEST_F(Alerts, OnPacketsOtherThanIpHaveNoAddresses) {
  tracked_.flow = nullptr;
  tracked_.packet.ip_version = 0;
  EXPECT_EQ(
      eve({.payload = true}).dump(),
      R"({"timestamp":"2026-11-21T21:24:41.123456+0100","pcap_cnt":7,"event_type":"alert","pkt_src":"wire/pcap",)"
      R"("alert":{"action":"allowed","gid":1,"signature_id":2100498,"rev":7,)"
      R"("signature":"GPL ATTACK_RESPONSE id check returned root","category":"Potentially Bad Traffic","severity":2}})");
  tracked_.packet.frame = stack::Bytes(frame_).first(3);
  EXPECT_EQ(fast(alert()),
            "11/21/2026-21:24:41.123456  [**] [1:2100498:7] GPL ATTACK_RESPONSE id check returned root [**] "
            "[Classification: Potentially Bad Traffic] [Priority: 2] [**] [Raw pkt: 02 02 02 ] [pcap file packet: 7]");
}

TEST_F(Alerts, HavePayloadAndPacketOnRequest) {
  const Json record = eve({.payload = true, .packet = true});
  EXPECT_EQ(record["payload"], "dWlkPTAocm9vdCkNCiJcAf8=");
  EXPECT_EQ(record["payload_printable"], "uid=0(root)\r\n\"\\..");
  EXPECT_EQ(record["stream"], 0);
  EXPECT_EQ(record["packet"].get<std::string>().substr(0, 16), "AgICAgICAgICAgIC");
  EXPECT_EQ(record["packet_info"].dump(), R"({"linktype":1,"linktype_name":"EN10MB"})");
}

TEST_F(Alerts, OnAStreamShowUpToFourKilobytesOfInspectedBytes) {
  Alert in_stream = alert();
  in_stream.in_stream = true;
  in_stream.stream = bytes_of("seen");
  EXPECT_EQ(eve(in_stream, {.payload = true})["payload_printable"], "seen");
  EXPECT_EQ(eve(in_stream, {.payload = true})["stream"], 1);
  const std::string much(10'000, 'x');
  in_stream.stream = bytes_of(much);
  EXPECT_EQ(eve(in_stream, {.payload = true})["payload_printable"].get<std::string>().size(), 4096U);
}

TEST_F(Alerts, OfATunnelledPacketNameTheOuterOne) {
  Frame outer = ipv4_frame(47, 24);
  append(outer, {0, 0, 8, 0});
  const std::size_t inner = outer.size();
  outer.insert(outer.end(), frame_.begin() + 14, frame_.end());
  tracked_.packet.frame = outer;
  tracked_.packet.ip = stack::Bytes(outer).subspan(inner);
  tracked_.packet.tunnel_depth = 1;
  const Json record = eve({.packet = true});
  EXPECT_EQ(record["pkt_src"], "gre tunnel");
  EXPECT_FALSE(record.contains("pcap_cnt"));
  EXPECT_EQ(record["tunnel"].dump(),
            R"({"src_ip":"198.51.100.1","src_port":0,"dest_ip":"198.51.100.2","dest_port":0,"proto":"GRE",)"
            R"("depth":1,"pcap_cnt":7,"pkt_src":"wire/pcap"})");
  EXPECT_EQ(record["packet_info"].dump(), R"({"linktype":12,"linktype_name":"RAW"})");
}

TEST_F(Alerts, SayWhereThePacketCameFrom) {
  tracked_.packet.reassembled = true;
  EXPECT_EQ(eve()["pkt_src"], "defrag");
  EXPECT_EQ(eve()["tunnel"]["depth"], 0);
  tracked_.packet.reassembled = false;
  tracked_.stream_end = true;
  tracked_.packet.frame = {};
  EXPECT_EQ(eve()["pkt_src"], "stream (flow timeout)");
  EXPECT_FALSE(eve().contains("pcap_cnt"));
  tracked_.stream_end = false;
  tracked_.packet.tunnel_depth = 1;
  const Frame ip_in_ip = ipv4_frame(4, 0);
  tracked_.packet.frame = ip_in_ip;
  EXPECT_EQ(eve()["pkt_src"], "ipv4 tunnel");
  Frame vxlan = ipv4_frame(17, 8);
  append(vxlan, {0, 1, 4789 >> 8, 4789 & 255, 0, 8, 0, 0});
  tracked_.packet.frame = vxlan;
  EXPECT_EQ(eve()["pkt_src"], "vxlan encapsulation");
  vxlan[36] = 3544 >> 8;
  vxlan[37] = 3544 & 255;
  EXPECT_EQ(eve()["pkt_src"], "teredo tunnel");
}

TEST_F(Alerts, OfATagArePacketRecords) {
  EXPECT_EQ(eve(Alert{nullptr, &tracked_}).dump(),
            R"({"timestamp":"2026-11-21T21:24:41.123456+0100","flow_id":123456789012345,"pcap_cnt":7,)"
            R"("event_type":"packet","src_ip":"192.0.2.1","src_port":80,"dest_ip":"192.0.2.2","dest_port":4321,)"
            R"("proto":"TCP","ip_v":4,"pkt_src":"wire/pcap",)"
            R"("packet":"AgICAgICAgICAgICCABFAAAUAAAAAEAGAADGM2QBxjNkAg==",)"
            R"("packet_info":{"linktype":1,"linktype_name":"EN10MB"}})");
}

TEST_F(Alerts, AreFastLogLinesAsSuricataWritesThem) {
  EXPECT_EQ(fast(alert()),
            "11/21/2026-21:24:41.123456  [**] [1:2100498:7] GPL ATTACK_RESPONSE id check returned root [**] "
            "[Classification: Potentially Bad Traffic] [Priority: 2] {TCP} 192.0.2.1:80 -> 192.0.2.2:4321");
  rule_.class_description.clear();
  tracked_.packet.protocol = 200;
  EXPECT_NE(fast(alert()).find("[Classification: (null)] [Priority: 2] {PROTO:200} 192.0.2.1:0 -> 192.0.2.2:0"),
            std::string::npos);
}

TEST(TimeText, IsEachPacketsTime) {
  report::TimeText times;
  std::string text;
  for (const std::uint64_t seconds : {0U, 59U, 60U, 59U, 1'000'000'000U}) {
    times.append_us(text, seconds * 1'000'000'000ULL + 999'999'999);
    text += '\n';
  }
  EXPECT_EQ(text,
            "01/01/1970-00:00:00.999999\n01/01/1970-00:00:59.999999\n01/01/1970-00:01:00.999999\n"
            "01/01/1970-00:00:59.999999\n09/09/2001-01:46:40.999999\n");
}

TEST(ProtocolName, IsTheRegistrysKeyword) {
  EXPECT_EQ(protocol_name(0), "HOPOPT");
  EXPECT_EQ(protocol_name(6), "TCP");
  EXPECT_EQ(protocol_name(17), "UDP");
  EXPECT_EQ(protocol_name(41), "IPv6");
  EXPECT_EQ(protocol_name(47), "GRE");
  EXPECT_EQ(protocol_name(50), "ESP");
  EXPECT_EQ(protocol_name(58), "IPv6-ICMP");
  EXPECT_EQ(protocol_name(61), "");
  EXPECT_EQ(protocol_name(89), "OSPFIGP");
  EXPECT_EQ(protocol_name(103), "PIM");
  EXPECT_EQ(protocol_name(112), "VRRP");
  EXPECT_EQ(protocol_name(132), "SCTP");
  EXPECT_EQ(protocol_name(142), "ROHC");
  EXPECT_EQ(protocol_name(255), "");
}

TEST(EveStats, IsARecordOfAllCounters) {
  EveStats stats;
  stats.timestamp_ns = kTime;
  stats.uptime_s = 3;
  stats.bytes = 1000;
  stats.tracker.packets = 10;
  stats.tracker.flows = 5;
  stats.tracker.flows_ended = 2;
  stats.tracker.tcp_sessions = 4;
  stats.tracker.undecodable = 6;
  stats.tracker.tcp_idle_timeouts = 7;
  stats.tracker.handshake_timeouts = 8;
  stats.tracker.tcp_unknown_connection = 11;
  stats.rules_loaded = 100;
  stats.rules_failed = 1;
  stats.alerts = 9;
  report::TimeText times;
  std::string line;
  append_eve_stats(line, stats, times);
  const Json json = Json::parse(line);
  EXPECT_EQ(json["event_type"], "stats");
  EXPECT_EQ(json["timestamp"], "2026-11-21T20:24:41.123456+0000");
  const Json& all = json["stats"];
  EXPECT_EQ(all["uptime"], 3);
  EXPECT_EQ(all["decoder"]["pkts"], 10);
  EXPECT_EQ(all["decoder"]["bytes"], 1000);
  EXPECT_EQ(all["flow"]["active"], 3);
  EXPECT_EQ(all["decoder"]["undecodable"], 6);
  EXPECT_EQ(all["tcp"]["sessions"], 4);
  EXPECT_EQ(all["tcp"]["idle_timeouts"], 7);
  EXPECT_EQ(all["tcp"]["handshake_timeouts"], 8);
  EXPECT_EQ(all["tcp"]["unknown_connection"], 11);
  EXPECT_EQ(all["detect"]["engines"].dump(), R"([{"id":0,"rules_loaded":100,"rules_failed":1}])");
  EXPECT_EQ(all["detect"]["alert"], 9);
  EXPECT_FALSE(all.contains("ips"));
}

TEST(EveFlow, IsARecordOfAFlowThatHasEnded) {
  stack::Flow flow;
  flow.key.client = {*parse_ipv6("2001:db8::1"), 40000};
  flow.key.server = {*parse_ipv6("2001:db8::2"), 443};
  flow.key.vlan_ids = {5, 7};
  flow.key.ip_version = 6;
  flow.key.protocol = 6;
  flow.id = 77;
  flow.start_ns = kTime - 2'500'000'000;
  flow.last_ns = kTime;
  flow.count(stack::Direction::to_server) = {3, 300};
  flow.count(stack::Direction::to_client) = {2, 2000};
  flow.state = stack::FlowState::established;
  report::TimeText times;
  std::string line;
  append_eve_flow(line, flow, times);
  EXPECT_EQ(Json::parse(line), Json::parse(R"({
    "timestamp": "2026-11-21T20:24:41.123456+0000", "flow_id": 77, "event_type": "flow", "vlan": [5, 7],
    "src_ip": "2001:0db8:0000:0000:0000:0000:0000:0001", "src_port": 40000,
    "dest_ip": "2001:0db8:0000:0000:0000:0000:0000:0002", "dest_port": 443, "ip_v": 6, "proto": "TCP",
    "flow": {"pkts_toserver": 3, "pkts_toclient": 2, "bytes_toserver": 300, "bytes_toclient": 2000,
             "start": "2026-11-21T20:24:38.623456+0000", "end": "2026-11-21T20:24:41.123456+0000", "age": 2,
             "state": "established"}})"));
}

TEST(EveFlow, HasTypeAndCodeOfIcmp) {
  stack::Flow flow;
  flow.key.client.address.low = 0x0a000001;
  flow.key.client.port = 8 << 8 | 1;
  flow.key.server.address.low = 0x0a000002;
  flow.key.ip_version = 4;
  flow.key.protocol = 1;
  report::TimeText times;
  std::string line;
  append_eve_flow(line, flow, times);
  const Json json = Json::parse(line);
  EXPECT_EQ(json["icmp_type"], 8);
  EXPECT_EQ(json["icmp_code"], 1);
  EXPECT_EQ(json["src_ip"], "10.0.0.1");
  EXPECT_FALSE(json.contains("src_port"));
  EXPECT_FALSE(json.contains("vlan"));
  EXPECT_EQ(json["flow"]["state"], "new");
}

TEST(EveStats, HaveDropReasonsIfFramesCanBeDropped) {
  EveStats stats;
  stats.tracker.fragment_memory_refused = 7;
  stats.dropped.emplace();
  for (std::size_t i = 0; i < kDropReasons.size(); ++i) (*stats.dropped)[i] = i + 1;
  report::TimeText times;
  std::string line;
  append_eve_stats(line, stats, times);
  const Json all = Json::parse(line)["stats"];
  EXPECT_EQ(all["defrag"]["memcap_drop"], 7);
  EXPECT_EQ(all["ips"]["blocked"], 28);
  EXPECT_EQ(all["ips"]["drop_reason"],
            Json::parse(R"({"rules":1,"stream_changed_bytes":2,"stream_error":3,"flow_memcap":4,
                                                       "stream_memcap":5,"defrag_memcap":6,"decode_error":7})"));
}

TEST_F(Alerts, OfSeveralWorkersGoIntoOneLogAndAreCountedByRule) {
  const std::string path = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_eve.json";
  report::EventLog log(path);
  ASSERT_TRUE(log.open());
  log.begin();
  std::vector<Rule> rules(3, rule_);
  constexpr std::size_t kWorkers = 3;
  constexpr std::size_t kEach = 1000;
  std::vector<std::vector<report::Counter>> counts;
  for (std::size_t w = 0; w < kWorkers; ++w) counts.emplace_back(rules.size());
  std::vector<std::thread> workers;
  for (std::size_t w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      AlertWriter writer(&log, nullptr, {.payload = true}, rules, counts[w]);
      stack::TrackedPacket packet = tracked_;
      for (std::size_t i = 0; i < kEach; ++i) {
        packet.packet.number = w * kEach + i + 1;
        writer.alert({&rules[i % 2], &packet});
      }
      writer.alert({nullptr, &packet});  // a tagged packet: counted for no rule
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_THAT(log.close(), IsEmpty());
  std::set<std::uint64_t> numbers;
  std::size_t records = 0;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line); ++records)
    numbers.insert(Json::parse(line)["pcap_cnt"].get<std::uint64_t>());
  std::remove(path.c_str());
  EXPECT_EQ(records, kWorkers * (kEach + 1));
  EXPECT_EQ(numbers.size(), kWorkers * kEach);
  for (const auto& count : counts) {
    EXPECT_EQ(count[0].get(), kEach / 2);
    EXPECT_EQ(count[1].get(), kEach / 2);
    EXPECT_EQ(count[2].get(), 0U);
  }
}

TEST(FrameSet, HasEachFrameOnceAndCountsAlertsWithoutAFrame) {
  FrameSet frames;
  frames.add(1, 5'000);
  frames.add(130, 6'000);
  frames.add(130, 6'000);
  frames.add(0, 7'001);  // raised at the end of a stream
  EXPECT_TRUE(frames.contains(1) && frames.contains(130));
  for (const std::uint64_t other : {0, 2, 64, 129, 131, 100'000}) EXPECT_FALSE(frames.contains(other)) << other;
  EXPECT_EQ(frames.without_frame(), 1U);
  EXPECT_FALSE(frames.has_nanoseconds());

  FrameSet of_another_worker;
  of_another_worker.add(700, 8'001);
  of_another_worker.add(0, 8'001);
  frames.add(of_another_worker);
  EXPECT_TRUE(frames.contains(1) && frames.contains(700));
  EXPECT_EQ(frames.without_frame(), 2U);
  EXPECT_TRUE(frames.has_nanoseconds());
}

}  // namespace
}  // namespace penstock::nids
