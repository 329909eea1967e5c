// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule as the readers give it and the detection compiles it: Suricata's and Snort 2.9's language, with variables
// resolved, names looked up and all numbers read. Plain values, owned by the rule.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nf/nids/rules/action.h"
#include "nf/nids/rules/address_set.h"
#include "nf/nids/rules/buffer_match.h"
#include "nf/nids/rules/packet_match.h"
#include "nf/nids/rules/port_set.h"
#include "nf/nids/rules/rule_state.h"

namespace penstock::nids {

/// What the header names. `tcp` sees packets and streams as the rule's options need; `tcp_pkt` packets alone,
/// `tcp_stream` streams alone; `pkthdr` all that is decoded, IP or not (for decode events).
enum class RuleProtocol : std::uint8_t {
  ip,
  ipv4,
  ipv6,
  tcp,
  tcp_pkt,
  tcp_stream,
  udp,
  icmp,
  icmpv4,
  icmpv6,
  sctp,
  pkthdr
};

enum class RuleDirection : std::uint8_t { one_way, both_ways };

struct RuleReference {
  std::string kind;  // "cve", "url"
  std::string id;
};

struct Rule {
  // The header.
  Action action = Action::alert;
  RuleProtocol protocol = RuleProtocol::ip;
  AddressSet source;
  PortSet source_ports;
  AddressSet destination;
  PortSet destination_ports;
  RuleDirection direction = RuleDirection::one_way;
  bool negates_addresses = false;  // some address of either side is negated, in a variable too

  // What must hold, in the file's order.
  FlowMatch flow;
  std::vector<PacketMatch> packet_matches;  // on headers and the packet as a whole
  std::vector<BufferMatches> buffers;     // on bytes; one entry for each buffer that the rule names, the payload first
  std::vector<StateMatch> state_matches;  // flowbits, flowint, xbits: what is asked

  // What happens when it does.
  std::vector<StateChange> state_changes;  // flowbits, flowint, xbits: what is set
  std::optional<Threshold> threshold;      // `threshold`, `detection_filter`, or threshold.config's
  std::vector<Tag> tags;
  bool alerts = true;  // false: `noalert`. A pass rule alerts only with `alert`

  // What it is.
  std::uint32_t sid = 0;
  std::uint32_t gid = 1;
  std::uint32_t rev = 0;
  std::string message;
  std::string classtype;          // as written: "trojan-activity"
  std::string class_description;  // by classification.config; empty: unknown there
  std::uint8_t priority = 3;      // 1 is the highest; from `priority`, or by its class
  std::vector<RuleReference> references;
  std::vector<std::array<std::string, 2>> metadata;  // key and value, in order
  std::string target;                                // "src_ip" or "dest_ip"; empty: none
  std::uint32_t variables = 0;  // how many numbers byte_extract and byte_math keep (Number::variable)

  std::string text;  // the rule itself, one line
  std::string file;
  std::uint32_t line = 0;  // its first
};

}  // namespace penstock::nids
