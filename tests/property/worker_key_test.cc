// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ports choose workers with code of their own, before the stack. Packets that the stack's flow table treats as one flow
// must come to one worker, in any encapsulation and in either direction; and ports must treat fragments as one datagram
// if the stack's reassembly does.

#include "port/worker_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "port/network_of.h"
#include "property/corpus_packets.h"
#include "property/random_packets.h"
#include "stack/decoder.h"
#include "stack/flow_table.h"

namespace penstock::property {
namespace {

using stack::Endpoint;

/// A flow's key as in the flow table, but without VLANs, which do not affect the choice of a worker.
using Flow = std::tuple<Endpoint, Endpoint, unsigned, unsigned>;

Flow flow_of(const stack::FlowKey& key) {
  return {std::min(key.client, key.server), std::max(key.client, key.server), key.ip_version, key.protocol};
}

/// ICMP errors come to the worker of the flow that they quote. They begin no flow; or, in IPv6, one of their own, which
/// the errors about several flows share.
bool is_about_another_flow(const stack::FlowLookup& lookup) {
  const bool icmpv6_error = lookup.key.protocol == ip_protocol::kIcmpv6 && lookup.key.client.port >> 8 < 128;
  return icmpv6_error || (lookup.begins_none && lookup.key.protocol == ip_protocol::kIcmp);
}

/// One frame through the decoder, and through the choice of a worker.
class Both {
 public:
  Both() : decoder_(stack::TrackerOptions{}, counters_) {}

  void check(const Bytes& frame, std::uint32_t wire_length, LinkType link) {
    PacketDescriptor descriptor;
    descriptor.length = static_cast<std::uint32_t>(frame.size());
    descriptor.wire_length = std::max(wire_length, descriptor.length);
    descriptor.link_type = link;
    Bytes copy = frame;
    copy.reserve(copy.size() + 1);
    port::Fragment fragment;
    const port::WorkerKey key = port::worker_key_of(copy, descriptor.wire_length, link, fragment);
    decoder_.decode({copy.data(), &descriptor}, ++frames_, [&](stack::DecodedPacket& packet) noexcept {
      if (packet.tunnel_depth > 0 || packet.reassembled) return;
      if (packet.fragment) {
        ++fragments;
        EXPECT_TRUE(key.is_fragment);
        EXPECT_EQ(fragment.key.source, packet.source.address);
        EXPECT_EQ(fragment.key.destination, packet.destination.address);
        EXPECT_TRUE(
            std::ranges::equal(std::span(fragment.key.vlan_ids).first(packet.vlan_ids.size()), packet.vlan_ids));
        return;
      }
      if (packet.ip_version != 0 && !packet.invalid) {
        EXPECT_FALSE(key.is_fragment);
      }
      const auto lookup = stack::flow_lookup_of(packet, 1);
      if (!lookup || is_about_another_flow(*lookup)) return;
      ++flows_seen;
      const auto [it, is_new] = hashes_.try_emplace(flow_of(lookup->key), key.hash);
      EXPECT_EQ(it->second, key.hash) << "frame " << frames_;
      if (!is_new) ++again;
    });
  }

  int flows_seen = 0, again = 0, fragments = 0;

 private:
  stack::TrackerCounters counters_;
  stack::Decoder decoder_;
  std::map<Flow, std::uint32_t> hashes_;
  std::uint64_t frames_ = 0;
};

/// The same packet in another encapsulation.
Bytes wrapped(const Bytes& frame, const port::Network& network, RandomPackets& random) {
  Bytes bytes(12);
  const auto add = [&](std::initializer_list<int> more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  const auto add_type = [&] { network.version == 4 ? add({8, 0}) : add({0x86, 0xdd}); };
  switch (random.below(7)) {
    case 0: add_type(); break;
    case 1:
      add({0x81, 0, 0, 7});
      add_type();
      break;
    case 2: add({0x88, 0x47, 0, 1, 0x50, 64, 0, 2, 0x51, 64}); break;
    case 3: add({0x88, 0x64, 0x11, 0, 0, 1, 0, 100, 0, network.version == 4 ? 0x21 : 0x57}); break;
    case 4:
      add({0, 100, 0xaa, 0xaa, 3, 0, 0, 0});
      add_type();
      break;
    case 5:
      add({0x89, 0x26, 0, 0, 0, 1});
      add_type();
      break;
    default:
      add({0x88, 0xe7, 0, 0, 0, 1});
      bytes.resize(bytes.size() + 12);
      add_type();
      break;
  }
  const std::size_t at = static_cast<std::size_t>(network.bytes.data() - frame.data());
  bytes.insert(bytes.end(), frame.begin() + static_cast<std::ptrdiff_t>(at), frame.end());
  return bytes;
}

/// The answer: addresses and ports are swapped.
void turn(Bytes& frame, LinkType link) {
  const port::Network network = port::network_of(frame, link);
  const std::size_t ip = static_cast<std::size_t>(network.bytes.data() - frame.data());
  const std::size_t length = network.version == 4 ? 4 : 16, from = ip + (network.version == 4 ? 12 : 8);
  const std::size_t ports = network.version == 4 ? ip + (frame[ip] & 15U) * 4 : ip + 40;
  if (frame.size() < ports + 4) return;
  const auto swap = [&](std::size_t at, std::size_t n) {
    const auto begin = frame.begin() + static_cast<std::ptrdiff_t>(at);
    std::swap_ranges(begin, begin + static_cast<std::ptrdiff_t>(n), begin + static_cast<std::ptrdiff_t>(n));
  };
  swap(from, length);
  const std::uint8_t protocol = frame[ip + (network.version == 4 ? 9 : 6)];
  if (protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kSctp) swap(ports, 2);
}

TEST(WorkerKeyProperty, FlowsOfTheStackComeToOneWorkerInAnyEncapsulation) {
  Both both;
  RandomPackets random(20263);
  for (int i = 0; i < 60'000; ++i) {
    const Packet packet = random.next();
    both.check(packet.bytes, packet.descriptor.wire_length, packet.descriptor.link_type);
    const port::Network network = port::network_of(packet.bytes, packet.descriptor.link_type);
    if (network.version == 0 || network.bytes.size() < 40) continue;
    Bytes back = packet.bytes;
    turn(back, packet.descriptor.link_type);
    both.check(back, packet.descriptor.wire_length, packet.descriptor.link_type);
    const Bytes other = wrapped(packet.bytes, network, random);
    both.check(other, 0, LinkType::ethernet);
  }
  EXPECT_GT(both.flows_seen, 50'000);
  EXPECT_GT(both.again, 30'000);
  EXPECT_GT(both.fragments, 3'000);
}

TEST(WorkerKeyProperty, HoldsForTheCorpus) {
  const auto packets = corpus_packets(2000);
  if (packets.empty()) GTEST_SKIP() << "no corpus here";
  Both both;
  for (const Packet& packet : packets) {
    both.check(packet.bytes, packet.descriptor.wire_length, packet.descriptor.link_type);
  }
  EXPECT_GT(both.again, 10'000);
}

}  // namespace
}  // namespace penstock::property
