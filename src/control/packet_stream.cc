// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/packet_stream.h"

#include <algorithm>
#include <utility>

#include "control/explanation_json.h"
#include "port/link_types.h"
#include "report/json_text.h"
#include "run/packet_path.h"

namespace penstock::control {

namespace {

using Json = nlohmann::ordered_json;

Json path_json(const run::TracedPacket& packet) {
  Json json{{"number", packet.number}, {"time_ns", packet.timestamp_ns}, {"in", packet.from},
            {"length", packet.length}, {"packet", packet.packet},        {"steps", Json::array()},
            {"outcome", nullptr},      {"text", run::to_string(packet)}};
  for (const run::TracedPacket::Step& step : packet.steps) {
    if (step.function.empty()) {
      json["steps"].push_back({{"fork", step.arm}});
      continue;
    }
    Json one{{"function", step.function}, {"processor", function::name(step.processor)}, {"read", Json::object()}};
    for (const run::FieldValue& value : step.read) one["read"][std::string(value.field)] = value.value;
    one["changes"] = to_json(step.changed);
    add_decision(one, step.decision);
    one["why"] = step.why;
    json["steps"].push_back(std::move(one));
  }
  if (packet.outcome) add_decision(json["outcome"] = Json::object(), *packet.outcome);
  return json;
}

Json frame_json(const CapturedFrame& frame, const run::Chain& chain, std::span<const std::string_view> reasons) {
  std::string bytes;
  report::append_base64(bytes, frame.bytes);
  return {{"time_ns", frame.packet.timestamp_ns},
          {"in", run::port_name(chain, frame.packet.in_port)},
          {"link_type", port::linktype_in_file(frame.packet.link_type)},
          {"wire_length", frame.packet.wire_length},
          {"reason", reasons[frame.reason]},
          {"frame", std::move(bytes)}};
}

}  // namespace

std::vector<PacketStream::Item> PacketStream::take(std::size_t most) {
  std::vector<Item> items;
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty() && items.size() < most) {
    bytes_ -= waiting_.front().bytes;
    items.push_back(std::move(waiting_.front().item));
    waiting_.pop_front();
  }
  return items;
}

void PacketStream::add_item(Item item, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes_ + bytes > kMostBytes) {
    ++lost_;
    return;
  }
  bytes_ += bytes;
  ++added_;
  waiting_.push_back({std::move(item), bytes});
}

Json to_json(const PacketStream::Item& item, const run::Chain& chain, std::span<const std::string_view> reasons) {
  if (const auto* path = std::get_if<run::TracedPacket>(&item)) return path_json(*path);
  return frame_json(std::get<CapturedFrame>(item), chain, reasons);
}

}  // namespace penstock::control
