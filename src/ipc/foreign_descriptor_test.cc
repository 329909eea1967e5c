// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sockets that linger for an hour: a test that closes one of them does not end.

#include "ipc/foreign_descriptor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "ipc/message_socket.h"
#include "ipc/testing/lingering.h"

namespace penstock::ipc {
namespace {

using testing::kMessage;
using testing::Lingering;
using namespace std::chrono_literals;

std::pair<FileDescriptor, FileDescriptor> unix_pair(int type) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

TEST(ForeignDescriptor, IsNotReceivedIfItIsASocket) {
  auto ends = unix_pair(SOCK_SEQPACKET);
  Lingering lingering;
  ASSERT_TRUE(lingering.send_over(ends.first.get()));
  const auto received = receive_message(ends.second.get(), 64, 1000ms);
  ASSERT_TRUE(received);
  EXPECT_TRUE(received->descriptors.empty());
  EXPECT_EQ(received->bytes.size(), kMessage.size());
}

TEST(ForeignDescriptor, IsClosedIfItsMessageIsNeverReceived) {
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM}) {
    auto ends = unix_pair(type);
    if (type != SOCK_STREAM) {
      ASSERT_EQ(send_message(ends.first.get(), {}, {}, 1000ms), 0);
    }
    Lingering first, second;
    ASSERT_TRUE(first.send_over(ends.first.get()));
    ASSERT_EQ(send_message(ends.first.get(), kMessage, {}, 1000ms), 0);
    ASSERT_TRUE(second.send_over(ends.first.get()));
    close_foreign(std::move(ends.second));
    EXPECT_NE(send_message(ends.first.get(), kMessage, {}, 1000ms), 0);
  }
}

TEST(ForeignDescriptor, IsClosedInASocketInASocket) {
  auto ends = unix_pair(SOCK_SEQPACKET);
  auto inner = unix_pair(SOCK_STREAM);
  auto innermost = unix_pair(SOCK_DGRAM);
  Lingering lingering;
  ASSERT_TRUE(lingering.send_over(innermost.first.get()));
  const std::array<int, 2> both{innermost.second.get(), innermost.first.get()};
  ASSERT_EQ(send_message(inner.first.get(), kMessage, both, 1000ms), 0);
  const int descriptor = inner.second.get();
  ASSERT_EQ(send_message(ends.first.get(), kMessage, {&descriptor, 1}, 1000ms), 0);
  ASSERT_EQ(send_message(ends.first.get(), kMessage, {&descriptor, 1}, 1000ms), 0);
  { const auto gone = std::pair(std::move(inner), std::move(innermost)); }
  ASSERT_TRUE(receive_message(ends.second.get(), 64, 1000ms));
  close_foreign(std::move(ends.second));
}

TEST(ForeignDescriptor, IsClosedIfItsConnectionIsNeverAccepted) {
  const std::string path = std::filesystem::temp_directory_path() / ("penstock-foreign-" + std::to_string(::getpid()));
  std::optional<Listener> listener = Listener::open(path, 0600).value();
  const auto connection = connect_to(path, {"it", "it"}).value();
  Lingering lingering;
  ASSERT_TRUE(lingering.send_over(connection.get()));
  listener.reset();
  EXPECT_NE(send_message(connection.get(), kMessage, {}, 1000ms), 0);
}

TEST(ForeignDescriptor, IsReceivedIfItIsAFile) {
  auto ends = unix_pair(SOCK_SEQPACKET);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const FileDescriptor reads(pipe[0]), writes(pipe[1]);
  ASSERT_EQ(send_message(ends.first.get(), kMessage, pipe, 1000ms), 0);
  const auto received = receive_message(ends.second.get(), 64, 1000ms);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->descriptors.size(), 2U);
}

}  // namespace
}  // namespace penstock::ipc
