// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The path of a unix socket: checks before anything is created, and its address.

#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <optional>
#include <string>

#include "base/error.h"

namespace penstock {

/// Whether this process could listen at `path`, as far as can be known without changing anything: the path can be one
/// of a socket, and new files can be created in its folder.
[[nodiscard]] Result<void> check_socket_path(const std::string& path);

/// The folder of a path without a slash is the working directory, ".".
[[nodiscard]] std::string folder_of_socket(const std::string& path);

/// `path` must not be too long.
[[nodiscard]] sockaddr_un socket_address(const std::string& path) noexcept;
/// As system calls take it.
[[nodiscard]] inline const sockaddr* generic_address(const sockaddr_un& address) noexcept {
  return reinterpret_cast<const sockaddr*>(&address);
}

/// The file of a listening socket, from when it is bound. Somebody may remove it, and another process may then listen
/// at the same path. The number of a file is not used again while the socket is open.
struct SocketFile {
  dev_t device = 0;
  ino_t inode = 0;

  /// The one at `path`. Empty: there is none.
  [[nodiscard]] static std::optional<SocketFile> at(const std::string& path) noexcept;
  bool operator==(const SocketFile&) const = default;
};
/// Removes the file at `path`, if it is this one.
void remove_socket_file(const std::string& path, const SocketFile& file) noexcept;

}  // namespace penstock
