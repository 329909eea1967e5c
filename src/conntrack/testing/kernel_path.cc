// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/testing/kernel_path.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/testing/tunnel_namespace.h"

namespace penstock::conntrack {
namespace {

using testing::set_network_parameter;
using testing::succeeds;

constexpr std::size_t kEthernet = 14, kTtlAt = kEthernet + 8, kPortsAt = kEthernet + 20;
constexpr std::uint8_t kEndsEarly = 0x20;  // the TOS of packets that a rule at prerouting drops: DSCP 8

/// Packets come from the loopback interface, which is where the kernel takes live frames in, and leave by d0 to hosts
/// of which nothing has to be asked.
constexpr const char* kInterfaces =
    "ip link set lo up && ip link add d0 type veth peer name d1 && ip link set d0 up && ip link set d1 up && "
    "ip route add default dev d0 && ip neigh add 10.1.0.1 lladdr 02:00:00:00:00:01 dev d0 nud permanent && "
    "ip neigh add 10.2.0.1 lladdr 02:00:00:00:00:02 dev d0 nud permanent";
constexpr const char* kEndings =
    "nft 'table ip ends { chain early { type filter hook prerouting priority mangle; ip dscp cs1 drop; }; }; "
    "table netdev ends { chain late { type filter hook egress device d0 priority 0; drop; }; }'";
constexpr const char* kTracking = "nft 'table ip tracks { chain unused { ct state new accept; }; }'";

long call_bpf(bpf_cmd command, bpf_attr& attribute) {
  return ::syscall(SYS_bpf, command, &attribute, sizeof attribute);
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// The value of the map.
struct Next {
  std::uint32_t ports = 0;
  std::uint32_t ttl = 0;  // with the protocol and the checksum of the header
};

/// Writes the next ports over those of each frame, in a reply with both halves exchanged. The kernel uses the memory of
/// frames again as it is left, so link addresses and TTL are written, too.
int load_program(int map, bool reply) {
  constexpr auto op = [](unsigned code) { return static_cast<std::uint8_t>(code); };
  const auto insn = [](std::uint8_t code, unsigned to, unsigned from, int offset, int value) {
    bpf_insn made{};
    made.code = code;
    made.dst_reg = to & 15;
    made.src_reg = from & 15;
    made.off = static_cast<std::int16_t>(offset);
    made.imm = value;
    return made;
  };
  const auto load = [&](unsigned to, unsigned from, int at) {
    return insn(op(BPF_LDX | BPF_MEM | BPF_W), to, from, at, 0);
  };
  const auto store = [&](unsigned to, int at, unsigned from) {
    return insn(op(BPF_STX | BPF_MEM | BPF_W), to, from, at, 0);
  };
  const auto by_register = [&](unsigned code, unsigned to, unsigned from) {
    return insn(op(BPF_ALU | code | BPF_X), to, from, 0, 0);
  };
  const auto by_value = [&](unsigned code, unsigned to, int value) {
    return insn(op(BPF_ALU | code | BPF_K), to, 0, 0, value);
  };
  std::vector<bpf_insn> body{
      load(6, 1, offsetof(xdp_md, data)),
      load(7, 1, offsetof(xdp_md, data_end)),
      insn(op(BPF_ALU64 | BPF_MOV | BPF_X), 8, 6, 0, 0),
      insn(op(BPF_ALU64 | BPF_ADD | BPF_K), 8, 0, 0, kPortsAt + 4),
      insn(op(BPF_JMP | BPF_JLE | BPF_X), 8, 7, 2, 0),
      by_value(BPF_MOV, 0, XDP_DROP),
      insn(op(BPF_JMP | BPF_EXIT), 0, 0, 0, 0),
      insn(op(BPF_LD | BPF_DW | BPF_IMM), 1, BPF_PSEUDO_MAP_VALUE, 0, map),
      insn(0, 0, 0, 0, 0),
      load(2, 1, 0),
      by_register(BPF_MOV, 3, 2),
      by_value(BPF_ADD, 3, 1),
      store(1, 0, 3),
      load(3, 1, offsetof(Next, ttl)),
      store(6, kTtlAt, 3),
      by_value(BPF_MOV, 3, 0),
      store(6, 0, 3),
      store(6, 4, 3),
      store(6, 8, 3),
  };
  if (reply) {
    body.push_back(by_register(BPF_MOV, 3, 2));
    body.push_back(by_value(BPF_LSH, 3, 16));
    body.push_back(by_value(BPF_RSH, 2, 16));
    body.push_back(by_register(BPF_OR, 2, 3));
  }
  body.push_back(store(6, kPortsAt, 2));
  body.push_back(by_value(BPF_MOV, 0, XDP_PASS));
  body.push_back(insn(op(BPF_JMP | BPF_EXIT), 0, 0, 0, 0));
  bpf_attr attribute{};
  attribute.prog_type = BPF_PROG_TYPE_XDP;
  attribute.insns = address_of(body.data());
  attribute.insn_cnt = static_cast<std::uint32_t>(body.size());
  attribute.license = address_of("Apache-2.0");
  return static_cast<int>(call_bpf(BPF_PROG_LOAD, attribute));
}

int make_map() {
  bpf_attr attribute{};
  attribute.map_type = BPF_MAP_TYPE_ARRAY;
  attribute.key_size = 4;
  attribute.value_size = sizeof(Next);
  attribute.max_entries = 1;
  return static_cast<int>(call_bpf(BPF_MAP_CREATE, attribute));
}

bool set_map(int map, const Next& value) {
  const std::uint32_t key = 0;
  bpf_attr attribute{};
  attribute.map_fd = static_cast<std::uint32_t>(map);
  attribute.key = address_of(&key);
  attribute.value = address_of(&value);
  return call_bpf(BPF_MAP_UPDATE_ELEM, attribute) == 0;
}

/// With the type of service `tos`, behind an Ethernet header to the loopback interface.
std::vector<std::uint8_t> frame_of(const Packet& packet, std::uint8_t tos) {
  std::vector<std::uint8_t> frame(kEthernet, 0);
  frame[kEthernet - 2] = 8;  // IPv4
  frame.insert(frame.end(), packet.begin(), packet.end());
  std::uint8_t* const ip = frame.data() + kEthernet;
  ip[1] = tos;
  ip[10] = ip[11] = 0;
  std::uint32_t sum = 0;
  for (unsigned i = 0; i < 20; i += 2) sum += ip[i] * 256U + ip[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  ip[10] = static_cast<std::uint8_t>(~sum >> 8);
  ip[11] = static_cast<std::uint8_t>(~sum);
  return frame;
}

int open_namespace() { return ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC); }

std::uint64_t number_in(const char* file) {
  std::uint64_t number = 0;
  std::ifstream(file) >> number;
  return number;
}

}  // namespace

std::unique_ptr<KernelPath> KernelPath::make(std::string& why) {
  std::unique_ptr<KernelPath> path(new KernelPath);
  const int home = open_namespace();
  const bool built = path->build(why);
  ::setns(home, CLONE_NEWNET);
  ::close(home);
  return built ? std::move(path) : nullptr;
}

bool KernelPath::build(std::string& why) {
  next_ = make_map();
  for (const bool reply : {false, true}) programs_[reply ? 1 : 0] = load_program(next_, reply);
  if (next_ < 0 || programs_[0] < 0 || programs_[1] < 0) {
    why = std::string("the kernel takes no program of eBPF: ") + std::strerror(errno);
    return false;
  }
  for (const Way way : {Way::untracked, Way::tracked}) {
    if (::unshare(CLONE_NEWNET) != 0) {
      why = std::string("no new network namespace: ") + std::strerror(errno);
      return false;
    }
    spaces_[static_cast<std::size_t>(way)] = open_namespace();
    if (!succeeds(kInterfaces) || !set_network_parameter("ipv4/conf/all/rp_filter", "0") ||
        !set_network_parameter("ipv4/conf/lo/rp_filter", "0") || !set_network_parameter("ipv4/ip_forward", "1")) {
      why = "no interfaces: needs `ip`, and veth in the kernel";
      return false;
    }
    if (!succeeds(kEndings) ||
        (way == Way::tracked &&
         (!succeeds(kTracking) || !set_network_parameter("netfilter/nf_conntrack_checksum", "0")))) {
      why = "no rules: needs `nft`, and nf_tables with hook egress and nf_conntrack in the kernel";
      return false;
    }
  }
  // Sends one packet to see whether the kernel can.
  if (send(Way::untracked, End::egress, {udp_packet({}), 0, 1, false}) >= 0) return true;
  why = std::string("the kernel sends no live frames of eBPF (Linux 5.18): ") + std::strerror(errno);
  return false;
}

KernelPath::~KernelPath() {
  for (const int fd : {spaces_[0], spaces_[1], programs_[0], programs_[1], next_}) {
    if (fd >= 0) ::close(fd);
  }
}

void KernelPath::enter(Way way) const { ::setns(spaces_[static_cast<std::size_t>(way)], CLONE_NEWNET); }

double KernelPath::send(Way way, End end, const Round& round) {
  enter(way);
  const auto frame = frame_of(round.packet, end == End::prerouting ? kEndsEarly : 0);
  bpf_attr attribute{};
  attribute.test.prog_fd = static_cast<std::uint32_t>(programs_[round.reply ? 1 : 0]);
  attribute.test.data_in = address_of(frame.data());
  attribute.test.data_size_in = static_cast<std::uint32_t>(frame.size());
  attribute.test.repeat = round.count;
  attribute.test.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
  Next next{.ports = round.first};
  std::memcpy(&next.ttl, frame.data() + kTtlAt, sizeof next.ttl);
  if (!set_map(next_, next)) return -1;
  // The kernel counts without set-up, and without the time when it runs other threads, but in whole ns for each packet.
  if (call_bpf(BPF_PROG_TEST_RUN, attribute) != 0) return -1;
  return static_cast<double>(attribute.test.duration) * round.count;
}

double KernelPath::flush() {
  enter(Way::tracked);
  struct {
    nlmsghdr header;
    nfgenmsg family;
  } message{};
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  message.family.nfgen_family = AF_UNSPEC;
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  const auto start = std::chrono::steady_clock::now();
  std::array<char, 256> answer{};
  const bool done =
      ::send(socket, &message, sizeof message, 0) > 0 && ::recv(socket, answer.data(), answer.size(), 0) > 0;
  const double took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  ::close(socket);
  return done ? took : -1;
}

std::size_t KernelPath::connections() {
  enter(Way::tracked);
  return number_in("/proc/sys/net/netfilter/nf_conntrack_count");
}

std::size_t KernelPath::most_connections() {
  enter(Way::tracked);
  return number_in("/proc/sys/net/netfilter/nf_conntrack_max");
}

std::uint64_t KernelPath::invalid() {
  enter(Way::tracked);
  // A line of names, then one line for each core.
  std::ifstream file("/proc/net/stat/nf_conntrack");
  std::string line, name;
  std::getline(file, line);
  std::istringstream names(line);
  std::size_t column = 0;
  while (names >> name && name != "invalid") ++column;
  std::uint64_t sum = 0;
  while (std::getline(file, line)) {
    std::istringstream numbers(line);
    for (std::size_t i = 0; i <= column && numbers >> name; ++i) {
    }
    sum += std::stoull(name, nullptr, 16);
  }
  return sum;
}

}  // namespace penstock::conntrack
