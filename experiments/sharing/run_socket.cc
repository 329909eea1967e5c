// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/run_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>

#include "base/socket_path.h"

namespace penstock::experiments {

std::optional<RunSocket> RunSocket::connect(const std::string& path) {
  constexpr timeval kPatience{5, 0};
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
  const sockaddr_un address = socket_address(path);
  port::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), generic_address(address), sizeof address) != 0) return std::nullopt;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  return RunSocket(std::move(socket));
}

std::optional<nlohmann::json> RunSocket::ask(std::string_view command) {
  const std::string request = fmt::format("{{\"version\": 1, \"command\": \"{}\"}}\n", command);
  if (::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size()))
    return std::nullopt;
  std::string answer;
  std::array<char, 65536> part{};
  while (!answer.ends_with('\n')) {
    const ssize_t count = ::recv(socket_.get(), part.data(), part.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    answer.append(part.data(), static_cast<std::size_t>(count));
  }
  nlohmann::json json = nlohmann::json::parse(answer, nullptr, false);
  if (!json.is_object() || !json.value("ok", false) || !json.contains("result")) return std::nullopt;
  return std::move(json["result"]);
}

}  // namespace penstock::experiments
