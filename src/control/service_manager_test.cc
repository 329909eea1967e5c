// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/service_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "control/watchdog.h"

namespace penstock::control {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// The service manager's end of the protocol, at a path or, if `name` begins with '@', at an abstract address.
class FakeManager {
 public:
  explicit FakeManager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), length), 0) << std::strerror(errno);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  FakeManager(const FakeManager&) = delete;
  FakeManager& operator=(const FakeManager&) = delete;
  ~FakeManager() {
    ::unsetenv("NOTIFY_SOCKET");
    ::close(socket_);
  }

  /// The next message; "": there is none within the time.
  [[nodiscard]] std::string message(milliseconds within = milliseconds{0}) const {
    pollfd polled{socket_, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(within.count())) != 1) return "";
    char bytes[8192];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    return {bytes, static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
  }
  /// Those of this time.
  [[nodiscard]] std::vector<std::string> messages(milliseconds during) const {
    std::vector<std::string> all;
    const auto end = std::chrono::steady_clock::now() + during;
    for (auto now = end - during; now < end; now = std::chrono::steady_clock::now()) {
      const auto left = std::chrono::duration_cast<milliseconds>(end - now) + milliseconds{1};
      if (std::string one = message(left); !one.empty()) all.push_back(std::move(one));
    }
    return all;
  }

 private:
  int socket_;
};

std::string unused_path() {
  const std::string path = ::testing::TempDir() + "/penstock-notify-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  return path;
}

ReloadOutcome outcome(ReloadOutcome::Result result, Errors errors = {}) {
  ReloadOutcome made{ReloadOutcome::What::reload, result};
  made.errors = std::move(errors);
  return made;
}

TEST(ServiceManager, TellsAtAPathAndAtAnAbstractAddress) {
  for (const std::string& name : {unused_path(), "@penstock-notify-" + std::to_string(::getpid())}) {
    const FakeManager manager(name);
    ServiceManager().starting();
    EXPECT_EQ(manager.message(), "STATUS=Starting") << name;
  }
}

TEST(ServiceManager, TellsNobodyIfNobodyHasAsked) {
  ::unsetenv("NOTIFY_SOCKET");
  ServiceManager service;
  service.starting();
  service.ready({});
  service.stopping();
}

TEST(ServiceManager, IsReadyAgainAfterAReload) {
  const FakeManager manager(unused_path());
  ServiceManager service;
  service.ready({});
  EXPECT_THAT(manager.message(), StartsWith("READY=1\nSTATUS=Running"));
  service.reload_begins();
  EXPECT_THAT(manager.message(), ContainsRegex("^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]*\nSTATUS=Reloading$"));
  service.reload_ended(outcome(ReloadOutcome::Result::in_use));
  EXPECT_THAT(manager.message(), ContainsRegex("^READY=1\nSTATUS=Reload at .* UTC is in use$"));
}

TEST(ServiceManager, SaysThatTheFormerVersionStaysInUseAfterAFailedReload) {
  const FakeManager manager(unused_path());
  ServiceManager service;
  service.ready({});
  service.reload_begins();
  const Errors mistakes{{{"rules.txt", 3, 1}, "unknown target", "'DORP'", "DROP\nor\nACCEPT"}};
  service.reload_ended(outcome(ReloadOutcome::Result::refused, mistakes));
  static_cast<void>(manager.message());
  static_cast<void>(manager.message());
  EXPECT_THAT(manager.message(),
              AllOf(StartsWith("READY=1\nSTATUS=Reload at "),
                    HasSubstr("refused, the former version stays in use: rules.txt:3:1: unknown target: found 'DORP'"),
                    HasSubstr("DROP\\x0aor")))
      << "on one line";
}

TEST(ServiceManager, KeepsStatusShorterThanMessagesMayBe) {
  const FakeManager manager(unused_path());
  ServiceManager service;
  service.ready({});
  static_cast<void>(manager.message());
  service.reload_ended(outcome(ReloadOutcome::Result::failed, {{{}, std::string(100'000, '\n'), "", ""}}));
  const std::string message = manager.message();
  EXPECT_THAT(message, HasSubstr("failed, the former version stays in use"));
  EXPECT_LE(message.size(), 4096U);
}

TEST(ServiceManager, StopsOnceAndIsNotReadyAfterThat) {
  const FakeManager manager(unused_path());
  ServiceManager service;
  service.stopping();
  EXPECT_EQ(manager.message(), "") << "it has never been ready";
  service.ready({});
  service.reload_begins();
  static_cast<void>(manager.message());
  static_cast<void>(manager.message());
  service.stopping();
  EXPECT_THAT(manager.message(), StartsWith("STOPPING=1\nSTATUS="));
  service.reload_ended(outcome(ReloadOutcome::Result::in_use));
  service.stopping();
  EXPECT_EQ(manager.message(), "");
}

TEST(ServiceManager, LeavesTheServiceToASuccessorOfTheSameService) {
  const FakeManager manager(unused_path());
  ServiceManager service;
  service.ready({});
  static_cast<void>(manager.message());
  service.hand_over(::getppid());
  EXPECT_THAT(manager.message(), StartsWith("MAINPID=" + std::to_string(::getppid()) + "\nSTATUS="));
  service.stopping();
  EXPECT_EQ(manager.message(), "") << "the end of this process is not that of the service";
}

TEST(ServiceManager, EndsTheServiceIfTheSuccessorIsElsewhere) {
  const FakeManager manager(unused_path());
  ServiceManager service;
  service.ready({});
  static_cast<void>(manager.message());
  service.hand_over(0);  // it has no control group
  EXPECT_EQ(manager.message(), "");
  service.stopping();
  EXPECT_THAT(manager.message(), StartsWith("STOPPING=1\n"));
}

/// Two workers, of which the first one may hang or end.
class Workers {
 public:
  std::atomic<bool> hangs{false}, has_ended{false};

  std::vector<run::Pulse> pulses() {
    if (!hangs) ++count_;
    return {{"worker 0", has_ended ? std::nullopt : std::optional(count_.load())}, {"worker 1", ++other_}};
  }

 private:
  std::atomic<std::uint64_t> count_{0}, other_{0};
};

/// Keep-alives are expected within a second, and sent every 250 ms.
class WatchdogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("WATCHDOG_USEC", "1000000", 1);
    ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("WATCHDOG_USEC");
    ::unsetenv("WATCHDOG_PID");
  }
  /// The next message other than keep-alives.
  [[nodiscard]] std::string status() const {
    for (;;) {
      std::string message = manager_.message(kLong);
      if (message != "WATCHDOG=1") return message;
    }
  }

  static constexpr milliseconds kLong{20'000};
  FakeManager manager_{unused_path()};
  Workers workers_;
};

TEST_F(WatchdogTest, SendsKeepAlivesWithinTheTimeOfTheManager) {
  const Watchdog watchdog([&] { return workers_.pulses(); });
  for (int i = 0; i < 5; ++i) EXPECT_EQ(manager_.message(milliseconds{1000}), "WATCHDOG=1");
}

TEST_F(WatchdogTest, SendsNoneWhileAThreadHangsAndSaysWhich) {
  const Watchdog watchdog([&] { return workers_.pulses(); });
  EXPECT_EQ(manager_.message(kLong), "WATCHDOG=1");
  workers_.hangs = true;
  EXPECT_EQ(status(), "STATUS=worker 0: no progress; the service manager gets no keep-alives until there is some");
  EXPECT_THAT(manager_.messages(milliseconds{800}), IsEmpty());
  workers_.hangs = false;
  EXPECT_THAT(status(), StartsWith("STATUS=all workers make progress again, after "));
  EXPECT_EQ(manager_.message(kLong), "WATCHDOG=1");
}

TEST_F(WatchdogTest, DoesNotMindAThreadThatHasEnded) {
  workers_.hangs = true;
  workers_.has_ended = true;
  const Watchdog watchdog([&] { return workers_.pulses(); });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(manager_.message(kLong), "WATCHDOG=1");
}

TEST_F(WatchdogTest, SendsNoneIfNobodyExpectsThem) {
  ::setenv("WATCHDOG_PID", "1", 1);  // another process is meant
  {
    const Watchdog watchdog([&] { return workers_.pulses(); });
    EXPECT_THAT(manager_.messages(milliseconds{400}), IsEmpty());
  }
  ::unsetenv("WATCHDOG_USEC");
  const Watchdog watchdog([&] { return workers_.pulses(); });
  EXPECT_THAT(manager_.messages(milliseconds{400}), IsEmpty());
}

}  // namespace
}  // namespace penstock::control
