// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every rule is one function that names its source. Sources used more than once:
//   [guide]    Cilium documentation, "XFRM Reference Guide"
//   [ip-xfrm]  ip-xfrm(8) of iproute2
//   [setkey]   setkey(8) of ipsec-tools, which documents the same kernel through PF_KEY
//   [proc]     Linux, Documentation/networking/xfrm_proc.rst
// Hashes are commits of the Linux kernel; only their messages were used.

#include "nf/ipsec/selection/selection_model_for_test.h"

namespace penstock::ipsec::model {
namespace {

// Selectors

bool bit_of(const Address& address, std::size_t index) {
  return ((address.bytes.at(index / 8) >> (7 - index % 8)) & 1) != 0;
}

/// A prefix contains only addresses of its own family: 0.0.0.0/0 is not ::/0. Source: Cilium pull request 25953, where
/// a catch-all policy covers IPv6 only once it is written with ::/0.
bool lies_in(const Address& address, const Prefix& prefix) {
  if (address.family != prefix.address.family) return false;
  for (std::size_t index = 0; index < prefix.length; ++index) {
    if (bit_of(address, index) != bit_of(prefix.address, index)) return false;
  }
  return true;
}

/// The ports of a fragment are zero, and so are its type and code: a selector of `type 0` selects every ICMP fragment.
/// Source: the kernel (selection_interop_test.cc). RFC 4301 §4.4.1.1 differs: there they are OPAQUE and match no value.
bool port_matches(std::optional<std::uint16_t> wanted, std::optional<std::uint16_t> found) {
  return !wanted.has_value() || *wanted == found.value_or(0);
}

/// All of a selector's conditions must match. Source: [ip-xfrm], SELECTOR and UPSPEC.
bool selects(const Selector& selector, const Packet& packet) {
  return lies_in(packet.source, selector.source) && lies_in(packet.destination, selector.destination) &&
         (selector.protocol == 0 || selector.protocol == packet.protocol) &&
         port_matches(selector.source_port, packet.source_port) &&
         port_matches(selector.destination_port, packet.destination_port);
}

/// A state's selector is compared with the inner packet, inbound and outbound. A state without one (`flag af-unspec`)
/// accepts packets of both families. Sources: [guide], `sel`: a filter for the decrypted packets; 48b8d78 ("State
/// selection update to use inner addresses"); ccf9b3b83d ("Add a XFRM_STATE_AF_UNSPEC flag").
bool carries(const State& state, const Packet& packet) {
  return !state.selector.has_value() || selects(*state.selector, packet);
}

// Policies

/// Of the policies that select the packet, the one with the lowest `priority` number decides; among equals, the oldest.
/// Sources: [guide], `priority`: 0 is the highest; [setkey]: "policies with equal priorities are added at the end of
/// groups of such policies"; 6be3b0db6d: "searched in-order until the first match is found".
const Policy* deciding_policy(const Database& database, Direction direction, const Packet& packet) {
  const Policy* best = nullptr;
  for (const Policy& policy : database.policies) {
    if (policy.direction != direction || !selects(policy.selector, packet)) continue;
    if (best == nullptr || policy.priority < best->priority) {
      best = &policy;
    }
  }
  return best;
}

// Templates

/// All zeros mean that no address was given. Source: [ip-xfrm], where `src` and `dst` of ID are optional.
bool is_unspecified(const Address& address) {
  for (const std::uint8_t byte : address.bytes) {
    if (byte != 0) return false;
  }
  return true;
}

/// Zero in a template means that no SPI was given. Source: [guide], Policy Templates, where the inbound template has
/// none and its states have one; [ip-xfrm], where `spi` of ID is optional.
bool spi_matches(const Template& wanted, const State& state) { return wanted.spi == 0 || wanted.spi == state.spi; }

// Inbound, a template is a filter: it compares what it specifies. Source: [guide], Policy Templates.

bool reqid_matches_inward(const Template& wanted, const State& state) {
  return wanted.reqid == 0 || wanted.reqid == state.reqid;
}

bool address_matches_inward(const Address& wanted, const Address& found) {
  return is_unspecified(wanted) || wanted == found;
}

/// The addresses of a template are a tunnel's end points. In transport mode they are ignored: the packet keeps its own.
/// Sources: [guide], Policy Templates ("outer IP addresses"); [setkey]: "if mode is transport, both src and dst can be
/// omitted"; Cilium pull request 7181, which leaves the source of inbound templates open. That only the source is
/// compared is kernel behaviour (selection_interop_test.cc) that no document mentions.
bool endpoints_match_inward(const Template& wanted, const State& state) {
  return wanted.mode == Mode::transport || address_matches_inward(wanted.source, state.source);
}

/// Source: [guide], Policy Templates: a template and a state must agree in addresses, SPI, protocol, mode and reqid.
bool satisfies_inward(const State& state, const Template& wanted) {
  return wanted.mode == state.mode && spi_matches(wanted, state) && reqid_matches_inward(wanted, state) &&
         endpoints_match_inward(wanted, state);
}

// Inbound

/// Source: [guide], XfrmInStateMismatch; RFC 4301 §5.2 step 4.
bool every_state_carries(const Database& database, const Packet& packet, const std::vector<std::size_t>& applied) {
  for (const std::size_t index : applied) {
    if (!carries(database.states.at(index), packet)) return false;
  }
  return true;
}

bool came_by_tunnel(const Database& database, const std::vector<std::size_t>& applied) {
  for (const std::size_t index : applied) {
    if (database.states.at(index).mode == Mode::tunnel) return true;
  }
  return false;
}

/// A packet in the clear passes by default. A packet from a tunnel needs a policy, even if the default is to allow; one
/// that arrived in transport mode does not. Sources: [proc], XfrmInNoPols ("inbound SAs are correct but no SP is
/// found"); Server Fault, "Why are only 3 ip xfrm policies needed for a IPsec tunnel?" ("If none is found the packet is
/// dropped"); Cilium issue 36258, which attributes that counter to states in tunnel mode while the default is to allow;
/// for transport mode, strongSwan-dev, July 2014, "What is the purpose of kernel's IPsec IN policies?".
Inbound without_policy(const Database& database, const std::vector<std::size_t>& applied) {
  return came_by_tunnel(database, applied) ? Inbound::no_policy : Inbound::accept;
}

bool some_state_satisfies(const Database& database, const Template& wanted, const std::vector<std::size_t>& applied) {
  for (const std::size_t index : applied) {
    if (satisfies_inward(database.states.at(index), wanted)) return true;
  }
  return false;
}

/// A required template drops every packet that did not arrive on a matching state, including packets in the clear; with
/// `level use` they pass. Sources: [guide], `level use` and XfrmInTmplMismatch; strongSwan's commit message on outbound
/// forward policies, which says that a template there must be optional, or traffic from elsewhere "would get dropped
/// due to the template mismatch".
bool templates_are_satisfied(const Database& database, const Policy& policy, const std::vector<std::size_t>& applied) {
  for (const Template& wanted : policy.templates) {
    if (!wanted.use && !some_state_satisfies(database, wanted, applied)) return false;
  }
  return true;
}

bool satisfies_some_template(const State& state, const Policy& policy) {
  for (const Template& wanted : policy.templates) {
    if (satisfies_inward(state, wanted)) return true;
  }
  return false;
}

/// A packet from a tunnel must match a template of its policy, whatever the level, so a policy without templates drops
/// it. A transport mode state that no template requires is accepted. Source: [guide], XfrmInTmplMismatch: "if an XFRM
/// state with mode tunnel was used on the packet and it doesn't match any XFRM policy template".
bool tunnels_are_expected(const Database& database, const Policy& policy, const std::vector<std::size_t>& applied) {
  for (const std::size_t index : applied) {
    const State& state = database.states.at(index);
    if (state.mode == Mode::tunnel && !satisfies_some_template(state, policy)) return false;
  }
  return true;
}

// Outbound

/// The addresses that a state must have. An empty source matches any.
struct Endpoints {
  std::optional<Address> source;
  Address destination;
};

/// Transport mode uses the packet's own addresses, whatever the template says. Tunnel mode uses the template's; a zero
/// source is left to the routes. Sources: 732706afe1 ("on policies with a transport mode template, we pass the
/// addresses from the flowi"); ddc47e4404 (tunnel mode: "from the template"); a1e59abf82 ("Fix wildcard as tunnel
/// source").
Endpoints endpoints_outward(const Template& wanted, const Packet& packet) {
  if (wanted.mode == Mode::transport) return {.source = packet.source, .destination = packet.destination};
  if (is_unspecified(wanted.source)) return {.source = std::nullopt, .destination = wanted.destination};
  return {.source = wanted.source, .destination = wanted.destination};
}

/// Outbound, states are found by destination, source and reqid. So zero is a reqid like any other, and a state with an
/// unspecified destination is never found. Source: [guide], Data Structure for XFRM States, `state_bydst`.
bool matches_outward(const State& state, const Template& wanted, const Packet& packet) {
  return wanted.mode == state.mode && spi_matches(wanted, state) && wanted.reqid == state.reqid &&
         state.destination == endpoints_outward(wanted, packet).destination && carries(state, packet);
}

std::vector<std::size_t> states_of_any_source(const Database& database, const Template& wanted, const Packet& packet) {
  std::vector<std::size_t> found;
  for (std::size_t index = 0; index < database.states.size(); ++index) {
    if (matches_outward(database.states.at(index), wanted, packet)) found.push_back(index);
  }
  return found;
}

std::vector<std::size_t> with_source(const Database& database, const std::vector<std::size_t>& states,
                                     const Address& source) {
  std::vector<std::size_t> found;
  for (const std::size_t index : states) {
    if (database.states.at(index).source == source) found.push_back(index);
  }
  return found;
}

std::vector<std::size_t> with_open_source(const Database& database, const std::vector<std::size_t>& states) {
  std::vector<std::size_t> found;
  for (const std::size_t index : states) {
    if (is_unspecified(database.states.at(index).source)) found.push_back(index);
  }
  return found;
}

/// States with a matching source are preferred. Only if there are none, states with an unspecified source are used.
/// Sources: [guide], XFRM Policies and States ("or 0.0.0.0 to match all"); f59bbdfa5c ("Simplify SA looking up when
/// using wildcard source"): a separate lookup that compares only the destination.
std::vector<std::size_t> usable_states(const Database& database, const Template& wanted, const Packet& packet) {
  std::vector<std::size_t> states = states_of_any_source(database, wanted, packet);
  const std::optional<Address> source = endpoints_outward(wanted, packet).source;
  if (!source.has_value()) return states;
  const std::vector<std::size_t> exact = with_source(database, states, *source);
  return exact.empty() ? with_open_source(database, states) : exact;
}

/// Without a state, a required template drops the packet, and `level use` sends it unprotected. Sources: [guide],
/// XfrmOutNoStates; ipsec_set_policy(3) of ipsec-tools, level `use`: "transmitted in clear (when SA is not available)".
Outbound without_state(const Template& wanted) {
  return {.action = wanted.use ? Outbound::Action::clear : Outbound::Action::no_state, .states = {}};
}

Outbound apply_template(const Database& database, const Template& wanted, const Packet& packet) {
  if (wanted.mode == Mode::tunnel && is_unspecified(wanted.destination))
    return {.action = Outbound::Action::no_endpoint, .states = {}};
  const std::vector<std::size_t> states = usable_states(database, wanted, packet);
  if (states.empty()) return without_state(wanted);
  return {.action = Outbound::Action::protect, .states = states};
}

}  // namespace

Inbound check_inbound(const Database& database, Direction direction, const Packet& packet,
                      const std::vector<std::size_t>& applied) {
  if (!every_state_carries(database, packet, applied)) return Inbound::state_mismatch;
  const Policy* policy = deciding_policy(database, direction, packet);
  if (policy == nullptr) return without_policy(database, applied);
  if (policy->block) return Inbound::policy_block;
  if (!templates_are_satisfied(database, *policy, applied) || !tunnels_are_expected(database, *policy, applied))
    return Inbound::template_mismatch;
  return Inbound::accept;
}

Outbound decide_outbound(const Database& database, const Packet& packet) {
  const Policy* policy = deciding_policy(database, Direction::out, packet);
  if (policy == nullptr) return {.action = Outbound::Action::clear, .states = {}};
  if (policy->block) return {.action = Outbound::Action::blocked, .states = {}};
  if (policy->templates.empty()) return {.action = Outbound::Action::clear, .states = {}};
  return apply_template(database, policy->templates.front(), packet);
}

}  // namespace penstock::ipsec::model
