// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/socket_path.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

namespace penstock {

std::string folder_of_socket(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

sockaddr_un socket_address(const std::string& path) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

Result<void> check_socket_path(const std::string& path) {
  constexpr std::size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  const Place place{path.empty() ? "''" : path, 0, 0};
  if (path.empty() || path == "-" || path.ends_with('/'))
    return failure(Error{place, "not a path for a socket", in_quotes(path), "a file name, such as gateway.sock"});
  if (path.size() > kMost) {
    return failure(Error{place, "the path of a socket is too long", fmt::format("{} bytes", path.size()),
                         fmt::format("at most {} (the system's limit)", kMost)});
  }
  if (::access(folder_of_socket(path).c_str(), W_OK | X_OK) == 0) return {};
  return failure(system_error(path, "cannot create a socket in its folder", std::system_category().message(errno)));
}

std::optional<SocketFile> SocketFile::at(const std::string& path) noexcept {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return SocketFile{status.st_dev, status.st_ino};
}

void remove_socket_file(const std::string& path, const SocketFile& file) noexcept {
  if (SocketFile::at(path) == file) ::unlink(path.c_str());
}

}  // namespace penstock
