// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests with a real file system and real processes.

#include "nf/ipsec/numbers/state_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

namespace penstock::ipsec {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StateFolderTest : public ::testing::Test {
 protected:
  StateFolderTest() {
    std::string name = (fs::temp_directory_path() / "penstock-state-XXXXXX").string();
    root = ::mkdtemp(name.data());
  }
  ~StateFolderTest() override { fs::remove_all(root); }

  [[nodiscard]] std::unique_ptr<StateFolder> open() const {
    auto folder = open_state_folder(path(), MakeParents::no);
    EXPECT_TRUE(folder) << to_string(folder.error());
    return std::move(*folder);
  }
  [[nodiscard]] std::string path() const { return root / "state"; }

  fs::path root;
};

TEST_F(StateFolderTest, IsMadeForItsOwnerAlone) {
  const auto folder = open();
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_TRUE(folder->make("file"));
  ASSERT_EQ(::stat((path() + "/file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(StateFolderTest, ParentsAreMadeWhereThatIsAskedFor) {
  const std::string deep = root / "a/b/c";
  EXPECT_FALSE(open_state_folder(deep, MakeParents::no));
  EXPECT_FALSE(fs::exists(root / "a"));
  EXPECT_TRUE(open_state_folder(deep, MakeParents::yes));
  EXPECT_TRUE(fs::is_directory(deep));
}

TEST_F(StateFolderTest, FilesAreWrittenReadAndRenamed) {
  const auto folder = open();
  const auto made = folder->make("new");
  ASSERT_TRUE(made);
  EXPECT_EQ(folder->write("new", 0, "one two"), 0);
  EXPECT_EQ(folder->write("new", 5000, "far"), 0);
  EXPECT_EQ(folder->write("new", 4, "2"), 0);
  EXPECT_EQ(folder->sync(std::vector<std::string>{"new"}), 0);
  EXPECT_EQ(folder->rename("new", "file"), 0);
  EXPECT_EQ(folder->sync_names(), 0);
  EXPECT_EQ(folder->read("file", 0, 7), "one 2wo");
  EXPECT_EQ(folder->read("file", 4999, 100), std::string("\0far", 4));
  EXPECT_EQ(folder->identify("file"), made) << "a name is not what it is";
  EXPECT_EQ(folder->identify("new").error(), ENOENT);
  EXPECT_EQ(folder->write("new", 0, "x"), ENOENT);
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(folder->make(std::to_string(i)));
  EXPECT_EQ(folder->sync(std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8"}), 0) << "many at once";
}

TEST_F(StateFolderTest, ACopyIsAnotherFile) {
  const auto folder = open();
  const auto made = folder->make("file");
  ASSERT_EQ(folder->write("file", 0, "content"), 0);
  fs::copy_file(path() + "/file", path() + "/backup");
  fs::remove(path() + "/file");
  fs::copy_file(path() + "/backup", path() + "/file");
  ASSERT_TRUE(made && folder->identify("file"));
  EXPECT_NE(*folder->identify("file"), *made);
}

TEST_F(StateFolderTest, FollowsNoLinkThatSomebodyHasPut) {
  const auto folder = open();
  fs::create_symlink(root / "elsewhere", path() + "/file");
  EXPECT_NE(folder->write("file", 0, "x"), 0);
  EXPECT_FALSE(folder->read("file", 0, 1));
  ASSERT_TRUE(folder->make("file")) << "it replaces the link";
  EXPECT_FALSE(fs::exists(root / "elsewhere"));
}

TEST_F(StateFolderTest, ALockIsHeldByOneAtATime) {
  const auto one = open();
  const auto other = open();
  EXPECT_EQ(one->lock(7), 0);
  EXPECT_EQ(one->lock(7), 0) << "its own";
  EXPECT_EQ(other->lock(7), EAGAIN);
  EXPECT_EQ(other->lock(8), 0);
  EXPECT_EQ(other->lock((std::uint64_t{1} << 62) - 1), 0) << "the last";
  one->unlock(7);
  EXPECT_EQ(other->lock(7), 0);
}

TEST_F(StateFolderTest, AProcessThatIsKilledLeavesNoLock) {
  const auto folder = open();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto own = open_state_folder(path(), MakeParents::no);
    const char held = own && (*own)->lock(7) == 0 ? 1 : 0;
    static_cast<void>(!::write(ready[1], &held, 1));
    ::pause();
    ::_exit(0);
  }
  char held = 0;
  ASSERT_EQ(::read(ready[0], &held, 1), 1);
  EXPECT_EQ(held, 1);
  EXPECT_EQ(folder->lock(7), EAGAIN) << "another process has it";
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(folder->lock(7), 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(StateFolderTest, KnowsWhenItsLocksCanNoLongerBeFound) {
  const auto folder = open();
  EXPECT_TRUE(folder->holds_locks());
  fs::rename(path(), root / "moved");
  EXPECT_FALSE(folder->holds_locks());
  const auto another = open();
  EXPECT_FALSE(folder->holds_locks()) << "another folder of that name";
  EXPECT_TRUE(another->holds_locks());
  fs::remove(path() + "/locks");
  EXPECT_FALSE(another->holds_locks());
}

TEST_F(StateFolderTest, IsRefusedWhereOthersCanWriteToIt) {
  fs::create_directory(path());
  ASSERT_EQ(::chmod(path().c_str(), 0770), 0);
  const auto folder = open_state_folder(path(), MakeParents::no);
  ASSERT_FALSE(folder);
  EXPECT_THAT(to_string(folder.error()), HasSubstr("other users can write to state_dir"));
  EXPECT_THAT(to_string(folder.error()), HasSubstr("found mode 0770"));
  EXPECT_EQ(to_string(check_state_folder(path(), MakeParents::no)), to_string(folder.error()));
  ASSERT_EQ(::chmod(path().c_str(), 0750), 0);
  EXPECT_TRUE(open_state_folder(path(), MakeParents::no));
  if (::geteuid() != 0) GTEST_SKIP() << "the rest is for root: folders of other users";
  ASSERT_EQ(::chown(path().c_str(), 12345, 0), 0);
  EXPECT_FALSE(open_state_folder(path(), MakeParents::no)) << "its owner can";
}

TEST_F(StateFolderTest, IsCheckedWithoutBeingMade) {
  EXPECT_TRUE(check_state_folder(path(), MakeParents::no).empty());
  EXPECT_TRUE(check_state_folder(root / "a/b/c", MakeParents::yes).empty());
  EXPECT_FALSE(check_state_folder(root / "a/b/c", MakeParents::no).empty());
  EXPECT_EQ(view_state_folder(path()), nullptr);
  EXPECT_TRUE(fs::is_empty(root));
  std::ofstream(path()) << "a file";
  EXPECT_THAT(to_string(check_state_folder(path(), MakeParents::no)), HasSubstr("state_dir is not a folder"));
  EXPECT_FALSE(check_state_folder(path() + "/below", MakeParents::yes).empty());
  EXPECT_FALSE(open_state_folder(path(), MakeParents::yes));
}

TEST_F(StateFolderTest, DefaultIsWhereTheUsersStateLies) {
  const auto with = [](const char* name, const char* value) {
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    return default_state_folder();
  };
  EXPECT_EQ(with("STATE_DIRECTORY", "/var/lib/one:/var/lib/two"), "/var/lib/one/ipsec") << "a unit of systemd";
  with("HOME", "/home/somebody");
  const std::string of_user = with("STATE_DIRECTORY", nullptr);
  if (::geteuid() == 0) {
    EXPECT_EQ(of_user, "/var/lib/penstock/ipsec");
    return;
  }
  EXPECT_EQ(with("XDG_STATE_HOME", "relative"), "/home/somebody/.local/state/penstock/ipsec");
  EXPECT_EQ(with("XDG_STATE_HOME", "/home/somebody/state"), "/home/somebody/state/penstock/ipsec");
  with("XDG_STATE_HOME", nullptr);
  EXPECT_EQ(with("HOME", nullptr), "");
}

TEST_F(StateFolderTest, WithoutAPlaceForItNothingIsKept) {
  EXPECT_FALSE(open_state_folder("", MakeParents::yes));
  EXPECT_EQ(to_string(check_state_folder("", MakeParents::yes)),
            "there is no folder for the sequence numbers of SAs: found no home folder, expected state_dir: a folder, "
            "or none");
}

}  // namespace
}  // namespace penstock::ipsec
