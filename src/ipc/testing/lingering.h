// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a descriptor that takes an hour to close. Who closes it does not end.

#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "ipc/message_socket.h"

namespace penstock::ipc::testing {

/// Means nothing in any protocol.
inline constexpr std::array<std::byte, 4> kMessage{};

/// A connection with bytes that its other end does not take.
class Lingering {
 public:
  Lingering() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    socket_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket_.get(), generic, size), 0);
    const std::vector<char> bytes(1 << 16);
    while (::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger hour{1, 3600};
    EXPECT_EQ(::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &hour, sizeof hour), 0);
  }
  /// From now on, only whoever receives it has it. False: nobody takes the message.
  bool send_over(int socket, std::span<const std::byte> message = kMessage) {
    const FileDescriptor gone = std::move(socket_);
    const int descriptor = gone.get();
    if (send_message(socket, message, {&descriptor, 1}, std::chrono::milliseconds(1000)) == 0) return true;
    const linger none{};
    EXPECT_EQ(::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    return false;
  }

 private:
  FileDescriptor listener_, socket_;
};

}  // namespace penstock::ipc::testing
