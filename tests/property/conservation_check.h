// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Chains that are run as a user runs them, and the sums that must hold for every chain.

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/chain_file.h"
#include "packet/testing/packet_builder.h"
#include "port/testing/port_harness.h"
#include "run/run.h"

namespace penstock::property {

using Json = nlohmann::ordered_json;
using port::testing::Captured;

struct Sum {
  std::uint64_t packets = 0, bytes = 0;
  explicit Sum(const Json& json) : packets(json.at("packets")), bytes(json.at("bytes")) {}
  Sum(std::uint64_t p, std::uint64_t b) : packets(p), bytes(b) {}
  friend Sum operator+(Sum a, Sum b) { return {a.packets + b.packets, a.bytes + b.bytes}; }
  friend bool operator==(const Sum&, const Sum&) = default;
};
inline void PrintTo(const Sum& sum, std::ostream* out) { *out << sum.packets << " packets, " << sum.bytes << " bytes"; }

/// in = forwarded + dropped + consumed for each function and in total, and no packets are lost between two functions.
/// Likewise for bytes, unless a function changes lengths. `forks`: a function need not get all packets that the one
/// before it forwards.
inline void expect_conserved(const Json& report, bool lengths_change = false, bool forks = false) {
  const auto sum = [&](std::uint64_t packets, std::uint64_t bytes) { return Sum(packets, lengths_change ? 0 : bytes); };
  const auto sum_of = [&](const Json& json) { return sum(json.at("packets"), json.at("bytes")); };
  const auto all = [&](const char* what) { return sum(report["packets"][what], report["bytes"][what]); };
  EXPECT_EQ(all("in"), all("forwarded") + all("dropped") + all("consumed")) << report.dump(1);
  Sum ports_in(0, 0);
  Sum ports_out(0, 0);
  for (const Json& port : report["ports"]) {
    ports_in = ports_in + sum_of(port["in"]);
    ports_out = ports_out + sum_of(port["out"]);
  }
  EXPECT_EQ(all("in"), ports_in);
  EXPECT_EQ(all("forwarded") + all("generated"), ports_out);

  const auto& by_chain = report["dropped_by_chain"];
  std::uint64_t dropped = 0;
  for (const Json& packets : by_chain) dropped += packets.get<std::uint64_t>();
  std::uint64_t reaches = all("in").packets - by_chain["queue_full"].get<std::uint64_t>();
  std::uint64_t consumed = 0;
  for (const Json& f : report["functions"]) {
    if (!forks) {
      EXPECT_EQ(Sum(f["in"]).packets, reaches) << f["name"];
    }
    EXPECT_EQ(sum_of(f["in"]), sum_of(f["forwarded"]) + sum_of(f["dropped"]) + sum_of(f["consumed"])) << f["name"];
    std::uint64_t by_reason = 0;
    for (const Json& packets : f["dropped"]["reasons"]) by_reason += packets.get<std::uint64_t>();
    EXPECT_EQ(by_reason, Sum(f["dropped"]).packets) << f["name"];
    reaches -= Sum(f["dropped"]).packets + Sum(f["consumed"]).packets;
    dropped += by_reason;
    consumed += Sum(f["consumed"]).packets;
  }
  EXPECT_EQ(dropped, all("dropped").packets);
  const std::uint64_t at_the_end = all("forwarded").packets + all("consumed").packets - consumed +
                                   by_chain["no_such_exit"].get<std::uint64_t>() +
                                   by_chain["port_refused"].get<std::uint64_t>();
  EXPECT_EQ(reaches, at_the_end);
  const Json& batches = report["batches"];
  EXPECT_EQ(batches["count"], batches["closed_by_size"].get<int>() + batches["closed_by_time"].get<int>() +
                                  batches["closed_by_end"].get<int>() + batches["closed_by_idleness"].get<int>());
}

/// The outcome of a run, with the report as a user reads it; null if the run did not begin.
struct Outcome {
  Json report;
  Errors errors;
};

/// A folder with a chain file, the files that it names, and the outputs of a run.
class Chains : public ::testing::Test {
 protected:
  Chains() { ::setenv("STATE_DIRECTORY", (folder_ / "kept").c_str(), 1); }

  void put(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  Outcome run(const std::string& yaml, const std::vector<std::string>& settings = {},
              const std::atomic<bool>& stop = kNever) {
    put("chain.yaml", yaml);
    config::LoadOptions options;
    for (const std::string& setting : settings) options.overrides.push_back(*config::parse_override(setting));
    auto loaded = config::load_chain(folder_ / "chain.yaml", options);
    EXPECT_TRUE(loaded) << to_string(loaded.error()) << '\n' << yaml;
    if (!loaded) return {};
    auto result = run::run(loaded->chain, {}, stop);
    EXPECT_TRUE(result) << to_string(result.error()) << '\n' << yaml;
    if (!result) return {};
    Outcome outcome{report::to_json(result->report), std::move(result->errors)};
    expect_conserved(outcome.report, lengths_change_, !loaded->chain.forks.empty());
    return outcome;
  }

  static inline const std::atomic<bool> kNever{false};
  bool lengths_change_ = false;  // a function of the chains changes lengths
  port::testing::TemporaryFolder folder_;
};

/// In each direction, the packets of these flows are fragments of one datagram, alternately the first and the last one.
inline bool is_fragmented(std::uint32_t flow) { return flow % 13 == 7 && flow % 5 != 4; }
inline bool is_back(std::uint32_t place) { return place % 3 == 2; }

/// The end of each frame: its flow, and its position in the flow.
struct Tag {
  std::uint32_t flow = 0, place = 0;
  friend auto operator<=>(const Tag&, const Tag&) = default;
};
inline Tag tag_of(const port::testing::Bytes& frame) {
  Tag tag;
  for (std::size_t i = frame.size() - 8; i < frame.size() - 4; ++i) tag.flow = tag.flow << 8 | frame[i];
  for (std::size_t i = frame.size() - 4; i < frame.size(); ++i) tag.place = tag.place << 8 | frame[i];
  return tag;
}

/// Flows of all kinds, interleaved, each packet with a unique tag. Both directions of a flow carry the flow's number.
inline std::vector<Captured> tagged_packets(std::uint32_t flows, std::uint32_t each, std::uint32_t first_flow = 0,
                                            LinkType link = LinkType::ethernet) {
  std::vector<Captured> packets;
  for (std::uint32_t place = 0; place < each; ++place) {
    for (std::uint32_t flow = first_flow; flow < first_flow + flows; ++flow) {
      penstock::testing::PacketBuilder b;
      if (link == LinkType::ethernet) b.eth();
      const bool back = is_back(place);
      const std::string client =
          (flow % 2 == 0 ? "10.0." : "192.168.") + std::to_string(flow % 7) + '.' + std::to_string(1 + flow % 200);
      const std::string server = flow % 3 == 0 ? "8.8.8.8" : flow % 3 == 1 ? "9.9.9.9" : "172.16.0.1";
      const auto port = static_cast<std::uint16_t>(2000 + flow);
      const auto service = static_cast<std::uint16_t>(flow % 4 == 0 ? 53 : 443);
      const std::uint8_t hops = flow % 11 == 3 ? 1 : 64;
      if (flow % 5 == 4) {
        const std::string host = "2001:db8::" + std::to_string(1 + flow % 200);
        b.ipv6(back ? "2001:db9::1" : host, back ? host : "2001:db9::1", hops);
      } else {
        b.ipv4(back ? server : client, back ? client : server, hops, {},
               static_cast<std::uint16_t>(is_fragmented(flow) ? (place % 2 == 0 ? 0x2000 : 0x0010) : 0));
      }
      if (flow % 6 < 4) {
        b.udp(back ? service : port, back ? port : service);
      } else {
        b.tcp(back ? service : port, back ? port : service);
      }
      std::string payload((flow + place) * 37 % 1200, 'p');
      for (const std::uint32_t word : {flow, place}) {
        for (int shift = 24; shift >= 0; shift -= 8) payload += static_cast<char>(word >> shift);
      }
      const auto frame = b.payload(payload).bytes();
      packets.push_back(
          {1'700'000'000'000'000'000 + packets.size() * 1000, static_cast<std::uint32_t>(frame.size()), link, frame});
    }
  }
  return packets;
}

/// The tags in a capture that a chain wrote. Within a flow they must be in order, without duplicates. Fragments wait
/// for the first one of their datagram, so among them each direction must be in order. `any_order`: flows may be in any
/// order.
inline std::vector<Tag> tags_of(const std::vector<Captured>& packets, bool any_order = false) {
  std::vector<Tag> tags;
  std::map<std::pair<std::uint32_t, bool>, std::int64_t> last;
  for (const Captured& packet : packets) {
    const Tag tag = tag_of(packet.bytes);
    const auto [before, first] = last.try_emplace({tag.flow, is_fragmented(tag.flow) && is_back(tag.place)}, -1);
    if (!any_order) {
      EXPECT_LT(before->second, tag.place) << "flow " << tag.flow << " is out of order, or has a packet twice";
    }
    before->second = tag.place;
    tags.push_back(tag);
  }
  std::sort(tags.begin(), tags.end());
  return tags;
}
inline std::uint64_t bytes_of(const std::vector<Captured>& packets) {
  std::uint64_t bytes = 0;
  for (const Captured& packet : packets) bytes += packet.bytes.size();
  return bytes;
}

}  // namespace penstock::property
