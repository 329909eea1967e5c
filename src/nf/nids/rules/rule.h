// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A rule, as the readers produce it and the detection compiles it: Suricata's and Snort 2.9's language, with variables
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

/// The protocol that the header names. `tcp` matches packets or streams, as the rule's options require; `tcp_pkt` only
/// packets, `tcp_stream` only streams; `pkthdr` every decoded packet, IP or not (for decode events).
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
  bool negates_addresses = false;  // an address of either side is negated, directly or in a variable

  // Conditions, in the order of the file.
  FlowMatch flow;
  std::vector<PacketMatch> packet_matches;  // on headers and the packet as a whole
  std::vector<BufferMatches> buffers;     // on bytes; one entry for each buffer that the rule names, the payload first
  std::vector<StateMatch> state_matches;  // tests of flowbits, flowint, xbits

  // Effects of a match.
  std::vector<StateChange> state_changes;  // changes to flowbits, flowint, xbits
  std::optional<Threshold> threshold;      // from `threshold`, `detection_filter` or threshold.config
  std::vector<Tag> tags;
  bool alerts = true;  // false: `noalert`. A pass rule alerts only with `alert`

  // Description.
  std::uint32_t sid = 0;
  std::uint32_t gid = 1;
  std::uint32_t rev = 0;
  std::string message;
  std::string classtype;          // as written: "trojan-activity"
  std::string class_description;  // from classification.config; empty if unknown there
  std::uint8_t priority = 3;      // 1 is the highest; from `priority`, or else from the class
  std::vector<RuleReference> references;
  std::vector<std::array<std::string, 2>> metadata;  // key and value, in order
  std::string target;                                // "src_ip" or "dest_ip"; empty: none
  std::uint32_t variables = 0;  // how many variables byte_extract and byte_math set (Number::variable)

  std::string text;  // the rule's text, as one line
  std::string file;
  std::uint32_t line = 0;  // first line of the rule
};

}  // namespace penstock::nids
