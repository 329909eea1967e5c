// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/chain/dpdk_chain.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::bench {

DpdkChain::Counts DpdkChain::run(std::span<const std::vector<std::uint8_t>> frames) {
  constexpr std::size_t kBurst = 128;
  constexpr std::size_t kSlot = 2048 + 64;  // one cache line more: with a power of two, all headers would share the
                                            // same cache sets
  alignas(64) static std::array<std::uint8_t, kBurst * kSlot> slots;
  std::array<firewall::RteAcl::Tuple, kBurst> tuples;
  std::array<const std::uint8_t*, kBurst> tuple_pointers;
  std::array<std::uint32_t, kBurst> rules;
  std::array<Ipv4Address, kBurst> destinations;
  std::array<std::uint64_t, kBurst> hops;
  Counts counts;
  for (std::size_t first = 0; first < frames.size(); first += kBurst) {
    const std::size_t n = std::min(kBurst, frames.size() - first);
    for (std::size_t i = 0; i < n; ++i) {
      const auto& frame = frames[first + i];
      std::uint8_t* slot = slots.data() + i * kSlot;
      std::memcpy(slot, frame.data(), frame.size());
      const auto& ip = *reinterpret_cast<const Ipv4Header*>(slot + sizeof(EthernetHeader));
      const auto& udp = *reinterpret_cast<const UdpHeader*>(slot + sizeof(EthernetHeader) + sizeof(Ipv4Header));
      firewall::RteAcl::Tuple& tuple = tuples[i];
      tuple.protocol = ip.protocol;
      std::memcpy(&tuple.source, &ip.source, 4);
      std::memcpy(&tuple.destination, &ip.destination, 4);
      std::memcpy(&tuple.source_port, &udp.source_port, 2);
      std::memcpy(&tuple.destination_port, &udp.destination_port, 2);
      tuple_pointers[i] = reinterpret_cast<const std::uint8_t*>(&tuple);
      destinations[i].bits = ip.destination.value();
    }
    acl_.classify(std::span(tuple_pointers).first(n), rules.data());
    fib_.lookup_bulk(std::span(destinations).first(n), std::span(hops).first(n));
    for (std::size_t i = 0; i < n; ++i) {
      auto& ip = *reinterpret_cast<Ipv4Header*>(slots.data() + i * kSlot + sizeof(EthernetHeader));
      constexpr std::uint64_t kNoHop = 0xff'ffff;
      if (rules[i] == 0 || hops[i] == kNoHop || ip.ttl <= 1 ||
          checksum(reinterpret_cast<const std::uint8_t*>(&ip), sizeof ip) != 0) {
        ++counts.dropped;
        continue;
      }
      const auto word = static_cast<std::uint16_t>(ip.ttl << 8 | ip.protocol);
      --ip.ttl;
      ip.checksum.set(checksum_update(ip.checksum.value(), word, static_cast<std::uint16_t>(word - 0x100)));
      ++counts.forwarded;
    }
  }
  return counts;
}

}  // namespace penstock::bench
