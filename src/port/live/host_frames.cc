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

/// Assembles the instructions. Jumps to what is for the host, and to what is not, are filled in at the end.
class Assembler {
 public:
  void add(int code, std::uint8_t to, std::uint8_t from = 0, std::int16_t offset = 0, std::int32_t value = 0) {
    bpf_insn instruction{};
    instruction.code = static_cast<std::uint8_t>(code);
    instruction.dst_reg = to & 15U;
    instruction.src_reg = from & 15U;
    instruction.off = offset;
    instruction.imm = value;
    code_.push_back(instruction);
  }
  void copy(std::uint8_t to, std::uint8_t from) { add(BPF_ALU64 | BPF_MOV | BPF_X, to, from); }
  void set(std::uint8_t to, std::int32_t value) { add(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value); }
  void add_to(std::uint8_t to, std::int32_t value) {
    add(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, value);  // NOLINT(*-redundant-expression): both are 0
  }
  void load(int size, std::uint8_t to, std::uint8_t from, std::int16_t offset) {
    add(BPF_LDX | BPF_MEM | size, to, from, offset);
  }
  void store(int size, std::int16_t offset, std::uint8_t from) { add(BPF_STX | BPF_MEM | size, 10, from, offset); }
  std::size_t jump_if(int condition, std::uint8_t left, std::int32_t right) {
    add(BPF_JMP | condition | BPF_K, left, 0, 0, right);
    return code_.size() - 1;
  }
  std::size_t jump() {
    add(BPF_JMP | BPF_JA, 0);
    return code_.size() - 1;
  }
  void land(std::size_t jump) { code_[jump].off = static_cast<std::int16_t>(code_.size() - jump - 1); }
  void host_if(int condition, std::uint8_t left, std::int32_t right) {
    to_host_.push_back(jump_if(condition, left, right));
  }
  void to_host() { to_host_.push_back(jump()); }
  void to_port() { to_port_.push_back(jump()); }
  /// Register 7 is the frame, 8 its end.
  void port_if_shorter_than(std::int32_t bytes) {
    copy(2, 7);
    add_to(2, bytes);
    add(BPF_JMP | BPF_JGT | BPF_X, 2, 8);
    to_port_.push_back(code_.size() - 1);
  }
  std::vector<bpf_insn> finish() && {
    for (const std::size_t jump : to_host_) land(jump);
    set(0, XDP_PASS);
    add(BPF_JMP | BPF_EXIT, 0);
    for (const std::size_t jump : to_port_) land(jump);
    return std::move(code_);
  }

 private:
  std::vector<bpf_insn> code_;
  std::vector<std::size_t> to_host_, to_port_;
};

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

std::vector<bpf_insn> leave_to_host(const FileDescriptor& map) {
  constexpr std::int32_t kEthernet = 14, kTag = 4, kIpv4 = 20, kIpv6 = 40;
  const auto type = [](int host_order) {
    return static_cast<std::int32_t>(htons(static_cast<std::uint16_t>(host_order)));
  };
  Assembler code;
  code.copy(6, 1);
  code.load(BPF_W, 7, 6, offsetof(xdp_md, data));
  code.load(BPF_W, 8, 6, offsetof(xdp_md, data_end));
  code.port_if_shorter_than(kEthernet);
  code.load(BPF_H, 3, 7, 12);
  // One VLAN tag: after it, everything is 4 bytes later.
  const std::size_t tag = code.jump_if(BPF_JEQ, 3, type(ETH_P_8021Q));
  const std::size_t untagged = code.jump_if(BPF_JNE, 3, type(ETH_P_8021AD));
  code.land(tag);
  code.port_if_shorter_than(kEthernet + kTag);
  code.load(BPF_H, 3, 7, 16);
  code.add_to(7, kTag);
  code.land(untagged);
  const std::size_t ipv4 = code.jump_if(BPF_JEQ, 3, type(ETH_P_IP));
  const std::size_t ipv6 = code.jump_if(BPF_JEQ, 3, type(ETH_P_IPV6));
  code.to_host();

  code.land(ipv4);
  code.port_if_shorter_than(kEthernet + kIpv4);
  code.load(BPF_B, 4, 7, kEthernet + 8);
  code.host_if(BPF_JLE, 4, 1);  // TTL
  code.load(BPF_B, 4, 7, kEthernet + 16);
  code.host_if(BPF_JGE, 4, 0xe0);  // multicast, broadcast
  code.load(BPF_W, 5, 7, kEthernet + 16);
  code.set(4, 0);
  code.store(BPF_DW, -16, 4);
  code.set(4, static_cast<std::int32_t>(htonl(0xffff)));
  code.store(BPF_W, -8, 4);
  code.store(BPF_W, -4, 5);
  const std::size_t look = code.jump();

  code.land(ipv6);
  code.port_if_shorter_than(kEthernet + kIpv6);
  code.load(BPF_B, 4, 7, kEthernet + 7);
  code.host_if(BPF_JLE, 4, 1);  // hop limit
  code.load(BPF_B, 4, 7, kEthernet + 24);
  code.host_if(BPF_JEQ, 4, 0xff);  // multicast
  code.load(BPF_H, 4, 7, kEthernet + 24);
  code.add(BPF_ALU64 | BPF_AND | BPF_K, 4, 0, 0, type(0xffc0));
  code.host_if(BPF_JEQ, 4, type(0xfe80));  // link-local
  for (const std::int32_t half : {0, 8}) {
    code.load(BPF_DW, 4, 7, static_cast<std::int16_t>(kEthernet + 24 + half));
    code.store(BPF_DW, static_cast<std::int16_t>(half - 16), 4);
  }

  code.land(look);
  code.add(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, map.get());
  code.add(0, 0);
  code.copy(2, 10);
  code.add_to(2, -16);
  code.add(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem);
  code.host_if(BPF_JNE, 0, 0);
  code.to_port();
  return std::move(code).finish();
}

}  // namespace penstock::port
