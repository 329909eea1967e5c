// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts SAs, policies and packets to the terms of the model (selection_model_for_test.h).

#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "nf/ipsec/sa/addresses.h"
#include "nf/ipsec/sa/sa.h"
#include "nf/ipsec/selection/policy.h"
#include "nf/ipsec/selection/random_selection_for_test.h"
#include "nf/ipsec/selection/selection_model_for_test.h"

namespace penstock::ipsec {

inline model::Address address_of(const IpAddress& address) {
  model::Address result;
  const Ipv6Address bits = table_address(address);
  const bool ipv6 = is_ipv6(address);
  result.family = ipv6 ? model::Family::ipv6 : model::Family::ipv4;
  for (std::size_t i = 0; i < (ipv6 ? 16U : 4U); ++i) {
    const std::size_t shift = ipv6 ? 56 - 8 * (i % 8) : 24 - 8 * i;
    result.bytes.at(i) = static_cast<std::uint8_t>((ipv6 && i < 8 ? bits.high : bits.low) >> shift);
  }
  return result;
}

inline model::Prefix prefix_of(const IpPrefix& prefix) {
  return std::visit(
      [](const auto& p) -> model::Prefix {
        return {address_of(IpAddress(p.address)), p.length};
      },
      prefix);
}

inline model::Selector selector_of(const Selector& selector) {
  return {prefix_of(selector.source), prefix_of(selector.destination), selector.protocol, selector.source_port,
          selector.destination_port};
}

inline model::Mode mode_of(Mode mode) { return mode == Mode::tunnel ? model::Mode::tunnel : model::Mode::transport; }

inline model::Direction direction_of(Direction direction) {
  switch (direction) {
    case Direction::in: return model::Direction::in;
    case Direction::out: return model::Direction::out;
    case Direction::forward: break;
  }
  return model::Direction::forward;
}

inline model::Database database_of(const std::vector<SecurityAssociation>& states,
                                   const std::vector<Policy>& policies) {
  model::Database database;
  for (const SecurityAssociation& sa : states) {
    model::State& state = database.states.emplace_back();
    state.source = address_of(sa.source);
    state.destination = address_of(sa.destination);
    state.spi = sa.spi;
    state.reqid = sa.reqid;
    state.mode = mode_of(sa.mode);
    if (sa.selector) state.selector = selector_of(*sa.selector);
  }
  for (const Policy& policy : policies) {
    model::Policy& copy = database.policies.emplace_back();
    copy.direction = direction_of(policy.direction);
    copy.selector = selector_of(policy.selector);
    copy.priority = policy.priority;
    copy.block = policy.action == PolicyAction::block;
    for (const Template& wanted : policy.templates) {
      copy.templates.push_back({address_of(wanted.source), address_of(wanted.destination), wanted.spi, wanted.reqid,
                                mode_of(wanted.mode), wanted.optional});
    }
  }
  return database;
}

inline model::Packet packet_of(const Flow& flow) {
  return {address_of(flow.source), address_of(flow.destination), flow.protocol, flow.first, flow.second};
}

}  // namespace penstock::ipsec
