// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/event_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "base/testing/file_content.h"
#include "base/testing/file_size_limit.h"

namespace penstock::report {
namespace {

using penstock::testing::content_of;
using penstock::testing::FileSizeLimit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class EventLogTest : public ::testing::Test {
 protected:
  ~EventLogTest() override { std::remove(path_.c_str()); }
  [[nodiscard]] std::string content() const { return content_of(path_); }
  static void add(EventLog::Writer& writer, std::string_view line) {
    writer.line([&](std::string& out) { out += line; });
  }

  const std::string path_ = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_event.log";
};

TEST_F(EventLogTest, LosesOnlyALineWithoutMemory) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  {
    EventLog::Writer writer(log);
    add(writer, "one");
    writer.line([](std::string& out) {
      out += "begun";
      throw std::bad_alloc();
    });
    add(writer, "two");
  }
  const Errors errors = log.close();
  EXPECT_EQ(content(), "one\ntwo\n");
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_EQ(errors[0].message, "no memory for 1 record");
}

TEST_F(EventLogTest, WritesLinesAtTheEnd) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  {
    EventLog::Writer writer(log);
    add(writer, "one");
    add(writer, "two");
    EXPECT_EQ(content(), "");
  }
  EXPECT_THAT(log.close(), IsEmpty());
  EXPECT_EQ(content(), "one\ntwo\n");
}

TEST_F(EventLogTest, WritesWhenTheBufferIsFull) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  add(writer, std::string(70'000, 'x'));
  EXPECT_EQ(content().size(), 70'001U);
}

TEST_F(EventLogTest, WritesLinesThatHaveWaitedForASecond) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  add(writer, "one");
  const auto now = EventLog::Clock::now();
  writer.flush_if_due(now);
  EXPECT_EQ(content(), "");
  writer.flush_if_due(now + std::chrono::milliseconds{1001});
  EXPECT_EQ(content(), "one\n");
}

TEST_F(EventLogTest, TruncatesAnExistingFileOnlyWhenItBegins) {
  std::ofstream(path_) << "old\n";
  {
    EventLog never_begun(path_, EventLog::Start::anew);
    ASSERT_TRUE(never_begun.open());
  }
  EXPECT_EQ(content(), "old\n");
  EventLog log(path_, EventLog::Start::anew);
  ASSERT_TRUE(log.open());
  EXPECT_EQ(content(), "old\n");
  log.begin();
  EXPECT_EQ(content(), "");
}

TEST_F(EventLogTest, AppendsAndCompletesATruncatedLine) {
  for (const auto& [before, after] :
       {std::pair{"", "new\n"}, {"old\n", "old\nnew\n"}, {"old\ncut", "old\ncut\nnew\n"}}) {
    std::ofstream(path_) << before;
    EventLog log(path_);
    ASSERT_TRUE(log.open());
    EXPECT_EQ(content(), before) << "until it begins";
    log.begin();
    {
      EventLog::Writer writer(log);
      add(writer, "new");
    }
    EXPECT_THAT(log.close(), IsEmpty());
    EXPECT_EQ(content(), after);
  }
}

TEST_F(EventLogTest, ReopensAFileThatWasRenamedAndLosesNoLine) {
  const std::string renamed = path_ + ".1";
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  add(writer, "one");
  writer.flush();
  ASSERT_TRUE(log.reopen()) << "of the same file";
  ASSERT_EQ(std::rename(path_.c_str(), renamed.c_str()), 0);
  add(writer, "two");
  writer.flush();
  ASSERT_TRUE(log.reopen());
  add(writer, "three");
  writer.flush();
  EXPECT_EQ(content(), "three\n");
  EXPECT_EQ(content_of(renamed), "one\ntwo\n");
  EventLog second(path_), other(renamed);
  EXPECT_FALSE(second.open()) << "the new file is locked";
  EXPECT_TRUE(other.open()) << "the old one no longer is";
  EXPECT_THAT(log.close(), IsEmpty());
  std::remove(renamed.c_str());
}

TEST_F(EventLogTest, ContinuesInTheOldFileWhenTheFolderIsGone) {
  namespace fs = std::filesystem;
  const fs::path folder = path_ + ".folder";
  const fs::path moved = path_ + ".moved";
  fs::create_directory(folder);
  EventLog log(folder / "eve.json");
  ASSERT_TRUE(log.open());
  log.begin();
  fs::rename(folder, moved);
  const auto reopened = log.reopen();
  ASSERT_FALSE(reopened);
  EXPECT_EQ(to_string(reopened.error()),
            (folder / "eve.json").string() +
                ": cannot reopen the log: No such file or directory; it continues in the old file: expected a "
                "file that can be written, or a folder where it can be created; then send SIGHUP again");
  {
    EventLog::Writer writer(log);
    add(writer, "still here");
  }
  EXPECT_EQ(content_of(moved / "eve.json"), "still here\n");
  fs::remove_all(moved);
  EXPECT_THAT(to_string(log.reopen().error()),
              HasSubstr("; it continues in the old file, which was deleted: these lines will be lost"));
  EXPECT_THAT(log.close(), IsEmpty());
}

TEST_F(EventLogTest, LosesNoLineOfSeveralWorkersWhileItIsReopened) {
  constexpr int kWorkers = 3;
  constexpr int kLines = 20'000;
  constexpr int kFiles = 20;
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  std::vector<std::thread> workers;
  for (int w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&log] {
      EventLog::Writer writer(log);
      for (int i = 0; i < kLines; ++i) add(writer, "a line of many");
    });
  }
  const auto renamed = [&](int file) { return path_ + "." + std::to_string(file); };
  for (int file = 0; file < kFiles; ++file) {
    ASSERT_EQ(std::rename(path_.c_str(), renamed(file).c_str()), 0);
    ASSERT_TRUE(log.reopen());
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_THAT(log.close(), IsEmpty());
  std::string all = content();
  for (int file = 0; file < kFiles; ++file) {
    all += content_of(renamed(file));
    std::remove(renamed(file).c_str());
  }
  int count = 0;
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line); ++count) ASSERT_EQ(line, "a line of many");
  EXPECT_EQ(count, kWorkers * kLines);
}

/// Truncates the file like `copytruncate` of logrotate.
TEST_F(EventLogTest, ContinuesAtTheStartOfATruncatedFile) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  add(writer, "one");
  writer.flush();
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  add(writer, "two");
  writer.flush();
  EXPECT_EQ(content(), "two\n");
}

TEST_F(EventLogTest, ContinuesInTheOldFileIfItCannotReopen) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  const std::string renamed = path_ + ".1";
  ASSERT_EQ(std::rename(path_.c_str(), renamed.c_str()), 0);
  EventLog another(path_);
  ASSERT_TRUE(another.open());
  another.begin();
  EXPECT_THAT(to_string(log.reopen().error()), HasSubstr("another log or another run is writing to it"));
  add(writer, "one");
  writer.flush();
  EXPECT_EQ(content(), "");
  EXPECT_THAT(log.close(), IsEmpty());
  EXPECT_GT(std::ifstream(renamed, std::ios::ate).tellg(), 0);
  std::remove(renamed.c_str());
}

TEST_F(EventLogTest, RemovesAFileThatItCreatedAndNeverBegan) {
  {
    EventLog log(path_);
    ASSERT_TRUE(log.open());
  }
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);
}

TEST_F(EventLogTest, RefusesAFileThatAnotherLogHasOpen) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  add(writer, "one");
  writer.flush();
  {
    EventLog second(path_);
    const auto opened = second.open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(to_string(opened.error()), path_ + ": cannot write: another log or another run is writing to it");
  }
  add(writer, "two");
  writer.flush();
  EXPECT_EQ(content(), "one\ntwo\n");
}

TEST_F(EventLogTest, AcceptsAFileOnceTheOtherLogIsClosed) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EXPECT_THAT(log.close(), IsEmpty());
  EventLog next(path_);
  EXPECT_TRUE(next.open());
}

/// If two runs begin at the same time, the one that is refused must not remove or truncate the file that the other has
/// created.
TEST_F(EventLogTest, LeavesAFileThatAnotherLogCreated) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  {
    EventLog second(path_);
    ASSERT_FALSE(second.open());
  }
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
}

TEST_F(EventLogTest, LocksNeitherPipesNorDevices) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  for (const std::string& path : {path_, std::string("/dev/null"), std::string("/dev/stdout"), std::string("-")}) {
    EventLog first(path), second(path);
    EXPECT_TRUE(first.open()) << path;
    EXPECT_TRUE(second.open()) << path;
  }
  ::close(reader);
}

TEST_F(EventLogTest, KeepsLinesOfSeveralWorkersWhole) {
  constexpr int kWorkers = 4;
  constexpr int kLines = 5000;
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  std::vector<std::thread> workers;
  for (int w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&log, w] {
      EventLog::Writer writer(log);
      for (int i = 0; i < kLines; ++i) {
        add(writer, std::to_string(w) + " " + std::to_string(i) + " " +
                        std::string(static_cast<std::size_t>(i % 97), static_cast<char>('a' + w)));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_THAT(log.close(), IsEmpty());
  std::map<int, int> next;
  std::istringstream lines(content());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    std::istringstream words(line);
    int worker = -1, number = -1;
    std::string rest;
    words >> worker >> number >> rest;
    EXPECT_EQ(number, next[worker]++);  // the lines of each worker are in order
    ASSERT_EQ(rest, std::string(static_cast<std::size_t>(number % 97), static_cast<char>('a' + worker)));
  }
  EXPECT_EQ(count, kWorkers * kLines);
}

TEST_F(EventLogTest, ReportsAFileThatCannotBeOpened) {
  EventLog log("/nowhere/eve.json");
  const auto opened = log.open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(to_string(opened.error()), "/nowhere/eve.json: cannot write: No such file or directory");
}

TEST_F(EventLogTest, ReportsAFullDiskOnceWithTheNumberOfLostLines) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  EventLog log("/dev/full");
  ASSERT_TRUE(log.open());
  log.begin();
  {
    EventLog::Writer writer(log);
    add(writer, "one");
    writer.flush();
    EXPECT_TRUE(log.failed());
    add(writer, "two");
    add(writer, "three");
  }
  const Errors errors = log.close();
  ASSERT_THAT(errors, SizeIs(1));
  EXPECT_EQ(to_string(errors.front()), "/dev/full: cannot write, and 3 records are lost: No space left on device");
}

TEST_F(EventLogTest, EndsWithACompleteLineIfTheDiskIsFull) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  add(writer, "first");
  writer.flush();
  {
    const FileSizeLimit limit(20);
    add(writer, "second");
    add(writer, "this is cut");
    writer.flush();
  }
  EXPECT_EQ(content(), "first\nsecond\n");
  EXPECT_THAT(to_string(log.close()), HasSubstr("1 record is lost"));
}

TEST_F(EventLogTest, GoesOnOnceThereIsRoomAgain) {
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  EventLog::Writer writer(log);
  {
    const FileSizeLimit none(0);
    for (const char* const line : {"lost", "lost too"}) {
      add(writer, line);
      writer.flush();
    }
  }
  add(writer, "before the next try");
  writer.flush();
  EXPECT_EQ(content(), "");
  std::this_thread::sleep_for(std::chrono::milliseconds{1100});
  add(writer, "written");
  writer.flush();
  EXPECT_EQ(content(), "written\n");
  EXPECT_THAT(to_string(log.close()), HasSubstr("3 records are lost: File too large"));
}

TEST_F(EventLogTest, ReportsAReaderThatIsGone) {
  std::signal(SIGPIPE, SIG_IGN);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  ::close(reader);
  {
    EventLog::Writer writer(log);
    add(writer, "one");
  }
  EXPECT_EQ(to_string(log.close()), path_ + ": cannot write, and 1 record is lost: Broken pipe");
}

TEST_F(EventLogTest, WaitsForThePipesReaderUntilItIsInterrupted) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EventLog log(path_);
  auto opening = std::async(std::launch::async, [&log] { return log.open(); });
  EXPECT_EQ(opening.wait_for(std::chrono::milliseconds{100}), std::future_status::timeout);
  log.interrupt();
  const auto opened = opening.get();
  ASSERT_FALSE(opened);
  EXPECT_THAT(to_string(opened.error()), HasSubstr("the pipe has no reader"));
}

TEST_F(EventLogTest, GivesUpAReaderThatTakesNothingOnceItIsInterrupted) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const int reader = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  EventLog log(path_);
  ASSERT_TRUE(log.open());
  log.begin();
  auto writing = std::async(std::launch::async, [&log] {
    EventLog::Writer writer(log);
    add(writer, std::string(1 << 20, 'x'));
  });
  EXPECT_EQ(writing.wait_for(std::chrono::milliseconds{100}), std::future_status::timeout);
  log.interrupt();
  writing.get();
  EXPECT_THAT(to_string(log.close()), HasSubstr("the reader no longer reads"));
  ::close(reader);
}

}  // namespace
}  // namespace penstock::report
