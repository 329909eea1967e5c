// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "nf/router/router_for_test.h"
#include "packet/field_range.h"
#include "port/worker_of.h"

namespace penstock::router {
namespace {

using penstock::testing::Bytes;
using penstock::testing::packet;
using penstock::testing::slow_checksum;

// The same cases in every run, unless the user sets a seed.
const bool kSeeded = ::setenv("RC_PARAMS", "seed=20 max_success=300", 0) == 0;

/// An IPv4 header of any length and content, with a correct checksum.
Bytes any_header() {
  const auto words = *rc::gen::inRange<std::size_t>(5, 16);
  Bytes header = *rc::gen::container<Bytes>(words * 4, rc::gen::arbitrary<std::uint8_t>());
  header[0] = static_cast<std::uint8_t>(0x40 | words);
  header[10] = header[11] = 0;
  const std::uint16_t sum = slow_checksum(header, 0, header.size());
  header[10] = static_cast<std::uint8_t>(sum >> 8);
  header[11] = static_cast<std::uint8_t>(sum);
  return header;
}

Ipv4Header& ipv4_of(Bytes& header) { return *reinterpret_cast<Ipv4Header*>(header.data()); }

TEST(ForwardProperty, TheUpdatedChecksumIsThatOfTheWholeHeader) {
  EXPECT_TRUE(rc::check([] {
    Bytes header = any_header();
    header[8] = std::max<std::uint8_t>(header[8], 1);
    header[10] = header[11] = 0;
    ipv4_of(header).checksum.set(slow_checksum(header, 0, header.size()));
    Bytes want = header;
    --want[8];
    want[10] = want[11] = 0;
    ipv4_of(want).checksum.set(slow_checksum(want, 0, want.size()));
    decrement_ttl(ipv4_of(header));
    RC_ASSERT(header == want);
  }));
}

TEST(ForwardProperty, AHeaderPassesIfAndOnlyIfItsChecksumIsCorrect) {
  EXPECT_TRUE(rc::check([] {
    Bytes header = any_header();
    RC_ASSERT(ipv4_checksum_is_right(ipv4_of(header)));
    const auto at = *rc::gen::inRange<std::size_t>(1, header.size());
    header[at] ^= *rc::gen::arbitrary<std::uint8_t>();
    RC_ASSERT(ipv4_checksum_is_right(ipv4_of(header)) == (slow_checksum(header, 0, header.size()) == 0));
  }));
}

std::vector<NextHop> any_group() {
  const auto weights = *rc::gen::container<std::vector<std::uint16_t>>(rc::gen::inRange<std::uint16_t>(1, 257));
  RC_PRE(!weights.empty());
  std::vector<NextHop> group;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    group.push_back({{0, i + 1}, static_cast<PortIndex>(i), weights[i]});
  }
  return group;
}

std::vector<Hop> hops_of(const std::vector<NextHop>& group) {
  std::vector<Hop> hops(group.size());
  make_hops(RouteKind::unicast, group, {}, false, hops);
  return hops;
}

TEST(EcmpProperty, HashSharesAreProportionalToTheWeights) {
  EXPECT_TRUE(rc::check([] {
    const auto group = any_group();
    const auto hops = hops_of(group);
    const double all =
        std::accumulate(group.begin(), group.end(), 0.0, [](double sum, const NextHop& h) { return sum + h.weight; });
    double below = 0;
    for (std::size_t i = 0; i < hops.size(); ++i) {
      const double above = hops[i].upper_bound + 1.0;
      RC_ASSERT(std::abs((above - below) - group[i].weight / all * 4294967296.0) <= 1.0);
      below = above;
    }
    RC_ASSERT(below == 4294967296.0);  // the hops cover all hashes
  }));
}

TEST(EcmpProperty, TheHopOfAShareIsTheOneWhoseRangeContainsIt) {
  EXPECT_TRUE(rc::check([] {
    const auto hops = hops_of(any_group());
    const auto share = *rc::gen::arbitrary<std::uint32_t>();
    const auto i = static_cast<std::size_t>(&hop_of_share(hops.data(), share) - hops.data());
    RC_ASSERT(i < hops.size());
    RC_ASSERT(share <= hops[i].upper_bound);
    if (i != 0) RC_ASSERT(share > hops[i - 1].upper_bound);
  }));
}

TEST(Ecmp, EveryWorkersPacketsUseAllNextHopsInProportion) {
  constexpr unsigned kFlows = 12'000;
  for (const unsigned workers : {2U, 3U, 4U, 8U}) {
    for (const auto& group : {std::vector<NextHop>{{{0, 1}, kLan, 1}, {{0, 2}, kWan, 1}},
                              std::vector<NextHop>{{{0, 1}, kLan, 1}, {{0, 2}, kWan, 2}, {{0, 3}, kDmz, 1}}}) {
      const auto hops = hops_of(group);
      std::vector<std::vector<unsigned>> flows(workers, std::vector<unsigned>(group.size()));
      for (unsigned i = 0; i < kFlows; ++i) {
        TestPacket p(packet().eth().ipv4("10.9.9.9", "8.8.8.8").udp(static_cast<std::uint16_t>(1024 + i), 53));
        const unsigned worker = port::worker_of(p.bytes, p.descriptor.wire_length, LinkType::ethernet, workers);
        ++flows.at(worker).at(static_cast<std::size_t>(&select_hop(hops.data(), p.descriptor.flow_hash) - hops.data()));
      }
      const unsigned weights = std::accumulate(group.begin(), group.end(), 0U,
                                               [](unsigned sum, const NextHop& h) { return sum + h.weight; });
      for (unsigned worker = 0; worker < workers; ++worker) {
        for (std::size_t hop = 0; hop < group.size(); ++hop) {
          const double fair = static_cast<double>(kFlows) / workers * group[hop].weight / weights;
          EXPECT_NEAR(flows[worker][hop], fair, 5 * std::sqrt(fair)) << workers << " workers, hop " << hop;
        }
      }
    }
  }
}

const std::string kThreeWays =
    "8.0.0.0/8\n\tnexthop via 10.1.0.1 dev lan weight 1\n\tnexthop via 10.1.0.2 dev wan weight 2\n\tnexthop via "
    "10.1.0.3 "
    "dev dmz weight 1\n";

TEST(EcmpProperty, BothDirectionsOfAFlowKeepTheSamePath) {
  const auto router =
      build(config_of(kThreeWays + "9.0.0.0/8\n\tnexthop via 10.1.0.1 dev lan weight 1\n\tnexthop via 10.1.0.2 dev "
                                   "wan weight 2\n\tnexthop via 10.1.0.3 dev dmz weight 1\n"));
  EXPECT_TRUE(rc::check([&] {
    const auto host = *rc::gen::arbitrary<std::uint32_t>();
    const auto source_port = *rc::gen::arbitrary<std::uint16_t>();
    const auto port = *rc::gen::arbitrary<std::uint16_t>();
    const std::string client = to_string(Ipv4Address{9U << 24 | host >> 8});
    const std::string server = to_string(Ipv4Address{8U << 24 | (host & 0xff'ffff)});
    std::set<std::string> ways;
    for (const std::string_view data : {"", "a", "some more"}) {
      TestPacket there(packet().eth().ipv4(client, server).tcp(source_port, port).payload(data));
      TestPacket back(packet().eth().ipv4(server, client).tcp(port, source_port).payload(data));
      ways.insert(send_one(*router, there));
      ways.insert(send_one(*router, back));
    }
    RC_ASSERT(ways.size() == 1U);
  }));
}

TEST(EcmpProperty, FlowsSpreadByTheWeights) {
  const auto router = build(config_of(kThreeWays));
  const auto stage = router->make_cpu_stage();
  constexpr int kFlows = 40'000;
  std::array<int, 3> count{};
  for (int i = 0; i < kFlows; ++i) {
    TestPacket p(packet()
                     .eth()
                     .ipv4("10.9.9.9", fmt::format("8.0.{}.{}", i % 4, i / 4 % 250))
                     .tcp(static_cast<std::uint16_t>(1024 + i), 443));
    std::vector<PacketView> views{p.view()};
    stage->process(views);
    ++count.at(p.descriptor.verdict.value);
  }
  // Within five standard deviations of a binomial distribution. The flows are always the same.
  const auto near = [](int got, double share) {
    return std::abs(got - kFlows * share) < 5 * std::sqrt(kFlows * share * (1 - share));
  };
  EXPECT_TRUE(near(count[kLan], 0.25)) << count[kLan];
  EXPECT_TRUE(near(count[kWan], 0.5)) << count[kWan];
  EXPECT_TRUE(near(count[kDmz], 0.25)) << count[kDmz];
}

TEST(AccessProperty, DecidesByTheFieldsItReadsAndChangesThoseItWrites) {
  RouterConfig config =
      config_of(kThreeWays + "default via 10.1.0.2 dev wan\n::/0 via fe80::1 dev lan\n10.0.0.0/8 dev lan\n");
  config.neighbours = neighbours_of(
      "10.1.0.2 dev wan lladdr 02:00:00:00:01:02 STALE\nfe80::1 dev lan lladdr 02:00:00:00:01:03 STALE\n"
      "10.1.0.1 dev lan lladdr 02:00:00:00:01:04 STALE\n10.0.0.7 dev lan lladdr 02:00:00:00:01:05 STALE\n");
  config.rules.verify_checksum = false;  // so that some bytes of the header may have any value
  config.ports[kWan] = {{{2, 0, 0, 0, 9, 9}}, true};
  const auto router = build(std::move(config));
  const Access access = router->traits().cpu;
  EXPECT_TRUE(rc::check([&] {
    const auto pick = *rc::gen::inRange(0, 5);
    const auto hops = *rc::gen::element<std::uint8_t>(1, 2, 64);
    penstock::testing::PacketBuilder b;
    b.eth();
    if (*rc::gen::arbitrary<bool>()) b.vlan(5);
    switch (pick) {
      case 0: b.ipv4("10.9.9.9", "8.1.2.3", hops).tcp(1, 2).payload("data"); break;
      case 1: b.ipv4("10.9.9.9", "9.1.2.3", hops, {1, 1, 1, 0}).udp(1, 2).payload("data").padded_to(80); break;
      case 2: b.ipv4("10.9.9.9", *rc::gen::element<std::string>("10.0.0.7", "10.0.0.8"), hops).icmp(8); break;
      case 3: b.ipv6("2001:db8::1", "2001:db8::2", hops).extension(0).udp(1, 2).payload("data"); break;
      default: b.ether_type(ether_type::kArp).raw(Bytes(28, 7)); break;
    }
    TestPacket first(b);
    first.descriptor.flow_hash = *rc::gen::arbitrary<std::uint32_t>();
    const Bytes original = first.bytes;
    TestPacket second = first;
    std::vector<bool> free_byte(original.size());
    std::vector<bool> written(original.size());
    for (unsigned f = 0; f < kByteFieldCount; ++f) {
      const auto field = static_cast<Field>(f);
      const FieldRange range = field_range(field, first.descriptor.layout, LinkType::ethernet, first.descriptor.length);
      for (std::uint32_t i = range.offset; i < range.offset + range.length; ++i) {
        free_byte[i] = !access.reads.has(field);
        written[i] = access.writes.has(field);
        if (free_byte[i]) second.bytes[i] = *rc::gen::arbitrary<std::uint8_t>();
      }
    }
    const Bytes scrambled = second.bytes;
    RC_ASSERT(send_one(*router, first) == send_one(*router, second));
    for (std::size_t i = 0; i < original.size(); ++i) {
      if (written[i]) {
        RC_ASSERT(first.bytes[i] == second.bytes[i]);
      } else {
        RC_ASSERT(first.bytes[i] == original[i]);
        RC_ASSERT(second.bytes[i] == scrambled[i]);
      }
    }
  }));
}

}  // namespace
}  // namespace penstock::router
