// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A run as a service: what it tells the service manager (sd_notify(3)), and when its keep-alives stop. The manager here
// is a socket of the test's; tests/service boots a systemd.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "program/program_for_test.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

/// Keep-alives are expected within 800 ms, and so sent every 200 ms.
class Service : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = (folder_ / "notify").string();
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    rules("-p udp -j ACCEPT");
    write("chain.yaml",
          "ports: {lan: {generator: {rate: 2kpps}}, wan: {\"null\": {}}}\n"
          "chain: [firewall: {rules: rules}]\n"
          "outputs: {control: run.sock}\n");
  }
  void TearDown() override {
    if (pid_ > 0) static_cast<void>(::kill(pid_, SIGKILL));
    ::close(socket_);
    Program::TearDown();
  }

  void rules(const std::string& rule) const {
    write("rules", "*filter\n:FORWARD DROP [0:0]\n-A FORWARD " + rule + "\nCOMMIT\n");
  }
  void start(const std::string& options = "") {
    ASSERT_EQ(shell("NOTIFY_SOCKET=$PWD/notify WATCHDOG_USEC=800000 '" PENSTOCK_PROGRAM
                    "' run chain.yaml -q --duration 60s " +
                    options + " >run.out 2>run.err & echo $! >pid"),
              0);
    pid_ = std::stoi(read("pid"));
  }
  /// The next message other than keep-alives; "": none came.
  [[nodiscard]] std::string message() const {
    const auto end = Clock::now() + std::chrono::seconds{20};
    for (;;) {
      std::string one = receive(end);
      if (one != "WATCHDOG=1") return one;
    }
  }
  [[nodiscard]] bool becomes_ready() const {
    for (std::string one = message(); !one.empty(); one = message()) {
      if (one.starts_with("READY=1\n")) return true;
    }
    return false;
  }
  /// Keep-alives within this time.
  [[nodiscard]] int keep_alives(milliseconds during) const {
    const auto end = Clock::now() + during;
    int count = 0;
    for (std::string one = receive(end); !one.empty(); one = receive(end)) count += one == "WATCHDOG=1" ? 1 : 0;
    return count;
  }
  /// Whether those that were on their way are the last ones.
  [[nodiscard]] bool keep_alives_stop() const {
    static_cast<void>(keep_alives(milliseconds{500}));
    return keep_alives(milliseconds{1500}) == 0;
  }
  /// The thread of the program with this name.
  [[nodiscard]] pid_t thread(const std::string& name) const {
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
      std::ifstream file(entry.path() / "comm");
      std::string comm;
      if (std::getline(file, comm) && comm == name) return std::stoi(entry.path().filename());
    }
    return 0;
  }

  pid_t pid_ = 0;

 private:
  [[nodiscard]] std::string receive(Clock::time_point end) const {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    pollfd polled{socket_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&polled, 1, static_cast<int>(left.count())) != 1) return "";
    char bytes[8192];
    return {bytes, static_cast<std::size_t>(std::max<ssize_t>(::recv(socket_, bytes, sizeof bytes, 0), 0))};
  }

  int socket_ = -1;
};

TEST_F(Service, TellsItsManagerWhatItDoes) {
  start();
  EXPECT_EQ(message(), "STATUS=Starting");
  EXPECT_EQ(message(), "READY=1\nSTATUS=Running on the ports lan, wan") << read("run.err");
  EXPECT_EQ(shell("penstock ctl --socket run.sock status"), 0);
  EXPECT_THAT(read("out"), HasSubstr("running"));

  rules("-p tcp -j ACCEPT");
  EXPECT_EQ(shell("penstock ctl --socket run.sock reload"), 0) << read("err");
  EXPECT_THAT(message(), StartsWith("RELOADING=1\nMONOTONIC_USEC="));
  EXPECT_THAT(message(), StartsWith("READY=1\nSTATUS=Reload at "));

  rules("-j NONSENSE");
  EXPECT_EQ(shell("penstock ctl --socket run.sock reload"), 2);
  EXPECT_THAT(message(), StartsWith("RELOADING=1\n"));
  EXPECT_THAT(message(), HasSubstr("refused, the former version stays in use: "));
  ::kill(pid_, SIGUSR2);
  EXPECT_THAT(message(), StartsWith("RELOADING=1\n"));
  EXPECT_THAT(message(), StartsWith("READY=1\n"));

  ::kill(pid_, SIGTERM);
  EXPECT_THAT(message(), StartsWith("STOPPING=1\n"));
  EXPECT_EQ(shell("while kill -0 " + std::to_string(pid_) + "; do sleep 0.02; done"), 0);
  pid_ = 0;
}

TEST_F(Service, IsNotReadyIfThePortsCannotStart) {
  write("chain.yaml", "ports: {lan: {pcap: {read: none.pcap}}}\nchain: []\n");
  start();
  EXPECT_EQ(message(), "STATUS=Starting");
  EXPECT_EQ(keep_alives(milliseconds{1000}), 0);
  EXPECT_THAT(read("run.err"), HasSubstr("none.pcap"));
  pid_ = 0;
}

TEST_F(Service, StopsItsKeepAlivesWhileTheProcessIsStopped) {
  start();
  ASSERT_TRUE(becomes_ready()) << read("run.err");
  EXPECT_GE(keep_alives(milliseconds{2000}), 4);
  ::kill(pid_, SIGSTOP);
  EXPECT_TRUE(keep_alives_stop());
  ::kill(pid_, SIGCONT);
  EXPECT_GE(keep_alives(milliseconds{2000}), 4);
}

/// The debugger's stop ends only that thread's progress: those that receive signals, reload and send keep-alives go on.
TEST_F(Service, StopsItsKeepAlivesWhileOneWorkerHangs) {
  start("--workers 2");
  ASSERT_TRUE(becomes_ready()) << read("run.err");
  const pid_t worker = thread("worker-1");
  ASSERT_GT(worker, 0);
  if (::ptrace(PTRACE_SEIZE, worker, nullptr, nullptr) != 0) GTEST_SKIP() << "ptrace: " << std::strerror(errno);
  ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, worker, nullptr, nullptr), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(worker, &status, __WALL), worker);
  EXPECT_TRUE(keep_alives_stop());
  EXPECT_THAT(read("run.err"), HasSubstr("warning: worker 1: no progress; the service manager gets no keep-alives"));
  EXPECT_EQ(shell("penstock ctl --socket run.sock stats"), 0) << "other threads go on";
  ASSERT_EQ(::ptrace(PTRACE_DETACH, worker, nullptr, nullptr), 0);
  EXPECT_GE(keep_alives(milliseconds{2000}), 4);
  EXPECT_THAT(read("run.err"), HasSubstr("all workers make progress again"));
}

TEST_F(Service, StopsItsKeepAlivesWhileNobodyReadsItsOutput) {
  ASSERT_EQ(shell("mkfifo pipe; exec 9<>pipe; sleep 60 <&9 & echo $! >reader"), 0);
  write("chain.yaml",
        "ports: {lan: {generator: {rate: 20kpps}}, wan: {pcap: {write: pipe}}}\nchain: []\nwire: {lan: wan}\n");
  start();
  ASSERT_TRUE(becomes_ready()) << read("run.err");
  EXPECT_TRUE(keep_alives_stop());
  EXPECT_EQ(shell("kill $(cat reader)"), 0);
}

TEST_F(Service, KeepsItsKeepAlivesWithoutPackets) {
  write("chain.yaml", "ports: {lan: {pcap: {read: pipe}}}\nchain: []\n");
  ASSERT_EQ(shell("mkfifo pipe; (cat in.pcap; exec sleep 60) >pipe & echo $! >writer"), 0);
  start();
  ASSERT_TRUE(becomes_ready()) << read("run.err");
  EXPECT_GE(keep_alives(milliseconds{2000}), 4);
  EXPECT_EQ(shell("kill $(cat writer)"), 0);
}

}  // namespace
}  // namespace penstock
