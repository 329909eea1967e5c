// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "proxy/server.h"
#include "proxy/testing/block_kernel.h"
#include "proxy/testing/host_backend.h"

namespace penstock::proxy::testing {

/// A proxy with a simulated device, at a path of the test's own.
class ServedProxy : public ::testing::Test {
 protected:
  void start() {
    ServerSettings settings;
    settings.path = path_;
    settings.longest_batch = longest_batch_;
    auto server = Server::start(std::move(settings), std::make_unique<HostBackend>(device_, kBlockKernels));
    ASSERT_TRUE(server) << to_string(server.error());
    server_ = std::move(*server);
  }

  const std::string path_ = (std::filesystem::temp_directory_path() /
                             fmt::format("penstock-served-{}-{}", ::getpid(),
                                         ::testing::UnitTest::GetInstance()->current_test_info()->name()))
                                .string();
  std::chrono::nanoseconds longest_batch_ = std::chrono::seconds{30};
  HostDevice device_;
  std::unique_ptr<Server> server_;
};

}  // namespace penstock::proxy::testing
