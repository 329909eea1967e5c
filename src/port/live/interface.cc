// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/interface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <system_error>

#include "base/log.h"
#include "base/parameter.h"
#include "port/live/namespace_thread.h"

namespace penstock::port {

namespace {

/// An ioctl about an interface. False if it fails.
bool ask(const FileDescriptor& socket, const std::string& name, unsigned long request, ifreq& answer) noexcept {
  std::memset(&answer.ifr_name, 0, sizeof answer.ifr_name);
  name.copy(answer.ifr_name, IFNAMSIZ - 1);
  return ::ioctl(socket.get(), request, &answer) == 0;
}

FileDescriptor any_socket() noexcept { return FileDescriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

std::optional<Interface> find_interface(const FileDescriptor& socket, const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ) return std::nullopt;
  Interface found;
  ifreq answer{};
  if (!ask(socket, name, SIOCGIFINDEX, answer)) return std::nullopt;
  found.index = answer.ifr_ifindex;
  if (!ask(socket, name, SIOCGIFFLAGS, answer)) return std::nullopt;
  found.up = (answer.ifr_flags & IFF_UP) != 0;
  found.carrier = found.up && (answer.ifr_flags & IFF_RUNNING) != 0;
  if (!ask(socket, name, SIOCGIFMTU, answer)) return std::nullopt;
  found.mtu = static_cast<std::uint32_t>(answer.ifr_mtu);
  if (!ask(socket, name, SIOCGIFHWADDR, answer)) return std::nullopt;
  found.is_loopback = answer.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
  found.is_ethernet = answer.ifr_hwaddr.sa_family == ARPHRD_ETHER || found.is_loopback;
  std::memcpy(found.mac.bytes, answer.ifr_hwaddr.sa_data, sizeof found.mac.bytes);
  return found;
}

/// Statistics of the driver, as `ethtool -S` prints them; empty if it has none.
InterfaceCounts::Counts driver_statistics(const FileDescriptor& socket, const std::string& name) {
  ifreq request{};
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (!ask(socket, name, SIOCETHTOOL, request) || info.n_stats == 0 || info.n_stats > 65536) return {};
  // Both end in arrays of n_stats entries.
  std::vector<std::uint64_t> names(
      (sizeof(ethtool_gstrings) + info.n_stats * std::size_t{ETH_GSTRING_LEN}) / sizeof(std::uint64_t) + 1);
  std::vector<std::uint64_t> values(sizeof(ethtool_stats) / sizeof(std::uint64_t) + info.n_stats + 1);
  auto& strings = *reinterpret_cast<ethtool_gstrings*>(names.data());
  strings.cmd = ETHTOOL_GSTRINGS;
  strings.string_set = ETH_SS_STATS;
  strings.len = info.n_stats;
  request.ifr_data = reinterpret_cast<char*>(&strings);
  if (!ask(socket, name, SIOCETHTOOL, request)) return {};
  auto& stats = *reinterpret_cast<ethtool_stats*>(values.data());
  stats.cmd = ETHTOOL_GSTATS;
  stats.n_stats = info.n_stats;
  request.ifr_data = reinterpret_cast<char*>(&stats);
  if (!ask(socket, name, SIOCETHTOOL, request)) return {};
  InterfaceCounts::Counts counts;
  const auto* const text = reinterpret_cast<const char*>(names.data()) + sizeof(ethtool_gstrings);
  for (std::size_t i = 0; i < std::min(strings.len, stats.n_stats); ++i) {
    const char* const one = text + i * ETH_GSTRING_LEN;
    counts.emplace_back(std::string(one, ::strnlen(one, ETH_GSTRING_LEN)), values[sizeof(ethtool_stats) / 8 + i]);
  }
  return counts;
}

}  // namespace

std::vector<std::string> interface_names() {
  std::vector<std::string> names;
  if (struct if_nameindex* const all = ::if_nameindex()) {
    for (const struct if_nameindex* one = all; one->if_index != 0; ++one) names.emplace_back(one->if_name);
    ::if_freenameindex(all);
  }
  return names;
}

std::optional<Interface> find_interface(const std::string& name) { return find_interface(any_socket(), name); }

std::string master_of(const Interface& interface) {
  struct Request {
    nlmsghdr header;
    ifinfomsg link;
  } request{};
  request.header.nlmsg_len = NLMSG_LENGTH(sizeof request.link);
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  request.link.ifi_index = interface.index;
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket || ::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) return "";
  alignas(nlmsghdr) std::array<std::uint8_t, 32768> answer;
  const ssize_t received = ::recv(socket.get(), answer.data(), answer.size(), 0);  // the kernel answers at once
  constexpr std::size_t kLeast = NLMSG_LENGTH(sizeof(ifinfomsg));
  const auto& header = *reinterpret_cast<const nlmsghdr*>(answer.data());
  if (received < static_cast<ssize_t>(kLeast) || header.nlmsg_type != RTM_NEWLINK) return "";
  std::span<const std::uint8_t> attributes = std::span(answer).first(static_cast<std::size_t>(received));
  attributes = attributes.subspan(std::min<std::size_t>(NLMSG_ALIGN(kLeast), attributes.size()));
  while (attributes.size() >= sizeof(rtattr)) {
    const auto& attribute = *reinterpret_cast<const rtattr*>(attributes.data());
    if (attribute.rta_len < sizeof(rtattr) || attribute.rta_len > attributes.size()) break;
    if (attribute.rta_type == IFLA_MASTER && attribute.rta_len == RTA_LENGTH(sizeof(std::uint32_t))) {
      std::uint32_t index = 0;
      std::memcpy(&index, attributes.data() + RTA_LENGTH(0), sizeof index);
      std::array<char, IFNAMSIZ> name{};
      return ::if_indextoname(index, name.data()) == nullptr ? std::to_string(index) : std::string(name.data());
    }
    attributes = attributes.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), attributes.size()));
  }
  return "";
}

Result<Interface> require_interface(const std::string& name, const Place& place) {
  if (auto found = find_interface(name)) {
    if (found->is_ethernet) return *found;
    return failure({place, "the interface carries no Ethernet frames", in_quotes(name), "an Ethernet interface"});
  }
  const std::vector<std::string> names = interface_names();
  return failure({place, "there is no such interface in this network namespace", in_quotes(name),
                  names.empty() ? "" : fmt::format("one of {}", fmt::join(names, ", "))});
}

Errors check_interface(const std::string& name, const std::string& netns, const Place& place) {
  auto found = in_network_namespace(netns, [&]() -> Result<void> {
    if (auto interface = require_interface(name, place); !interface) return failure(std::move(interface.error()));
    return {};
  });
  return found ? Errors{} : std::move(found.error());
}

std::string driver_of(const std::string& name) {
  ifreq request{};
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  request.ifr_data = reinterpret_cast<char*>(&info);
  if (!ask(any_socket(), name, SIOCETHTOOL, request)) return {};
  return std::string(info.driver, ::strnlen(info.driver, sizeof info.driver));
}

std::optional<QueueCounts> queues_of(const std::string& name) {
  ifreq request{};
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (!ask(any_socket(), name, SIOCETHTOOL, request)) return std::nullopt;
  const QueueCounts counts{channels.combined_count + channels.rx_count, channels.combined_count + channels.tx_count};
  if (counts.receive == 0 || counts.send == 0) return std::nullopt;  // such as a TAP interface that nobody uses
  return counts;
}

InterfaceWatch::InterfaceWatch(std::string name, Callback returned, Callback mtu_grown, std::vector<Capability> needs)
    : name_(std::move(name)),
      returned_(std::move(returned)),
      mtu_grown_(std::move(mtu_grown)),
      needs_(std::move(needs)) {}

InterfaceWatch::~InterfaceWatch() {
  stop_.signal();
  if (thread_.joinable()) thread_.join();
}

Result<void> InterfaceWatch::start() {
  queries_ = any_socket();
  changes_ = FileDescriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = RTMGRP_LINK;
  if (addresses_changed_) address.nl_groups |= RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (!queries_ || !changes_ ||
      ::bind(changes_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failure(system_error(name_, "cannot follow the interface", std::system_category().message(errno)));
  statistics_at_start_ = driver_statistics(queries_, name_);
  if (addresses_changed_) addresses_changed_();  // since they were read first
  update();
  std::promise<void> begun;
  const auto has_begun = begun.get_future();
  try {
    thread_ = std::thread([this, begun = std::move(begun)]() mutable {
      static_cast<void>(keep_only(needs_));  // if this fails, so it does for the run, which warns
      static_cast<void>(::pthread_setname_np(::pthread_self(), "interface-watch"));
      begun.set_value();
      run();
    });
  } catch (const std::system_error& error) {
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  has_begun.wait();  // until then, the thread has more capabilities than it needs
  return {};
}

void InterfaceWatch::run() {
  std::array<pollfd, 2> wait{{{changes_.get(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}}};
  std::array<std::uint64_t, 2048> messages;
  constexpr int kRetryMs = 1000;
  while (::poll(wait.data(), wait.size(), is_new_ ? kRetryMs : -1) >= 0 || errno == EINTR) {
    if (wait[1].revents != 0) return;
    // Except for deletions, what has changed does not matter: only how it is now. So lost messages (ENOBUFS) do little
    // harm.
    for (;;) {
      errno = 0;
      const ssize_t length = ::recv(changes_.get(), messages.data(), sizeof messages, 0);
      if (length > 0) {
        note_deletion({reinterpret_cast<const std::uint8_t*>(messages.data()), static_cast<std::size_t>(length)});
      } else if (errno != ENOBUFS) {
        break;
      }
    }
    if (addresses_changed_) addresses_changed_();
    update();
  }
}

/// An interface may be deleted and come back with the same index before the thread looks at it, for example if it is
/// moved to another namespace and back.
void InterfaceWatch::note_deletion(std::span<const std::uint8_t> messages) {
  constexpr std::size_t kLeast = NLMSG_LENGTH(sizeof(ifinfomsg));
  while (messages.size() >= kLeast) {
    const auto& header = *reinterpret_cast<const nlmsghdr*>(messages.data());
    const auto& link = *reinterpret_cast<const ifinfomsg*>(messages.data() + NLMSG_HDRLEN);
    if (header.nlmsg_len < kLeast) return;
    // Another family: the interface has left a bridge.
    if (header.nlmsg_type == RTM_DELLINK && link.ifi_family == AF_UNSPEC && last_ && link.ifi_index == last_->index) {
      note(std::nullopt);
      last_.reset();
    }
    messages = messages.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), messages.size()));
  }
}

void InterfaceWatch::update() {
  const std::optional<Interface> now = find_interface(queries_, name_);
  const bool grown = now && last_ && now->index == last_->index && now->mtu > last_->mtu;
  note(now);
  last_ = now;
  if (grown && !is_new_ && mtu_grown_) static_cast<void>(mtu_grown_(*now));
  if (!now || !is_new_ || (returned_ && !returned_(*now))) return;
  is_new_ = false;
  log_info("interface {}: there again", name_);
  returns_.fetch_add(1, std::memory_order_relaxed);
}

void InterfaceWatch::note(const std::optional<Interface>& now) {
  if (last_) {
    if (!now || now->index != last_->index) {
      log_warning("interface {}: deleted", name_);
      deletions_.fetch_add(1, std::memory_order_relaxed);
      is_new_ = true;
    }
    if (now && last_->up && !now->up) {
      downs_.fetch_add(1, std::memory_order_relaxed);
      log_warning("interface {}: down", name_);
    }
    if (now && now->up && last_->carrier && !now->carrier) {
      lost_carriers_.fetch_add(1, std::memory_order_relaxed);
      log_warning("interface {}: no carrier", name_);
    }
    if (now && !last_->carrier && now->carrier) log_info("interface {}: up", name_);
    if (now && now->mtu != last_->mtu) log_info("interface {}: MTU {}, was {}", name_, now->mtu, last_->mtu);
  } else if (now && !now->carrier && !is_new_) {
    log_warning("interface {}: {} at the start", name_, now->up ? "no carrier" : "down");
  }
  exists_.store(now.has_value(), std::memory_order_relaxed);
  can_send_.store(now && now->carrier, std::memory_order_relaxed);
  if (now) mtu_.store(now->mtu, std::memory_order_relaxed);
}

InterfaceCounts::Counts InterfaceWatch::events() const {
  InterfaceCounts::Counts counts{{"interface_down", downs_.load(std::memory_order_relaxed)},
                                 {"carrier_lost", lost_carriers_.load(std::memory_order_relaxed)},
                                 {"interface_deleted", deletions_.load(std::memory_order_relaxed)},
                                 {"interface_returned", returns_.load(std::memory_order_relaxed)}};
  // Of the driver's many counters, those of losses.
  constexpr std::array<std::string_view, 5> kWords{"drop", "miss", "discard", "err", "no_buf"};
  for (const auto& statistic : driver_statistics(queries_, name_)) {
    const std::string& name = statistic.first;
    const std::uint64_t value = statistic.second;
    const auto before = std::ranges::find(statistics_at_start_, name, &std::pair<std::string, std::uint64_t>::first);
    const std::uint64_t first = before == statistics_at_start_.end() ? 0 : before->second;
    const bool is_loss =
        std::ranges::any_of(kWords, [&](std::string_view word) { return name.find(word) != std::string::npos; });
    if (is_loss && value > first) counts.emplace_back("driver." + name, value - first);
  }
  return counts;
}

}  // namespace penstock::port
