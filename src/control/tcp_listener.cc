// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/tcp_listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "base/byte_order.h"

namespace penstock::control {

namespace {

using port::FileDescriptor;

/// Returns the length of the address.
socklen_t fill(sockaddr_storage& to, const ListenAddress& listen) {
  if (const auto* const four = std::get_if<Ipv4Address>(&listen.address)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(listen.port);
    address.sin_addr.s_addr = htonl(four->bits);
    std::memcpy(&to, &address, sizeof address);
    return sizeof address;
  }
  const auto& six = std::get<Ipv6Address>(listen.address);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(listen.port);
  Be64 words[2];
  words[0].set(six.high);
  words[1].set(six.low);
  std::memcpy(&address.sin6_addr, words, sizeof address.sin6_addr);
  std::memcpy(&to, &address, sizeof address);
  return sizeof address;
}

std::string expected_after(int error) {
  switch (error) {
    case EADDRINUSE: return "a port at which no other process listens";
    case EADDRNOTAVAIL: return "an address of this machine";
    case EACCES: return "a port from 1024 on, or the capability CAP_NET_BIND_SERVICE";
    default: return "";
  }
}

/// Makes a socket that has the address. Returns errno, or 0.
int bind_to(FileDescriptor& socket, const ListenAddress& listen) {
  sockaddr_storage address{};
  const socklen_t length = fill(address, listen);
  constexpr int kOn = 1;
  socket = FileDescriptor(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  const bool bound =
      socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn) == 0 &&
      (address.ss_family != AF_INET6 || ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &kOn, sizeof kOn) == 0) &&
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  return bound ? 0 : errno;
}

}  // namespace

Result<FileDescriptor> listen_at(const ListenAddress& listen) {
  FileDescriptor socket;
  constexpr int kBacklog = 64;
  int error = bind_to(socket, listen);
  if (error == 0 && ::listen(socket.get(), kBacklog) == 0) return socket;
  if (error == 0) error = errno;
  return failure(Error{{to_string(listen), 0, 0},
                       "cannot listen for HTTP",
                       std::system_category().message(error),
                       expected_after(error)});
}

bool is_taken(const ListenAddress& listen) {
  FileDescriptor socket;
  return bind_to(socket, listen) == EADDRINUSE;
}

}  // namespace penstock::control
