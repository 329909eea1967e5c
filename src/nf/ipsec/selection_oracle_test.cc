// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the tables say against a search through all policies and all SAs, as they are in the user's files.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "nf/ipsec/addresses.h"
#include "nf/ipsec/packets_for_test.h"
#include "nf/ipsec/selection.h"

namespace penstock::ipsec {
namespace {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;

/// A packet as the oracle sees it.
struct Flow {
  IpAddress source, destination;
  std::uint8_t protocol = 0;
  std::optional<std::uint16_t> first, second;  // ports, or type and code
  Bytes frame;
};

/// Draws from few of everything, so that selectors overlap and packets meet them at their edges.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
  bool chance(std::uint32_t n) { return below(n) == 0; }

  IpAddress address(bool ipv6) {
    if (!ipv6) return Ipv4Address{0x0a000000 | below(3) << 16 | below(3) << 8 | below(4)};
    return Ipv6Address{0x20010db8'00000000ULL | below(3), std::uint64_t{below(2)} << 63 | below(4)};
  }
  IpPrefix prefix(bool ipv6) {
    const IpAddress of = address(ipv6);
    if (const auto* const v4 = std::get_if<Ipv4Address>(&of)) {
      constexpr std::uint8_t kLengths[] = {0, 8, 15, 16, 24, 30, 31, 32};
      const std::uint8_t length = kLengths[below(8)];
      return Ipv4Prefix{{v4->bits & ipv4_mask(length)}, length};
    }
    const auto& v6 = std::get<Ipv6Address>(of);
    constexpr std::uint8_t kLengths[] = {0, 32, 63, 64, 65, 126, 127, 128};
    const std::uint8_t length = kLengths[below(8)];
    const Ipv6Address mask = ipv6_mask(length);
    return Ipv6Prefix{{v6.high & mask.high, v6.low & mask.low}, length};
  }
  std::uint8_t protocol() {
    constexpr std::uint8_t kProtocols[] = {ip_protocol::kTcp, ip_protocol::kUdp, ip_protocol::kSctp, ip_protocol::kIcmp,
                                           ip_protocol::kIcmpv6};
    return kProtocols[below(5)];
  }
  std::uint16_t port() { return static_cast<std::uint16_t>(below(3)); }

  Selector selector() {
    const bool ipv6 = chance(2);
    Selector selector;
    selector.source = prefix(ipv6);
    selector.destination = prefix(ipv6);
    if (!chance(3)) selector.protocol = protocol();
    if (chance(3)) selector.source_port = port();
    if (chance(3)) selector.destination_port = port();
    return selector;
  }
  std::vector<SecurityAssociation> states(std::size_t count) {
    std::vector<SecurityAssociation> states(count);
    for (std::size_t i = 0; i < count; ++i) {
      SecurityAssociation& sa = states[i];
      const bool ipv6 = chance(2);
      sa.source = address(ipv6);
      sa.destination = address(ipv6);
      sa.spi = 256 + static_cast<std::uint32_t>(i);
      sa.reqid = below(3);
      sa.mode = chance(3) ? Mode::transport : Mode::tunnel;
      if (chance(4)) sa.selector = selector();
      if (chance(2)) sa.lifetimes.added = below(4);
      if (chance(8)) sa.direction = chance(2) ? Direction::in : Direction::out;
    }
    return states;
  }
  std::vector<Policy> policies(std::size_t count) {
    std::vector<Policy> policies(count);
    for (Policy& policy : policies) {
      constexpr Direction kDirections[] = {Direction::in, Direction::out, Direction::forward};
      policy.direction = kDirections[below(3)];
      policy.selector = selector();
      if (chance(6)) policy.action = PolicyAction::block;
      if (chance(5)) continue;
      Template wanted;
      const bool ipv6 = chance(2);
      wanted.source = chance(4) ? (ipv6 ? IpAddress{Ipv6Address{}} : IpAddress{Ipv4Address{}}) : address(ipv6);
      wanted.destination = address(ipv6);
      wanted.reqid = below(3);
      if (chance(8)) wanted.spi = 256 + below(20);
      wanted.mode = chance(3) ? Mode::transport : Mode::tunnel;
      wanted.optional = chance(4);
      policy.templates.push_back(wanted);
    }
    return policies;
  }
  Flow flow() {
    const bool ipv6 = chance(2);
    Flow flow;
    flow.source = address(ipv6);
    flow.destination = address(ipv6);
    flow.protocol = chance(8) ? std::uint8_t{89} : protocol();
    if (flow.protocol == ip_protocol::kIcmp || flow.protocol == ip_protocol::kIcmpv6) {
      flow.protocol = ipv6 ? ip_protocol::kIcmpv6 : ip_protocol::kIcmp;
    }
    const bool fragment = chance(6);
    PacketBuilder builder = packet().eth();
    if (ipv6) {
      builder.ipv6(to_string(flow.source), to_string(flow.destination));
      if (fragment) builder.fragment6(chance(2) ? 1 : 8);
    } else {
      builder.ipv4(to_string(flow.source), to_string(flow.destination), 64, {},
                   static_cast<std::uint16_t>(fragment ? (chance(2) ? 0x2000 : 1) : 0));
    }
    const std::uint16_t first = port(), second = port();
    switch (flow.protocol) {
      case ip_protocol::kTcp: builder.tcp(first, second); break;
      case ip_protocol::kUdp: builder.udp(first, second); break;
      case ip_protocol::kSctp: builder.sctp(first, second); break;
      case 89: builder.protocol(89).raw(Bytes(20)); break;
      default: builder.icmp(static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(second));
    }
    if (!fragment && flow.protocol != 89) {
      flow.first = first;
      flow.second = second;
    }
    flow.frame = builder.bytes();
    return flow;
  }

 private:
  std::mt19937_64 random_;
};

bool holds(const IpPrefix& prefix, const IpAddress& address) {
  if (prefix.index() != address.index()) return false;
  if (const auto* const v4 = std::get_if<Ipv4Prefix>(&prefix)) return contains(*v4, std::get<Ipv4Address>(address));
  return contains(std::get<Ipv6Prefix>(prefix), std::get<Ipv6Address>(address));
}

bool selects(const Selector& selector, const Flow& flow) {
  return holds(selector.source, flow.source) && holds(selector.destination, flow.destination) &&
         (selector.protocol == 0 || selector.protocol == flow.protocol) &&
         (!selector.source_port || flow.first == selector.source_port) &&
         (!selector.destination_port || flow.second == selector.destination_port);
}

bool is_zero(const IpAddress& address) { return table_address(address) == Ipv6Address{}; }

struct Oracle {
  const std::vector<SecurityAssociation>& states;
  const std::vector<Policy>& policies;
  const std::vector<SaStatus>& status;

  const Policy* find(Direction direction, const Flow& flow) const {
    for (const Policy& policy : policies) {
      // Of a policy by ports alone, ICMP's types are none here.
      const bool icmp = flow.protocol == ip_protocol::kIcmp || flow.protocol == ip_protocol::kIcmpv6;
      const bool by_ports = policy.selector.source_port || policy.selector.destination_port;
      if (policy.selector.protocol == 0 && icmp && by_ports) continue;
      if (policy.direction == direction && selects(policy.selector, flow)) return &policy;
    }
    return nullptr;
  }
  bool fits(const SecurityAssociation& sa, const Template& wanted, const Flow& flow, bool outwards) const {
    if (sa.mode != wanted.mode || (wanted.spi != 0 && wanted.spi != sa.spi)) return false;
    if (sa.reqid != wanted.reqid && (outwards || wanted.reqid != 0)) return false;
    if (sa.mode == Mode::tunnel) {
      return sa.destination == wanted.destination && (is_zero(wanted.source) || sa.source == wanted.source);
    }
    return !outwards || (sa.destination == flow.destination && (is_zero(sa.source) || sa.source == flow.source));
  }
  Selected outwards(const Policy& policy, const Flow& flow) const {
    if (policy.action == PolicyAction::block) return {Reason::blocked, kNoSa};
    if (policy.templates.empty()) return {};
    const Template& wanted = policy.templates.front();
    const auto better = [&](std::uint32_t a, std::uint32_t b) {
      const auto rank = [&](std::uint32_t i) {
        return std::tuple(status[i] == SaStatus::dying, -states[i].lifetimes.added.value_or(-1), i);
      };
      return rank(a) < rank(b);
    };
    std::uint32_t best = kNoSa;
    bool dead = false;
    for (std::uint32_t i = 0; i < states.size(); ++i) {
      const SecurityAssociation& sa = states[i];
      if (sa.direction == Direction::in || !fits(sa, wanted, flow, true)) continue;
      if (sa.selector && !selects(*sa.selector, flow)) continue;
      if (status[i] == SaStatus::dead) {
        dead = true;
      } else if (best == kNoSa || better(i, best)) {
        best = i;
      }
    }
    if (best != kNoSa) return {Reason::none, best};
    return {wanted.optional ? Reason::none : dead ? Reason::lifetime : Reason::no_sa, kNoSa};
  }
  Reason inwards(const Flow& flow, std::uint32_t sa) const {
    const bool tunnel = sa != kNoSa && states[sa].mode == Mode::tunnel;
    if (sa != kNoSa && states[sa].selector && !selects(*states[sa].selector, flow)) return Reason::policy_mismatch;
    const Policy* policy = find(Direction::forward, flow);
    if (policy == nullptr) policy = find(Direction::in, flow);
    if (policy == nullptr) return tunnel ? Reason::no_policy : Reason::none;
    if (policy->action == PolicyAction::block) return Reason::blocked;
    if (policy->templates.empty()) return tunnel ? Reason::policy_mismatch : Reason::none;
    const Template& wanted = policy->templates.front();
    if (wanted.optional && !tunnel) return Reason::none;
    if (sa == kNoSa) return Reason::not_protected;
    return fits(states[sa], wanted, flow, false) ? Reason::none : Reason::policy_mismatch;
  }
};

/// A packet, outwards, inwards in the clear, and by a few of the SAs.
void expect_agreement(const Selection& out, const Selection& in, const Oracle& oracle, Draw& draw) {
  const Flow flow = draw.flow();
  RoomyFrame frame(flow.frame);
  firewall::Key key;
  make_selector_key(frame.view, key);

  std::uint32_t policy = kNoPolicy;
  out.find_policies({&key, 1}, &policy);
  const Policy* const expected = oracle.find(Direction::out, flow);
  ASSERT_EQ(policy == kNoPolicy, expected == nullptr);
  if (expected != nullptr) {
    ASSERT_EQ(out.line(policy), expected->line);
    const Selected selected =
        select_outbound(out.view(), policy, key, [&](std::uint32_t i) { return oracle.status[i]; });
    const Selected by_hand = oracle.outwards(*expected, flow);
    ASSERT_EQ(selected.reason, by_hand.reason);
    ASSERT_EQ(selected.sa, by_hand.sa);
  }
  in.find_policies({&key, 1}, &policy);
  ASSERT_EQ(check_inbound(in.view(), policy, key, kNoSa), oracle.inwards(flow, kNoSa));
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t sa = draw.below(oracle.states.size());
    ASSERT_EQ(check_inbound(in.view(), policy, key, sa), oracle.inwards(flow, sa));
  }
}

void expect_agreement(std::uint64_t seed, std::size_t state_count, std::size_t policy_count, int packets) {
  Draw draw(seed);
  const auto states = draw.states(state_count);
  auto policies = draw.policies(policy_count);
  for (std::size_t i = 0; i < policies.size(); ++i) policies[i].line = static_cast<std::uint32_t>(i + 1);
  std::vector<SaStatus> status(states.size());
  for (SaStatus& s : status) s = static_cast<SaStatus>(draw.below(3));
  SelectionSources sources;
  sources.states = states;
  sources.policies = policies;
  const auto out = Selection::build(sources, false);
  const auto in = Selection::build(sources, true);
  ASSERT_TRUE(out && in);
  const Oracle oracle{states, policies, status};
  for (int i = 0; i < packets && !::testing::Test::HasFatalFailure(); ++i) {
    expect_agreement(*out->value, *in->value, oracle, draw);
  }
}

RC_GTEST_PROP(SelectionOracle, AgreesOnRandomPoliciesAndPackets, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  expect_agreement(seed, 1 + seed % 60, seed % 80, 100);
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(SelectionOracle, AgreesOnTenThousandPoliciesAndSas) { expect_agreement(7, 10'000, 10'000, 300); }

TEST(SelectionOracle, FindsEachOfTenThousandSasAndNoOther) {
  Draw draw(3);
  const auto states = draw.states(10'000);
  const auto table = InboundTable::build(states, "states");
  ASSERT_TRUE(table);
  std::size_t longest = 0;
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    const IpAddress destination = i < 10'000 ? states[i].destination : draw.address(draw.chance(2));
    const std::uint32_t spi = i < 10'000 ? states[i].spi : 256 + draw.below(12'000);
    std::uint32_t expected = kNoSa;
    bool ours = false;
    for (std::uint32_t s = 0; s < states.size(); ++s) {
      if (states[s].direction == Direction::out || states[s].destination != destination) continue;
      ours = true;
      if (states[s].spi == spi) expected = s;
    }
    const Ipv6Address address = table_address(destination);
    const Found found = find_sa(table->view(), family_of(destination), address, spi);
    ASSERT_EQ(found.kind, expected != kNoSa ? Found::Kind::sa : ours ? Found::Kind::no_sa : Found::Kind::not_ours);
    ASSERT_EQ(found.sa, expected);
    const std::uint32_t home = slot_hash(family_of(destination), address, spi) & table->view().mask;
    longest = std::max<std::size_t>(
        longest, (find_slot(table->view(), family_of(destination), address, spi) - home) & table->view().mask);
  }
  EXPECT_LT(longest, 32U) << "slots looked at";
}

}  // namespace
}  // namespace penstock::ipsec
