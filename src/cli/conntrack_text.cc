// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/conntrack_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/units.h"

namespace penstock::cli {

namespace {

using Json = nlohmann::ordered_json;

std::string text_in(const Json& text) { return printable(text.get<std::string>()); }
std::uint64_t number_in(const Json& json) { return json.get<std::uint64_t>(); }

/// " src=10.0.0.1 dst=192.0.2.7 sport=40000 dport=443"
std::string tuple_text(const Json& tuple) {
  std::string text = fmt::format(" src={} dst={}", text_in(tuple.at("src")), text_in(tuple.at("dst")));
  for (const char* const key : {"sport", "dport", "type", "code", "id"}) {
    if (tuple.contains(key)) text += fmt::format(" {}={}", key, number_in(tuple[key]));
  }
  for (const char* const key : {"srckey", "dstkey"}) {
    if (tuple.contains(key)) text += fmt::format(" {}=0x{:x}", key, number_in(tuple[key]));
  }
  return text;
}

/// `ends`: it has no time left.
std::string connection_text(const Json& connection, bool ends) {
  std::string text =
      fmt::format("{:<8} {}", text_in(connection.at("protocol")), number_in(connection.at("protocol_number")));
  if (!ends) text += fmt::format(" {}", number_in(connection.at("timeout_s")));
  if (const Json& state = connection.at("state"); !state.is_null()) text += " " + text_in(state);
  text += tuple_text(connection.at("original"));
  if (!connection.at("seen_reply").get<bool>()) text += " [UNREPLIED]";
  text += tuple_text(connection.at("reply"));
  if (connection.at("assured").get<bool>()) text += " [ASSURED]";
  text += fmt::format(" mark={}", number_in(connection.at("mark")));
  if (connection.contains("helper")) text += " helper=" + text_in(connection.at("helper"));
  return text + '\n';
}

}  // namespace

std::string connection_line(const Json& connection) { return connection_text(connection, false); }

std::string connection_event_line(const Json& event) {
  const Json& kind = event.at("kind");
  const bool ends = kind == "destroy";
  const std::string_view shown = kind == "new" ? "[NEW]" : kind == "update" ? "[UPDATE]" : "[DESTROY]";
  return fmt::format("{:>9} {}", shown, connection_text(event, ends));
}

std::string connection_count_text(const Json& result) {
  std::string text = format_count(number_in(result.at("connections")), "connection") + '\n';
  for (const auto& [protocol, count] : result.at("by_protocol").items())
    text += fmt::format("  {} {}\n", printable(protocol), format_count(number_in(count)));
  return text;
}

}  // namespace penstock::cli
