// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Packets for the access check: besides random ones, packets for functions with state.

#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "nf/ipsec/ipsec_for_test.h"
#include "nf/nids/detect/testing/detection_bed.h"
#include "packet/parse_core.h"
#include "packet/testing/fragments.h"
#include "property/random_packets.h"

namespace penstock::property {

inline Packet whole(Bytes frame, LinkType link = LinkType::ethernet) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  return {std::move(frame), length, link};
}

inline std::vector<Packet> random_packets(RandomPackets& random, std::size_t count) {
  std::vector<Packet> packets;
  for (std::size_t i = 0; i < count; ++i) packets.push_back(random.next());
  return packets;
}

/// Every fourth packet is longer than 500 bytes; some of these must not be fragmented.
inline std::vector<Packet> long_packets(RandomPackets& random, std::size_t count) {
  std::vector<Packet> packets;
  for (std::size_t i = 0; i < count; ++i) {
    Packet packet = random.next();
    if (i % 4 == 0) {
      testing::PacketBuilder b = testing::packet().eth();
      if (random.one_in(4)) b.vlan(7);
      const char* const to4 = random.one_in(3) ? "8.8.8.8" : "10.2.0.2";
      const char* const to6 = random.one_in(3) ? "2001:db8:1::2" : "2001:db8:7::7";
      const Bytes options = random.one_in(3) ? Bytes{0x94, 4, 0, 0} : Bytes{};  // router alert: copied into fragments
      const std::uint16_t fragment = random.one_in(2) ? Ipv4Header::kDontFragment : 0;
      if (random.one_in(3)) {
        b.ipv6("2001:db8:8::1", to6);
      } else {
        b.ipv4("10.1.2.3", to4, 64, options, fragment);
      }
      if (random.one_in(2)) {
        b.tcp(1024, 443);
      } else {
        b.udp(1024, 53);
      }
      Packet made = whole(b.raw(random.some_bytes(500 + random.below(900))).bytes());
      made.descriptor.in_port = packet.descriptor.in_port;
      packet = std::move(made);
    }
    packets.push_back(std::move(packet));
  }
  return packets;
}

/// The two fragments of an IP packet, in any order; empty if it cannot be cut.
inline std::vector<Bytes> two_fragments(RandomPackets& random, const Bytes& frame, LinkType link) {
  PacketDescriptor descriptor = whole(frame, link).descriptor;
  Bytes copy = frame;
  const PacketView view{copy.data(), &descriptor};
  parse(view);
  const PacketLayout& layout = descriptor.layout;
  const bool six = layout.network == NetworkLayer::ipv6;
  const bool whole_ip = layout.is_ip() && layout.has(PacketLayout::kNetworkHeader) &&
                        !layout.has(PacketLayout::kMalformed) && !layout.has(PacketLayout::kFragment);
  if (!whole_ip || layout.end != frame.size() || (six && layout.has(PacketLayout::kOptions))) return {};
  const std::size_t data = layout.end - layout.transport_offset;
  if (data < 24) return {};
  auto fragments =
      penstock::testing::fragments_of(frame, {8 + 8 * random.below(data / 8 - 2)},
                                      static_cast<std::uint32_t>(random.word() & 0xffff), layout.network_offset);
  if (random.one_in(3)) std::swap(fragments[0], fragments[1]);
  return fragments;
}

/// What an outbound function makes of random packets, in part damaged, cut in fragments or sent twice, between packets
/// in the clear.
inline std::vector<Packet> esp_packets(RandomPackets& random, std::size_t count, const std::string& states,
                                       const std::string& policies) {
  ipsec::testing::End out = ipsec::testing::outwards(states, policies);
  std::vector<ipsec::testing::Arriving> given;
  for (std::size_t i = 0; i < count; ++i) {
    const Packet packet = random.next();
    given.emplace_back(packet.bytes, packet.descriptor.link_type, packet.descriptor.wire_length);
  }
  const std::vector<ipsec::testing::Done> done = out(given);
  std::vector<Packet> packets;
  for (std::size_t i = 0; i < count; ++i) {
    if (done[i].fate != "forwarded") continue;
    const bool in_the_clear = done[i].bytes == given[i].bytes;
    if (in_the_clear && !random.one_in(3)) continue;
    Bytes bytes = done[i].bytes;
    if (random.one_in(8) && !bytes.empty()) bytes[random.below(bytes.size())] ^= 1;
    if (random.one_in(16)) bytes.resize(random.below(bytes.size() + 1));
    if (random.one_in(6)) {
      for (Bytes& fragment : two_fragments(random, bytes, given[i].link)) {
        packets.push_back(whole(std::move(fragment), given[i].link));
      }
    }
    Packet packet = whole(std::move(bytes), given[i].link);
    packet.descriptor.in_port = static_cast<PortIndex>(random.below(3));
    packet.descriptor.mark = random.word();
    if (random.one_in(8)) packets.push_back(packet);
    packets.push_back(std::move(packet));
  }
  return packets;
}

///     connection 1    SYN  SYN ACK  ACK  "…needle…"  ACK  "…first…"  "…second…" …
///     connection 2         SYN  SYN ACK  ACK  "…GET /…evil…" …                      interleaved, some segments late,
///     between them         random packets of all kinds                              repeated or damaged
class Conversations {
 public:
  explicit Conversations(RandomPackets& random) : random_(random) {}

  std::vector<Packet> operator()(std::size_t count) {
    while (packets_.size() < count) {
      if (random_.one_in(3)) {
        add(random_.next());
      } else {
        step();
      }
    }
    return std::move(packets_);
  }

 private:
  struct Connection {
    nids::testing::Conversation conversation;
    bool established = false;
  };

  void step() {
    Connection& connection = connections_[random_.below(connections_.size())];
    if (!connection.established || random_.one_in(40)) {
      connection = {nids::testing::Conversation(next_port_++, random_.one_in(2) ? 80 : 22), true};
      for (Bytes& frame : connection.conversation.handshake()) add(whole(std::move(frame)));
      return;
    }
    nids::testing::Conversation& conversation = connection.conversation;
    const auto side = static_cast<unsigned>(random_.below(2));
    switch (random_.below(10)) {
      case 0: add(whole(conversation.ack(side))); break;
      case 1: add(whole(conversation.data_at(side, -static_cast<std::int64_t>(random_.below(30)), text()))); break;
      case 2: conversation.skip(side, random_.one_in(4) ? 5 : 0); break;
      case 3:
        if (random_.one_in(10)) add(whole(conversation.reset(side)));
        break;
      default: {
        Bytes frame = conversation.data(side, text());
        if (random_.one_in(20)) frame.back() ^= 1;  // a wrong checksum
        add(whole(std::move(frame)));
      }
    }
  }
  std::string text() {
    static constexpr std::array kWords{"needle", "GET /", "evil", "attack1", "ATTtack7", "first", "second", "often"};
    std::string text;
    for (std::size_t n = random_.below(4); n > 0; --n) {
      text += std::string(random_.below(12), '.') + kWords[random_.below(kWords.size())];
    }
    return text.substr(random_.one_in(4) && !text.empty() ? random_.below(text.size()) : 0);
  }
  void add(Packet packet) {
    now_ns_ += random_.one_in(500) ? 40'000'000'000 : random_.below(2'000'000);
    packet.descriptor.timestamp_ns = now_ns_;
    packet.descriptor.in_port = static_cast<PortIndex>(random_.below(3));
    packet.descriptor.number = ++numbers_[packet.descriptor.in_port];
    packets_.push_back(std::move(packet));
  }

  RandomPackets& random_;
  std::array<Connection, 16> connections_;
  std::uint16_t next_port_ = 10'000;
  std::uint64_t now_ns_ = 1'700'000'000'000'000'000;
  std::array<std::uint32_t, 3> numbers_{0, 0xffff'ff00, 0x8000'0000};  // by port; one wraps around
  std::vector<Packet> packets_;
};

}  // namespace penstock::property
