// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Unix stream sockets: the one on which a run listens for its operator, and the operator's end.

#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "ipc/message_socket.h"
#include "port/live/file_descriptor.h"

namespace penstock::control {

using ipc::Peer;
/// Empty also if the process at the other end has no number here: it is in another PID namespace.
[[nodiscard]] std::optional<Peer> peer_of(int socket);

/// Listens at a path, with mode 0600 from the first moment on. Removes the path in its destructor.
class UnixListener {
 public:
  /// Replaces a socket that a dead process has left, but neither one at which a process listens, nor any other file.
  [[nodiscard]] static Result<UnixListener> open(const std::string& path);
  /// Listens where nobody looks for it until `replace`: another process listens at the path, whose run this one takes
  /// over.
  [[nodiscard]] static Result<UnixListener> open_beside(const std::string& path);
  /// After `open_beside`: takes the place of the other process's socket, in one step. After `open`: does nothing.
  [[nodiscard]] Result<void> replace();
  UnixListener(UnixListener&& other) noexcept;
  UnixListener& operator=(UnixListener&& other) = delete;
  ~UnixListener();

  /// Nobody can connect any more, and another process can listen at the path. Connections go on.
  void remove_path() noexcept;

  /// Non-blocking.
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  UnixListener(std::string path, port::FileDescriptor socket, const SocketFile& file);

  std::string path_;    // empty: removed, or moved from
  std::string target_;  // the path after `replace`; empty: it is `path_`
  port::FileDescriptor socket_;
  SocketFile file_;
};

/// Connects to the socket at `path`. Waits for some seconds if many others want to connect. The result blocks in reads
/// and writes.
[[nodiscard]] Result<port::FileDescriptor> connect_to(const std::string& path);

}  // namespace penstock::control
