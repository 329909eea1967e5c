// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/kernel_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "control/kernel/kernel_neighbours.h"
#include "control/kernel/message_builder_for_test.h"
#include "control/kernel/table_follower.h"
#include "nf/router/route_format.h"

namespace penstock::control {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr std::uint16_t kAppend = NLM_F_CREATE | NLM_F_APPEND, kReplace = NLM_F_CREATE | NLM_F_REPLACE;

/// A kernel with the interfaces lo (1), eth0 (2, port lan), eth1 (3, port wan) and eth2 (4, no port).
class KernelRoutesTest : public ::testing::Test {
 protected:
  KernelRoutesTest() {
    routes_.follow_tables({255, 254, 253});
    routes_.set_ports([](const std::string& name) -> PortIndex {
      return name == "eth0" ? 0 : name == "eth1" ? 1 : kNoPort;
    });
    tell(link_message(1, "lo", IFF_UP | IFF_LOOPBACK));
    for (const int interface : {2, 3, 4}) tell(link_message(interface, "eth" + std::to_string(interface - 2)));
  }

  void tell(const MessageBuilder& builder) {
    const KernelMessage message = read_message(builder.bytes());
    if (const auto* const route = std::get_if<RouteMessage>(&message)) {
      routes_.apply(*route);
    } else if (const auto* const link = std::get_if<LinkMessage>(&message)) {
      routes_.apply(*link);
    } else if (const auto* const nexthop = std::get_if<NexthopMessage>(&message)) {
      routes_.apply(*nexthop);
    } else {
      ADD_FAILURE() << "another message";
    }
  }
  void add(std::string_view address, std::uint8_t length, std::initializer_list<HopOf> hops, std::uint32_t metric = 0,
           std::uint16_t flags = NLM_F_CREATE) {
    tell(route_message(RTM_NEWROUTE, flags, address, length, hops, metric));
  }
  void remove(std::string_view address, std::uint8_t length, std::initializer_list<HopOf> hops,
              std::uint32_t metric = 0) {
    tell(route_message(RTM_DELROUTE, 0, address, length, hops, metric));
  }
  void tell_nexthop(std::uint32_t id, std::string_view gateway, int interface) {
    nhmsg part{};
    MessageBuilder message(RTM_NEWNEXTHOP, NLM_F_CREATE);
    message.fixed(part).number(NHA_ID, id).number(NHA_OIF, static_cast<std::uint32_t>(interface));
    message.attribute(NHA_GATEWAY, address_bytes(gateway));
    tell(message);
  }
  void tell_group(std::uint32_t id, std::initializer_list<nexthop_grp> members) {
    std::vector<std::uint8_t> list;
    for (const nexthop_grp& member : members) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&member);
      list.insert(list.end(), bytes, bytes + sizeof member);
    }
    MessageBuilder message(RTM_NEWNEXTHOP, NLM_F_CREATE | NLM_F_REPLACE);
    message.fixed(nhmsg{}).number(NHA_ID, id).attribute(NHA_GROUP, list);
    tell(message);
  }
  void delete_nexthop(std::uint32_t id) {
    MessageBuilder message(RTM_DELNEXTHOP);
    message.fixed(nhmsg{}).number(NHA_ID, id);
    tell(message);
  }
  void add_by_object(std::string_view address, std::uint8_t length, std::uint32_t id,
                     std::uint16_t flags = NLM_F_CREATE) {
    MessageBuilder message = route_message(RTM_NEWROUTE, flags, address, length, {});
    message.number(RTA_NH_ID, id);
    tell(message);
  }

  /// Applies the changes to a table of texts, as a router does.
  const std::map<std::string, std::string>& published() {
    router::RouterChange change;
    routes_.take_changes(change);
    for (const Ipv4Prefix& prefix : change.erase4) EXPECT_EQ(published_.erase(to_string(prefix)), 1U);
    for (const Ipv6Prefix& prefix : change.erase6) EXPECT_EQ(published_.erase(to_string(prefix)), 1U);
    add_texts(change, published_);
    router::RouterChange all;
    routes_.add_all(all);
    std::map<std::string, std::string> same;
    add_texts(all, same);
    EXPECT_EQ(same, published_) << "the changes, and all routes";
    return published_;
  }

  KernelRoutes routes_{1000};

 private:
  static void add_texts(const router::RouterChange& change, std::map<std::string, std::string>& texts) {
    static const std::vector<std::string> kPorts{"lan", "wan"};
    const router::Devices devices(kPorts);
    const auto add = [&](const auto& routes, bool ipv4) {
      for (const auto& route : routes) {
        std::string text;
        append_route(text, to_string(route.prefix), ipv4, change.routes.next_hops.kind(route.value),
                     change.routes.next_hops.hops(route.value), devices);
        texts[to_string(route.prefix)] = text;
      }
    };
    add(change.routes.v4, true);
    add(change.routes.v6, false);
  }
  std::map<std::string, std::string> published_;
};

TEST_F(KernelRoutesTest, PublishesRoutesThroughPortsAndSaysWhichLeadElsewhere) {
  add("10.0.0.0", 24, {{"", 2}});
  add("0.0.0.0", 0, {{"10.0.0.1", 2}});
  add("20.0.0.0", 8, {{"9.9.9.9", 4}});
  add("21.0.0.0", 8, {{"", 1}});
  add("2001:db8::", 32, {{"fe80::1", 3}});
  tell(route_message(RTM_NEWROUTE, NLM_F_CREATE, "30.0.0.0", 8, {}, 0, RT_TABLE_MAIN, RTN_BLACKHOLE));
  tell(route_message(RTM_NEWROUTE, NLM_F_CREATE, "10.0.0.9", 32, {{"", 2}}, 0, RT_TABLE_LOCAL, RTN_LOCAL));
  tell(route_message(RTM_NEWROUTE, NLM_F_CREATE, "31.0.0.0", 8, {{"", 2}}, 0, 100));
  EXPECT_THAT(published(),
              UnorderedElementsAre(Pair("0.0.0.0/0", "0.0.0.0/0 via 10.0.0.1 dev lan"),
                                   Pair("10.0.0.0/24", "10.0.0.0/24 dev lan"), Pair("10.0.0.9/32", "local 10.0.0.9/32"),
                                   Pair("2001:db8::/32", "2001:db8::/32 via fe80::1 dev wan"),
                                   Pair("20.0.0.0/8", "elsewhere 20.0.0.0/8"), Pair("21.0.0.0/8", "local 21.0.0.0/8"),
                                   Pair("30.0.0.0/8", "blackhole 30.0.0.0/8")));
  remove("0.0.0.0", 0, {{"10.0.0.1", 2}});
  EXPECT_FALSE(published().contains("0.0.0.0/0"));
}

TEST_F(KernelRoutesTest, PrefersTheLowestMetricThenTheOrderOfTheKernel) {
  add("20.0.0.0", 8, {{"10.0.0.1", 2}}, 20);
  add("20.0.0.0", 8, {{"10.0.0.2", 2}}, 10);
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.0.0.2 dev lan");
  add("20.0.0.0", 8, {{"10.0.0.3", 2}}, 10, kAppend);
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.0.0.2 dev lan");
  add("20.0.0.0", 8, {{"10.0.0.4", 2}}, 10);  // ip route prepend
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.0.0.4 dev lan");
  add("20.0.0.0", 8, {{"10.0.0.5", 2}}, 10, kReplace);  // the first
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.0.0.5 dev lan");
  EXPECT_EQ(routes_.size(), 4U);
  remove("20.0.0.0", 8, {{"10.0.0.5", 2}}, 10);
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.0.0.2 dev lan");
  remove("20.0.0.0", 8, {{"10.0.0.2", 2}}, 10);
  remove("20.0.0.0", 8, {{"10.0.0.3", 2}}, 10);
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.0.0.1 dev lan");
  remove("20.0.0.0", 8, {{"10.0.0.1", 2}}, 20);
  EXPECT_THAT(published(), IsEmpty());
  EXPECT_EQ(routes_.size(), 0U);
  EXPECT_FALSE(routes_.wants_dump());
}

TEST_F(KernelRoutesTest, ATableThatTheKernelSearchesFirstWins) {
  tell(route_message(RTM_NEWROUTE, NLM_F_CREATE, "20.0.0.0", 8, {{"10.0.0.1", 2}}, 0, 253));
  add("20.0.0.0", 8, {{"10.0.0.2", 2}}, 77);
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.0.0.2 dev lan");
}

TEST_F(KernelRoutesTest, Ipv6RoutesWithGatewaysShareTheLoadAndAreRemovedOneByOne) {
  add("2001:db8::", 32, {{"fe80::1", 2}}, 1024);
  add("2001:db8::", 32, {{"fe80::1", 2}, {"fe80::2", 3}}, 1024, kAppend);
  EXPECT_EQ(published().at("2001:db8::/32"),
            "2001:db8::/32 nexthop via fe80::1 dev lan weight 1 nexthop via fe80::2 dev wan weight 1");
  remove("2001:db8::", 32, {{"fe80::1", 2}}, 1024);
  EXPECT_EQ(published().at("2001:db8::/32"), "2001:db8::/32 via fe80::2 dev wan");
  remove("2001:db8::", 32, {{"fe80::2", 3}}, 1024);
  EXPECT_THAT(published(), IsEmpty());
  EXPECT_FALSE(routes_.wants_dump());
}

TEST_F(KernelRoutesTest, UsesWhatIsLeftWhenALinkGoesDown) {
  add("20.0.0.0", 8, {{"10.0.0.1", 2}}, 10);
  add("20.0.0.0", 8, {{"10.1.0.1", 3}}, 20);
  add("30.0.0.0", 8, {{"10.0.0.1", 2, 1}, {"10.1.0.1", 3, 3}});
  EXPECT_EQ(published().at("30.0.0.0/8"),
            "30.0.0.0/8 nexthop via 10.0.0.1 dev lan weight 1 nexthop via 10.1.0.1 dev wan weight 3");
  EXPECT_FALSE(routes_.wants_dump());
  tell(link_message(2, "eth0", 0));
  EXPECT_TRUE(routes_.wants_dump()) << "the kernel has removed routes";
  EXPECT_EQ(published().at("20.0.0.0/8"), "20.0.0.0/8 via 10.1.0.1 dev wan");
  EXPECT_EQ(published().at("30.0.0.0/8"), "30.0.0.0/8 via 10.1.0.1 dev wan");
}

TEST_F(KernelRoutesTest, FollowsNexthopObjectsAndGroups) {
  tell_nexthop(1, "10.0.0.1", 2);
  tell_nexthop(2, "10.1.0.1", 3);
  tell_group(10, {{1, 0, 0, 0}, {2, 2, 0, 0}});
  add_by_object("20.0.0.0", 8, 10);
  add_by_object("21.0.0.0", 8, 1);
  EXPECT_EQ(published().at("20.0.0.0/8"),
            "20.0.0.0/8 nexthop via 10.0.0.1 dev lan weight 1 nexthop via 10.1.0.1 dev wan weight 3");
  tell_nexthop(1, "10.0.0.7", 2);
  EXPECT_EQ(published().at("21.0.0.0/8"), "21.0.0.0/8 via 10.0.0.7 dev lan");
  EXPECT_EQ(published().at("20.0.0.0/8"),
            "20.0.0.0/8 nexthop via 10.0.0.7 dev lan weight 1 nexthop via 10.1.0.1 dev wan weight 3");
  delete_nexthop(1);
  EXPECT_THAT(published(), ElementsAre(Pair("20.0.0.0/8", "20.0.0.0/8 via 10.1.0.1 dev wan")));
  tell_group(10, {{2, 0, 0, 0}});
  delete_nexthop(10);
  EXPECT_THAT(published(), IsEmpty());
  EXPECT_EQ(routes_.size(), 0U);
}

TEST_F(KernelRoutesTest, AnEncapsulatedRouteIsNotForwardedInTheClear) {
  add("0.0.0.0", 0, {{"10.0.0.1", 2}});
  MessageBuilder message = route_message(RTM_NEWROUTE, NLM_F_CREATE, "20.0.0.0", 8, {{"10.0.0.1", 2}});
  message.number(RTA_ENCAP, 1);
  tell(message);
  EXPECT_EQ(published().at("20.0.0.0/8"), "elsewhere 20.0.0.0/8");
}

TEST_F(KernelRoutesTest, ADumpRemovesWhatIsNotInIt) {
  tell_nexthop(1, "10.0.0.1", 2);
  add("20.0.0.0", 8, {{"10.0.0.1", 2}});
  add("20.0.0.0", 8, {{"10.0.0.2", 2}}, 5);
  add("21.0.0.0", 8, {{"10.0.0.1", 2}});
  add_by_object("22.0.0.0", 8, 1);
  static_cast<void>(published());
  for (int i = 0; i < 2; ++i) {
    routes_.begin_dump();
    tell(link_message(2, "eth0"));
    tell_nexthop(1, "10.0.0.1", 2);
    add("20.0.0.0", 8, {{"10.0.0.2", 2}}, 5, NLM_F_MULTI);
    add_by_object("22.0.0.0", 8, 1, NLM_F_MULTI);
    routes_.end_dump();
    EXPECT_THAT(published(), ElementsAre(Pair("20.0.0.0/8", "20.0.0.0/8 via 10.0.0.2 dev lan"),
                                         Pair("22.0.0.0/8", "22.0.0.0/8 via 10.0.0.1 dev lan")));
    EXPECT_EQ(routes_.size(), 2U);
  }
  routes_.begin_dump();
  tell(link_message(2, "eth0"));
  add("20.0.0.0", 8, {{"10.0.0.2", 2}}, 5, NLM_F_MULTI);
  routes_.end_dump();
  EXPECT_THAT(published(), ElementsAre(Pair("20.0.0.0/8", "20.0.0.0/8 via 10.0.0.2 dev lan")));
  add_by_object("22.0.0.0", 8, 1);
  EXPECT_TRUE(routes_.wants_dump()) << "the object is unknown";
}

TEST_F(KernelRoutesTest, MessagesOlderThanTheDumpChangeNothing) {
  add("20.0.0.0", 8, {{"10.0.0.1", 2}});
  add("20.0.0.0", 8, {{"10.0.0.1", 2}});
  add("20.0.0.0", 8, {{"10.0.0.1", 2}}, 0, kReplace);
  remove("21.0.0.0", 8, {{"10.0.0.1", 2}});
  EXPECT_EQ(routes_.size(), 1U);
  remove("20.0.0.0", 8, {{"10.0.0.1", 2}});
  EXPECT_THAT(published(), IsEmpty());
}

TEST_F(KernelRoutesTest, LeavesOutAndCountsWhatIsMoreThanItTakes) {
  for (std::uint32_t i = 0; i < 1100; ++i) {
    add(to_string(Ipv4Address{0x14000000 + (i << 8)}), 24, {{"10.0.0.1", 2}});
  }
  EXPECT_EQ(published().size(), 1000U);
  EXPECT_EQ(routes_.left_out(), 100U);
}

TEST(KernelNeighbours, TellThoseThatHaveFailedSinceTheLastChange) {
  KernelNeighbours neighbours(10, [](std::uint32_t interface) { return interface == 2 ? PortIndex{1} : kNoPort; });
  const auto fails = [&](std::uint64_t number, std::uint32_t interface) {
    NeighbourMessage message;
    message.interface = interface;
    message.address = {0, number};
    message.failed = true;
    neighbours.apply(message);
  };
  const auto failed = [&] {
    router::RouterChange change;
    neighbours.take_changes(change);
    return change.failed;
  };
  fails(1, 2);
  fails(2, 3);
  EXPECT_TRUE(neighbours.has_changes());
  EXPECT_EQ(failed(), (router::NeighbourKeys{{Ipv6Address{0, 1}, PortIndex{1}}})) << "the other one is on no port";
  EXPECT_FALSE(neighbours.has_changes());
  EXPECT_TRUE(failed().empty());
  neighbours.begin_dump();
  fails(1, 2);
  neighbours.end_dump();
  EXPECT_TRUE(failed().empty()) << "it may have failed long ago";
  for (std::uint64_t n = 0; n < 10'000; ++n) fails(n, 2);
  EXPECT_LE(failed().size(), 128U);
}

TEST(HoldingCautions, NameRoutersThatCannotHoldPackets) {
  const auto router = [](bool kernel) {
    router::RouterConfig config;
    config.neighbours.emplace();
    config.from_kernel.neighbours = kernel;
    return std::move(*router::Router::build(std::move(config)));
  };
  run::Chain chain;
  chain.functions.push_back({"router", router(true)});
  chain.functions.push_back({"router#2", router(false)});
  chain.functions.push_back({"router#3", router(true)});
  EXPECT_TRUE(holding_cautions(chain).empty());
  chain.settings.processor = function::Processor::gpu;
  const Errors cautions = holding_cautions(chain);
  ASSERT_EQ(cautions.size(), 1U);
  EXPECT_THAT(cautions[0].message, ::testing::StartsWith("router: neighbours: kernel: "));
}

}  // namespace
}  // namespace penstock::control
