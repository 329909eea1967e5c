// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ipc/message_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <exception>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/socket_path.h"
#include "ipc/foreign_descriptor.h"
#include "ipc/receive_now.h"

namespace penstock::ipc {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostDescriptors = 4;

std::string reason_of(int error) { return std::system_category().message(error); }

/// Empty: waits for ever. False: the time is over. Looks at least once.
bool wait_for(int socket, short events, std::optional<std::chrono::milliseconds> longest) noexcept {
  const auto end = longest ? std::optional(Clock::now() + *longest) : std::nullopt;
  for (;;) {
    int left = -1;
    if (end) {
      const auto until_end = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now()).count();
      left = static_cast<int>(std::max<std::int64_t>(0, until_end));
    }
    pollfd polled{socket, events, 0};
    const int count = ::poll(&polled, 1, left);
    if (count > 0) return true;
    if (count == 0) return false;
    if (errno != EINTR) return true;  // the call that follows says what is wrong
  }
}

FileDescriptor make_socket(int flags) {
  return FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

/// The supplementary groups of the process at the other end, as they were when it connected.
std::vector<gid_t> groups_of(int socket) {
  std::vector<gid_t> groups(32);
  for (int tries = 0; tries < 2; ++tries) {
    socklen_t size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0;
    if (!known && errno != ERANGE) break;
    groups.resize(size / sizeof(gid_t));  // of which there are so many
    if (known) return groups;
  }
  return {};
}

}  // namespace

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return Peer{credentials.pid, credentials.uid, credentials.gid, groups_of(socket)};
}

bool is_allowed(const Peer& peer, std::span<const uid_t> users, std::span<const gid_t> groups) noexcept {
  if (users.empty() && groups.empty()) return true;
  const auto is_listed = [&](gid_t group) { return std::ranges::find(groups, group) != groups.end(); };
  return peer.uid == 0 || peer.uid == ::geteuid() || std::ranges::find(users, peer.uid) != users.end() ||
         is_listed(peer.gid) || std::ranges::any_of(peer.groups, is_listed);
}

int send_message(int socket, std::span<const std::byte> message, std::span<const int> descriptors,
                 std::chrono::milliseconds longest) noexcept {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    if (!wait_for(socket, POLLOUT, longest)) return ETIMEDOUT;
    if (::sendmsg(socket, &header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EAGAIN && errno != EINTR) return errno;
  }
}

std::optional<Received> receive_message(int socket, std::size_t most_bytes,
                                        std::optional<std::chrono::milliseconds> longest) {
  Received received;
  received.bytes.resize(most_bytes);
  bool was_reset = false;
  for (;;) {
    if (!wait_for(socket, POLLIN, longest)) return errno = ETIMEDOUT, std::nullopt;
    const Arrived arrived = receive_now(socket, received.bytes, [&](int descriptor) {
      FileDescriptor taken(descriptor);
      if (stop_lingering(descriptor)) return close_foreign(std::move(taken));
      received.descriptors.push_back(std::move(taken));
    });
    if (arrived.bytes < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    // The other end has closed the connection without reading everything. It may have sent something before.
    if (arrived.bytes < 0 && errno == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (arrived.bytes < 0) return std::nullopt;
    if (arrived.bytes == 0) return errno = EPIPE, std::nullopt;  // no message is empty
    if ((arrived.flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return errno = EMSGSIZE, std::nullopt;
    received.bytes.resize(static_cast<std::size_t>(arrived.bytes));
    return received;
  }
}

std::optional<Received> exchange(int socket, std::span<const std::byte> message, std::span<const int> descriptors,
                                 std::size_t most_bytes, std::chrono::milliseconds longest) {
  const int error = send_message(socket, message, descriptors, longest);
  if (error != 0 && error != EPIPE && error != ECONNRESET) return errno = error, std::nullopt;
  return receive_message(socket, most_bytes, longest);  // at once if the other end has gone
}

bool has_gone(int socket) noexcept {
  pollfd polled{socket, POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

Result<FileDescriptor> connect_to(const std::string& path, const Service& service, Waits waits) {
  const sockaddr_un address = socket_address(path);
  FileDescriptor socket = make_socket(waits == Waits::yes ? 0 : SOCK_NONBLOCK);
  const timeval longest{5, 0};  // in the queue of connections, which others may keep full
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest));
  const bool fits = path.size() < sizeof address.sun_path;
  const auto connect_once = [&] {
    return ::connect(socket.get(), generic_address(address), sizeof address) == 0 ? 0 : errno;
  };
  int error = !socket ? errno : !fits ? ENAMETOOLONG : connect_once();
  // A process that has just begun has a socket for a moment before it listens.
  constexpr int kMostTries = 100;
  for (int tries = 0; error == ECONNREFUSED && waits == Waits::yes && tries < kMostTries; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
    error = connect_once();
  }
  if (error == 0) return socket;
  std::string expected;
  if (error == ENOENT || error == ECONNREFUSED) expected = fmt::format("the socket of a running `{}`", service.command);
  if (error == EPROTOTYPE) expected = fmt::format("the socket of a `{}`, not of another program", service.command);
  if (error == EACCES) expected = fmt::format("a user who may write to the socket (`{} --mode`)", service.command);
  if (error == EAGAIN) expected = "fewer processes that connect at once";
  if (error == ENAMETOOLONG) expected = fmt::format("a path of at most {} bytes", sizeof address.sun_path - 1);
  return failure(
      Error{{path, 0, 0}, fmt::format("cannot connect to {}", service.what), reason_of(error), std::move(expected)});
}

bool nobody_listens(const std::string& path) {
  const sockaddr_un address = socket_address(path);
  if (path.size() >= sizeof address.sun_path) return false;
  const FileDescriptor probe = make_socket(SOCK_NONBLOCK);
  if (!probe || ::connect(probe.get(), generic_address(address), sizeof address) == 0) return false;
  if (errno != ECONNREFUSED) return errno == ENOENT;
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);  // any other file refuses too
}

Result<Listener> Listener::open(const std::string& path, mode_t mode) {
  if (auto possible = check_socket_path(path); !possible) return failure(std::move(possible.error()));
  const auto cannot = [&](int error) { return failure(system_error(path, "cannot listen", reason_of(error))); };
  const sockaddr_un address = socket_address(path);
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      return failure(
          Error{{path, 0, 0}, "not a socket, so it is not replaced", "another file", "a new path, or a socket"});
    const FileDescriptor probe = make_socket(SOCK_NONBLOCK);
    if (::connect(probe.get(), generic_address(address), sizeof address) == 0 || errno == EAGAIN ||
        errno == EPROTOTYPE) {
      const auto owner = peer_of(probe.get());
      return failure(Error{{path, 0, 0},
                           "a process listens on this socket",
                           owner && owner->pid != 0 ? fmt::format("process {}", owner->pid) : "",
                           "another path, or the end of that process"});
    }
    if (errno != ECONNREFUSED || ::unlink(path.c_str()) != 0) return cannot(errno);
  }
  FileDescriptor socket = make_socket(SOCK_NONBLOCK);
  if (!socket || ::fchmod(socket.get(), mode) != 0) return cannot(errno);
  if (::bind(socket.get(), generic_address(address), sizeof address) != 0) return cannot(errno);
  constexpr int kBacklog = 64;
  // Linux gives the file the mode of the socket less the umask, which may take away what the user asks for.
  const auto file = SocketFile::at(path);
  if (!file || ::chmod(path.c_str(), mode) != 0 || ::listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return cannot(error);
  }
  return Listener(path, std::move(socket), *file);
}

std::optional<Listener> Listener::adopt(const std::string& path, FileDescriptor socket, const SocketFile& file) {
  const auto option = [&](int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(socket.get(), SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
  };
  if (option(SO_DOMAIN) != AF_UNIX || option(SO_TYPE) != SOCK_SEQPACKET || option(SO_ACCEPTCONN) != 1)
    return std::nullopt;
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return std::nullopt;
  const std::size_t bytes = size - offsetof(sockaddr_un, sun_path);
  if (std::string_view(address.sun_path, ::strnlen(address.sun_path, bytes)) != path) return std::nullopt;
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return std::nullopt;
  return Listener(path, std::move(socket), file);
}

Listener::Listener(Listener&& other) noexcept
    : path_(std::exchange(other.path_, {})), socket_(std::move(other.socket_)), file_(other.file_) {}

Listener::~Listener() {
  if (path_.empty()) return;
  remove_socket_file(path_, file_);
  while (FileDescriptor waiting{::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)})
    close_foreign(std::move(waiting));
}

void accept_connections(const Listener& listener, int stop, const std::function<void()>& look,
                        const std::function<void(FileDescriptor)>& take) noexcept {
  constexpr int kLookMs = 500;
  for (;;) {
    pollfd polled[] = {{stop, POLLIN, 0}, {listener.fd(), POLLIN, 0}};
    static_cast<void>(::poll(polled, 2, kLookMs));
    if (polled[0].revents != 0) return;
    look();
    FileDescriptor socket(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket) {
      // Without descriptors or memory, the listener stays readable.
      constexpr int kAgainMs = 20;
      if (errno != EAGAIN && errno != EINTR) static_cast<void>(::poll(polled, 1, kAgainMs));
      continue;
    }
    try {
      take(std::move(socket));
    } catch (const std::exception& error) {
      log_error("a connection is refused: {}", error.what());
    }
  }
}

}  // namespace penstock::ipc
