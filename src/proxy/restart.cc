// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/restart.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/socket_path.h"
#include "base/stoppable_wait.h"
#include "base/system_file.h"
#include "base/units.h"
#include "proxy/server.h"

namespace penstock::proxy {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kVariable = "PENSTOCK_PROXY_INHERITANCE";
constexpr std::chrono::seconds kLong{60};  // a program that has lived for so long did not fail because it began

/// "PID SOCKET POLICY RESTARTS IN_A_ROW DEVICE INODE", the last two of the socket's file. The process says for whom it
/// is: a child that gets the variable too has not been given the socket.
std::string written(int socket, const Server& server, unsigned in_a_row) {
  const SocketFile& file = server.listener().file();
  return fmt::format("{}={} {} {} {} {} {} {}", kVariable, ::getpid(), socket, static_cast<unsigned>(server.policy()),
                     server.restarts() + 1, in_a_row, file.device, file.inode);
}

std::optional<std::vector<std::uint64_t>> numbers_in(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (;;) {
    std::uint64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return std::nullopt;
    numbers.push_back(number);
    if (next == end) return numbers;
    if (*next != ' ') return std::nullopt;
    at = next + 1;
  }
}

/// Those of the CUDA driver too: the context of the lost device ends with them.
void close_others_at_exec(int kept) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"), ::closedir);
  if (folder == nullptr) return;
  while (const dirent* const entry = ::readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): a stream of its own
    const int fd = std::atoi(entry->d_name);                     // NOLINT(cert-err34-c): "." and ".." are 0
    if (fd > STDERR_FILENO && fd != kept) static_cast<void>(::fcntl(fd, F_SETFD, FD_CLOEXEC));
  }
}

std::string why_lost(const Server& server) {
  if (!server.hangs()) return "is lost: an error has ended this process's use of it";
  return "hangs";
}

/// Returns errno if it fails.
int execute_anew(const Server& server, unsigned in_a_row) {
  std::string words = system_file("/proc/self/cmdline");
  std::vector<char*> arguments;
  for (std::size_t at = 0; at < words.size(); at = words.find('\0', at) + 1) {
    arguments.push_back(words.data() + at);
    if (words.find('\0', at) == std::string::npos) break;
  }
  arguments.push_back(nullptr);
  const port::FileDescriptor socket(::fcntl(server.listener().fd(), F_DUPFD, STDERR_FILENO + 1));
  if (!socket) return errno;
  std::string inheritance = written(socket.get(), server, in_a_row);
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(inheritance.data());
  variables.push_back(nullptr);
  close_others_at_exec(socket.get());
  ::execve("/proc/self/exe", arguments.data(), variables.data());
  return errno;
}

}  // namespace

Inheritance take_inheritance(const std::string& path) {
  const char* const variable = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe): before threads start
  if (variable == nullptr) return {};
  const auto numbers = numbers_in(variable);
  ::unsetenv(kVariable);  // NOLINT(concurrency-mt-unsafe): ditto
  if (!numbers || numbers->size() != 7 || (*numbers)[0] != static_cast<std::uint64_t>(::getpid())) return {};
  const std::uint64_t socket = (*numbers)[1], policy = (*numbers)[2];
  if (socket <= STDERR_FILENO || socket > 1U << 30 || ::fcntl(static_cast<int>(socket), F_GETFD) < 0) return {};
  auto listener =
      Listener::adopt(path, port::FileDescriptor(static_cast<int>(socket)), SocketFile{(*numbers)[5], (*numbers)[6]});
  if (!listener) return {};
  return {std::move(listener),
          policy < std::size(kPolicyNames) ? std::optional(static_cast<Policy>(policy)) : std::nullopt, (*numbers)[3],
          static_cast<unsigned>(std::min<std::uint64_t>((*numbers)[4], 1000))};
}

std::chrono::seconds least_life(unsigned in_a_row) noexcept {
  constexpr unsigned kMostDoublings = 6;
  return std::chrono::seconds{1U << std::min(in_a_row, kMostDoublings)};
}

Result<void> serve(Server& server, const std::atomic<bool>& stop) {
  constexpr std::chrono::milliseconds kLook{50};
  const Clock::time_point began = Clock::now();
  bool told = false;
  while (!stop.load()) {
    std::this_thread::sleep_for(kLook);
    Log::of_process().report_left_out();
    if (!server.is_lost()) continue;
    const Clock::duration lived = Clock::now() - began;
    const std::chrono::seconds least = least_life(server.restarts_in_a_row());
    if (!std::exchange(told, true))
      log_error("{} {}. The program starts again{}", server.device(), why_lost(server),
                lived < least ? fmt::format(" in {}", format_duration(least - lived)) : "");
    if (lived < least) continue;
    // A signal from here on ends the process at once: its handler would only tell the program that is replaced.
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    if (stop.load()) break;
    const int error = execute_anew(server, lived < kLong ? server.restarts_in_a_row() + 1 : 1);
    return failure(Error{{}, "the program cannot start again", std::system_category().message(error), ""});
  }
  return {};
}

EndLimit::EndLimit(const Server& server, std::string path)
    : thread_([path = std::move(path), file = server.listener().file(), device = server.device(),
               hangs = server.hangs()](const std::stop_token& ended) {
        constexpr std::chrono::seconds kLongest{10};
        if (!wait_unless_stopped(ended, hangs ? std::chrono::seconds{0} : kLongest)) return;
        log_error("{} does not end its work: the proxy ends without waiting for it", device);
        remove_socket_file(path, file);
        std::_Exit(EXIT_FAILURE);
      }) {}

}  // namespace penstock::proxy
