// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "gpu/mps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/system_file.h"
#include "base/text_file.h"
#include "base/units.h"

namespace penstock::gpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kControl = "nvidia-cuda-mps-control";
constexpr const char* kPipes = "CUDA_MPS_PIPE_DIRECTORY";
constexpr const char* kLogs = "CUDA_MPS_LOG_DIRECTORY";
/// The daemon's process, for the program that may follow this one in the same process.
constexpr const char* kDaemon = "PENSTOCK_MPS_DAEMON";
constexpr std::chrono::milliseconds kLook{5};

std::string reason_of(int error) { return std::system_category().message(error); }

/// Words and environment of a program, made before fork.
class Start {
 public:
  Start(const std::string& folder, std::vector<std::string> words)
      : words_(std::move(words)), added_{fmt::format("{}={}", kPipes, folder), fmt::format("{}={}", kLogs, folder)} {
    for (std::string& word : words_) arguments_.push_back(word.data());
    arguments_.push_back(nullptr);
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!std::string_view(*variable).starts_with("CUDA_MPS_")) environment_.push_back(*variable);
    }
    for (std::string& variable : added_) environment_.push_back(variable.data());
    environment_.push_back(nullptr);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;
  ~Start() = default;

  /// In a process group of its own, so that Ctrl-C does not reach it; it gets SIGTERM when this thread ends. -1: errno
  /// says why not.
  [[nodiscard]] pid_t run(int in, int out) const noexcept {
    const pid_t parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (::getppid() == parent && ::dup2(in, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
        ::dup2(out, STDERR_FILENO) >= 0)
      ::execvpe(arguments_[0], arguments_.data(), environment_.data());
    ::_exit(127);
  }

 private:
  std::vector<std::string> words_;
  std::array<std::string, 2> added_;
  std::vector<char*> arguments_, environment_;
};

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  const int fd_;
};

bool wait_for(pid_t pid, std::chrono::milliseconds longest, int& status) noexcept {
  const Clock::time_point latest = Clock::now() + longest;
  for (;;) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) return true;
    if (Clock::now() >= latest) return false;
    std::this_thread::sleep_for(kLook);
  }
}

/// Gives the daemon a command, and returns its answer.
Result<std::string> ask(const std::string& folder, const std::string& command) {
  constexpr std::chrono::seconds kPatience{20};
  constexpr std::size_t kMost = 1 << 16;
  const auto failed = [&](std::string why) {
    return failure(Error{{folder, 0, 0}, fmt::format("MPS does not answer `{}`", command), std::move(why), ""});
  };
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed(reason_of(errno));
  const Descriptor here(ends[0]);
  pid_t pid = 0;
  {
    const Descriptor there(ends[1]);
    pid = Start(folder, {kControl}).run(there.get(), there.get());
  }
  if (pid < 0) return failed(reason_of(errno));
  const std::string line = command + "\n";
  static_cast<void>(::send(here.get(), line.data(), line.size(), MSG_NOSIGNAL));
  ::shutdown(here.get(), SHUT_WR);
  std::string answer;
  const Clock::time_point latest = Clock::now() + kPatience;
  for (std::array<char, 512> part{}; answer.size() < kMost && Clock::now() < latest;) {
    pollfd ready{here.get(), POLLIN, 0};
    if (::poll(&ready, 1, 50) <= 0) continue;
    const ssize_t count = ::read(here.get(), part.data(), part.size());
    if (count <= 0) break;
    answer.append(part.data(), static_cast<std::size_t>(count));
  }
  int status = 0;
  if (!wait_for(pid, std::chrono::milliseconds{500}, status)) {
    ::kill(pid, SIGKILL);
    static_cast<void>(::waitpid(pid, &status, 0));
  }
  const std::string text(trimmed(answer));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return failed(printable(text.substr(0, 300)));
  return text;
}

/// Empty: the text is something else.
std::optional<pid_t> process_in(std::string_view text) noexcept {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size() || pid <= 0) return std::nullopt;
  return pid;
}

/// Of an earlier program in this process, with this folder. Only a child of the process can be waited for.
std::optional<pid_t> inherited(const std::string& folder) {
  const char* const daemon = std::getenv(kDaemon);  // NOLINT(concurrency-mt-unsafe): before threads start
  const char* const pipes = std::getenv(kPipes);    // NOLINT(concurrency-mt-unsafe): ditto
  if (daemon == nullptr || pipes == nullptr || folder != pipes) return std::nullopt;
  const auto pid = process_in(daemon);
  if (!pid || ::waitpid(*pid, nullptr, WNOHANG) != 0) return std::nullopt;
  return pid;
}

/// Of the socket by which clients find the daemon.
std::filesystem::path socket_of(const std::string& folder) { return std::filesystem::path(folder) / "control"; }

}  // namespace

bool is_mps_installed() {
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  if (path == nullptr) return false;
  for (const std::string_view folder : split(path, ':')) {
    if (::access(fmt::format("{}/{}", folder, kControl).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::string mps_environment(const std::string& folder) { return fmt::format("{}={}", kPipes, folder); }

Result<void> join_mps(const std::string& folder) {
  const std::string absolute = resolved_path(folder);
  std::error_code none;
  if (!std::filesystem::exists(socket_of(absolute), none))
    return failure(Error{{folder, 0, 0},
                         "no MPS daemon has its pipes there",
                         std::filesystem::is_directory(absolute, none) ? "a folder without `control`" : "no folder",
                         "the folder of `penstock proxy serve --mps`, or of nvidia-cuda-mps-control"});
  ::setenv(kPipes, absolute.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before threads start
  return {};
}

Result<std::unique_ptr<Mps>> Mps::start(std::string folder, const std::atomic<bool>& stop) {
  if (!is_mps_installed())
    return failure(Error{{}, fmt::format("{} is not installed: it comes with NVIDIA's driver", kControl), "", ""});
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return failure(system_error(folder, "cannot make the folder of MPS", error.message()));
  folder = resolved_path(folder);
  std::unique_ptr<Mps> mps;
  if (const auto daemon = inherited(folder)) {
    mps.reset(new Mps(folder, *daemon));
  } else {
    const Descriptor in(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Descriptor out(
        ::open((folder + "/daemon.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (out.get() < 0) return failure(system_error(folder + "/daemon.txt", "cannot write", reason_of(errno)));
    const pid_t pid = Start(folder, {kControl, "-f"}).run(in.get(), out.get());
    if (pid < 0) return failure(system_error(kControl, "cannot start", reason_of(errno)));
    mps.reset(new Mps(folder, pid));
  }
  if (auto ready = mps->wait_until_ready(stop); !ready) return failure(std::move(ready.error()));
  // For a program that takes this one's place.
  ::setenv(kDaemon, std::to_string(mps->daemon_).c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before threads start
  return mps;
}

Result<void> Mps::wait_until_ready(const std::atomic<bool>& stop) {
  constexpr std::chrono::seconds kPatience{10};
  const Clock::time_point latest = Clock::now() + kPatience;
  for (;;) {
    if (has_ended()) {
      const std::string printed = system_file(folder_ + "/daemon.txt");
      return failure(Error{{folder_, 0, 0},
                           fmt::format("{} ends at once", kControl),
                           printable(printed.substr(0, 300)),
                           "a daemon that serves this folder"});
    }
    if (const auto answer = ask(folder_, "get_server_list")) return {};
    if (stop.load()) return failure(Error{{folder_, 0, 0}, "interrupted before MPS was ready", "", ""});
    if (Clock::now() >= latest)
      return failure(Error{{folder_, 0, 0},
                           fmt::format("{} is not ready", kControl),
                           "",
                           fmt::format("an answer within {}", format_duration(kPatience))});
    std::this_thread::sleep_for(kLook);
  }
}

bool Mps::has_ended() noexcept {
  int status = 0;
  if (daemon_ != 0 && wait_for(daemon_, std::chrono::milliseconds{0}, status)) daemon_ = 0;
  return daemon_ == 0;
}

Result<void> Mps::limit_clients(unsigned percent) const {
  // Not the daemon's default: that is for servers that follow, and would bound this process, too, after a fault.
  const auto servers = ask(folder_, "get_server_list");
  if (!servers) return failure(servers.error());
  LineReader lines(*servers);
  bool any = false;
  for (Line line; lines.next(line);) {
    const auto server = process_in(trimmed(line.text));
    if (!server) continue;
    any = true;
    if (auto set = ask(folder_, fmt::format("set_active_thread_percentage {} {}", *server, percent)); !set)
      return failure(std::move(set.error()));
  }
  if (!any)
    return failure(Error{{folder_, 0, 0},
                         "MPS has no server: this process does not use the GPU by it",
                         in_quotes(*servers),
                         "the process of a server"});
  return {};
}

Mps::~Mps() {
  constexpr std::chrono::seconds kPatience{10};
  if (has_ended()) return;
  bool quits = false;
  try {
    // Ends the servers too, even if this process is still a client.
    quits = ask(folder_, "quit -t 2").has_value();
  } catch (const std::exception&) {  // there is no memory
  }
  int status = 0;
  if (quits && wait_for(daemon_, kPatience, status)) return;
  for (const int signal : {SIGTERM, SIGKILL}) {
    ::kill(daemon_, signal);
    if (wait_for(daemon_, std::chrono::seconds{2}, status)) return;
  }
}

}  // namespace penstock::gpu
