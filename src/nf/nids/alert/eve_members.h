// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Members that several kinds of EVE records have.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nf/nids/alert/packet_text.h"
#include "report/json_text.h"
#include "report/time_text.h"
#include "stack/flow.h"

namespace penstock::nids {

inline void add_time(report::JsonText& json, std::string_view key, std::uint64_t timestamp_ns,
                     report::TimeText& times) {
  json.member(key, [&](std::string& out) { times.append_iso(out, timestamp_ns); });
}

inline void add_address(report::JsonText& json, std::string_view key, const stack::Endpoint& endpoint,
                        std::uint8_t ip_version) {
  json.member(key, [&](std::string& out) { append_address(out, endpoint.address, ip_version); });
}

inline void add_protocol(report::JsonText& json, std::uint8_t protocol) {
  const std::string_view name = protocol_name(protocol);
  json.member("proto", [&](std::string& out) {
    name.empty() ? report::append_number(out, protocol) : static_cast<void>(out.append(name));
  });
}

/// Packets and bytes in both directions.
inline void add_counts(report::JsonText& json, const stack::Flow& flow) {
  using stack::Direction;
  json.member("pkts_toserver", flow.count(Direction::to_server).packets);
  json.member("pkts_toclient", flow.count(Direction::to_client).packets);
  json.member("bytes_toserver", flow.count(Direction::to_server).bytes);
  json.member("bytes_toclient", flow.count(Direction::to_client).bytes);
}

}  // namespace penstock::nids
