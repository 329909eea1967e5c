// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/forwarding/prober.h"

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <functional>
#include <random>
#include <system_error>
#include <utility>

#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "port/live/interface.h"
#include "port/live/namespace_thread.h"

namespace penstock::experiments {
namespace {

constexpr std::uint16_t kPort = 862;    // of TWAMP, which the load does not use
constexpr std::uint16_t kSources = 64;  // source ports in turn, so that probes take the ways of many flows
constexpr std::uint16_t kFirstSource = 40000;

struct Probe {
  EthernetHeader link;
  Ipv4Header ip;
  UdpHeader udp;
  std::uint8_t numbers[3 * sizeof(std::uint64_t)];  // prober, sequence, time of sending
};
static_assert(sizeof(Probe) == 14 + 20 + 8 + 24);

std::uint64_t realtime_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

Probe make_probe(const Prober::Path& path, const MacAddress& own) {
  Probe probe{};
  probe.link.destination = path.gateway;
  probe.link.source = own;
  probe.link.type.set(ether_type::kIpv4);
  probe.ip.version_ihl = 0x45;
  probe.ip.total_length.set(static_cast<std::uint16_t>(sizeof probe - sizeof probe.link));
  probe.ip.ttl = 64;
  probe.ip.protocol = ip_protocol::kUdp;
  probe.ip.source.set(path.source.bits);
  probe.ip.destination.set(path.destination.bits);
  probe.ip.checksum.set(checksum(reinterpret_cast<const std::uint8_t*>(&probe.ip), sizeof probe.ip));
  probe.udp.destination_port.set(kPort);
  probe.udp.length.set(static_cast<std::uint16_t>(sizeof probe.udp + sizeof probe.numbers));
  return probe;  // without a UDP checksum, which IPv4 allows
}

Error socket_error(const Prober::End& end, const char* what) {
  return {{end.interface, 0, 0}, what, std::system_category().message(errno), ""};
}

/// A packet socket of the interface. `prepare`: called before the first packet can come.
Result<port::FileDescriptor> open_socket(const Prober::End& end, std::uint16_t protocol, MacAddress& own,
                                         const std::function<bool(int)>& prepare) {
  port::FileDescriptor socket;
  auto opened = port::in_network_namespace(end.netns, [&]() -> Result<void> {
    const auto interface = port::require_interface(end.interface, {end.interface, 0, 0});
    if (!interface) return tl::unexpected(interface.error());
    own = interface->mac;
    socket = port::FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!socket) return failure(socket_error(end, "cannot open a packet socket"));
    if (!prepare(socket.get())) return failure(socket_error(end, "cannot prepare the packet socket"));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_ifindex = interface->index;
    Be16 type;
    type.set(protocol);
    std::memcpy(&address.sll_protocol, &type, sizeof type);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      return failure(socket_error(end, "cannot bind the packet socket"));
    return {};
  });
  if (!opened) return tl::unexpected(std::move(opened.error()));
  return socket;
}

/// Lets only probes through, so that the load does not wake up the receiver.
bool filter_probes(int socket) {
  constexpr std::uint32_t kType = 12, kProtocol = 14 + 9, kDestinationPort = 14 + 20 + 2;
  std::array<sock_filter, 8> code{{
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kType),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ether_type::kIpv4, 0, 5),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kProtocol),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ip_protocol::kUdp, 0, 3),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, kDestinationPort),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPort, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, 0xffff),
      BPF_STMT(BPF_RET | BPF_K, 0),
  }};
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  const int on = 1;
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0 &&
         ::setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0;
}

/// When the system received the packet; 0 if it does not say.
std::uint64_t time_of(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time{};
    std::memcpy(&time, CMSG_DATA(part), sizeof time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  }
  return 0;
}

}  // namespace

Result<std::unique_ptr<Prober>> Prober::start(const Path& path) {
  std::unique_ptr<Prober> prober(new Prober);
  prober->number_ = std::random_device{}() | std::uint64_t{std::random_device{}()} << 32;
  MacAddress own{}, others{};
  auto in = open_socket(path.to, ether_type::kIpv4, others, filter_probes);
  if (!in) return tl::unexpected(std::move(in.error()));
  auto out = open_socket(path.from, 0, own, [](int) { return true; });
  if (!out) return tl::unexpected(std::move(out.error()));
  prober->in_ = std::move(*in);
  prober->out_ = std::move(*out);
  prober->receiver_ = std::thread([p = prober.get()] { p->receive(); });
  prober->sender_ = std::thread([p = prober.get(), path, own] { p->send(path, own); });
  return prober;
}

Prober::~Prober() { static_cast<void>(finish()); }

Prober::Delays Prober::finish() {
  constexpr std::chrono::milliseconds kPatience{500};
  sends_ = false;
  if (sender_.joinable()) sender_.join();
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  while (receiver_.joinable() && arrived_ < sent_ && std::chrono::steady_clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  receives_ = false;
  if (receiver_.joinable()) receiver_.join();
  std::ranges::sort(us_);
  return {sent_, us_};
}

double Prober::Delays::quantile(double part) const noexcept {
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(us.size())));
  return us[std::max<std::size_t>(rank, 1) - 1];
}

void Prober::send(const Path& path, const MacAddress& own) {
  using Clock = std::chrono::steady_clock;
  // Not in step with the system's timers, nor with the blocks of packet sockets.
  constexpr unsigned kLeastUs = 500, kMostUs = 1500;
  std::minstd_rand random(1);
  Probe probe = make_probe(path, own);
  for (std::uint64_t sequence = 0; sends_; ++sequence) {
    probe.udp.source_port.set(static_cast<std::uint16_t>(kFirstSource + sequence % kSources));
    const std::array<std::uint64_t, 3> numbers{number_, sequence, realtime_ns()};
    std::memcpy(probe.numbers, numbers.data(), sizeof probe.numbers);
    // A packet that the interface did not take is lost like one that was dropped later.
    static_cast<void>(::send(out_.get(), &probe, sizeof probe, 0));
    sent_.fetch_add(1);
    std::this_thread::sleep_until(Clock::now() + std::chrono::microseconds{kLeastUs + random() % (kMostUs - kLeastUs)});
  }
}

void Prober::receive() {
  constexpr int kLookMs = 20;
  std::vector<bool> seen;  // by sequence
  while (receives_) {
    pollfd wait{in_.get(), POLLIN, 0};
    if (::poll(&wait, 1, kLookMs) <= 0) continue;
    Probe probe;
    iovec bytes{&probe, sizeof probe};
    alignas(cmsghdr) std::array<char, 256> control;
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (::recvmsg(in_.get(), &message, MSG_DONTWAIT) != sizeof probe) continue;
    std::array<std::uint64_t, 3> numbers;
    std::memcpy(numbers.data(), probe.numbers, sizeof probe.numbers);
    const auto [number, sequence, sent_ns] = numbers;
    const std::uint64_t received_ns = time_of(message);
    if (number != number_ || received_ns == 0) continue;
    if (seen.size() <= sequence) seen.resize(sequence + 1);
    if (seen[sequence]) continue;
    seen[sequence] = true;
    // The system's clock may be set meanwhile.
    us_.push_back(static_cast<double>(std::max(received_ns, sent_ns) - sent_ns) / 1e3);
    arrived_.fetch_add(1);
  }
}

}  // namespace penstock::experiments
