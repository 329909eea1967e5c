// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel in a network namespace of the test's own. Sends it one frame at a time and reports what leaves, and which
// counter of /proc/net/xfrm_stat grows.
//
//     test ──frame──▶ far ══ near ─▶ 192.0.2.1, 2001:db8:2::1 (near), 192.0.2.2, 2001:db8:2::2 (lo)
//          ◀─────────            └─▶ all other addresses: forwarded, back over near

#pragma once

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "packet/testing/packet_builder.h"

namespace penstock::ipsec {

inline bool runs(const std::string& command) {
  return std::system(("{ " + command + "; } >/dev/null 2>&1").c_str()) == 0;
}

/// Moves this process into the namespace. False if no namespace with IPsec policies and counters can be had.
inline bool enter_namespace() {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  // On a single processor, a frame has been processed by the time the next one is sent.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) return false;
  return std::filesystem::exists("/proc/net/xfrm_stat") &&
         runs(
             "cd /proc/sys/net && echo 1 >ipv4/ip_forward && "
             "echo 0 >ipv4/conf/all/rp_filter && echo 0 >ipv4/conf/default/rp_filter && "
             "echo 0 >ipv4/conf/all/send_redirects && echo 0 >ipv4/conf/default/send_redirects && "
             "ip link add far type veth peer name near && "
             // Keeps the kernel from sending packets of its own.
             "for i in near far; do ip link set $i arp off multicast off addrgenmode none; done && "
             "echo 1 >ipv6/conf/all/forwarding && "
             "ip link set lo up && ip link set far up && ip link set near up && "
             "ip addr add 192.0.2.1/32 dev near && ip addr add 192.0.2.2/32 dev lo && "
             "ip addr add 2001:db8:2::1/128 dev near nodad && ip addr add 2001:db8:2::2/128 dev lo nodad && "
             "ip route add default dev near && ip -6 route add default dev near && ip xfrm policy");
}

/// The IPsec counters, by name.
inline std::map<std::string, unsigned long> xfrm_counters() {
  std::map<std::string, unsigned long> counters;
  std::ifstream file("/proc/net/xfrm_stat");
  std::string name;
  for (unsigned long value = 0; file >> name >> value;) counters[name] = value;
  return counters;
}

/// Received IP packets of both families; decapsulated packets count again.
inline unsigned long received() {
  std::ifstream file("/proc/net/snmp");
  std::string names, values;
  unsigned long sum = 0;
  while (std::getline(file, names) && std::getline(file, values)) {
    std::istringstream name_words(names), value_words(values);
    for (std::string name, value; name_words >> name && value_words >> value;) {
      if (names.starts_with("Ip:") && name == "InReceives") sum += std::stoul(value);
    }
  }
  std::ifstream file6("/proc/net/snmp6");
  for (std::string name, value; file6 >> name >> value;) {
    if (name == "Ip6InReceives") sum += std::stoul(value);
  }
  return sum;
}

/// The far end of the link.
class FarEnd {
 public:
  FarEnd() : fd_(::socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL))) {
    ifreq request{};
    std::strncpy(request.ifr_name, "near", sizeof request.ifr_name - 1);
    is_ready_ = fd_ >= 0 && ::ioctl(fd_, SIOCGIFHWADDR, &request) == 0;
    std::memcpy(near_mac_, request.ifr_hwaddr.sa_data, sizeof near_mac_);
    address_.sll_family = AF_PACKET;
    address_.sll_protocol = htons(ETH_P_ALL);
    address_.sll_ifindex = static_cast<int>(::if_nametoindex("far"));
    is_ready_ = is_ready_ && ::bind(fd_, generic_address(), sizeof address_) == 0;
  }
  ~FarEnd() { ::close(fd_); }
  FarEnd(const FarEnd&) = delete;
  FarEnd& operator=(const FarEnd&) = delete;

  /// Sends a frame to `near`, whatever its destination.
  [[nodiscard]] bool send(penstock::testing::Bytes frame) const {
    std::copy(std::begin(near_mac_), std::end(near_mac_), frame.begin());
    return is_ready_ && ::sendto(fd_, frame.data(), frame.size(), 0, generic_address(), sizeof address_) > 0;
  }
  /// A frame received from `near`; empty if there is none.
  [[nodiscard]] penstock::testing::Bytes receive() const {
    penstock::testing::Bytes frame(2048);
    for (;;) {
      sockaddr_ll from{};
      socklen_t length = sizeof from;
      const ssize_t size =
          ::recvfrom(fd_, frame.data(), frame.size(), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &length);
      if (size > 0 && from.sll_pkttype == PACKET_OUTGOING) continue;
      frame.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
      return frame;
    }
  }

 private:
  [[nodiscard]] const sockaddr* generic_address() const { return reinterpret_cast<const sockaddr*>(&address_); }

  int fd_;
  bool is_ready_ = false;
  std::uint8_t near_mac_[6] = {};
  sockaddr_ll address_{};
};

}  // namespace penstock::ipsec
