// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/alert/eve_flow.h"

#include <algorithm>
#include <string_view>

#include "base/nanoseconds.h"
#include "nf/nids/alert/eve_members.h"
#include "packet/transport.h"

namespace penstock::nids {

namespace {

std::string_view name_of(stack::FlowState state) {
  switch (state) {
    case stack::FlowState::new_flow: return "new";
    case stack::FlowState::established: return "established";
    case stack::FlowState::closed: break;
  }
  return "closed";
}

/// FlowKey has them in the place of ports.
void add_icmp(report::JsonText& json, const stack::FlowKey& key) {
  if (key.protocol != ip_protocol::kIcmp && key.protocol != ip_protocol::kIcmpv6) return;
  json.member("icmp_type", key.client.port >> 8);
  json.member("icmp_code", key.client.port & 0xff);
}

}  // namespace

void append_eve_flow(std::string& out, const stack::Flow& flow, report::TimeText& times) {
  const stack::FlowKey& key = flow.key;
  const bool ports = has_logged_ports(key.protocol);
  report::JsonText json(out);
  json.begin();
  add_time(json, "timestamp", flow.last_ns, times);
  json.member("flow_id", flow.id);
  json.member("event_type", std::string_view("flow"));
  if (key.vlan_ids[0] != 0) {
    json.open_array("vlan");
    for (std::size_t i = 0; i < key.vlan_ids.size() && key.vlan_ids[i] != 0; ++i) json.element(key.vlan_ids[i]);
    json.close_array();
  }
  add_address(json, "src_ip", key.client, key.ip_version);
  if (ports) json.member("src_port", key.client.port);
  add_address(json, "dest_ip", key.server, key.ip_version);
  if (ports) json.member("dest_port", key.server.port);
  json.member("ip_v", key.ip_version);
  add_protocol(json, key.protocol);
  add_icmp(json, key);
  json.open("flow");
  add_counts(json, flow);
  add_time(json, "start", flow.start_ns, times);
  add_time(json, "end", flow.last_ns, times);
  json.member("age", (std::max(flow.last_ns, flow.start_ns) - flow.start_ns) / kNsPerSecond);
  json.member("state", name_of(flow.state));
  json.close();
  json.close();
}

}  // namespace penstock::nids
