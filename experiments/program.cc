// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"

namespace penstock::experiments {
namespace {

constexpr std::chrono::milliseconds kLook{5};

/// What posix_spawn needs besides the words.
struct Spawning {
  explicit Spawning(const std::string& output) {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;
  ~Spawning() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
};

}  // namespace

Result<Program> Program::start(const std::vector<std::string>& words, const std::string& output) {
  const Spawning spawning(output);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, arguments[0], &spawning.files, &spawning.attributes, arguments.data(), environ);
  if (error != 0) return failure({{}, "cannot start " + words[0], std::system_category().message(error), ""});
  return Program(pid);
}

Program::Program(Program&& other) noexcept : pid_(std::exchange(other.pid_, 0)), exit_code_(other.exit_code_) {}

Program& Program::operator=(Program&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_code_, other.exit_code_);
  return *this;
}

Program::~Program() { finish(); }

void Program::finish() noexcept {
  constexpr std::chrono::seconds kPatience{2};
  if (pid_ == 0) return;
  ::kill(pid_, SIGTERM);
  if (ended_within(kPatience)) return;
  ::kill(pid_, SIGKILL);
  static_cast<void>(ended_within(kPatience));
}

bool Program::ended_within(std::chrono::milliseconds time) noexcept {
  const auto end = std::chrono::steady_clock::now() + time;
  while (pid_ != 0) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) {
      exit_code_ = ended == pid_ && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
      pid_ = 0;
    } else if (std::chrono::steady_clock::now() >= end) {
      return false;
    } else {
      std::this_thread::sleep_for(kLook);
    }
  }
  return true;
}

Result<void> run_program(const std::vector<std::string>& words, const std::string& output) {
  constexpr std::chrono::seconds kPatience{20};
  auto program = Program::start(words, output);
  if (!program) return tl::unexpected(std::move(program.error()));
  const std::string command = fmt::format("`{}`", fmt::join(words, " "));
  if (!program->ended_within(kPatience)) return failure({{}, command + " does not end", "", ""});
  if (program->exit_code() == 0) return {};
  const auto printed = read_input(output);
  constexpr std::size_t kMost = 300;
  const std::string text = printed ? std::string(trimmed(*printed)).substr(0, kMost) : "";
  return failure({{}, command + " failed", printable(text), ""});
}

bool is_installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  if (path == nullptr) return false;
  for (const std::string_view folder : split(path, ':')) {
    if (::access((std::string(folder) + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace penstock::experiments
