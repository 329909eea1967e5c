// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/kernel_host.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace penstock::evasion {

namespace {

constexpr std::size_t kMostRead = 65536;

constexpr socklen_t length_of(bool v6) { return v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

Endpoint endpoint_of(const sockaddr_storage& storage) {
  Endpoint endpoint;
  if (storage.ss_family == AF_INET6) {
    const auto& from = reinterpret_cast<const sockaddr_in6&>(storage);
    endpoint.address.v6 = true;
    std::copy_n(from.sin6_addr.s6_addr, 16, endpoint.address.bytes.begin());
    endpoint.port = ntohs(from.sin6_port);
  } else {
    const auto& from = reinterpret_cast<const sockaddr_in&>(storage);
    std::memcpy(endpoint.address.bytes.data(), &from.sin_addr, 4);
    endpoint.port = ntohs(from.sin_port);
  }
  return endpoint;
}

}  // namespace

Address KernelHost::address(bool v6) {
  Address address{.v6 = v6};
  if (v6) {
    address.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  } else {
    address.bytes = {198, 18, 0, 1};
  }
  return address;
}

Address KernelHost::attacker(bool v6, std::uint32_t number) {
  Address address{.v6 = v6};
  std::size_t at = 1;
  if (v6) {
    address.bytes = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    at = 13;
  } else {
    address.bytes = {10};
  }
  address.bytes[at] = static_cast<std::uint8_t>(number >> 16);
  address.bytes[at + 1] = static_cast<std::uint8_t>(number >> 8);
  address.bytes[at + 2] = static_cast<std::uint8_t>(number);
  return address;
}

std::optional<std::uint32_t> KernelHost::number_of(const Address& address) {
  const std::size_t at = address.v6 ? 13 : 1;
  const std::uint32_t number =
      std::uint32_t{address.bytes[at]} << 16 | std::uint32_t{address.bytes[at + 1]} << 8 | address.bytes[at + 2];
  if (address != attacker(address.v6, number)) return {};
  return number;
}

Result<std::unique_ptr<KernelHost>> KernelHost::make(HostProfile profile) {
  auto network = HostNetwork::make(profile, address(false), address(true));
  if (!network) return tl::unexpected(std::move(network).error());
  std::unique_ptr<KernelHost> host(new KernelHost(std::move(*network)));
  if (auto done = host->begin(); !done) return tl::unexpected(std::move(done).error());
  return host;
}

KernelHost::KernelHost(std::unique_ptr<HostNetwork> network) : network_(std::move(network)), text_(kMostRead) {}

Result<void> KernelHost::begin() {
  if (auto done = listen_on_ports(false); !done) return done;
  if (has_ipv6()) {
    if (auto done = listen_on_ports(true); !done) return done;
  }
  for (const bool v6 : {false, true}) {
    for (const bool in_page : {false, true}) {
      if ((!v6 || has_ipv6()) && !takes_datagrams(v6, in_page)) {
        errno = ETIMEDOUT;
        return refused("the host takes no datagrams");
      }
    }
  }
  return {};
}

// An IPv6 address is not usable at once. Also, anything that keeps packets from the host is reported here, not during
// conversations.
bool KernelHost::takes_datagrams(bool v6, bool in_page) {
  const Endpoint from{attacker(v6, 0xffffff), 4000}, to{address(v6), kUdpPorts[0]};
  IpFields ip;
  ip.protocol = 17;
  const Bytes packet = ip_packet(from.address, to.address, ip, udp_datagram(from, to, Bytes{'?'}));
  for (int tries = 0; tries < 2000; ++tries) {
    deliver(packet, in_page);
    if (read_datagram(kUdpPorts[0], v6)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

Result<void> KernelHost::listen_on_ports(bool v6) {
  const int family = v6 ? AF_INET6 : AF_INET;
  const int on = 1;
  const auto bound = [&](int type, std::uint16_t port, int buffer) -> Descriptor {
    Descriptor socket(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) return {};
    if (v6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (buffer != 0) ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    const sockaddr_storage at = socket_address({Address{.v6 = v6}, port});
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), length_of(v6)) != 0) return {};
    return socket;
  };
  for (const auto& [port, buffer] : kTcpPorts) {
    Descriptor socket = bound(SOCK_STREAM, port, buffer);
    const int waiting = 1000;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_FASTOPEN, &waiting, sizeof waiting);  // has an effect if the profile
                                                                                      // enables it
    if (!socket || ::listen(socket.get(), 65535) != 0) return refused(fmt::format("cannot listen on port {}", port));
    listeners_.push_back(std::move(socket));
  }
  for (const std::uint16_t port : kUdpPorts) {
    Descriptor socket = bound(SOCK_DGRAM, port, 0);
    if (!socket) return refused(fmt::format("cannot bind UDP port {}", port));
    datagrams_.push_back(std::move(socket));
  }
  return {};
}

std::optional<KernelHost::Accepted> KernelHost::accept(std::uint16_t port, bool v6) {
  const auto* const entry =
      std::find_if(std::begin(kTcpPorts), std::end(kTcpPorts), [&](const auto& one) { return one.first == port; });
  if (entry == std::end(kTcpPorts)) return {};
  const auto index = static_cast<std::size_t>(entry - std::begin(kTcpPorts)) + (v6 ? std::size(kTcpPorts) : 0);
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  Descriptor socket(
      ::accept4(listeners_[index].get(), reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return {};
  return Accepted{std::move(socket), endpoint_of(peer)};
}

Descriptor KernelHost::connect(const Endpoint& to, std::uint16_t from_port) {
  network_->enter();
  const bool v6 = to.address.v6;
  const int on = 1;
  Descriptor socket(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (from_port != 0) {
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_storage from = socket_address({Address{.v6 = v6}, from_port});
    static_cast<void>(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), length_of(v6)));
  }
  const sockaddr_storage peer = socket_address(to);
  static_cast<void>(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&peer), length_of(v6)));  // in progress
  return socket;
}

bool KernelHost::read(const Descriptor& socket, std::string& read) {
  for (;;) {
    const ssize_t length = ::recv(socket.get(), text_.data(), text_.size(), MSG_DONTWAIT);
    if (length > 0) {
      read.append(text_.data(), static_cast<std::size_t>(length));
      // A short read does not mean that there is no more data: reads end at an urgent byte.
    } else {
      return length < 0 && (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN);
    }
  }
}

std::optional<KernelHost::Datagram> KernelHost::read_datagram(std::uint16_t port, bool v6) {
  const auto* const entry = std::find(std::begin(kUdpPorts), std::end(kUdpPorts), port);
  const auto index = static_cast<std::size_t>(entry - std::begin(kUdpPorts)) + (v6 ? std::size(kUdpPorts) : 0);
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  const ssize_t length = ::recvfrom(datagrams_[index].get(), text_.data(), text_.size(), MSG_DONTWAIT,
                                    reinterpret_cast<sockaddr*>(&peer), &size);
  if (length < 0) return {};
  return Datagram{std::string(text_.data(), static_cast<std::size_t>(length)), endpoint_of(peer)};
}

std::string KernelHost::kernel_release() {
  utsname name{};
  ::uname(&name);
  return name.release;
}

bool write_bytes(const Descriptor& socket, std::string_view text) {
  return ::send(socket.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

void send_fin(const Descriptor& socket) { static_cast<void>(::shutdown(socket.get(), SHUT_WR)); }

void abort_on_close(const Descriptor& socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace penstock::evasion
