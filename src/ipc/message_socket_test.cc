// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ipc/message_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/socket_path.h"

namespace penstock::ipc {
namespace {

using namespace std::chrono_literals;

/// A socket that has its name, and does not listen yet.
class Bound {
 public:
  Bound() : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const sockaddr_un address = socket_address(path_);
    EXPECT_EQ(::bind(socket_.get(), generic_address(address), sizeof address), 0);
  }
  ~Bound() { ::unlink(path_.c_str()); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void listen() { EXPECT_EQ(::listen(socket_.get(), 1), 0); }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / ("penstock-bound-" + std::to_string(::getpid()));
  FileDescriptor socket_;
};

TEST(MessageSocket, IsWaitedForIfItsProcessIsJustBeginning) {
  Bound bound;
  std::thread beginning([&] {
    std::this_thread::sleep_for(3ms);
    bound.listen();
  });
  EXPECT_TRUE(connect_to(bound.path(), {"it", "it"}));
  beginning.join();
}

TEST(MessageSocket, IsNotWaitedForLong) {
  const Bound bound;
  const auto connection = connect_to(bound.path(), {"the service", "serve"});
  ASSERT_FALSE(connection);
  EXPECT_EQ(connection.error().front().found, "Connection refused");
  EXPECT_EQ(connection.error().front().expected, "the socket of a running `serve`");
}

TEST(Listener, RemovesItsOwnFileOnly) {
  const std::string path = std::filesystem::temp_directory_path() / ("penstock-listener-" + std::to_string(::getpid()));
  auto former = std::make_optional(Listener::open(path, 0600).value());
  ASSERT_TRUE(std::filesystem::remove(path));
  auto next = std::make_optional(Listener::open(path, 0600).value());
  former.reset();
  EXPECT_TRUE(connect_to(path, {"the service", "serve"})) << "the next one listens there";
  next.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace penstock::ipc
