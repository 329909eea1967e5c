// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/fragments.h"

#include <algorithm>
#include <bit>
#include <memory>

#include "base/keyed_hash.h"
#include "base/nanoseconds.h"
#include "conntrack/transport.h"

namespace penstock::conntrack {
namespace {

/// Where the data of an IPv6 fragment begins: after its fragment header, which the layout says is there.
std::uint32_t fragment_data_of(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  std::uint8_t protocol = packet.ipv6().next_header;
  std::uint32_t at = layout.network_offset + static_cast<std::uint32_t>(sizeof(Ipv6Header));
  while (protocol != ip_protocol::kFragment && at < layout.transport_offset) {
    const auto& extension = packet.at<Ipv6Extension>(at);
    at += protocol == ip_protocol::kAh ? (extension.length + 2U) * 4 : (extension.length + 1U) * 8;
    protocol = extension.next_header;
  }
  return at + static_cast<std::uint32_t>(sizeof(Ipv6FragmentHeader));
}

}  // namespace

Fragment read_fragment(PacketView packet) noexcept {
  const PacketLayout& layout = packet.layout();
  Fragment fragment;
  Tuple addresses;
  read_addresses(packet, addresses);
  fragment.source = addresses.source;
  fragment.destination = addresses.destination;
  fragment.ip_version = addresses.ip_version;
  std::uint32_t data = layout.transport_offset;
  if (addresses.ip_version == 4) {
    fragment.protocol = packet.ipv4().protocol;
    fragment.id = packet.ipv4().id.value();
    fragment.from = (packet.ipv4().fragment.value() & Ipv4Header::kOffsetMask) * 8U;
  } else {
    data = fragment_data_of(packet);
    const auto& header = packet.at<Ipv6FragmentHeader>(data - static_cast<std::uint32_t>(sizeof(Ipv6FragmentHeader)));
    fragment.id = header.id.value();
    fragment.from = header.fragment.value() & Ipv6FragmentHeader::kOffsetMask;
  }
  fragment.to = fragment.from + (layout.end - data);
  return fragment;
}

Fragments::Fragments(std::uint32_t most, std::uint64_t seed)
    : seed_(seed),
      mask_(std::bit_ceil(std::clamp<std::uint32_t>(most, kWays, 1U << 24) / static_cast<std::uint32_t>(kWays)) - 1),
      sets_(make_huge_memory<Set>(std::size_t{mask_} + 1)) {
  std::uninitialized_default_construct_n(sets_.get(), std::size_t{mask_} + 1);
}

Fragments::Set& Fragments::set_of(const Fragment& fragment) const noexcept {
  const std::uint64_t addresses = mix_product(mix_product(fragment.source.high ^ seed_, fragment.source.low),
                                              mix_product(fragment.destination.high ^ seed_, fragment.destination.low));
  const std::uint64_t hash = mix_product(
      addresses,
      seed_ ^ (std::uint64_t{fragment.id} << 16 | std::uint64_t{fragment.protocol} << 8 | fragment.ip_version));
  return sets_[hash & mask_];
}

void Fragments::remember(const FirstFragment& first, std::uint64_t now_ns) noexcept {
  // As long as Linux waits for the rest of a datagram (ipfrag_time, nf_conntrack_frag6_timeout).
  const std::uint64_t seconds = first.fragment.ip_version == 4 ? 30 : 60;
  Set& set = set_of(first.fragment);
  const auto same = std::ranges::find_if(
      set, [&](const FirstFragment& other) { return other.fragment.is_of_same_datagram(first.fragment); });
  FirstFragment& place = same != set.end() ? *same : *std::ranges::min_element(set, {}, &FirstFragment::expires_ns);
  place = first;
  place.expires_ns = now_ns + seconds * kNsPerSecond;
}

const FirstFragment* Fragments::find(const Fragment& fragment, std::uint64_t now_ns) const noexcept {
  for (const FirstFragment& first : set_of(fragment)) {
    if (first.expires_ns > now_ns && first.fragment.is_of_same_datagram(fragment)) {
      return fragment.from >= first.fragment.to ? &first : nullptr;
    }
  }
  return nullptr;
}

}  // namespace penstock::conntrack
