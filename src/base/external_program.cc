// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/external_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <system_error>
#include <utility>

#include "base/units.h"

namespace penstock {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostMessages = 64 << 10;  // bytes
constexpr auto kFolders = std::to_array<std::string_view>(
    {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"});

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor from, to;
};

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

std::string path_of(const std::string& program) {
  for (const std::string_view folder : kFolders) {
    std::string path = std::string(folder) + program;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

/// A file in memory, so that nobody has to feed the program while it writes.
Descriptor file_of(std::string_view text) {
  Descriptor file(::memfd_create("input", MFD_CLOEXEC));
  while (file.get() >= 0 && !text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return {};
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file.get() >= 0 && ::lseek(file.get(), 0, SEEK_SET) != 0) return {};
  return file;
}

/// A program in a process group of its own, with those that it starts. Killed, if it has not ended.
class Child {
 public:
  Child(const std::string& path, const std::vector<std::string>& words, int input, int output, int messages) {
    ::posix_spawn_file_actions_t files{};
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&files, messages, STDERR_FILENO);
    ::posix_spawnattr_t attributes{};
    ::posix_spawnattr_init(&attributes);
    sigset_t none{}, all{};
    sigemptyset(&none);
    sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::string search = "PATH=", language = "LC_ALL=C";
    for (const std::string_view folder : kFolders) {
      if (search.back() != '=') search += ':';
      search += folder.substr(0, folder.size() - 1);
    }
    std::array<char*, 3> environment{search.data(), language.data(), nullptr};
    error_ = ::posix_spawn(&pid_, path.c_str(), &files, &attributes, arguments.data(), environment.data());
    if (error_ != 0) pid_ = -1;
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ < 0) return;
    static_cast<void>(::kill(-pid_, SIGKILL));
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  }

  [[nodiscard]] int error() const noexcept { return error_; }
  void limit_memory(std::size_t bytes) const noexcept {
    const rlimit limit{bytes, bytes};
    static_cast<void>(::prlimit(pid_, RLIMIT_AS, &limit, nullptr));
  }
  /// Empty: it has not ended by then.
  [[nodiscard]] std::optional<int> exit_code(Clock::time_point until) {
    for (;;) {
      int status = 0;
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_) {
        pid_ = -1;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      }
      if (Clock::now() >= until) return std::nullopt;
      static_cast<void>(::poll(nullptr, 0, 1));  // it has closed its outputs already, so this is soon
    }
  }

 private:
  pid_t pid_ = -1;
  int error_ = 0;
};

/// Appends what there is, beyond `most` as many bytes as fit. False at the end.
bool read_some(Descriptor& from, std::string& to, std::size_t most) {
  std::array<char, 64 << 10> part;
  const ssize_t got = ::read(from.get(), part.data(), part.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  to.append(part.data(), std::min(static_cast<std::size_t>(got), most - std::min(most, to.size())));
  return got > 0;
}

}  // namespace

Result<ProgramOutput> run_external_program(const std::vector<std::string>& words, std::string_view input,
                                           const ProgramLimits& limits) {
  const std::string& name = words.front();
  const auto refuse = [&](std::string_view what, std::string found, std::string expected) {
    return failure(Error{{}, fmt::format("{}: {}", name, what), std::move(found), std::move(expected)});
  };
  const auto system_refuses = [&] { return refuse("cannot be started", std::system_category().message(errno), ""); };
  const std::string path = path_of(name);
  if (path.empty()) return refuse("is not installed", "", "a program in /usr/sbin or another folder of the system");
  const Clock::time_point until = Clock::now() + limits.time;
  const Descriptor given = file_of(input);
  auto output = make_pipe(), messages = make_pipe();
  if (given.get() < 0 || !output || !messages) return system_refuses();
  Child child(path, words, given.get(), output->to.get(), messages->to.get());
  if (child.error() != 0) {
    errno = child.error();
    return system_refuses();
  }
  child.limit_memory(limits.memory_bytes);
  output->to.close();
  messages->to.close();
  ProgramOutput result;
  std::array<pollfd, 2> wait{{{output->from.get(), POLLIN, 0}, {messages->from.get(), POLLIN, 0}}};
  while (wait[0].fd >= 0 || wait[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return refuse("has not ended", format_duration(limits.time), "less time");
    if (::poll(wait.data(), wait.size(), static_cast<int>(left)) < 0) continue;
    // One byte more than allowed shows that there are too many.
    if (wait[0].revents != 0 && !read_some(output->from, result.text, limits.output_bytes + 1)) wait[0].fd = -1;
    if (wait[1].revents != 0 && !read_some(messages->from, result.messages, kMostMessages)) wait[1].fd = -1;
    if (result.text.size() > limits.output_bytes)
      return refuse("prints too much", "more than " + format_size(limits.output_bytes), "less");
  }
  const auto exit_code = child.exit_code(until);
  if (!exit_code) return refuse("has not ended", format_duration(limits.time), "less time");
  result.exit_code = *exit_code;
  return result;
}

}  // namespace penstock
