// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "evasion/host_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace penstock::evasion {

namespace {

constexpr const char* kDevice = "evasion";
constexpr const char* kPageDevice = "evasion_page";
constexpr std::size_t kLargestPacket = 65536;

/// The thread's original namespace, once it has left it; and the owner of the one that it is in now.
thread_local Descriptor outer_namespace;
thread_local const void* namespace_owner = nullptr;

/// A setting of the namespace that is not the default.
struct Setting {
  const char* path;
  const char* value;
  bool required;
};
/// None of these affects which bytes a host accepts.
constexpr Setting kSettings[] = {
    // Answers to invalid packets are rate-limited; with a limit, results would depend on the fuzzer's speed.
    {"net/ipv4/tcp_invalid_ratelimit", "0", false},
    {"net/ipv4/tcp_challenge_ack_limit", "2147483647", false},
    {"net/ipv4/icmp_ratelimit", "0", false},
    // Leftovers of finished conversations: half-open connections, connections in TIME_WAIT, fragments.
    {"net/ipv4/tcp_synack_retries", "0", false},
    {"net/ipv4/tcp_max_syn_backlog", "65535", true},
    {"net/core/somaxconn", "65535", true},
    {"net/ipv4/ipfrag_high_thresh", "536870912", true},
    {"net/ipv4/ipfrag_low_thresh", "402653184", false},
    {"net/ipv6/ip6frag_high_thresh", "536870912", false},
    {"net/ipv6/ip6frag_low_thresh", "402653184", false},
    // No metrics of earlier connections with an address.
    {"net/ipv4/tcp_no_metrics_save", "1", false},
    // Packets from any address arrive on one device.
    {"net/ipv4/conf/all/rp_filter", "0", true},
    {"net/ipv4/conf/default/rp_filter", "0", true},
    // No traffic of its own, and addresses that can be used at once.
    {"net/ipv6/conf/default/accept_dad", "0", false},
    {"net/ipv6/conf/default/router_solicitations", "0", false},
    {"net/ipv6/conf/default/addr_gen_mode", "1", false},
    {"net/ipv6/conf/all/disable_ipv6", "0", false},
};

/// Settings of a profile. If the kernel does not know one of them, the host keeps its default.
constexpr Setting kProfileSettings[kHostProfiles] = {
    {nullptr, nullptr, false},
    {"net/ipv4/tcp_syncookies", "2", false},
    {"net/ipv4/tcp_fastopen", "1539", false},  // client, server, without cookies, all listeners
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

struct Ipv6Request {
  in6_addr address;
  std::uint32_t prefix_length;
  int index;
};

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

std::string_view name_of(HostProfile profile) {
  constexpr std::string_view kNames[kHostProfiles] = {
      "standard", "syn_cookies", "fast_open", "no_timestamps", "no_window_scaling", "no_sack", "quick_timers"};
  return kNames[static_cast<std::size_t>(profile)];
}

std::vector<HostProfile> all_profiles() {
  std::vector<HostProfile> all;
  for (std::size_t i = 0; i < kHostProfiles; ++i) all.push_back(static_cast<HostProfile>(i));
  return all;
}

tl::unexpected<Errors> refused(std::string what) {
  const int reason = errno;
  return failure(Error{{}, std::move(what), std::strerror(reason), ""});
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

Result<std::unique_ptr<HostNetwork>> HostNetwork::make(HostProfile profile, const Address& ipv4, const Address& ipv6) {
  constexpr const char* kNamespace = "/proc/thread-self/ns/net";
  if (!outer_namespace) outer_namespace = Descriptor(::open(kNamespace, O_RDONLY | O_CLOEXEC));
  if (!outer_namespace) return refused("cannot open this thread's network namespace");
  if (::unshare(CLONE_NEWNET) != 0) return refused("cannot make a network namespace");
  std::unique_ptr<HostNetwork> network(new HostNetwork);
  namespace_owner = network.get();
  network->namespace_ = Descriptor(::open(kNamespace, O_RDONLY | O_CLOEXEC));
  if (auto done = apply_settings(profile); !done) return tl::unexpected(std::move(done).error());
  if (auto done = network->open_devices(); !done) return tl::unexpected(std::move(done).error());
  if (auto done = network->configure_ipv4(ipv4); !done) return tl::unexpected(std::move(done).error());
  network->has_ipv6_ = network->configure_ipv6(ipv6);
  return network;
}

HostNetwork::~HostNetwork() {
  if (outer_namespace) static_cast<void>(::setns(outer_namespace.get(), CLONE_NEWNET));
  namespace_owner = nullptr;
}

void HostNetwork::enter() {
  if (namespace_owner == this) return;
  static_cast<void>(::setns(namespace_.get(), CLONE_NEWNET));
  namespace_owner = this;
}

Result<void> HostNetwork::open_devices() {
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
  if (!page_device_ || ::ioctl(page_device_.get(), SIOCGIFHWADDR, &request) < 0)
    return refused("cannot make a TAP device");
  frame_.assign(request.ifr_hwaddr.sa_data, request.ifr_hwaddr.sa_data + 6);  // addressed to the device itself
  frame_.insert(frame_.end(), {2, 0, 0, 0, 0, 2, 0, 0});
  packet_.resize(kLargestPacket);
  return {};
}

Result<void> HostNetwork::configure_ipv4(const Address& address) const {
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return refused("cannot make an IPv4 socket");
  for (const char* device : {"lo", kDevice, kPageDevice}) {
    if (!bring_up(socket.get(), device)) return refused(fmt::format("cannot bring up the device {}", device));
  }
  ifreq request = request_for(kDevice);
  set_ipv4(request.ifr_addr, address);
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

bool HostNetwork::configure_ipv6(const Address& address) const {
  const Descriptor socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return false;
  ifreq request = request_for(kDevice);
  if (::ioctl(socket.get(), SIOCGIFINDEX, &request) < 0) return false;
  Ipv6Request wanted{};
  std::copy_n(address.bytes.begin(), 16, wanted.address.s6_addr);
  wanted.prefix_length = 128;
  wanted.index = request.ifr_ifindex;
  if (::ioctl(socket.get(), SIOCSIFADDR, &wanted) < 0) return false;
  in6_rtmsg route{};
  route.rtmsg_metric = 1;
  route.rtmsg_flags = RTF_UP;
  route.rtmsg_ifindex = request.ifr_ifindex;
  return ::ioctl(socket.get(), SIOCADDRT, &route) == 0;
}

void HostNetwork::deliver(BytesView packet, bool in_page) {
  // Packets that are not IP at all are refused with EINVAL; no host would read them.
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

BytesView HostNetwork::sent() {
  const ssize_t length = ::read(device_.get(), packet_.data(), packet_.size());
  return length <= 0 ? BytesView{} : BytesView(packet_).first(static_cast<std::size_t>(length));
}

}  // namespace penstock::evasion
