// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/messages.h"

#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "control/kernel/message_builder_for_test.h"

namespace penstock::control {
namespace {

TEST(KernelMessages, AreReadOrIgnored) {
  const KernelMessage route =
      read_message(route_message(RTM_NEWROUTE, NLM_F_CREATE, "10.1.2.3", 24, {{"10.0.0.1", 2}}, 7).bytes());
  ASSERT_TRUE(std::holds_alternative<RouteMessage>(route));
  const auto& read = std::get<RouteMessage>(route);
  EXPECT_EQ(to_string(std::get<Ipv4Prefix>(read.prefix)), "10.1.2.0/24");
  EXPECT_EQ(read.metric, 7U);
  EXPECT_EQ(read.how, RouteMessage::How::prepends);
  ASSERT_EQ(read.hops.size(), 1U);
  EXPECT_EQ(read.hops[0], (KernelHop{router::mapped(*parse_ipv4("10.0.0.1")), 2, 1, false}));

  MessageBuilder tos = route_message(RTM_NEWROUTE, 0, "10.0.0.0", 8, {{"", 2}});
  static_cast<rtmsg*>(mnl_nlmsg_get_payload(tos.header()))->rtm_tos = 8;
  const KernelMessage special = read_message(tos.bytes());
  ASSERT_TRUE(std::holds_alternative<Ignored>(special));
  EXPECT_TRUE(std::get<Ignored>(special).unsupported);
  EXPECT_TRUE(std::holds_alternative<Ignored>(read_message(MessageBuilder(RTM_NEWRULE).bytes())));
}

TEST(KernelMessages, AnIpv4RouteMayHaveAnIpv6Gateway) {
  MessageBuilder message = route_message(RTM_NEWROUTE, 0, "10.0.0.0", 8, {{"", 2}});
  std::vector<std::uint8_t> via{AF_INET6, 0};
  for (const std::uint8_t byte : address_bytes("fe80::1")) via.push_back(byte);
  message.attribute(RTA_VIA, via);
  const KernelMessage read = read_message(message.bytes());
  ASSERT_TRUE(std::holds_alternative<RouteMessage>(read));
  EXPECT_EQ(std::get<RouteMessage>(read).hops[0].gateway, parse_ipv6("fe80::1"));
}

TEST(KernelMessages, AreTakenOneAfterTheOtherWhateverTheirLengthsSay) {
  const MessageBuilder first = link_message(2, "eth0"), second = link_message(3, "eth1");
  std::vector<std::uint32_t> words;
  for (const MessageBuilder* one : {&first, &second}) {
    const std::size_t at = words.size();
    words.resize(at + (one->bytes().size() + 3) / 4);
    std::memcpy(words.data() + at, one->bytes().data(), one->bytes().size());
  }
  const std::span all(reinterpret_cast<const std::uint8_t*>(words.data()), words.size() * 4);
  std::span<const std::uint8_t> rest = all;
  EXPECT_EQ(take_message(rest).size(), first.bytes().size());
  EXPECT_EQ(std::get<LinkMessage>(read_message(take_message(rest))).name, "eth1");
  EXPECT_TRUE(take_message(rest).empty());
  EXPECT_TRUE(rest.empty());
  for (const std::uint32_t length :
       {0U, 15U, static_cast<std::uint32_t>(all.size()) + 1, 0x7fffffffU, 0x80000000U, ~0U}) {
    reinterpret_cast<nlmsghdr*>(words.data())->nlmsg_len = length;
    rest = all;
    EXPECT_TRUE(take_message(rest).empty()) << length;
    EXPECT_EQ(rest.size(), all.size()) << length;
  }
}

TEST(KernelMessages, CutAnywhereAreMalformedOrLackOnlyWhatWasCutOff) {
  for (const MessageBuilder& whole :
       {route_message(RTM_NEWROUTE, 0, "10.0.0.0", 8, {{"10.0.0.1", 2, 3}, {"10.0.0.2", 3, 1}}),
        link_message(2, "eth0")}) {
    for (std::size_t length = 0; length < whole.bytes().size(); ++length) {
      std::vector<std::uint32_t> aligned(whole.bytes().size() / 4 + 1);
      std::memcpy(aligned.data(), whole.bytes().data(), length);
      const std::span bytes(reinterpret_cast<const std::uint8_t*>(aligned.data()), length);
      EXPECT_TRUE(std::holds_alternative<Malformed>(read_message(bytes))) << "its length says more: " << length;
      if (length < sizeof(nlmsghdr)) continue;
      reinterpret_cast<nlmsghdr*>(aligned.data())->nlmsg_len = static_cast<std::uint32_t>(length);
      static_cast<void>(read_message(bytes));
    }
  }
}

TEST(KernelMessages, ANextHopThatIsLongerThanItsListIsMalformed) {
  MessageBuilder message = route_message(RTM_NEWROUTE, 0, "10.0.0.0", 8, {{"10.0.0.1", 2}, {"10.0.0.2", 3}});
  std::vector<std::uint32_t> bytes(message.bytes().size() / 4);
  std::memcpy(bytes.data(), message.bytes().data(), message.bytes().size());
  // The last attribute is the list; its first word has the length of the first next hop.
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    if (bytes[i] == (static_cast<std::uint32_t>(RTA_MULTIPATH) << 16 | 36)) bytes[i + 1] |= 0xff00;
  }
  const std::span changed(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size() * 4);
  EXPECT_TRUE(std::holds_alternative<Malformed>(read_message(changed)));
}

TEST(KernelMessages, OnlyNeighboursThatCanBeSentToHaveAMac) {
  const auto neighbour = [](std::uint16_t state, std::uint8_t first_byte) {
    ndmsg part{};
    part.ndm_family = AF_INET;
    part.ndm_ifindex = 2;
    part.ndm_state = state;
    MessageBuilder message(RTM_NEWNEIGH);
    message.fixed(part).attribute(NDA_DST, address_bytes("10.0.0.1"));
    message.attribute(NDA_LLADDR, std::vector<std::uint8_t>{first_byte, 0, 0, 0, 0, 1});
    return std::get<NeighbourMessage>(read_message(message.bytes()));
  };
  EXPECT_TRUE(neighbour(NUD_REACHABLE, 2).has_mac);
  EXPECT_TRUE(neighbour(NUD_STALE, 2).has_mac);
  EXPECT_TRUE(neighbour(NUD_STALE, 2).stale);
  EXPECT_FALSE(neighbour(NUD_FAILED, 2).has_mac);
  EXPECT_TRUE(neighbour(NUD_FAILED, 2).failed);
  EXPECT_FALSE(neighbour(NUD_INCOMPLETE, 2).failed);
  EXPECT_FALSE(neighbour(NUD_INCOMPLETE, 2).has_mac);
  EXPECT_FALSE(neighbour(NUD_NOARP, 1).has_mac) << "a multicast address";
}

TEST(KernelMessages, HaveTheGenerationOfNftables) {
  constexpr std::uint16_t kNewGeneration = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN;
  const std::vector<std::uint8_t> id{0x01, 0x02, 0x03, 0x04};
  EXPECT_EQ(read_generation(MessageBuilder(kNewGeneration).fixed(nfgenmsg{}).attribute(NFTA_GEN_ID, id).bytes()),
            0x01020304U);
  EXPECT_EQ(read_generation(MessageBuilder(kNewGeneration).fixed(nfgenmsg{}).bytes()), std::nullopt);
  EXPECT_EQ(read_generation(MessageBuilder(kNewGeneration).bytes()), std::nullopt);
  EXPECT_EQ(read_generation(MessageBuilder(RTM_NEWROUTE).fixed(nfgenmsg{}).attribute(NFTA_GEN_ID, id).bytes()),
            std::nullopt);
  const std::vector<std::uint8_t> narrow{0x01, 0x02};
  EXPECT_EQ(read_generation(MessageBuilder(kNewGeneration).fixed(nfgenmsg{}).attribute(NFTA_GEN_ID, narrow).bytes()),
            std::nullopt);
  EXPECT_EQ(read_generation({}), std::nullopt);
}

}  // namespace
}  // namespace penstock::control
