// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/kernel_for_test.h"

#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/testing/tunnel_namespace.h"

namespace penstock::firewall::nftables {

namespace {

using testing::open_tunnel;
using testing::set_network_parameter;
using testing::succeeds;

/// Runs a command with `input`, and returns whether it succeeds and what it prints.
std::pair<bool, std::string> run(const std::string& command, const std::string& input) {
  std::string folder = "/tmp/penstock-nft-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return {false, "no temporary folder"};
  const std::string file = folder + "/input";
  if (FILE* to = fopen(file.c_str(), "w")) {
    fwrite(input.data(), 1, input.size(), to);
    fclose(to);
  }
  std::string text;
  FILE* pipe = popen((command + " <" + file + " 2>&1").c_str(), "r");
  char chunk[4096];
  for (std::size_t got = 0; pipe != nullptr && (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;)
    text.append(chunk, got);
  const bool done = pipe != nullptr && pclose(pipe) == 0;
  std::remove(file.c_str());
  rmdir(folder.c_str());
  return {done, text};
}

/// The fields that forwarding and rules change.
void clear_changing_fields(Packet& packet) {
  if (packet[0] >> 4 == 4) {
    packet[1] = packet[8] = packet[10] = packet[11] = 0;  // traffic class, TTL, checksum
  } else {
    packet[0] = packet[1] = packet[7] = 0;  // traffic class, hop limit
  }
}

}  // namespace

std::unique_ptr<ForwardingKernel> ForwardingKernel::start(std::string& why) {
  why = "needs root, for a network namespace";
  if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return nullptr;
  why = "nft is not installed";
  if (!succeeds("command -v nft")) return nullptr;
  std::array<int, 3> tunnels{};
  for (std::size_t i = 0; i < tunnels.size(); ++i) tunnels[i] = open_tunnel(kInterfaces[i]);
  std::unique_ptr<ForwardingKernel> kernel(new ForwardingKernel(tunnels));
  why = "no tunnel interfaces here";
  if (std::ranges::find(tunnels, -1) != tunnels.end()) return nullptr;
  bool routed = set_network_parameter("ipv4/conf/all/rp_filter", "0") &&
                set_network_parameter("ipv4/conf/all/forwarding", "1") &&
                set_network_parameter("ipv6/conf/all/forwarding", "1");
  for (const std::string name : kInterfaces) {
    routed = routed && set_network_parameter("ipv4/conf/" + name + "/rp_filter", "0") &&
             succeeds("ip link set " + name + " addrgenmode none up");
  }
  routed = routed && succeeds("ip route add default dev d1") && succeeds("ip route add 10.3.0.0/16 dev d2") &&
           succeeds("ip -6 route add default dev d1") && succeeds("ip -6 route add 2001:db9::/32 dev d2");
  if (!routed) return nullptr;
  std::string answer;
  if (load("table inet t {\nchain c {\ntype filter hook forward priority 0\n}\n}\n", answer)) return kernel;
  why = "nft cannot work here: " + answer;
  return nullptr;
}

bool ForwardingKernel::trust_checksums() { return set_network_parameter("netfilter/nf_conntrack_checksum", "0"); }

ForwardingKernel::~ForwardingKernel() {
  for (const int tunnel : tunnels_) {
    if (tunnel >= 0) close(tunnel);
  }
}

bool ForwardingKernel::load(const std::string& rules, std::string& answer) {
  auto [done, text] = run("nft -f -", "flush ruleset\n" + rules);
  answer = std::move(text);
  return done;
}

bool ForwardingKernel::load_iptables(const std::string& rules, std::string& answer) {
  if (!load("", answer)) return false;
  auto [done, text] = run("iptables-nft-restore", rules);
  answer = std::move(text);
  return done;
}

std::string ForwardingKernel::rules(const std::string& option) {
  return run("nft " + option + " list ruleset", "").second;
}

template <typename Take>
void ForwardingKernel::send(std::vector<Packet>& packets, const Take& take) {
  const auto collect = [&](int wait_ms) {
    for (bool again = true; again;) {
      std::array<pollfd, 2> ready{{{tunnels_[1], POLLIN, 0}, {tunnels_[2], POLLIN, 0}}};
      again = poll(ready.data(), ready.size(), wait_ms) > 0;
      for (unsigned i = 0; again && i < ready.size(); ++i) {
        Packet packet(2048);
        const ssize_t got = read(ready[i].fd, packet.data(), packet.size());
        if (got < 24) continue;
        packet.resize(static_cast<std::size_t>(got));
        std::uint32_t number = 0;
        std::memcpy(&number, packet.data() + packet.size() - sizeof number, sizeof number);
        // Other packets are answers of the kernel.
        if (number < packets.size()) take(number, i + 1, std::move(packet));
      }
    }
  };
  for (std::uint32_t number = 0; number < packets.size(); ++number) {
    Packet& packet = packets[number];
    std::memcpy(packet.data() + packet.size() - sizeof number, &number, sizeof number);
    if (write(tunnels_[0], packet.data(), packet.size()) < 0) continue;
    collect(0);
  }
  collect(20);
}

std::vector<std::optional<unsigned>> ForwardingKernel::forward(std::vector<Packet> packets) {
  std::vector<std::optional<unsigned>> left(packets.size());
  send(packets, [&](std::uint32_t number, unsigned interface, Packet packet) {
    Packet sent = packets[number];
    clear_changing_fields(sent);
    clear_changing_fields(packet);
    if (packet == sent) left[number] = interface;
  });
  return left;
}

std::vector<Packet> ForwardingKernel::translate(std::vector<Packet> packets) {
  std::vector<Packet> left(packets.size());
  send(packets, [&](std::uint32_t number, unsigned /*interface*/, Packet packet) { left[number] = std::move(packet); });
  return left;
}

}  // namespace penstock::firewall::nftables
