// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/flow_table.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <utility>

#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "base/prefetch.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::stack {
namespace {

constexpr std::uint8_t kIcmp = 1, kTcp = 6, kUdp = 17, kEsp = 50, kIcmpV6 = 58, kSctp = 132;
constexpr unsigned kIdBits = 40;
constexpr std::size_t kUnconfirmedTcp = 6;  // the list

/// The ICMP type that replies to this one, if any (RFC 792, 950, 1256; RFC 4443, 2710, 4861, 4620).
int counterpart(bool v6, std::uint8_t type) noexcept {
  struct Pair {
    std::uint8_t one, two;
  };
  constexpr std::array<Pair, 5> kV4 = {{{8, 0}, {13, 14}, {15, 16}, {17, 18}, {10, 9}}};
  constexpr std::array<Pair, 7> kV6 = {
      {{128, 129}, {133, 134}, {135, 136}, {139, 140}, {130, 131}, {144, 145}, {146, 147}}};
  const auto find = [type](const auto& pairs) noexcept -> int {
    for (const Pair& pair : pairs) {
      if (pair.one == type) return pair.two;
      if (pair.two == type) return pair.one;
    }
    return -1;
  };
  return v6 ? find(kV6) : find(kV4);
}

bool is_icmp_v4_error(std::uint8_t type) noexcept {
  return type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
}

/// Reads the endpoints of the packet quoted by a "destination unreachable" message.
bool read_embedded(Bytes embedded, FlowKey& key) noexcept {
  if (embedded.size() < sizeof(Ipv4Header)) return false;
  const auto& ip = *reinterpret_cast<const Ipv4Header*>(embedded.data());
  const std::size_t header = (embedded[0] & 15U) * 4U;
  if (embedded[0] >> 4 != 4 || header < sizeof(Ipv4Header) || embedded.size() < header + 4) return false;
  const std::uint8_t protocol = embedded[9];
  if (protocol != kTcp && protocol != kUdp) return false;
  const std::uint8_t* const ports = embedded.data() + header;
  const auto be16 = [](const std::uint8_t* p) noexcept { return static_cast<std::uint16_t>(p[0] << 8 | p[1]); };
  key.protocol = protocol;
  key.client = {{0, ip.source.value()}, be16(ports)};
  key.server = {{0, ip.destination.value()}, be16(ports + 2)};
  return true;
}

[[gnu::always_inline]] inline std::uint64_t hash_of(const Endpoint& endpoint, std::uint64_t seed) noexcept {
  return mix_product(mix_product(endpoint.address.high ^ seed, endpoint.address.low), seed + endpoint.port);
}

/// The same in both directions.
[[gnu::always_inline]] inline std::uint32_t hash_of(const FlowKey& key, std::uint64_t seed) noexcept {
  const auto vlans = std::bit_cast<std::array<std::uint64_t, 2>>(key.vlan_ids);
  std::uint64_t what = std::uint64_t{key.protocol} << 8 | key.tunnel_depth;
  if ((vlans[0] | vlans[1]) != 0) what ^= mix_product(vlans[0] ^ seed, vlans[1]);
  return static_cast<std::uint32_t>(mix_product(hash_of(key.client, seed) + hash_of(key.server, seed), what ^ seed));
}

/// Copies word by word. The words were just stored, and one wide load of both would stall on store forwarding.
void copy_by_words(const Endpoint& from, Endpoint& to) noexcept {
  std::uint64_t high = from.address.high, low = from.address.low;
  asm("" : "+r"(high), "+r"(low));  // keeps the compiler from merging them into one load
  to = {{high, low}, from.port};
}

bool is_of(const FlowKey& flow, const FlowKey& packet) noexcept {
  if (flow.protocol != packet.protocol || flow.ip_version != packet.ip_version ||
      flow.tunnel_depth != packet.tunnel_depth || flow.vlan_ids != packet.vlan_ids) {
    return false;
  }
  if (flow.client == packet.client && flow.server == packet.server) return true;
  // ESP is unidirectional: the reverse direction has its own security association.
  return flow.protocol != kEsp && flow.client == packet.server && flow.server == packet.client;
}

}  // namespace

struct FlowTable::Node : Flow {
  std::uint32_t hash = 0;
  std::uint32_t next_in_bucket = kNone;
  std::uint32_t next = kNone, previous = kNone;  // in the list
  std::uint64_t listed_ns = 0;                   // when it was added, or last found to be alive
  std::uint32_t index = 0;
  std::uint8_t list = 0;
};

bool read_flow_of(const DecodedPacket& packet, std::uint64_t seed, FlowLookup& lookup) noexcept {
  if (!packet.has_flow) return false;
  FlowKey& key = lookup.key;
  copy_by_words(packet.source, key.client);
  copy_by_words(packet.destination, key.server);
  key.ip_version = packet.ip_version;
  key.protocol = packet.protocol;
  key.vlan_ids = packet.vlan_ids;
  key.tunnel_depth = packet.tunnel_depth;
  switch (packet.protocol) {
    case kTcp:
    case kUdp:
    case kSctp: break;
    case kEsp: {
      if (packet.transport.size() < sizeof(EspHeader)) return false;
      const std::uint32_t spi = reinterpret_cast<const EspHeader*>(packet.transport.data())->spi.value();
      key.client.port = static_cast<std::uint16_t>(spi >> 16);
      key.server.port = static_cast<std::uint16_t>(spi);
      break;
    }
    case kIcmp:
    case kIcmpV6: {
      if (packet.transport.size() < 2) return false;
      const std::uint8_t type = packet.transport[0];
      const bool v6 = packet.protocol == kIcmpV6;
      const int answer = counterpart(v6, type);
      key.client.port = static_cast<std::uint16_t>(type << 8 | packet.transport[1]);
      key.server.port = answer < 0 ? std::uint16_t{0} : static_cast<std::uint16_t>(answer << 8 | packet.transport[1]);
      if (!v6 && is_icmp_v4_error(type)) {
        lookup.begins_none = true;
        if (type == 3) read_embedded(packet.payload, key);
      }
      break;
    }
    default: break;  // IP in IP: addresses only
  }
  lookup.hash = hash_of(key, seed);
  return true;
}

std::optional<std::uint32_t> likely_hash_of(PacketView frame, std::uint64_t seed) noexcept {
  if (frame.packet->link_type != LinkType::ethernet) return std::nullopt;
  constexpr std::uint32_t kPorts = 4;
  std::uint32_t at = sizeof(EthernetHeader);
  // One length check for everything up to the ports. It assumes a tag, since few frames are shorter.
  if (frame.length() < at + sizeof(VlanTag) + sizeof(Ipv4Header) + kPorts) return std::nullopt;
  FlowKey key;
  std::uint16_t type = frame.ethernet().type.value();
  if (type == ether_type::kVlan) {
    const auto& tag = frame.at<VlanTag>(at);
    key.vlan_ids[0] = tag.tci.value() & 0xfff;
    type = tag.type.value();
    at += sizeof(VlanTag);
  }
  if (type == ether_type::kIpv4) {
    const auto& ip = frame.at<Ipv4Header>(at);
    key.client.address = {0, ip.source.value()};
    key.server.address = {0, ip.destination.value()};
    key.protocol = ip.protocol;
    at += static_cast<std::uint32_t>(ip.header_length());
  } else if (type == ether_type::kIpv6 && frame.length() >= at + sizeof(Ipv6Header)) {
    const auto& ip = frame.at<Ipv6Header>(at);
    key.client.address = ip.source_address();
    key.server.address = ip.destination_address();
    key.protocol = ip.next_header;
    at += sizeof(Ipv6Header);
  }
  if ((key.protocol != kTcp && key.protocol != kUdp) || frame.length() < at + kPorts) return std::nullopt;
  key.client.port = frame.at<UdpHeader>(at).source_port.value();
  key.server.port = frame.at<UdpHeader>(at).destination_port.value();
  return hash_of(key, seed);
}

FlowTable::FlowTable(const TrackerOptions& options)
    : slots_(options.flow_slots),
      node_bytes_(sizeof(Node) + slots_ * sizeof(std::uint64_t)),
      capacity_(std::clamp<std::size_t>(options.flow_memory / (node_bytes_ + sizeof(std::uint32_t)), 1, kNone - 1)),
      nodes_(make_huge_memory<std::byte>(capacity_ * node_bytes_)),
      buckets_(make_huge_memory<std::uint32_t>(std::bit_ceil(capacity_))),
      bucket_mask_(static_cast<std::uint32_t>(std::bit_ceil(capacity_) - 1)),
      seed_(random_seed()),
      next_id_((std::uint64_t{options.flow_id_seed} & 0x7fffff) << kIdBits | 1) {
  std::fill_n(buckets_.get(), std::size_t{bucket_mask_} + 1, kNone);
  const std::array<std::uint32_t, kLists> timeouts = {
      options.new_timeout_s,
      options.established_timeout_s,
      options.closed_timeout_s,
      options.tcp_new_timeout_s,
      options.tcp_established_timeout_s,
      options.tcp_closed_timeout_s,
      options.tcp_established_timeout_s};  // closed by one side only: the RST or FIN may not have arrived
  for (std::size_t i = 0; i < kLists; ++i) lists_[i].timeout_ns = timeouts[i] * kNsPerSecond;
}

FlowTable::~FlowTable() = default;

std::size_t FlowTable::list_of(const Flow& flow) noexcept {
  if (flow.key.protocol == kTcp && flow.state == FlowState::closed && !flow.end_confirmed) return kUnconfirmedTcp;
  return (flow.key.protocol == kTcp ? 3 : 0) + static_cast<std::size_t>(flow.state);
}

FlowTable::Node& FlowTable::node_at(std::uint32_t index) const noexcept {
  return *reinterpret_cast<Node*>(nodes_.get() + index * node_bytes_);
}

void FlowTable::enlist(Node& node, std::size_t list) noexcept {
  List& to = lists_[list];
  node.list = static_cast<std::uint8_t>(list);
  node.listed_ns = node.last_ns;
  node.next = kNone;
  node.previous = to.last;
  if (to.last == kNone) due_ns_ = std::min(due_ns_, node.listed_ns + to.timeout_ns);
  (to.last == kNone ? to.first : node_at(to.last).next) = node.index;
  to.last = node.index;
}

void FlowTable::delist(Node& node) noexcept {
  List& from = lists_[node.list];
  if (node.previous == kNone) look_ = true;  // the list has a new first flow
  (node.previous == kNone ? from.first : node_at(node.previous).next) = node.next;
  (node.next == kNone ? from.last : node_at(node.next).previous) = node.previous;
}

Flow* FlowTable::find(const FlowLookup& lookup) noexcept {
  for (std::uint32_t i = buckets_[lookup.hash & bucket_mask_]; i != kNone; i = node_at(i).next_in_bucket) {
    Node& found = node_at(i);
    if (found.hash == lookup.hash && is_of(found.key, lookup.key)) return &found;
  }
  return nullptr;
}

void FlowTable::prefetch_bucket(std::uint32_t hash) const noexcept { prefetch(&buckets_[hash & bucket_mask_]); }

void FlowTable::prefetch_flow(std::uint32_t hash) const noexcept {
  const std::uint32_t first = buckets_[hash & bucket_mask_];
  if (first != kNone) prefetch_object(node_at(first));
}

const Flow* FlowTable::likely_flow(std::uint32_t hash) const noexcept {
  std::uint32_t i = buckets_[hash & bucket_mask_];
  while (i != kNone && node_at(i).hash != hash) i = node_at(i).next_in_bucket;
  return i == kNone ? nullptr : &node_at(i);
}

Flow* FlowTable::add(const FlowLookup& lookup, std::uint64_t now_ns) noexcept {
  std::uint32_t index = free_;
  if (index != kNone) {
    free_ = node_at(index).next;
  } else {
    if (made_ == capacity_) return nullptr;
    index = made_++;
  }
  std::byte* const place = nodes_.get() + index * node_bytes_;
  auto* const slots = reinterpret_cast<std::uint64_t*>(place + sizeof(Node));
  Node& node = *new (place) Node;
  std::uninitialized_fill_n(slots, slots_, 0);
  node.slots = slots;
  node.index = index;
  node.key = lookup.key;
  node.id = next_id_++;
  node.start_ns = now_ns;
  node.last_ns = now_ns;
  node.hash = lookup.hash;
  std::uint32_t& bucket = buckets_[lookup.hash & bucket_mask_];
  node.next_in_bucket = bucket;
  bucket = index;
  enlist(node, list_of(node));
  ++size_;
  return &node;
}

void FlowTable::remove(Flow& flow) noexcept {
  auto& node = static_cast<Node&>(flow);
  std::uint32_t* link = &buckets_[node.hash & bucket_mask_];
  while (*link != node.index) link = &node_at(*link).next_in_bucket;
  *link = node.next_in_bucket;
  delist(node);
  node.next = free_;
  free_ = node.index;
  --size_;
}

bool FlowTable::has_timed_out(const Flow& flow, std::uint64_t now_ns) const noexcept {
  return now_ns > flow.last_ns && now_ns - flow.last_ns > lists_[list_of(flow)].timeout_ns;
}

// Each list is ordered by the time at which its flows were added. Packets never touch the lists: a flow that was active
// since, or changed its state, is moved when it reaches the front.
Flow* FlowTable::expired(std::uint64_t now_ns) noexcept {
  if (!look_ && now_ns <= due_ns_) return nullptr;  // nearly always
  look_ = true;
  bool looked_at_all = true;
  due_ns_ = ~std::uint64_t{0};
  for (List& list : lists_) {
    // Only a few at a time. The rest follows with the next packets.
    constexpr int kMost = 8;
    int looked_at = 0;
    for (; looked_at < kMost && list.first != kNone; ++looked_at) {
      Node& node = node_at(list.first);
      if (now_ns <= node.listed_ns || now_ns - node.listed_ns <= list.timeout_ns) {
        const std::size_t now_in = list_of(node);
        if (now_in == node.list) {
          due_ns_ = std::min(due_ns_, node.listed_ns + list.timeout_ns);
          break;
        }
        delist(node);
        enlist(node, now_in);
        continue;
      }
      if (has_timed_out(node, now_ns)) return &node;
      delist(node);
      enlist(node, list_of(node));
    }
    looked_at_all = looked_at_all && looked_at < kMost;
  }
  look_ = !looked_at_all;
  return nullptr;
}

void FlowTable::note_state(const Flow& flow) noexcept {
  const auto& node = static_cast<const Node&>(flow);
  if (node.previous == kNone && list_of(node) != node.list) look_ = true;
}

Flow* FlowTable::victim(bool but_established_tcp) noexcept {
  // New TCP flows first (SYN flood), established TCP flows last.
  constexpr std::size_t kEstablishedTcp = 4;
  constexpr std::array<std::size_t, kLists> kOrder = {3, 5, kUnconfirmedTcp, 2, 0, 1, kEstablishedTcp};
  for (const std::size_t list : kOrder) {
    if (list == kEstablishedTcp && but_established_tcp) return nullptr;
    for (int looked_at = 0; looked_at < 8 && lists_[list].first != kNone; ++looked_at) {
      Node& node = node_at(lists_[list].first);
      if (list_of(node) == list) return &node;
      delist(node);
      enlist(node, list_of(node));
    }
  }
  return any();
}

Flow* FlowTable::any() noexcept {
  for (const List& list : lists_) {
    if (list.first != kNone) return &node_at(list.first);
  }
  return nullptr;
}

}  // namespace penstock::stack
