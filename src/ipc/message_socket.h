// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives whole messages, with descriptors, over SOCK_SEQPACKET sockets.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/socket_path.h"
#include "port/live/file_descriptor.h"

namespace penstock::ipc {

using port::FileDescriptor;

/// The process at the other end, as the kernel knows it.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups{};  // its others
};
[[nodiscard]] std::optional<Peer> peer_of(int socket);
/// Whether it may connect: all may if nobody is listed, and root and this process's user always.
[[nodiscard]] bool is_allowed(const Peer& peer, std::span<const uid_t> users, std::span<const gid_t> groups) noexcept;

/// A received message. Its descriptors are closed with it, unless they are taken. There are no sockets among them: no
/// protocol here has any, and these are closed at once.
struct Received {
  std::vector<std::byte> bytes;
  std::vector<FileDescriptor> descriptors;
};

/// Waits until the message is sent; 0, or errno: ETIMEDOUT, EPIPE …
[[nodiscard]] int send_message(int socket, std::span<const std::byte> message, std::span<const int> descriptors,
                               std::chrono::milliseconds longest) noexcept;
/// Waits for a message of at most `most_bytes`. Empty: none came in time, the other end has gone, or the message is
/// longer; errno says which: ETIMEDOUT, EPIPE, EMSGSIZE … What came before the end is received first.
[[nodiscard]] std::optional<Received> receive_message(int socket, std::size_t most_bytes,
                                                      std::optional<std::chrono::milliseconds> longest);
/// Sends a request, and waits for its answer. So it does if the other end has refused and closed the connection before
/// it has read anything. Empty: as for `receive_message`.
[[nodiscard]] std::optional<Received> exchange(int socket, std::span<const std::byte> message,
                                               std::span<const int> descriptors, std::size_t most_bytes,
                                               std::chrono::milliseconds longest);
/// Whether the other end has closed its socket, or has died.
[[nodiscard]] bool has_gone(int socket) noexcept;

/// A program that listens, for messages.
struct Service {
  std::string_view what;     // "the proxy"
  std::string_view command;  // "penstock proxy serve"
};
/// For some seconds, if too many others connect at once; for a moment, if the service is just beginning.
enum class Waits : bool { no, yes };
/// Connects to the service at `path`.
[[nodiscard]] Result<FileDescriptor> connect_to(const std::string& path, const Service& service,
                                                Waits waits = Waits::yes);

/// Whether there is no service at `path` at the moment.
[[nodiscard]] bool nobody_listens(const std::string& path);

/// Listens at a path with this mode. Removes its file in its destructor, but not one that has taken its place.
class Listener {
 public:
  /// Replaces a socket at which nobody listens.
  [[nodiscard]] static Result<Listener> open(const std::string& path, mode_t mode);
  /// Goes on with a socket of this kind that listens at the path, with this file. Empty: it does not.
  [[nodiscard]] static std::optional<Listener> adopt(const std::string& path, FileDescriptor socket,
                                                     const SocketFile& file);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&& other) = delete;
  ~Listener();

  /// Non-blocking.
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] const SocketFile& file() const noexcept { return file_; }

 private:
  Listener(std::string path, FileDescriptor socket, const SocketFile& file)
      : path_(std::move(path)), socket_(std::move(socket)), file_(file) {}

  std::string path_;
  FileDescriptor socket_;
  SocketFile file_;
};

/// Accepts connections until `stop`, an eventfd, is written. Calls `look` before each, and twice a second, for
/// connections that have ended. What `take` throws is logged. Connections are to be closed by `close_foreign`.
void accept_connections(const Listener& listener, int stop, const std::function<void()>& look,
                        const std::function<void(FileDescriptor)>& take) noexcept;

}  // namespace penstock::ipc
