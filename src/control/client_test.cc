// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a client, and of a process that would take over, if the other process is stopped, dies or misbehaves.

#include "control/client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <string>
#include <thread>

#include "control/hand_over.h"
#include "control/unix_socket.h"

namespace penstock::control {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

/// Another process that listens, and does something with its first client.
class ListeningProcess : public ::testing::Test {
 protected:
  void listen(const std::function<void(int client)>& use) {
    std::array<int, 2> listening{};
    ASSERT_EQ(::pipe2(listening.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    ASSERT_GE(pid_, 0);
    if (pid_ == 0) {
      const auto listener = UnixListener::open(path_);
      if (!listener || ::write(listening[1], "", 1) != 1) ::_exit(1);
      pollfd polled{listener->fd(), POLLIN, 0};
      static_cast<void>(::poll(&polled, 1, -1));
      use(::accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC));
      for (;;) ::pause();
    }
    ::close(listening[1]);
    char byte = 0;
    EXPECT_EQ(::read(listening[0], &byte, 1), 1);
    ::close(listening[0]);
  }
  /// Its first request.
  static void receive(int client) {
    char bytes[4096];
    static_cast<void>(::recv(client, bytes, sizeof bytes, 0));
  }
  void TearDown() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::unlink(path_.c_str());
  }

  const std::string path_ = ::testing::TempDir() + "/penstock-client-" + std::to_string(::getpid()) + ".sock";
  const run::Continuity own_{2, {{"lan", "tap interface=x"}}};
  pid_t pid_ = -1;
};

TEST_F(ListeningProcess, IsNamedIfItDoesNotAnswer) {
  listen([](int) { ::raise(SIGSTOP); });
  auto client = Client::connect(path_);
  ASSERT_TRUE(client);
  const auto answer = client->ask(Command::status, Json::object(), 1s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, "");
  EXPECT_EQ(to_string(answer.error().errors),
            path_ + ": the run (process " + std::to_string(pid_) + ") does not answer: expected an answer within 1 s");
}

TEST_F(ListeningProcess, MayDieBeforeItHandsAnythingOver) {
  listen([](int client) {
    receive(client);
    ::raise(SIGKILL);
  });
  const auto process = RunningProcess::connect(path_, own_);
  ASSERT_TRUE(process) << to_string(process.error().errors);
  EXPECT_TRUE((*process)->has_died());
  EXPECT_EQ((*process)->pid(), pid_);
  const auto ports = (*process)->take();
  ASSERT_TRUE(ports) << to_string(ports.error());
  EXPECT_TRUE(ports->empty()) << "they begin anew";
  EXPECT_TRUE((*process)->confirm());
  EXPECT_FALSE((*process)->goes_on());
}

TEST_F(ListeningProcess, MayBeKilledWhileItIsStopped) {
  listen([](int) { ::raise(SIGSTOP); });
  auto connected = std::async(std::launch::async, [&] { return RunningProcess::connect(path_, own_); });
  EXPECT_EQ(connected.wait_for(200ms), std::future_status::timeout);
  ::kill(pid_, SIGKILL);
  const auto process = connected.get();
  ASSERT_TRUE(process) << to_string(process.error().errors);
  EXPECT_TRUE((*process)->has_died());
}

TEST_F(ListeningProcess, IsNamedIfItNeitherAnswersNorEnds) {
  listen([](int client) {
    receive(client);
    ::close(client);
  });
  const auto process = RunningProcess::connect(path_, own_);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().kind, "");
  const std::string text = to_string(process.error().errors);
  EXPECT_THAT(text, HasSubstr("the connection was closed before the answer came"));
  EXPECT_THAT(text, EndsWith("; or else end process " + std::to_string(pid_) + ", then start without --take-over"));
}

TEST_F(ListeningProcess, IsNotConfusedWithTheNext) {
  // It has no place for the client, which connects again: to another process.
  const auto next = UnixListener::open_beside(path_);
  ASSERT_TRUE(next);
  listen([&](int client) {
    ::rename(next->path().c_str(), path_.c_str());
    const std::string full = failure_text(nullptr, Failure::refused, {{{}, std::string(kTooManyClients), "", ""}});
    static_cast<void>(::send(client, full.data(), full.size(), MSG_NOSIGNAL));
  });
  auto connected = std::async(std::launch::async, [&] { return RunningProcess::connect(path_, own_); });
  pollfd polled{next->fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&polled, 1, 10'000), 1);
  const int client = ::accept4(next->fd(), nullptr, nullptr, SOCK_CLOEXEC);
  const std::string answer = result_text(2, to_json(own_));
  EXPECT_EQ(::send(client, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  const auto process = connected.get();
  ::close(client);
  ASSERT_FALSE(process);
  EXPECT_EQ(to_string(process.error().errors),
            path_ + ": another process listens now: expected process " + std::to_string(pid_));
}

}  // namespace
}  // namespace penstock::control
