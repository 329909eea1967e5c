// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/ethernet_kernel_for_test.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/testing/tunnel_namespace.h"
#include "nf/firewall/nftables/kernel_for_test.h"

namespace penstock::firewall::nftables {

namespace {

using testing::open_tap;
using testing::set_network_parameter;
using testing::succeeds;

bool make_router() {
  bool made = set_network_parameter("ipv4/conf/all/rp_filter", "0") &&
              set_network_parameter("ipv4/conf/all/forwarding", "1") &&
              set_network_parameter("ipv6/conf/all/forwarding", "1");
  for (const std::string name : EthernetKernel::kInterfaces)
    made = made && set_network_parameter("ipv4/conf/" + name + "/rp_filter", "0");
  const auto add = [&](const std::string& route, const std::string& host, const std::string& to) {
    made = made && succeeds("ip route add " + route + " dev " + to) &&
           succeeds("ip neigh add " + host + " lladdr 02:00:00:00:01:01 nud permanent dev " + to);
  };
  add("10.1.0.0/16", "10.1.2.3", "d1");
  add("10.3.0.0/16", "10.3.2.1", "d2");
  add("2001:db8::/32", "2001:db8::1", "d1");
  add("2001:db9::/32", "2001:db9::1", "d2");
  return made;
}

bool make_bridge() {
  return succeeds("ip link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0") &&
         succeeds("ip link set br0 addrgenmode none up") && succeeds("ip link set d0 master br0") &&
         succeeds("ip link set d1 master br0") && succeeds("bridge fdb add 02:00:00:00:01:01 dev d1 master static");
}

}  // namespace

std::unique_ptr<EthernetKernel> EthernetKernel::start(Way way, std::string& why) {
  why = "needs root, for a network namespace";
  if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return nullptr;
  why = "nft is not installed";
  if (!succeeds("command -v nft")) return nullptr;
  std::array<int, 3> taps{};
  for (std::size_t i = 0; i < taps.size(); ++i) taps[i] = open_tap(kInterfaces[i]);
  std::unique_ptr<EthernetKernel> kernel(new EthernetKernel(taps));
  why = "no tap interfaces here";
  if (std::ranges::find(taps, -1) != taps.end()) return nullptr;
  for (std::size_t i = 0; i < taps.size(); ++i) {
    const std::string name = kInterfaces[i];
    if (!succeeds("ip link set " + name + " address 02:00:00:00:00:1" + std::to_string(i) + " addrgenmode none up"))
      return nullptr;
  }
  why = way == Way::route ? "cannot route here" : "no bridges here";
  if (!(way == Way::route ? make_router() : make_bridge())) return nullptr;
  const std::string family = way == Way::route ? "inet" : "bridge";
  std::string answer;
  if (load("table " + family + " t {\nchain c {\ntype filter hook forward priority 0\n}\n}\n", answer)) return kernel;
  why = "nft cannot work here: " + answer;
  return nullptr;
}

EthernetKernel::~EthernetKernel() {
  for (const int tap : taps_) {
    if (tap >= 0) close(tap);
  }
}

bool EthernetKernel::load(const std::string& rules, std::string& answer) {
  return ForwardingKernel::load(rules, answer);
}

std::string EthernetKernel::rules() { return ForwardingKernel::rules(); }

std::vector<unsigned> EthernetKernel::pass(std::vector<Frame> frames) {
  std::vector<unsigned> left(frames.size());
  const auto collect = [&](int wait_ms) {
    for (bool again = true; again;) {
      std::array<pollfd, 2> ready{{{taps_[1], POLLIN, 0}, {taps_[2], POLLIN, 0}}};
      again = poll(ready.data(), ready.size(), wait_ms) > 0;
      for (unsigned i = 0; again && i < ready.size(); ++i) {
        Frame frame(2048);
        const ssize_t got = read(ready[i].fd, frame.data(), frame.size());
        std::uint32_t number = 0;
        if (got < static_cast<ssize_t>(sizeof(EthernetHeader) + sizeof number)) continue;
        std::memcpy(&number, frame.data() + got - sizeof number, sizeof number);
        // Other frames are the kernel's own.
        if (number < frames.size()) left[number] |= 1U << (i + 1);
      }
    }
  };
  for (std::uint32_t number = 0; number < frames.size(); ++number) {
    Frame& frame = frames[number];
    std::memcpy(frame.data() + frame.size() - sizeof number, &number, sizeof number);
    if (write(taps_[0], frame.data(), frame.size()) < 0) continue;
    collect(0);
  }
  collect(20);
  return left;
}

}  // namespace penstock::firewall::nftables
