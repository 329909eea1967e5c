// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/selection/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <variant>

#include "nf/ipsec/sa/addresses.h"

namespace penstock::ipsec {

namespace {

using classify::Condition;
using classify::Subject;

/// Whether the engine can match what selectors specify for this protocol: ports, or type and code. It cannot match GRE
/// keys, the mobility header's type or DCCP ports.
bool knows_ports(std::uint8_t protocol) {
  return protocol == 0 || begins_with_ports(protocol) || protocol == ip_protocol::kIcmp ||
         protocol == ip_protocol::kIcmpv6;
}
bool has_ports(const Selector& selector) { return selector.source_port || selector.destination_port; }

bool covers_all(const IpPrefix& prefix) {
  return std::visit([](const auto& p) { return p.length == 0; }, prefix);
}

struct Masked {
  Ipv6Address address, mask;
};
Masked masked(const IpPrefix& prefix) {
  if (const auto* const v4 = std::get_if<Ipv4Prefix>(&prefix)) {
    return {{0, v4->address.bits}, {0, ipv4_mask(v4->length)}};
  }
  const auto& v6 = std::get<Ipv6Prefix>(prefix);
  return {v6.address, ipv6_mask(v6.length)};
}

NetworkLayer family_of(const Selector& selector) {
  return is_ipv6(selector.source) ? NetworkLayer::ipv6 : NetworkLayer::ipv4;
}

SelectorView view_of(const SecurityAssociation& sa) {
  SelectorView view;
  if (!sa.selector) return view;
  const Selector& selector = *sa.selector;
  view.nothing = !selector.device.empty() || (has_ports(selector) && !knows_ports(selector.protocol));
  // With af-unspec, `ip` prints an SA without a selector as one that covers all of one family.
  const bool everything = covers_all(selector.source) && covers_all(selector.destination) && selector.protocol == 0;
  if (view.nothing || (everything && sa.any_family)) return view;
  view.family = family_of(selector);
  std::tie(view.source, view.source_mask) = std::pair{masked(selector.source).address, masked(selector.source).mask};
  std::tie(view.destination, view.destination_mask) =
      std::pair{masked(selector.destination).address, masked(selector.destination).mask};
  view.protocol = selector.protocol;
  view.any_source_port = !selector.source_port;
  view.any_destination_port = !selector.destination_port;
  view.source_port = selector.source_port.value_or(0);
  view.destination_port = selector.destination_port.value_or(0);
  return view;
}

void add_address(classify::Ruleset& rules, const IpPrefix& prefix, bool source, std::vector<Condition>& conditions) {
  if (covers_all(prefix)) return;
  const auto [low, mask] = masked(prefix);
  if (is_ipv6(prefix)) {
    const Ipv6Address high{low.high | ~mask.high, low.low | ~mask.low};
    conditions.push_back(
        classify::ipv6_condition(rules, source ? Subject::source6 : Subject::destination6, low, high, false));
    return;
  }
  const auto first = static_cast<std::uint32_t>(low.low);
  const auto last = static_cast<std::uint32_t>(low.low | ~mask.low);
  conditions.push_back(
      classify::ipv4_condition(source ? Subject::source4 : Subject::destination4, {first}, {last}, false));
}

void add_ports(classify::Ruleset& rules, const Selector& selector, std::vector<Condition>& conditions) {
  if (!has_ports(selector)) return;
  if (selector.protocol == ip_protocol::kIcmp || selector.protocol == ip_protocol::kIcmpv6) {
    const unsigned type = selector.source_port.value_or(0);
    const unsigned code = selector.destination_port.value_or(0);
    const unsigned value = type << 8 | (code & 0xff);
    const unsigned mask = (selector.source_port ? 0xff00U : 0) | (selector.destination_port ? 0xffU : 0);
    conditions.push_back(classify::icmp_condition(selector.protocol, static_cast<std::uint16_t>(value),
                                                  static_cast<std::uint16_t>(mask), false));
    return;
  }
  const auto add = [&](Subject subject, const std::optional<std::uint16_t>& port) {
    if (port) conditions.push_back(classify::port_condition(rules, subject, {{*port, *port}}, false));
  };
  add(Subject::source_port, selector.source_port);
  add(Subject::destination_port, selector.destination_port);
}

}  // namespace

/// Builds a Selection.
class SelectionBuilder {
 public:
  SelectionBuilder(const SelectionSources& sources, bool inbound)
      : sources_(sources), inbound_(inbound), made_(new Selection) {}

  Result<Read<std::unique_ptr<const Selection>>> build() {
    add_states();
    if (inbound_) {
      add_policies(Direction::forward);
      add_policies(Direction::in);
    } else {
      add_policies(Direction::out);
    }
    made_->rules_.file = sources_.policy_file;
    auto classifier = classify::make_classifier(classify::Engine::bitvector, made_->rules_);
    if (!classifier) return tl::unexpected(std::move(classifier.error()));
    made_->classifier_ = std::move(*classifier);
    return Read<std::unique_ptr<const Selection>>{std::move(made_), std::move(unsupported_)};
  }

 private:
  void add_states() {
    for (const SecurityAssociation& sa : sources_.states) {
      made_->sas_.push_back(sa_view(sa, sources_.mtu));
      made_->selectors_.push_back(view_of(sa));
      if (sa.icmp && inbound_) {
        unsupported_.push_back({{sources_.state_file, sa.line, 0},
                                "an SA that matches ICMP errors by the packet that they quote is not supported",
                                "flag icmp",
                                "no such flag: ICMP errors are matched by their own header only"});
      }
      if (made_->selectors_.back().nothing) {
        unsupported_.push_back({{sources_.state_file, sa.line, 0},
                                "the selector of this SA is not supported: no packet matches it",
                                "",
                                "no device, and ports only with TCP, UDP, SCTP, UDP-Lite, ICMP or ICMPv6"});
      }
    }
    std::vector<std::uint32_t> order(sources_.states.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
      const auto added = [this](std::uint32_t i) {
        return sources_.states[i].lifetimes.added.value_or(std::numeric_limits<std::int64_t>::min());
      };
      return added(a) > added(b);
    });
    for (const std::uint32_t i : order) {
      const SecurityAssociation& sa = sources_.states[i];
      if (sa.direction != Direction::in) by_use_[use_of(sa.mode, sa.reqid, sa.destination)].push_back(i);
    }
  }

  /// The key by which templates look up SAs; the destination is used for tunnels only.
  using Use = std::tuple<Mode, std::uint32_t, IpAddress>;
  static Use use_of(Mode mode, std::uint32_t reqid, const IpAddress& destination) {
    return {mode, reqid, mode == Mode::tunnel ? destination : IpAddress{}};
  }

  void add_policies(Direction direction) {
    for (const Policy& policy : sources_.policies) {
      if (policy.direction == direction) add_policy(policy);
    }
  }

  void add_policy(const Policy& policy) {
    if (policy.icmp && inbound_) {
      unsupported(policy, "a policy that matches ICMP errors by the packet that they quote is not supported",
                  "flag icmp", "no such flag: ICMP errors are matched by their own header only");
    }
    PolicyView view;
    view.handling = handling_of(policy);
    add_selector(policy, view);
    if (view.handling == Handling::protect || view.handling == Handling::prefer) {
      add_template(policy.templates.front(), view);
    }
    made_->policies_.push_back(view);
  }

  Handling handling_of(const Policy& policy) {
    if (policy.action == PolicyAction::block) return Handling::block;
    if (policy.templates.empty()) return Handling::bypass;
    if (policy.templates.size() > 1) {
      unsupported(policy, "several templates in a policy (nested SAs) are not supported",
                  fmt::format("{} templates", policy.templates.size()),
                  "one: packets that this policy selects are dropped");
      return Handling::refuse;
    }
    const Template& wanted = policy.templates.front();
    // Linux would look for an SA to 0.0.0.0, which does not exist.
    if (!inbound_ && wanted.mode == Mode::tunnel && table_address(wanted.destination) == Ipv6Address{}) {
      unsupported(policy, "an outbound template without the address of the tunnel's remote end is not supported",
                  fmt::format("dst {}", to_string(wanted.destination)),
                  "the address of the remote gateway: packets that this policy selects are dropped");
      return Handling::refuse;
    }
    return wanted.optional ? Handling::prefer : Handling::protect;
  }

  /// Adds the policy's entry. Conditions that cannot be tested are omitted: more packets are dropped then, and none
  /// that should be protected is sent in the clear.
  void add_selector(const Policy& policy, PolicyView& view) {
    const Selector& selector = policy.selector;
    classify::Ruleset& rules = made_->rules_;
    std::vector<Condition> conditions;
    add_address(rules, selector.source, true, conditions);
    add_address(rules, selector.destination, false, conditions);
    if (selector.protocol != 0) conditions.push_back(classify::protocol_condition(selector.protocol, 0xff, false));
    if (has_ports(selector) && !knows_ports(selector.protocol)) {
      unsupported(
          policy, "a policy with ports, keys or types of this protocol is not supported",
          fmt::format("protocol {}", selector.protocol),
          "TCP, UDP, SCTP, UDP-Lite, ICMP or ICMPv6: packets of this protocol that the policy selects are dropped");
      view.handling = Handling::refuse;
    } else {
      add_ports(rules, selector, conditions);
    }
    if (!selector.device.empty()) add_device(policy, view, conditions);
    classify::Entry entry;
    entry.family = family_of(selector);
    entry.action = classify::Action::accept;
    entry.rule = static_cast<std::uint32_t>(rules.rules.size());
    rules.rules.push_back({policy.line, classify::Target::accept, false, to_string(selector)});
    classify::add_entry(rules, conditions, entry);
  }

  void add_device(const Policy& policy, PolicyView& view, std::vector<Condition>& conditions) {
    const std::optional<std::uint64_t> ports = sources_.interfaces.ports_of(policy.selector.device);
    const bool known = inbound_ || sources_.interfaces.out_known;
    if (!ports || !known) {
      unsupported(policy,
                  known ? "a policy for a device that is not a port of the chain"
                        : "a policy for a device, but no earlier function has chosen the port",
                  in_quotes(policy.selector.device),
                  known ? sources_.interfaces.port_names() + ": packets that this policy selects are dropped"
                        : "a router before ipsec: packets that this policy selects are dropped");
      view.handling = Handling::refuse;
      return;
    }
    conditions.push_back(classify::interface_condition(inbound_ ? Subject::in_port : Subject::out_port, *ports, false));
  }

  void add_template(const Template& wanted, PolicyView& view) {
    view.wanted.tunnel = wanted.mode == Mode::tunnel;
    view.wanted.spi = wanted.spi;
    view.wanted.reqid = wanted.reqid;
    if (view.wanted.tunnel) {
      view.wanted.outer = family_of(wanted.source);
      view.wanted.source = table_address(wanted.source);
    }
    if (inbound_) return;
    // Many policies ask for the same SAs, so equal lists are shared.
    const auto key = std::tuple(use_of(wanted.mode, wanted.reqid, wanted.destination),
                                view.wanted.tunnel ? wanted.source : IpAddress{}, wanted.spi);
    const auto [list, is_new] = lists_.try_emplace(key);
    if (is_new) list->second = add_candidates(std::get<0>(key), view.wanted);
    std::tie(view.first_candidate, view.candidates) = list->second;
  }

  std::pair<std::uint32_t, std::uint32_t> add_candidates(const Use& use, const TemplateView& wanted) {
    const auto first = static_cast<std::uint32_t>(made_->candidates_.size());
    const auto sas = by_use_.find(use);
    if (sas == by_use_.end()) return {first, 0};
    for (const std::uint32_t i : sas->second) {
      if (satisfies(made_->sas_[i], wanted)) made_->candidates_.push_back(i);
    }
    return {first, static_cast<std::uint32_t>(made_->candidates_.size()) - first};
  }

  void unsupported(const Policy& policy, std::string message, std::string found, std::string expected) {
    unsupported_.push_back(
        {{sources_.policy_file, policy.line, 0}, std::move(message), std::move(found), std::move(expected)});
  }

  const SelectionSources& sources_;
  const bool inbound_;
  std::unique_ptr<Selection> made_;
  Errors unsupported_;
  std::map<Use, std::vector<std::uint32_t>> by_use_;  // SAs in order of preference
  std::map<std::tuple<Use, IpAddress, std::uint32_t>, std::pair<std::uint32_t, std::uint32_t>> lists_;
};

Result<Read<std::unique_ptr<const Selection>>> Selection::build(const SelectionSources& sources, bool inbound) {
  return SelectionBuilder(sources, inbound).build();
}

Result<InboundTable> InboundTable::build(std::span<const SecurityAssociation> states, const std::string& state_file) {
  InboundTable table;
  Errors errors;
  table.slots_.resize(std::bit_ceil(std::max<std::size_t>(states.size() * 4, 2)));  // each SA, and its address
  std::map<std::uint32_t, std::uint32_t> lines;                                     // by slot
  const auto at = [&](const SecurityAssociation& sa, std::uint32_t spi) {
    return find_slot(table.view(), family_of(sa.destination), table_address(sa.destination), spi);
  };
  for (std::uint32_t i = 0; i < states.size(); ++i) {
    const SecurityAssociation& sa = states[i];
    if (sa.direction == Direction::out) continue;
    const std::uint32_t slot = at(sa, sa.spi);
    if (table.slots_[slot].family != NetworkLayer::none) {
      errors.push_back({{state_file, sa.line, 0},
                        "two SAs have the same destination and SPI",
                        fmt::format("{} spi 0x{:08x}, as in line {}", to_string(sa.destination), sa.spi, lines[slot]),
                        "one of them"});
      continue;
    }
    lines[slot] = sa.line;
    table.slots_[slot] = {table_address(sa.destination), sa.spi, i, family_of(sa.destination)};
    SaSlot& address = table.slots_[at(sa, 0)];
    address = {table_address(sa.destination), 0, kNoSa, family_of(sa.destination), address.udp || sa.udp.has_value()};
    if (!sa.udp || table.ports().has(sa.udp->destination_port)) continue;
    table.other_ports_.resize(NatTraversalPorts::kWords);
    table.other_ports_[sa.udp->destination_port / 32] |= 1U << sa.udp->destination_port % 32;
  }
  if (!errors.empty()) return failure(std::move(errors));
  return table;
}

}  // namespace penstock::ipsec
