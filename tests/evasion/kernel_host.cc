// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/kernel_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace penstock::evasion {

namespace {

constexpr const char* kDevice = "evasion";
constexpr const char* kPageDevice = "evasion_page";
constexpr std::size_t kLargestPacket = 65536;

/// The namespace that the thread began in, once it has left it; and whose it is in now.
thread_local Descriptor outer_namespace;
thread_local const void* namespace_owner = nullptr;

tl::unexpected<Errors> refused(std::string what) {
  const int reason = errno;
  return failure(Error{{}, std::move(what), std::strerror(reason), ""});
}

/// A setting of the namespace that is not the default.
struct Setting {
  const char* path;
  const char* value;
  bool required;
};
/// None of these changes which bytes a host takes.
constexpr Setting kSettings[] = {
    // Answers to invalid packets are limited by time: whether one comes would depend on how fast the fuzzer is.
    {"net/ipv4/tcp_invalid_ratelimit", "0", false},
    {"net/ipv4/tcp_challenge_ack_limit", "2147483647", false},
    {"net/ipv4/icmp_ratelimit", "0", false},
    // What conversations that are over have left: half-open connections, connections in TIME_WAIT, fragments.
    {"net/ipv4/tcp_synack_retries", "0", false},
    {"net/ipv4/tcp_max_syn_backlog", "65535", true},
    {"net/core/somaxconn", "65535", true},
    {"net/ipv4/ipfrag_high_thresh", "536870912", true},
    {"net/ipv4/ipfrag_low_thresh", "402653184", false},
    {"net/ipv6/ip6frag_high_thresh", "536870912", false},
    {"net/ipv6/ip6frag_low_thresh", "402653184", false},
    // No memory of earlier connections with an address.
    {"net/ipv4/tcp_no_metrics_save", "1", false},
    // Packets come from anywhere by one device.
    {"net/ipv4/conf/all/rp_filter", "0", true},
    {"net/ipv4/conf/default/rp_filter", "0", true},
    // No traffic of its own, and the addresses can be used at once.
    {"net/ipv6/conf/default/accept_dad", "0", false},
    {"net/ipv6/conf/default/router_solicitations", "0", false},
    {"net/ipv6/conf/default/addr_gen_mode", "1", false},
    {"net/ipv6/conf/all/disable_ipv6", "0", false},
};

/// Of a profile. Where the kernel does not know one, the host is as it is without.
constexpr Setting kProfileSettings[kHostProfiles] = {
    {nullptr, nullptr, false},
    {"net/ipv4/tcp_syncookies", "2", false},
    {"net/ipv4/tcp_fastopen", "1539", false},  // client, server, without a cookie, all listeners
    {"net/ipv4/tcp_timestamps", "0", false},
    {"net/ipv4/tcp_window_scaling", "0", false},
    {"net/ipv4/tcp_sack", "0", false},
    {"net/ipv4/ipfrag_time", "1", false},
};

bool write_file(const std::string& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Result<void> apply_settings(HostProfile profile) {
  const Setting& own = kProfileSettings[static_cast<std::size_t>(profile)];
  if (own.path != nullptr) write_file(std::string("/proc/sys/") + own.path, own.value);
  for (const Setting& setting : kSettings) {
    if (!write_file(std::string("/proc/sys/") + setting.path, setting.value) && setting.required) {
      return refused(fmt::format("cannot set /proc/sys/{} to {}", setting.path, setting.value));
    }
  }
  return {};
}

sockaddr_storage socket_address(const Endpoint& endpoint) {
  sockaddr_storage storage{};
  if (endpoint.address.v6) {
    auto& to = reinterpret_cast<sockaddr_in6&>(storage);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(endpoint.port);
    std::copy_n(endpoint.address.bytes.begin(), 16, to.sin6_addr.s6_addr);
  } else {
    auto& to = reinterpret_cast<sockaddr_in&>(storage);
    to.sin_family = AF_INET;
    to.sin_port = htons(endpoint.port);
    std::memcpy(&to.sin_addr, endpoint.address.bytes.data(), 4);
  }
  return storage;
}

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

ifreq request_for(const char* device) {
  ifreq request{};
  std::strncpy(request.ifr_name, device, IFNAMSIZ - 1);
  return request;
}

bool bring_up(int socket, const char* device) {
  ifreq request = request_for(device);
  if (::ioctl(socket, SIOCGIFFLAGS, &request) < 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  return ::ioctl(socket, SIOCSIFFLAGS, &request) == 0;
}

void set_ipv4(sockaddr& to, const Address& address) {
  const sockaddr_storage storage = socket_address({address, 0});
  std::memcpy(&to, &storage, sizeof(sockaddr_in));
}

Result<void> configure_ipv4() {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return refused("cannot make an IPv4 socket");
  for (const char* device : {"lo", kDevice, kPageDevice}) {
    if (!bring_up(socket.get(), device)) return refused(fmt::format("cannot bring up the device {}", device));
  }
  ifreq request = request_for(kDevice);
  set_ipv4(request.ifr_addr, KernelHost::address(false));
  if (::ioctl(socket.get(), SIOCSIFADDR, &request) < 0) return refused("cannot set the device's address");
  rtentry route{};
  set_ipv4(route.rt_dst, {});
  set_ipv4(route.rt_genmask, {});
  std::string device = kDevice;
  route.rt_dev = device.data();
  route.rt_flags = RTF_UP;
  if (::ioctl(socket.get(), SIOCADDRT, &route) < 0) return refused("cannot set a default route");
  return {};
}

struct Ipv6Request {
  in6_addr address;
  std::uint32_t prefix_length;
  int index;
};

bool configure_ipv6() {
  const Descriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  ifreq request = request_for(kDevice);
  if (::ioctl(socket.get(), SIOCGIFINDEX, &request) < 0) return false;
  Ipv6Request address{};
  std::copy_n(KernelHost::address(true).bytes.begin(), 16, address.address.s6_addr);
  address.prefix_length = 128;
  address.index = request.ifr_ifindex;
  if (::ioctl(socket.get(), SIOCSIFADDR, &address) < 0) return false;
  in6_rtmsg route{};
  route.rtmsg_metric = 1;
  route.rtmsg_flags = RTF_UP;
  route.rtmsg_ifindex = request.ifr_ifindex;
  return ::ioctl(socket.get(), SIOCADDRT, &route) == 0;
}

}  // namespace

void allow_network_namespaces() {
  if (::geteuid() == 0) return;
  const uid_t user = ::getuid();
  const gid_t group = ::getgid();
  if (::unshare(CLONE_NEWUSER) != 0) return;
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", fmt::format("0 {} 1", user));
  write_file("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

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
  const std::uint32_t number = std::uint32_t{address.bytes[at]} << 16 | std::uint32_t{address.bytes[at + 1]} << 8 |
                               address.bytes[at + 2];
  if (address != attacker(address.v6, number)) return {};
  return number;
}

std::string_view name_of(HostProfile profile) {
  constexpr std::string_view kNames[kHostProfiles] = {"standard",      "syn_cookies",       "fast_open",
                                                      "no_timestamps", "no_window_scaling", "no_sack",
                                                      "quick_timers"};
  return kNames[static_cast<std::size_t>(profile)];
}

std::vector<HostProfile> all_profiles() {
  std::vector<HostProfile> all;
  for (std::size_t i = 0; i < kHostProfiles; ++i) all.push_back(static_cast<HostProfile>(i));
  return all;
}

Result<std::unique_ptr<KernelHost>> KernelHost::make(HostProfile profile) {
  std::unique_ptr<KernelHost> host(new KernelHost);
  if (auto done = host->set_up(profile); !done) return tl::unexpected(std::move(done).error());
  return host;
}

KernelHost::~KernelHost() {
  if (outer_namespace) static_cast<void>(::setns(outer_namespace.get(), CLONE_NEWNET));
  namespace_owner = nullptr;
}

void KernelHost::enter_namespace() {
  if (namespace_owner == this) return;
  static_cast<void>(::setns(own_namespace_.get(), CLONE_NEWNET));
  namespace_owner = this;
}

Result<void> KernelHost::set_up(HostProfile profile) {
  packet_.resize(kLargestPacket);
  text_.resize(kLargestPacket);
  constexpr const char* kNamespace = "/proc/thread-self/ns/net";
  if (!outer_namespace) outer_namespace = Descriptor(::open(kNamespace, O_RDONLY | O_CLOEXEC));
  if (!outer_namespace) return refused("cannot open this thread's network namespace");
  if (::unshare(CLONE_NEWNET) != 0) return refused("cannot make a network namespace");
  namespace_owner = this;
  own_namespace_ = Descriptor(::open(kNamespace, O_RDONLY | O_CLOEXEC));
  if (auto done = apply_settings(profile); !done) return done;
  if (auto done = open_devices(); !done) return done;
  if (auto done = configure_ipv4(); !done) return done;
  has_ipv6_ = configure_ipv6();
  if (auto done = listen_on_ports(false); !done) return done;
  if (has_ipv6_) {
    if (auto done = listen_on_ports(true); !done) return done;
  }
  for (const bool v6 : {false, true}) {
    for (const bool in_page : {false, true}) {
      errno = ETIMEDOUT;
      if ((!v6 || has_ipv6_) && !takes_datagrams(v6, in_page)) return refused("the host takes no datagrams");
    }
  }
  return {};
}

// An IPv6 address is not there at once. And whatever keeps packets from the host is told here, not in conversations.
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

Result<void> KernelHost::open_devices() {
  const auto open = [](const char* name, int flags) -> Descriptor {
    Descriptor device(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    ifreq request = request_for(name);
    request.ifr_flags = static_cast<short>(flags | IFF_NO_PI);
    if (!device || ::ioctl(device.get(), TUNSETIFF, &request) < 0) return {};
    return device;
  };
  device_ = open(kDevice, IFF_TUN);
  if (!device_) return refused("cannot make a TUN device");
  page_device_ = open(kPageDevice, IFF_TAP);
  ifreq request = request_for(kPageDevice);
  if (!page_device_ || ::ioctl(page_device_.get(), SIOCGIFHWADDR, &request) < 0) return refused("cannot make a TAP device");
  frame_.assign(request.ifr_hwaddr.sa_data, request.ifr_hwaddr.sa_data + 6);  // to the device itself
  frame_.insert(frame_.end(), {2, 0, 0, 0, 0, 2, 0, 0});
  return {};
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
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_FASTOPEN, &waiting, sizeof waiting);  // counts where it is set up
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

void KernelHost::deliver(BytesView packet, bool in_page) {
  // What is not even IP is refused with EINVAL: no host reads that.
  if (!in_page || packet.empty()) {
    static_cast<void>(::write(device_.get(), packet.data(), packet.size()));
    return;
  }
  constexpr std::size_t kHeader = 14;
  const bool v6 = packet[0] >> 4 == 6;
  frame_.resize(kHeader);
  frame_[12] = v6 ? 0x86 : 0x08;
  frame_[13] = v6 ? 0xdd : 0x00;
  frame_.insert(frame_.end(), packet.begin(), packet.end());
  static_cast<void>(::write(page_device_.get(), frame_.data(), frame_.size()));
}

BytesView KernelHost::sent() {
  const ssize_t length = ::read(device_.get(), packet_.data(), packet_.size());
  return length <= 0 ? BytesView{} : BytesView(packet_).first(static_cast<std::size_t>(length));
}

std::optional<KernelHost::Accepted> KernelHost::accept(std::uint16_t port, bool v6) {
  const auto* const entry =
      std::find_if(std::begin(kTcpPorts), std::end(kTcpPorts), [&](const auto& one) { return one.first == port; });
  if (entry == std::end(kTcpPorts)) return {};
  const auto index = static_cast<std::size_t>(entry - std::begin(kTcpPorts)) + (v6 ? std::size(kTcpPorts) : 0);
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  Descriptor socket(::accept4(listeners_[index].get(), reinterpret_cast<sockaddr*>(&peer), &length,
                              SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return {};
  return Accepted{std::move(socket), endpoint_of(peer)};
}

Descriptor KernelHost::connect(const Endpoint& to, std::uint16_t from_port) {
  enter_namespace();
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
      // A short read does not mean that there is no more: reads end at an urgent byte.
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
