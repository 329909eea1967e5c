// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a proxy has from the program that was in its process before. tests/program/proxy_test.cc executes programs.

#include "proxy/restart.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "proxy/protocol.h"
#include "proxy/server.h"
#include "proxy/testing/served_proxy.h"

namespace penstock::proxy {
namespace {

class Restart : public testing::ServedProxy {
 protected:
  /// What a program finds in its environment.
  static Inheritance inherit(const std::string& path, const std::string& text) {
    ::setenv("PENSTOCK_PROXY_INHERITANCE", text.c_str(), 1);
    Inheritance inherited = take_inheritance(path);
    EXPECT_EQ(std::getenv("PENSTOCK_PROXY_INHERITANCE"), nullptr) << "children would see it";
    return inherited;
  }
};

TEST_F(Restart, GoesOnWithItsSocketAndScheduler) {
  start();
  const std::string status = ask_for_status(path_, false).value();
  const auto former = nlohmann::json::parse(status);
  EXPECT_EQ(former["restarts"], 0);
  const int socket = ::dup(server_->listener().fd());
  const SocketFile file = server_->listener().file();
  std::filesystem::rename(path_, path_ + ".kept");  // so that the former one's end does not remove it
  server_.reset();
  std::filesystem::rename(path_ + ".kept", path_);
  // It waits in the queue until the next one is there.
  const auto early = ipc::connect_to(path_, kService);
  ASSERT_TRUE(early);

  Inheritance inherited = inherit(path_, fmt::format("{} {} 1 7 2 {} {}", ::getpid(), socket, file.device, file.inode));
  ASSERT_TRUE(inherited.listener);
  ServerSettings settings;
  settings.path = path_;
  auto next = Server::start(settings, std::make_unique<testing::HostBackend>(device_, testing::kBlockKernels),
                            std::move(inherited));
  ASSERT_TRUE(next) << to_string(next.error());
  const auto now = nlohmann::json::parse(ask_for_status(path_, false).value());
  EXPECT_EQ(now["restarts"], 7);
  EXPECT_EQ(now["scheduler"], "equal");
  EXPECT_EQ((*next)->restarts_in_a_row(), 2U);
  EXPECT_NE(ask_for_status(path_, true)->find("penstock_proxy_restarts_total 7"), std::string::npos);
  Hello hello;
  ASSERT_EQ(send_message(early->get(), bytes_of(hello), {}, std::chrono::seconds{1}), 0);
  EXPECT_TRUE(receive_message(early->get(), sizeof(Reply), std::chrono::seconds{10}));
  next->reset();
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it has the file of the former one";
}

TEST_F(Restart, TakesOnlyItsOwnSocket) {
  EXPECT_FALSE(take_inheritance(path_).listener);
  auto listener = Listener::open(path_, 0600);
  ASSERT_TRUE(listener);
  const pid_t pid = ::getpid();
  const auto with = [&](const std::string& path, const std::string& text) {
    return inherit(path, text).listener.has_value();
  };
  for (const std::string text : {"", " ", "1", "x", "1 2 3 4 5 6", "-1 -1 -1 -1 -1 -1 -1", "1 2 3 4 5 6 7 8",
                                 "99999999999999999999 3 0 0 0 0 0"})
    EXPECT_FALSE(with(path_, text)) << text;
  const int socket = listener->fd();
  EXPECT_FALSE(with(path_, fmt::format("{} {} 0 0 0 0 0", pid + 1, socket))) << "a child's";
  EXPECT_FALSE(with(path_, fmt::format("{} {} 0 0 0 0 0 ", pid, socket)));
  for (const int fd : {-1, 0, 2, 12345, 1 << 30})
    EXPECT_FALSE(with(path_, fmt::format("{} {} 0 0 0 0 0", pid, fd))) << fd;
  EXPECT_FALSE(with(path_, fmt::format("{} {} 0 0 0 0 0", pid, ::open("/dev/null", O_RDONLY))));
  EXPECT_FALSE(with(path_ + "x", fmt::format("{} {} 0 0 0 0 0", pid, ::dup(socket)))) << "of another path";
  const auto connected = ipc::connect_to(path_, kService);
  ASSERT_TRUE(connected);
  EXPECT_FALSE(with(path_, fmt::format("{} {} 0 0 0 0 0", pid, ::dup(connected->get())))) << "does not listen";
  Inheritance odd = inherit(path_, fmt::format("{} {} 99 1 99999999999 0 0", pid, ::dup(socket)));
  ASSERT_TRUE(odd.listener);
  EXPECT_FALSE(odd.policy);
  EXPECT_LE(odd.in_a_row, 1000U);
  EXPECT_NE(::fcntl(odd.listener->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(Restart, ComesLessOftenTheMoreThereAre) {
  EXPECT_EQ(least_life(0), std::chrono::seconds{1});
  EXPECT_EQ(least_life(1), std::chrono::seconds{2});
  EXPECT_EQ(least_life(6), std::chrono::seconds{64});
  EXPECT_EQ(least_life(1000), std::chrono::seconds{64});
}

}  // namespace
}  // namespace penstock::proxy
