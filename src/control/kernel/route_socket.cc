// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/route_socket.h"

#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace penstock::control {

namespace {

constexpr std::size_t kBufferBytes = 256 << 10;  // the kernel fills up to 32 KiB at a time

/// Of the part after the header.
std::size_t fixed_bytes(std::uint16_t type) noexcept {
  switch (type) {
    case RTM_GETLINK: return sizeof(ifinfomsg);
    case RTM_GETNEIGH: return sizeof(ndmsg);
    case RTM_GETNEXTHOP: return sizeof(nhmsg);
    default: return sizeof(rtmsg);
  }
}

tl::unexpected<Errors> refused(std::string_view what) {
  return failure(Error{{}, std::string(what), std::system_category().message(errno), ""});
}

}  // namespace

Result<RouteSocket> RouteSocket::open(int protocol) {
  RouteSocket result;
  result.socket_ = port::FileDescriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  if (!result.socket_ || ::bind(result.socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return refused("cannot open a socket to the kernel's tables");
  result.buffer_.resize(kBufferBytes / sizeof(std::uint32_t));
  return result;
}

Result<void> RouteSocket::subscribe(std::span<const unsigned> groups, int buffer_bytes) {
  // Without CAP_NET_ADMIN, as much as net.core.rmem_max.
  if (::setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes) != 0)
    static_cast<void>(::setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof buffer_bytes));
  for (const unsigned group : groups) {
    if (::setsockopt(fd(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) != 0)
      return refused("cannot follow the kernel's tables");
  }
  return {};
}

RouteSocket::Received RouteSocket::receive(std::span<const std::uint8_t>& messages, bool wait) {
  for (;;) {
    sockaddr_nl sender{};
    iovec part{buffer_.data(), buffer_.size() * sizeof(std::uint32_t)};
    msghdr header{};
    header.msg_name = &sender;
    header.msg_namelen = sizeof sender;
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    const ssize_t length = ::recvmsg(fd(), &header, wait ? 0 : MSG_DONTWAIT);
    if (length < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return Received::nothing;
      return errno == ENOBUFS ? Received::lost : Received::failed;
    }
    if (header.msg_namelen != sizeof sender || sender.nl_family != AF_NETLINK || sender.nl_pid != 0) continue;
    if ((header.msg_flags & MSG_TRUNC) != 0) return Received::lost;
    messages = {reinterpret_cast<const std::uint8_t*>(buffer_.data()), static_cast<std::size_t>(length)};
    return Received::messages;
  }
}

bool RouteSocket::ask_for_all(std::uint16_t type, std::uint8_t family) {
  std::array<std::uint32_t, 32> request{};
  nlmsghdr* const header = mnl_nlmsg_put_header(request.data());
  header->nlmsg_type = type;
  header->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  header->nlmsg_seq = ++sequence_;
  // All fixed parts begin with the family.
  *static_cast<std::uint8_t*>(mnl_nlmsg_put_extra_header(header, fixed_bytes(type))) = family;
  return send({reinterpret_cast<const std::uint8_t*>(request.data()), header->nlmsg_len});
}

bool RouteSocket::send(std::span<const std::uint8_t> request) {
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  return ::sendto(fd(), request.data(), request.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) ==
         static_cast<ssize_t>(request.size());
}

}  // namespace penstock::control
