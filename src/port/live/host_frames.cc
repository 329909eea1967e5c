// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/host_frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <ifaddrs.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

namespace penstock::port {

namespace {

constexpr std::uint32_t kMostAddresses = 4096;

using Key = std::array<std::uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d

void add(const sockaddr* address, std::set<Key>& keys) {
  if (address == nullptr) return;
  Key key{};
  if (address->sa_family == AF_INET) {
    key[10] = key[11] = 0xff;
    std::memcpy(&key[12], &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
  } else if (address->sa_family == AF_INET6) {
    std::memcpy(key.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, key.size());
  } else {
    return;
  }
  keys.insert(key);
}

std::set<Key> addresses_now() {
  std::set<Key> keys;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return keys;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    add(one->ifa_addr, keys);
    const bool is_ipv4 = one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET;
    if (is_ipv4 && (one->ifa_flags & IFF_BROADCAST) != 0) add(one->ifa_broadaddr, keys);
  }
  ::freeifaddrs(all);
  return keys;
}

}  // namespace

Result<HostAddresses> HostAddresses::open() {
  HostAddresses result;
  result.map_ = FileDescriptor(
      ::bpf_map_create(BPF_MAP_TYPE_HASH, "penstock_host", sizeof(Key), sizeof(std::uint8_t), kMostAddresses, nullptr));
  if (!result.map_ || !result.update()) {
    return failure(Error{{},
                         "cannot make a map of the host's addresses",
                         std::system_category().message(errno),
                         "at most 4096 addresses"});
  }
  return result;
}

bool HostAddresses::update() noexcept {
  try {
    const std::set<Key> now = addresses_now();
    const std::uint8_t value = 1;
    for (const Key& key : now) {
      if (::bpf_map_update_elem(map_.get(), key.data(), &value, BPF_ANY) != 0) return false;
    }
    std::vector<Key> gone;
    Key key{}, next{};
    for (bool first = true; ::bpf_map_get_next_key(map_.get(), first ? nullptr : key.data(), next.data()) == 0;
         first = false, key = next) {
      if (!now.contains(next)) gone.push_back(next);
    }
    for (const Key& old : gone) static_cast<void>(::bpf_map_delete_elem(map_.get(), old.data()));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void leave_to_host(BpfAssembler& code, const FileDescriptor& map) {
  using enum BpfAssembler::Register;
  constexpr std::int32_t kEthernet = 14, kTag = 4, kIpv4 = 20, kIpv6 = 40;
  const auto type = [](int host_order) {
    return static_cast<std::int32_t>(htons(static_cast<std::uint16_t>(host_order)));
  };
  std::vector<std::size_t> to_host, to_port;  // jumps
  const auto host_if = [&](std::uint8_t condition, BpfAssembler::Register left, std::int32_t right) {
    to_host.push_back(code.jump_if(condition, left, right));
  };
  // r7 is the frame, r8 its end.
  const auto port_if_shorter_than = [&](std::int32_t bytes) {
    code.move(r2, r7);
    code.alu(BPF_ADD, r2, bytes);
    to_port.push_back(code.jump_if(BPF_JGT, r2, r8));
  };

  code.load(BPF_W, r7, r6, offsetof(xdp_md, data));
  code.load(BPF_W, r8, r6, offsetof(xdp_md, data_end));
  port_if_shorter_than(kEthernet);
  code.load(BPF_H, r3, r7, 12);
  // One VLAN tag: after it, everything is 4 bytes later.
  const std::size_t tag = code.jump_if(BPF_JEQ, r3, type(ETH_P_8021Q));
  const std::size_t untagged = code.jump_if(BPF_JNE, r3, type(ETH_P_8021AD));
  code.land(tag);
  port_if_shorter_than(kEthernet + kTag);
  code.load(BPF_H, r3, r7, 16);
  code.alu(BPF_ADD, r7, kTag);
  code.land(untagged);
  const std::size_t ipv4 = code.jump_if(BPF_JEQ, r3, type(ETH_P_IP));
  const std::size_t ipv6 = code.jump_if(BPF_JEQ, r3, type(ETH_P_IPV6));
  to_host.push_back(code.jump());

  code.land(ipv4);
  port_if_shorter_than(kEthernet + kIpv4);
  code.load(BPF_B, r4, r7, kEthernet + 8);
  host_if(BPF_JLE, r4, 1);  // TTL
  code.load(BPF_B, r4, r7, kEthernet + 16);
  host_if(BPF_JGE, r4, 0xe0);  // multicast, broadcast
  code.load(BPF_W, r5, r7, kEthernet + 16);
  code.move(r4, 0);
  code.store(BPF_DW, -16, r4);
  code.move(r4, static_cast<std::int32_t>(htonl(0xffff)));
  code.store(BPF_W, -8, r4);
  code.store(BPF_W, -4, r5);
  const std::size_t look = code.jump();

  code.land(ipv6);
  port_if_shorter_than(kEthernet + kIpv6);
  code.load(BPF_B, r4, r7, kEthernet + 7);
  host_if(BPF_JLE, r4, 1);  // hop limit
  code.load(BPF_B, r4, r7, kEthernet + 24);
  host_if(BPF_JEQ, r4, 0xff);  // multicast
  code.load(BPF_H, r4, r7, kEthernet + 24);
  code.alu(BPF_AND, r4, type(0xffc0));
  host_if(BPF_JEQ, r4, type(0xfe80));  // link-local
  for (const std::int32_t half : {0, 8}) {
    code.load(BPF_DW, r4, r7, static_cast<std::int16_t>(kEthernet + 24 + half));
    code.store(BPF_DW, static_cast<std::int16_t>(half - 16), r4);
  }

  code.land(look);
  code.move_map(r1, map.get());
  code.move(r2, r10);
  code.alu(BPF_ADD, r2, -16);
  code.call(BPF_FUNC_map_lookup_elem);
  host_if(BPF_JNE, r0, 0);
  to_port.push_back(code.jump());

  for (const std::size_t jump : to_host) code.land(jump);
  code.move(r0, XDP_PASS);
  code.exit();
  for (const std::size_t jump : to_port) code.land(jump);
}

}  // namespace penstock::port
