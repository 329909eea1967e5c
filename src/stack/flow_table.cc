// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/flow_table.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <utility>

#include "base/keyed_hash.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::stack {
namespace {

constexpr std::uint8_t kIcmp = 1, kTcp = 6, kUdp = 17, kEsp = 50, kIcmpV6 = 58, kSctp = 132;
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr unsigned kIdBits = 40;
constexpr std::size_t kUnconfirmedTcp = 6;  // the list

/// The type that answers this one, if there is one (RFC 792, 950, 1256; RFC 4443, 2710, 4861, 4620).
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

/// The endpoints of the packet that a "destination unreachable" is about, as its sender had them.
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

std::uint64_t hash_of(const Endpoint& endpoint, std::uint64_t seed) noexcept {
  return mix_product(mix_product(endpoint.address.high ^ seed, endpoint.address.low), seed + endpoint.port);
}

/// The same in both directions.
std::uint32_t hash_of(const FlowKey& key, std::uint64_t seed) noexcept {
  const auto vlans = std::bit_cast<std::array<std::uint64_t, 2>>(key.vlan_ids);
  std::uint64_t what = std::uint64_t{key.protocol} << 8 | key.tunnel_depth;
  if ((vlans[0] | vlans[1]) != 0) what ^= mix_product(vlans[0] ^ seed, vlans[1]);
  return static_cast<std::uint32_t>(mix_product(hash_of(key.client, seed) + hash_of(key.server, seed), what ^ seed));
}

bool is_of(const FlowKey& flow, const FlowKey& packet) noexcept {
  if (flow.protocol != packet.protocol || flow.ip_version != packet.ip_version ||
      flow.tunnel_depth != packet.tunnel_depth || flow.vlan_ids != packet.vlan_ids) {
    return false;
  }
  if (flow.client == packet.client && flow.server == packet.server) return true;
  // ESP is of one direction alone: the way back has a security association of its own.
  return flow.protocol != kEsp && flow.client == packet.server && flow.server == packet.client;
}

}  // namespace

struct FlowTable::Node : Flow {
  std::uint32_t hash = 0;
  std::uint32_t next_in_bucket = kNone;
  std::uint32_t next = kNone, previous = kNone;  // in the list
  std::uint64_t listed_ns = 0;                   // when it was put there, or was last found to be alive
  std::uint32_t index = 0;
  std::uint8_t list = 0;
};

std::optional<FlowLookup> flow_lookup_of(const DecodedPacket& packet, std::uint64_t seed) noexcept {
  if (!packet.has_flow) return std::nullopt;
  FlowLookup lookup;
  FlowKey& key = lookup.key;
  key.client = packet.source;
  key.server = packet.destination;
  key.ip_version = packet.ip_version;
  key.protocol = packet.protocol;
  key.vlan_ids = packet.vlan_ids;
  key.tunnel_depth = packet.tunnel_depth;
  switch (packet.protocol) {
    case kTcp:
    case kUdp:
    case kSctp: break;
    case kEsp: {
      if (packet.transport.size() < sizeof(EspHeader)) return std::nullopt;
      const std::uint32_t spi = reinterpret_cast<const EspHeader*>(packet.transport.data())->spi.value();
      key.client.port = static_cast<std::uint16_t>(spi >> 16);
      key.server.port = static_cast<std::uint16_t>(spi);
      break;
    }
    case kIcmp:
    case kIcmpV6: {
      if (packet.transport.size() < 2) return std::nullopt;
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
    default: break;  // IP in IP: its addresses are all that there is
  }
  lookup.hash = hash_of(key, seed);
  return lookup;
}

FlowTable::FlowTable(const TrackerOptions& options)
    : slots_(options.flow_slots),
      node_bytes_(sizeof(Node) + slots_ * sizeof(std::uint64_t)),
      capacity_(std::clamp<std::size_t>(options.flow_memory / (node_bytes_ + sizeof(std::uint32_t)), 1, kNone - 1)),
      nodes_(static_cast<std::byte*>(::operator new (capacity_* node_bytes_, std::align_val_t{alignof(Node)}))),
      buckets_(std::make_unique_for_overwrite<std::uint32_t[]>(std::bit_ceil(capacity_))),
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
      options.tcp_established_timeout_s};  // a RST or a FIN that never arrived ends nothing
  for (std::size_t i = 0; i < kLists; ++i) lists_[i].timeout_ns = timeouts[i] * kSecond;
}

FlowTable::~FlowTable() { ::operator delete (nodes_, std::align_val_t{alignof(Node)}); }

std::size_t FlowTable::list_of(const Flow& flow) noexcept {
  if (flow.key.protocol == kTcp && flow.state == FlowState::closed && !flow.end_confirmed) return kUnconfirmedTcp;
  return (flow.key.protocol == kTcp ? 3 : 0) + static_cast<std::size_t>(flow.state);
}

FlowTable::Node& FlowTable::node_at(std::uint32_t index) const noexcept {
  return *reinterpret_cast<Node*>(nodes_ + index * node_bytes_);
}

void FlowTable::enlist(Node& node, std::size_t list) noexcept {
  List& to = lists_[list];
  node.list = static_cast<std::uint8_t>(list);
  node.listed_ns = node.last_ns;
  node.next = kNone;
  node.previous = to.last;
  (to.last == kNone ? to.first : node_at(to.last).next) = node.index;
  to.last = node.index;
}

void FlowTable::delist(Node& node) noexcept {
  List& from = lists_[node.list];
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

Flow* FlowTable::add(const FlowLookup& lookup, std::uint64_t now_ns) noexcept {
  std::uint32_t index = free_;
  if (index != kNone) {
    free_ = node_at(index).next;
  } else {
    if (made_ == capacity_) return nullptr;
    index = made_++;
  }
  auto* const slots = reinterpret_cast<std::uint64_t*>(nodes_ + index * node_bytes_ + sizeof(Node));
  Node& node = *new (nodes_ + index * node_bytes_) Node;
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

// Lists are in the order of time in which their flows were put there. A flow that has been heard of since, or changed
// its state, is put anew when it comes to the front: packets never touch the lists.
Flow* FlowTable::expired(std::uint64_t now_ns) noexcept {
  for (List& list : lists_) {
    // A few at a time: what is left comes with the next packets.
    for (int looked_at = 0; looked_at < 8 && list.first != kNone; ++looked_at) {
      Node& node = node_at(list.first);
      if (now_ns <= node.listed_ns || now_ns - node.listed_ns <= list.timeout_ns) {
        const std::size_t now_in = list_of(node);
        if (now_in == node.list) break;
        delist(node);
        enlist(node, now_in);
        continue;
      }
      if (has_timed_out(node, now_ns)) return &node;
      delist(node);
      enlist(node, list_of(node));
    }
  }
  return nullptr;
}

Flow* FlowTable::victim(bool but_established_tcp) noexcept {
  // New ones of TCP first (a SYN flood), established ones of TCP last.
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
