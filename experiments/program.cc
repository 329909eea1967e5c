// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/prctl.h>
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
#include "port/live/file_descriptor.h"

namespace penstock::experiments {
namespace {

constexpr std::chrono::milliseconds kLook{5};

/// In the new process, after fork, where nothing may be allocated. Returns if the program cannot be started, with
/// errno.
void become(char* const* words, const char* output, pid_t parent) noexcept {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) return;  // it ended before that was asked for
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int in = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int out = ::open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (in < 0 || out < 0) return;
  if (::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(out, STDERR_FILENO) < 0) return;
  ::execvp(words[0], words);
}

}  // namespace

Result<Program> Program::start(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto fails = [&](int error) {
    return failure({{}, "cannot start " + words[0], std::system_category().message(error), ""});
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fails(errno);
  const port::FileDescriptor reads(ends[0]);
  port::FileDescriptor writes(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    constexpr int kNotStarted = 127;
    become(arguments.data(), output.c_str(), parent);
    const int error = errno;
    static_cast<void>(!::write(writes.get(), &error, sizeof error));
    ::_exit(kNotStarted);
  }
  if (pid < 0) return fails(errno);
  writes = port::FileDescriptor();
  int error = 0;
  ssize_t count = 0;
  do count = ::read(reads.get(), &error, sizeof error);  // nothing comes from a program that has been started
  while (count < 0 && errno == EINTR);
  Program program(pid);
  if (count == sizeof error) return fails(error);
  return program;
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
