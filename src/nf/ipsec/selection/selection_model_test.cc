// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases that the documentation describes explicitly, with their sources. [guide] is Cilium's "XFRM Reference Guide".

#include <gtest/gtest.h>

#include "nf/ipsec/selection/selection_model_for_test.h"

namespace penstock::ipsec::model {
namespace {

using Action = Outbound::Action;
using States = std::vector<std::size_t>;

//  remote host            peer                gateway            local host
//
//   10.2.0.5  ------>  192.0.2.2  == ESP ==>  192.0.2.1  ------>  10.1.0.5     on the way in
//   10.2.0.5  <------  192.0.2.2  <== ESP ==  192.0.2.1  <------  10.1.0.5     on the way out

Address ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {.family = Family::ipv4, .bytes = {a, b, c, d}};
}

Address ipv6(std::uint8_t last) {
  Address address{.family = Family::ipv6, .bytes = {0x20, 0x01, 0x0d, 0xb8}};
  address.bytes.back() = last;
  return address;
}

const Address kZero = ipv4(0, 0, 0, 0);
const Address kPeer = ipv4(192, 0, 2, 2);
const Address kGateway = ipv4(192, 0, 2, 1);
const Address kRemoteHost = ipv4(10, 2, 0, 5);
const Address kLocalHost = ipv4(10, 1, 0, 5);
constexpr std::uint8_t kTcp = 6;

Packet tcp(const Address& source, const Address& destination) {
  return {
      .source = source, .destination = destination, .protocol = kTcp, .source_port = 40000, .destination_port = 443};
}

Packet packet_in() { return tcp(kRemoteHost, kLocalHost); }
Packet packet_out() { return tcp(kLocalHost, kRemoteHost); }

Selector from_to(const Address& source, const Address& destination, std::uint8_t length) {
  Selector selector;
  selector.source = {.address = source, .length = length};
  selector.destination = {.address = destination, .length = length};
  return selector;
}

const Selector kAnyIpv4 = from_to(kZero, kZero, 0);

State tunnel(const Address& source, const Address& destination) {
  return {.source = source, .destination = destination, .spi = 0x100, .reqid = 1, .mode = Mode::tunnel, .selector = {}};
}

State transport(const Address& source, const Address& destination) {
  State state = tunnel(source, destination);
  state.mode = Mode::transport;
  return state;
}

/// The meaning of `tmpl src SOURCE dst DESTINATION proto esp reqid 1 mode tunnel` according to ip-xfrm(8).
Template tunnel_template(const Address& source, const Address& destination) {
  return {.source = source, .destination = destination, .spi = 0, .reqid = 1, .mode = Mode::tunnel, .use = false};
}

Template transport_template() {
  Template wanted = tunnel_template(kZero, kZero);
  wanted.mode = Mode::transport;
  return wanted;
}

Template optional(Template wanted) {
  wanted.use = true;
  return wanted;
}

Policy policy(Direction direction, const std::vector<Template>& templates) {
  return {.direction = direction, .selector = kAnyIpv4, .priority = 0, .block = false, .templates = templates};
}

Policy blocking(Direction direction, std::uint32_t priority) {
  Policy result = policy(direction, {});
  result.block = true;
  result.priority = priority;
  return result;
}

Inbound after_state(const State& state, const std::vector<Policy>& policies) {
  return check_inbound({.policies = policies, .states = {state}}, Direction::in, packet_in(), {0});
}

Inbound in_clear(const std::vector<Policy>& policies) {
  return check_inbound({.policies = policies, .states = {}}, Direction::in, packet_in(), {});
}

Inbound under_template(const State& state, const Template& wanted) {
  return after_state(state, {policy(Direction::in, {wanted})});
}

Outbound leaving(const std::vector<State>& states, const Template& wanted) {
  return decide_outbound({.policies = {policy(Direction::out, {wanted})}, .states = states}, packet_out());
}

// Policies

// [guide], `priority`: 0 is the highest priority.
TEST(SelectionModel, TakesThePolicyOfTheLowestPriorityNumber) {
  Policy allowing = policy(Direction::in, {});
  allowing.priority = 10;
  EXPECT_EQ(in_clear({blocking(Direction::in, 20), allowing}), Inbound::accept);
  EXPECT_EQ(in_clear({allowing, blocking(Direction::in, 5)}), Inbound::policy_block);
}

// setkey(8): "Policies with equal priorities are added at the end of groups of such policies."
TEST(SelectionModel, TakesTheOldestOfPoliciesWithEqualPriorities) {
  EXPECT_EQ(in_clear({policy(Direction::in, {}), blocking(Direction::in, 0)}), Inbound::accept);
  EXPECT_EQ(in_clear({blocking(Direction::in, 0), policy(Direction::in, {})}), Inbound::policy_block);
}

// Server Fault, "Why are only 3 ip xfrm policies needed for a IPsec tunnel?": `in` and `fwd` are looked up separately.
TEST(SelectionModel, UsesPoliciesOfItsDirectionOnly) {
  EXPECT_EQ(in_clear({blocking(Direction::forward, 0), blocking(Direction::out, 0)}), Inbound::accept);
}

// Cilium pull request 25953: 0.0.0.0/0 does not include ::/0.
TEST(SelectionModel, KeepsTheFamiliesApart) {
  const Database database{.policies = {blocking(Direction::in, 0)}, .states = {}};
  EXPECT_EQ(check_inbound(database, Direction::in, tcp(ipv6(1), ipv6(2)), {}), Inbound::accept);
}

// ip-xfrm(8), SELECTOR.
TEST(SelectionModel, ComparesThePrefixBitByBit) {
  Policy blocked = blocking(Direction::in, 0);
  blocked.selector = from_to(ipv4(10, 2, 0, 4), ipv4(10, 1, 0, 4), 31);
  EXPECT_EQ(in_clear({blocked}), Inbound::policy_block);
  blocked.selector = from_to(ipv4(10, 2, 0, 4), ipv4(10, 1, 0, 4), 32);
  EXPECT_EQ(in_clear({blocked}), Inbound::accept);
}

// The kernel: the ports of a fragment are zero.
TEST(SelectionModel, SelectsNoFragmentByItsPort) {
  Policy blocked = blocking(Direction::in, 0);
  blocked.selector.protocol = kTcp;
  blocked.selector.destination_port = 443;
  Packet packet = packet_in();
  EXPECT_EQ(check_inbound({.policies = {blocked}, .states = {}}, Direction::in, packet, {}), Inbound::policy_block);
  packet.source_port.reset();
  packet.destination_port.reset();
  EXPECT_EQ(check_inbound({.policies = {blocked}, .states = {}}, Direction::in, packet, {}), Inbound::accept);
}

// Inbound

// [guide], Ingress Packet Flow: traffic that was never encrypted "is allowed by default".
TEST(SelectionModel, AcceptsAClearPacketWithoutAPolicy) { EXPECT_EQ(in_clear({}), Inbound::accept); }

// xfrm_proc.rst, XfrmInNoPols; Cilium issue 36258.
TEST(SelectionModel, DropsAPacketFromATunnelWithoutAPolicy) {
  EXPECT_EQ(after_state(tunnel(kPeer, kGateway), {}), Inbound::no_policy);
}

// strongSwan-dev, July 2014, "What is the purpose of kernel's IPsec IN policies?"
TEST(SelectionModel, AcceptsTransportModeWithoutAPolicy) {
  EXPECT_EQ(after_state(transport(kRemoteHost, kLocalHost), {}), Inbound::accept);
}

// [guide], XfrmInTmplMismatch: a tunnel that "doesn't match any XFRM policy template".
TEST(SelectionModel, DropsAPacketFromATunnelUnderAPolicyWithoutATemplate) {
  EXPECT_EQ(after_state(tunnel(kPeer, kGateway), {policy(Direction::in, {})}), Inbound::template_mismatch);
  EXPECT_EQ(after_state(transport(kRemoteHost, kLocalHost), {policy(Direction::in, {})}), Inbound::accept);
}

// [guide], Policy Templates: "will only allow packets if they are ESP packets with outer IP addresses ..."
TEST(SelectionModel, AcceptsATunnelBetweenTheEndPointsOfTheTemplate) {
  const Template wanted = tunnel_template(kPeer, kGateway);
  EXPECT_EQ(under_template(tunnel(kPeer, kGateway), wanted), Inbound::accept);
  EXPECT_EQ(under_template(tunnel(ipv4(192, 0, 2, 3), kGateway), wanted), Inbound::template_mismatch);
  EXPECT_EQ(under_template(tunnel(kPeer, ipv4(192, 0, 2, 3)), wanted), Inbound::accept) << "as the kernel does";
  EXPECT_EQ(in_clear({policy(Direction::in, {wanted})}), Inbound::template_mismatch);
}

// [guide], output of `ip xfrm policy`: `tmpl src 0.0.0.0 dst 10.92.0.164`; Cilium pull request 7181.
TEST(SelectionModel, TakesZeroInAnInboundTemplateForAnyAddress) {
  const State state = tunnel(kPeer, kGateway);
  EXPECT_EQ(under_template(state, tunnel_template(kZero, kGateway)), Inbound::accept);
  EXPECT_EQ(under_template(state, tunnel_template(kPeer, kZero)), Inbound::accept);
  EXPECT_EQ(under_template(state, tunnel_template(ipv4(192, 0, 2, 3), kZero)), Inbound::template_mismatch);
}

// [guide], Policy Templates: addresses, SPI, protocol, mode and reqid.
TEST(SelectionModel, ComparesModeSpiAndReqidInward) {
  const State state = tunnel(kPeer, kGateway);
  Template wanted = tunnel_template(kPeer, kGateway);
  wanted.spi = 0x101;
  EXPECT_EQ(under_template(state, wanted), Inbound::template_mismatch);
  wanted.spi = 0x100;
  EXPECT_EQ(under_template(state, wanted), Inbound::accept);
  wanted.reqid = 2;
  EXPECT_EQ(under_template(state, wanted), Inbound::template_mismatch);
  wanted.reqid = 0;
  EXPECT_EQ(under_template(state, wanted), Inbound::accept);
  wanted.mode = Mode::transport;
  EXPECT_EQ(under_template(state, wanted), Inbound::template_mismatch);
}

// setkey(8): "If mode is transport, both src and dst can be omitted."
TEST(SelectionModel, IgnoresTheAddressesOfATransportTemplateInward) {
  Template wanted = transport_template();
  EXPECT_EQ(under_template(transport(kRemoteHost, kLocalHost), wanted), Inbound::accept);
  wanted.source = kPeer;
  EXPECT_EQ(under_template(transport(kRemoteHost, kLocalHost), wanted), Inbound::accept);
}

// [guide], `level use`: "the template will be skipped if optional"; XfrmInTmplMismatch for the tunnel.
TEST(SelectionModel, SkipsAnOptionalTemplateExceptForATunnel) {
  const Template wanted = optional(tunnel_template(kPeer, kGateway));
  EXPECT_EQ(in_clear({policy(Direction::in, {wanted})}), Inbound::accept);
  EXPECT_EQ(under_template(transport(kRemoteHost, kLocalHost), wanted), Inbound::accept);
  EXPECT_EQ(under_template(tunnel(kPeer, kGateway), wanted), Inbound::accept);
  EXPECT_EQ(under_template(tunnel(kPeer, ipv4(192, 0, 2, 3)), wanted), Inbound::accept) << "as the kernel does";
  EXPECT_EQ(under_template(tunnel(kPeer, kGateway), optional(transport_template())), Inbound::template_mismatch);
}

// [guide], XfrmInStateMismatch: "the decrypted packet doesn't match the selector".
TEST(SelectionModel, ComparesTheInnerPacketWithTheSelectorOfTheState) {
  State state = tunnel(kPeer, kGateway);
  const Template wanted = tunnel_template(kPeer, kGateway);
  state.selector = from_to(kRemoteHost, kLocalHost, 32);
  EXPECT_EQ(under_template(state, wanted), Inbound::accept);
  state.selector = from_to(kPeer, kGateway, 32);
  EXPECT_EQ(under_template(state, wanted), Inbound::state_mismatch);
}

// Commit ccf9b3b83d: a selector without a family is for "inter family tunnels".
TEST(SelectionModel, CarriesIpv6InATunnelWithoutASelector) {
  Policy ipv6_policy = policy(Direction::forward, {tunnel_template(kPeer, kGateway)});
  ipv6_policy.selector = from_to(ipv6(0), ipv6(0), 64);
  State state = tunnel(kPeer, kGateway);
  const Packet packet = tcp(ipv6(1), ipv6(2));
  EXPECT_EQ(check_inbound({.policies = {ipv6_policy}, .states = {state}}, Direction::forward, packet, {0}),
            Inbound::accept);
  state.selector = kAnyIpv4;
  EXPECT_EQ(check_inbound({.policies = {ipv6_policy}, .states = {state}}, Direction::forward, packet, {0}),
            Inbound::state_mismatch);
}

// Outbound

// [guide], XfrmOutPolBlock.
TEST(SelectionModel, DecidesWithoutATemplateByTheAction) {
  EXPECT_EQ(decide_outbound({}, packet_out()).action, Action::clear);
  EXPECT_EQ(decide_outbound({.policies = {policy(Direction::out, {})}, .states = {}}, packet_out()).action,
            Action::clear);
  EXPECT_EQ(decide_outbound({.policies = {blocking(Direction::out, 0)}, .states = {}}, packet_out()).action,
            Action::blocked);
}

// [guide], Policy Templates: "the IP addresses, the SPI, the protocol, the mode, and the reqid should all match".
TEST(SelectionModel, ProtectsByTheStatesThatTheTemplateNames) {
  State other_spi = tunnel(kGateway, kPeer);
  other_spi.spi = 0x200;
  State other_reqid = tunnel(kGateway, kPeer);
  other_reqid.reqid = 2;
  const std::vector<State> states{other_reqid, tunnel(kGateway, kPeer), transport(kGateway, kPeer), other_spi,
                                  tunnel(kPeer, kGateway)};
  Template wanted = tunnel_template(kGateway, kPeer);
  EXPECT_EQ(leaving(states, wanted).action, Action::protect);
  EXPECT_EQ(leaving(states, wanted).states, (States{1, 3}));
  wanted.spi = 0x200;
  EXPECT_EQ(leaving(states, wanted).states, (States{3}));
}

// [guide], Data Structure for XFRM States: outbound, states are indexed by reqid.
TEST(SelectionModel, TakesNoReqidForAnyOutward) {
  Template wanted = tunnel_template(kGateway, kPeer);
  wanted.reqid = 0;
  EXPECT_EQ(leaving({tunnel(kGateway, kPeer)}, wanted).action, Action::no_state);
}

// [guide], XfrmOutNoStates; ipsec_set_policy(3), level `use`.
TEST(SelectionModel, LeavesInTheClearWithoutAStateOnlyIfTheTemplateIsOptional) {
  EXPECT_EQ(leaving({}, transport_template()).action, Action::no_state);
  EXPECT_EQ(leaving({}, optional(transport_template())).action, Action::clear);
  EXPECT_EQ(leaving({transport(kLocalHost, kRemoteHost)}, optional(transport_template())).action, Action::protect);
}

// Commit 732706afe1: in transport mode "we pass the addresses from the flowi".
TEST(SelectionModel, FindsTransportStatesByTheAddressesOfThePacket) {
  const std::vector<State> states{transport(kGateway, kPeer), transport(kLocalHost, kRemoteHost)};
  EXPECT_EQ(leaving(states, transport_template()).states, (States{1}));
  Template wanted = transport_template();
  wanted.source = kGateway;
  wanted.destination = kPeer;
  EXPECT_EQ(leaving(states, wanted).states, (States{1}));
}

// Commit f59bbdfa5c: "only checking destination address when using wildcard source address".
TEST(SelectionModel, FallsBackToAStateWithAnOpenSource) {
  const State open_source = transport(kZero, kRemoteHost);
  EXPECT_EQ(leaving({open_source}, transport_template()).states, (States{0}));
  EXPECT_EQ(leaving({open_source, transport(kLocalHost, kRemoteHost)}, transport_template()).states, (States{1}));
  EXPECT_EQ(leaving({transport(kLocalHost, kZero)}, transport_template()).action, Action::no_state);
}

// Commit a1e59abf82 ("Fix wildcard as tunnel source"); Outbound::Action::no_endpoint.
TEST(SelectionModel, LeavesTheSourceOfATunnelOpenButNotItsDestination) {
  const std::vector<State> states{tunnel(kGateway, kPeer), tunnel(ipv4(192, 0, 2, 3), kPeer)};
  EXPECT_EQ(leaving(states, tunnel_template(kZero, kPeer)).states, (States{0, 1}));
  EXPECT_EQ(leaving(states, tunnel_template(kGateway, kZero)).action, Action::no_endpoint);
}

// strongSwan commit 19b7f763b3: without selectors, packets "would incorrectly be handled by that IPsec SA".
TEST(SelectionModel, SkipsStatesWhoseSelectorDoesNotCoverThePacket) {
  State narrow = tunnel(kGateway, kPeer);
  narrow.selector = from_to(kLocalHost, kRemoteHost, 32);
  narrow.selector->protocol = 17;
  EXPECT_EQ(leaving({narrow}, tunnel_template(kGateway, kPeer)).action, Action::no_state);
  narrow.selector->protocol = kTcp;
  EXPECT_EQ(leaving({narrow}, tunnel_template(kGateway, kPeer)).states, (States{0}));
}

}  // namespace
}  // namespace penstock::ipsec::model
