// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/unix_socket.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>
#include <utility>

#include "base/socket_path.h"

namespace penstock::control {

namespace {

using port::FileDescriptor;

std::string reason_of(int error) { return std::system_category().message(error); }

FileDescriptor make_socket(int flags = SOCK_NONBLOCK) {
  return FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

/// Keeps two processes from both replacing the socket of a dead one. Waits for a moment if another one holds it.
FileDescriptor lock_folder(const std::string& folder) {
  constexpr std::chrono::milliseconds kWait{10};
  FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fd;
  for (int attempt = 0; attempt < 200; ++attempt) {
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    std::this_thread::sleep_for(kWait);
  }
  return FileDescriptor();
}

/// Removes the socket of a dead process, if there is one.
Result<void> make_way(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return failure(system_error(path, "cannot listen", reason_of(errno)));
  }
  if (!S_ISSOCK(status.st_mode))
    return failure(
        Error{{path, 0, 0}, "not a socket, so it is not replaced", "another file", "a new path, or a socket"});
  const FileDescriptor probe = make_socket();
  if (::connect(probe.get(), generic_address(address), sizeof address) == 0 || errno == EAGAIN) {
    const auto owner = peer_of(probe.get());
    return failure(Error{{path, 0, 0},
                         "a process listens on this socket",
                         owner ? fmt::format("process {}", owner->pid) : "",
                         "another path (--control), or the end of that process"});
  }
  if (errno != ECONNREFUSED) return failure(system_error(path, "cannot replace the socket", reason_of(errno)));
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return failure(system_error(path, "cannot replace the socket", reason_of(errno)));
  return {};
}

}  // namespace

std::optional<Peer> peer_of(int socket) {
  auto peer = ipc::peer_of(socket);
  if (peer && peer->pid == 0) peer.reset();
  return peer;
}

Result<UnixListener> UnixListener::open(const std::string& path) {
  if (auto possible = check_socket_path(path); !possible) return failure(std::move(possible.error()));
  const sockaddr_un address = socket_address(path);
  const FileDescriptor locked = lock_folder(folder_of_socket(path));
  if (!locked) return failure(system_error(path, "cannot listen: cannot lock the folder", reason_of(errno)));
  if (auto free = make_way(path, address); !free) return failure(std::move(free.error()));

  const auto cannot = [&](int error) { return failure(system_error(path, "cannot listen", reason_of(error))); };
  FileDescriptor socket = make_socket();
  if (!socket) return cannot(errno);
  // Linux gives the file the mode of the socket, less the umask: nobody else can connect at any time.
  if (::fchmod(socket.get(), 0600) != 0) return cannot(errno);
  if (::bind(socket.get(), generic_address(address), sizeof address) != 0) return cannot(errno);
  constexpr int kBacklog = 64;
  const auto file = SocketFile::at(path);
  if (!file || ::listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    return cannot(error);
  }
  return UnixListener(path, std::move(socket), *file);
}

Result<UnixListener> UnixListener::open_beside(const std::string& path) {
  auto beside = open(path + ".next");
  if (beside) beside->target_ = path;
  return beside;
}

Result<void> UnixListener::replace() {
  if (target_.empty()) return {};
  if (::rename(path_.c_str(), target_.c_str()) != 0)
    return failure(system_error(target_, "cannot listen", reason_of(errno)));
  path_ = std::exchange(target_, {});
  return {};
}

UnixListener::UnixListener(std::string path, FileDescriptor socket, const SocketFile& file)
    : path_(std::move(path)), socket_(std::move(socket)), file_(file) {}

UnixListener::UnixListener(UnixListener&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      target_(std::exchange(other.target_, {})),
      socket_(std::move(other.socket_)),
      file_(other.file_) {}

UnixListener::~UnixListener() { remove_path(); }

void UnixListener::remove_path() noexcept {
  if (!path_.empty()) remove_socket_file(path_, file_);
  path_.clear();
}

Result<FileDescriptor> connect_to(const std::string& path) {
  const sockaddr_un address = socket_address(path);
  FileDescriptor socket = make_socket(0);
  // How long to wait in the queue of connections, which others may keep full.
  const timeval longest{5, 0}, none{};
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest));
  // A truncated path could name another socket.
  const bool fits = path.size() < sizeof address.sun_path;
  if (!fits || !socket || ::connect(socket.get(), generic_address(address), sizeof address) != 0) {
    const int error = fits ? errno : ENAMETOOLONG;
    std::string expected;
    if (error == ENOENT || error == ECONNREFUSED)
      expected = "a running `penstock run` with --control, or with outputs: {control: …} in its chain file";
    if (error == EACCES) expected = "the user of the run, or root";
    if (error == EAGAIN) expected = "fewer clients at once";
    return failure(Error{{path, 0, 0}, "cannot connect", reason_of(error), std::move(expected)});
  }
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none));
  return socket;
}

}  // namespace penstock::control
