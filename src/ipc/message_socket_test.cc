// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "ipc/message_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// A request that is not read resets the connection.
TEST(MessageSocket, ReceivesARefusalThatCameBeforeTheEnd) {
  const std::string_view request = "request", refusal = "refusal";
  for (const bool asks_first : {false, true}) {
    for (const bool refuses : {false, true}) {
      int ends[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
      FileDescriptor asking(ends[0]), refusing(ends[1]);
      if (asks_first) {
        ASSERT_EQ(send_message(asking.get(), std::as_bytes(std::span(request)), {}, 0ms), 0);
      }
      if (refuses) {
        ASSERT_EQ(send_message(refusing.get(), std::as_bytes(std::span(refusal)), {}, 0ms), 0);
      }
      refusing = FileDescriptor();
      errno = 0;
      const auto answer = asks_first ? receive_message(asking.get(), 100, 1s)
                                     : exchange(asking.get(), std::as_bytes(std::span(request)), {}, 100, 1s);
      EXPECT_EQ(answer.has_value(), refuses) << asks_first;
      if (!refuses) {
        EXPECT_EQ(errno, EPIPE) << "it has gone";
      }
    }
  }
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
