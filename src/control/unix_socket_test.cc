// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

class UnixSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/penstock-socket-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    path_ = folder_ + "/a.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] static std::string errors_of(const std::string& path) {
    const auto opened = UnixListener::open(path);
    return opened ? "" : to_string(opened.error());
  }

  std::string folder_, path_;
};

TEST_F(UnixSocket, IsForItsOwnerOnly) {
  const mode_t umask_before = ::umask(0);
  const auto listener = UnixListener::open(path_);
  ::umask(umask_before);
  ASSERT_TRUE(listener) << to_string(listener.error());
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, S_IFSOCK | 0600U);
}

TEST_F(UnixSocket, IsRemovedAtTheEnd) {
  { ASSERT_EQ(errors_of(path_), ""); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocket, LeavesItsPathToTheNext) {
  auto listener = UnixListener::open(path_);
  ASSERT_TRUE(listener);
  listener->remove_path();
  EXPECT_EQ(errors_of(path_), "");
}

TEST_F(UnixSocket, LeavesTheSocketOfAnother) {
  std::optional<UnixListener> next;
  {
    auto first = UnixListener::open(path_);
    ASSERT_TRUE(first);
    std::filesystem::remove(path_);
    auto second = UnixListener::open(path_);
    ASSERT_TRUE(second);
    next.emplace(std::move(*second));
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocket, RefusesAPathWhereAProcessListens) {
  const auto listener = UnixListener::open(path_);
  ASSERT_TRUE(listener);
  EXPECT_THAT(errors_of(path_),
              HasSubstr("a.sock: a process listens on this socket: found process " + std::to_string(::getpid())));
  EXPECT_TRUE(connect_to(path_)) << "and it still does";
}

TEST_F(UnixSocket, ReplacesTheSocketOfADeadProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto listener = UnixListener::open(path_);
    ::_exit(listener ? 0 : 1);  // without destructors
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(path_));
  EXPECT_EQ(errors_of(path_), "");
}

TEST_F(UnixSocket, ReplacesNoOtherFile) {
  std::ofstream(path_) << "precious";
  EXPECT_THAT(errors_of(path_), HasSubstr("not a socket, so it is not replaced"));
  std::filesystem::remove(path_);
  std::filesystem::create_symlink("elsewhere", path_);
  EXPECT_THAT(errors_of(path_), HasSubstr("not a socket, so it is not replaced"));
}

TEST_F(UnixSocket, SaysWhyItCannotListen) {
  EXPECT_THAT(errors_of(folder_ + "/none/a.sock"), HasSubstr("No such file or directory"));
  EXPECT_THAT(errors_of("-"), HasSubstr("not a path for a socket"));
  EXPECT_THAT(errors_of(folder_ + "/" + std::string(200, 'a')), HasSubstr("the path of a socket is too long"));
}

TEST_F(UnixSocket, SaysWhyItCannotConnect) {
  EXPECT_THAT(to_string(connect_to(path_).error()), HasSubstr("--control"));
  EXPECT_FALSE(connect_to(path_ + std::string(200, 'a'))) << "not to a socket with a shorter name";
}

TEST_F(UnixSocket, TakesThePlaceOfAnotherProcess) {
  auto former = std::make_unique<UnixListener>(std::move(*UnixListener::open(path_)));
  auto next = UnixListener::open_beside(path_);
  ASSERT_TRUE(next) << to_string(next.error());
  EXPECT_FALSE(UnixListener::open_beside(path_)) << "two at once";
  port::FileDescriptor(::accept(next->fd(), nullptr, nullptr));  // it has looked whether a process listens
  const auto reaches = [&](const UnixListener& listener) {
    const auto client = connect_to(path_);
    const port::FileDescriptor accepted(::accept(listener.fd(), nullptr, nullptr));
    return client.has_value() && static_cast<bool>(accepted);
  };
  EXPECT_TRUE(reaches(*former));
  EXPECT_FALSE(reaches(*next));
  EXPECT_TRUE(next->replace());
  EXPECT_EQ(next->path(), path_);
  EXPECT_TRUE(reaches(*next));
  former.reset();
  EXPECT_TRUE(reaches(*next)) << "the former one has removed it";
}

TEST_F(UnixSocket, KnowsThePeer) {
  const auto listener = UnixListener::open(path_);
  const auto client = connect_to(path_);
  ASSERT_TRUE(client);
  const auto peer = peer_of(client->get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::geteuid());
}

}  // namespace
}  // namespace penstock::control
