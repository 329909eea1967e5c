// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversations of TCP in tests, which read as tcpdump prints them: client(kSyn, 100), server(kSyn | kAck, 300, 101).
// Packets go decoded into a tracker; what a packet did is returned, what was inspected is kept.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "packet/transport.h"
#include "stack/tcp_session.h"
#include "stack/tracker.h"

namespace penstock::stack::testing {

inline constexpr std::uint8_t kFin = TcpHeader::kFin, kSyn = TcpHeader::kSyn, kRst = TcpHeader::kRst,
                              kPsh = TcpHeader::kPsh, kAck = TcpHeader::kAck, kUrg = TcpHeader::kUrg;

/// What a packet was to its flow.
struct Seen {
  std::vector<std::string> events;
  bool has_flow = false, in_stream = false, ready = false, established = false, end = false;
  Refusal refused = Refusal::none;
  Direction direction = Direction::to_server;
  std::uint64_t flow_id = 0;
  TcpState state = TcpState::none;
};

struct TcpPacket {
  std::uint8_t flags = kAck;
  std::uint32_t sequence = 0, ack = 0;
  std::string_view data = {};
  std::uint16_t window = 8192;
  std::uint16_t urgent = 0;
  std::vector<std::uint8_t> options = {};
};

inline std::vector<std::uint8_t> window_scale(std::uint8_t shift) { return {3, 3, shift, 0}; }
inline std::vector<std::uint8_t> timestamps(std::uint32_t value, std::uint32_t echo = 0) {
  std::vector<std::uint8_t> option{1, 1, 8, 10};
  for (const std::uint32_t number : {value, echo}) {
    for (const int shift : {24, 16, 8, 0}) option.push_back(static_cast<std::uint8_t>(number >> shift));
  }
  return option;
}
inline std::vector<std::uint8_t> fast_open_cookie() { return {34, 6, 1, 2, 3, 4, 1, 1}; }

class Talk final : public PacketSink {
 public:
  explicit Talk(const TrackerOptions& options = {}) : tracker(options) {}

  const Seen& client(const TcpPacket& packet) { return send(packet, true); }
  const Seen& server(const TcpPacket& packet) { return send(packet, false); }
  const Seen& send(const TcpPacket& packet, bool from_client) {
    std::vector<std::uint8_t> header(20 + packet.options.size());
    auto& tcp = *reinterpret_cast<TcpHeader*>(header.data());
    tcp.source_port.set(from_client ? client_port : server_port);
    tcp.destination_port.set(from_client ? server_port : client_port);
    tcp.sequence.set(packet.sequence);
    tcp.acknowledgment.set(packet.ack);
    tcp.data_offset = static_cast<std::uint8_t>(header.size() / 4 << 4);
    tcp.flags = packet.flags;
    tcp.window.set(packet.window);
    tcp.urgent.set(packet.urgent);
    std::copy(packet.options.begin(), packet.options.end(), header.begin() + 20);
    const std::vector<std::uint8_t> payload(packet.data.begin(), packet.data.end());
    DecodedPacket decoded = between(from_client);
    decoded.protocol = 6;
    decoded.transport = header;
    decoded.payload = payload;
    return take(decoded);
  }
  [[nodiscard]] DecodedPacket between(bool from_client) const {
    DecodedPacket decoded;
    decoded.timestamp_ns = now_ns;
    decoded.number = 1;
    decoded.ip_version = 4;
    decoded.has_flow = true;
    decoded.source = {{0, 0x0a000001}, client_port};
    decoded.destination = {{0, 0x0a000002}, server_port};
    if (!from_client) std::swap(decoded.source, decoded.destination);
    decoded.vlan_ids = vlan_ids;
    return decoded;
  }
  const Seen& take(DecodedPacket& decoded) {
    now_ns += 1'000'000;
    seen.emplace_back();
    tracker.track(decoded, *this);
    return own_;
  }
  void handshake(std::uint32_t client_isn = 99, std::uint32_t server_isn = 999, std::uint16_t window = 65535) {
    client({.flags = kSyn, .sequence = client_isn, .window = window});
    server({.flags = kSyn | kAck, .sequence = server_isn, .ack = client_isn + 1, .window = window});
    client({.sequence = client_isn + 1, .ack = server_isn + 1, .window = window});
  }
  void finish() { tracker.finish(*this); }

  void packet(TrackedPacket& packet) noexcept override {
    Seen what;
    for (std::size_t i = 0; i < kMostStreamEvents; ++i) {
      if (packet.stream_events[i]) what.events.emplace_back(name_of({static_cast<std::uint16_t>(i)}));
    }
    what.has_flow = packet.flow != nullptr;
    what.in_stream = packet.payload_in_stream;
    what.ready = packet.stream_ready;
    what.established = packet.established;
    what.end = packet.stream_end;
    what.refused = packet.refused;
    what.direction = packet.direction;
    if (packet.flow != nullptr) {
      what.flow_id = packet.flow->id;
      if (packet.flow->tcp != nullptr) what.state = packet.flow->tcp->state();
    }
    if (packet.stream_ready && inspects) {
      packet.flow->tcp->inspect(packet.direction, packet.stream_end, [&](const StreamChunk& chunk) {
        if (chunk.contested) return keep_contested(chunk, packet.direction);
        chunks[static_cast<std::size_t>(packet.direction)].push_back(
            {chunk.offset, {chunk.bytes.begin(), chunk.bytes.end()}, chunk.seen, chunk.seen_behind});
      });
    }
    seen.back() = what;
    if (!packet.stream_end) own_ = what;
    ends += packet.stream_end ? 1 : 0;
  }
  void flow_ended(Flow& flow) noexcept override { ended.push_back(flow.id); }

  struct Chunk {
    std::uint64_t offset;
    std::string bytes;
    std::uint32_t seen;
    std::uint32_t seen_behind = 0;
    friend bool operator==(const Chunk&, const Chunk&) = default;
  };
  /// All that was inspected of a direction, with "[12]" for 12 bytes that were not there.
  [[nodiscard]] std::string inspected(Direction direction = Direction::to_server) const {
    std::string all;
    std::uint64_t at = 0;
    for (const Chunk& chunk : chunks[static_cast<std::size_t>(direction)]) {
      const std::uint64_t begin = chunk.offset + chunk.seen;
      if (begin > at) all += "[" + std::to_string(begin - at) + "]";
      if (begin < at) all += "<back>";
      all += chunk.bytes.substr(chunk.seen);
      at = chunk.offset + chunk.bytes.size();
    }
    return all;
  }

  /// A contested chunk, with its versions as they lie in it: "EVIL@2" begins at its third byte; "!@5": an urgent mark.
  struct Contested {
    std::uint64_t offset;
    std::string bytes;
    std::uint32_t seen;
    std::vector<std::string> versions;
    friend bool operator==(const Contested&, const Contested&) = default;
  };

  Tracker tracker;
  std::uint64_t now_ns = 1'700'000'000'000'000'000;
  std::uint16_t client_port = 40000, server_port = 80;
  std::array<std::uint16_t, 3> vlan_ids{};
  bool inspects = true;
  std::vector<Seen> seen;
  std::array<std::vector<Chunk>, 2> chunks;
  std::array<std::vector<Contested>, 2> contested;
  std::vector<std::uint64_t> ended;
  int ends = 0;

 private:
  void keep_contested(const StreamChunk& chunk, Direction direction) {
    Contested what{chunk.offset, {chunk.bytes.begin(), chunk.bytes.end()}, chunk.seen, {}};
    const std::uint64_t end = chunk.offset + chunk.bytes.size();
    for (const ContestedBytes::Version& version : chunk.versions) {
      if (!version.possible || version.end() <= chunk.offset || version.offset >= end) continue;
      const std::string bytes(version.bytes().begin(), version.bytes().end());
      what.versions.push_back(bytes + "@" + std::to_string(static_cast<std::int64_t>(version.offset - chunk.offset)));
    }
    for (const ContestedBytes::UrgentMark& mark : chunk.urgent) {
      if (mark.offset >= chunk.offset && mark.offset < end)
        what.versions.push_back("!@" + std::to_string(mark.offset - chunk.offset));
    }
    contested[static_cast<std::size_t>(direction)].push_back(std::move(what));
  }

  Seen own_;
};

}  // namespace penstock::stack::testing
