// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "base/testing/file_size_limit.h"

namespace penstock {
namespace {

using std::chrono::milliseconds;
using testing::FileSizeLimit;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

template <typename... Args>
void say(Log& log, LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  log.write_limited(level, format, fmt::make_format_args(args...));
}

class LogTest : public ::testing::Test {
 protected:
  LogTest() {
    EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK), 0);
    std::string name = (std::filesystem::temp_directory_path() / "penstock-log-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~LogTest() override {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
    std::filesystem::remove_all(folder_);
  }

  [[nodiscard]] int fd() const { return pipe_[1]; }
  /// What was written since the last call.
  [[nodiscard]] std::string written() const {
    std::string text;
    std::array<char, 4096> bytes{};
    for (ssize_t count; (count = ::read(pipe_[0], bytes.data(), bytes.size())) > 0;)
      text.append(bytes.data(), static_cast<std::size_t>(count));
    return text;
  }
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::array<int, 2> pipe_{};
  std::filesystem::path folder_;
};

TEST_F(LogTest, WritesPlainMessagesForThePersonAtTheTerminal) {
  Log log(fd());
  log.write(LogLevel::error, "chain.yaml:1:2: wrong");
  log.write(LogLevel::warning, "odd");
  log.write(LogLevel::info, "done");
  log.write(LogLevel::debug, "details");
  EXPECT_EQ(written(), "chain.yaml:1:2: wrong\nwarning: odd\ndone\n");
}

TEST_F(LogTest, WritesTimeAndLevelInRecords) {
  Log log(fd());
  log.keep_records();
  log.write(LogLevel::warning, "the link is down");
  EXPECT_THAT(written(), MatchesRegex("20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\\.[0-9]{3}Z "
                                      "warning: the link is down\n"));
}

TEST_F(LogTest, WritesPrioritiesForTheJournalIfItsStreamIsTheJournals) {
  struct stat status {};
  ASSERT_EQ(::fstat(fd(), &status), 0);
  const auto stream = [&](ino_t inode) { return fmt::format("{}:{}", status.st_dev, inode); };
  Log log(fd());
  ::setenv("JOURNAL_STREAM", stream(status.st_ino).c_str(), 1);
  log.keep_records();
  log.set_level(LogLevel::debug);
  for (const LogLevel level : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug})
    log.write(level, name(level));
  EXPECT_EQ(written(), "<3>error\n<4>warning\n<6>info\n<7>debug\n");

  ::setenv("JOURNAL_STREAM", stream(status.st_ino + 1).c_str(), 1);
  log.keep_records();
  log.write(LogLevel::info, "redirected");
  EXPECT_THAT(written(), Not(StartsWith("<")));
  ::unsetenv("JOURNAL_STREAM");
}

TEST_F(LogTest, WritesMessagesUpToItsLevel) {
  Log log(fd());
  log.set_level(LogLevel::warning);
  EXPECT_FALSE(log.writes(LogLevel::info));
  log.write(LogLevel::info, "info");
  log.write(LogLevel::error, "error");
  EXPECT_EQ(written(), "error\n");
  for (const LogLevel level : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug})
    EXPECT_EQ(log_level(name(level)), level);
  EXPECT_EQ(log_level("notice"), std::nullopt);
}

TEST_F(LogTest, KeepsEachMessageInOneLine) {
  Log log(fd(), Log::Style::journal);
  log.write(LogLevel::info, "a\n<3>b\033[1m");
  EXPECT_EQ(written(), "<6>a\\x0a<3>b\\x1b[1m\n");
  log.write(LogLevel::info, std::string(100'000, 'x'));
  const std::string line = written();
  EXPECT_LE(line.size(), 4096U);
  EXPECT_THAT(line, ::testing::EndsWith("x…\n"));
}

TEST_F(LogTest, LimitsMessagesOfAKindAndSaysHowManyItLeftOut) {
  Log log(fd(), Log::Style::journal, {2, milliseconds{100}});
  for (int i = 0; i < 5; ++i) say(log, LogLevel::warning, "link {} is down", i);
  say(log, LogLevel::info, "another kind");
  EXPECT_EQ(written(), "<4>link 0 is down\n<4>link 1 is down\n<6>another kind\n");
  log.report_left_out();
  EXPECT_EQ(written(), "") << "the interval is not over";
  std::this_thread::sleep_for(milliseconds{110});
  log.report_left_out();
  EXPECT_EQ(written(), "<4>3 messages left out, such as: link 2 is down\n");
  log.report_left_out();
  say(log, LogLevel::warning, "link {} is down", 7);
  EXPECT_THAT(written(), Not(HasSubstr("left out"))) << "it has been said";
}

TEST_F(LogTest, SaysAtItsEndHowManyMessagesItLeftOut) {
  {
    Log log(fd(), Log::Style::journal, {1, std::chrono::hours{1}});
    for (int i = 0; i < 3; ++i) say(log, LogLevel::info, "again");
  }
  EXPECT_EQ(written(), "<6>again\n<6>2 messages left out, such as: again\n");
}

TEST_F(LogTest, NeverWaitsForItsReaderAndCountsWhatIsLost) {
  ASSERT_EQ(::fcntl(fd(), F_SETFL, 0), 0);  // a write would block
  Log log(fd(), Log::Style::journal);
  const std::string text(1000, 'x');
  for (int i = 0; i < 1000; ++i) log.write(LogLevel::info, text);
  const std::string before = written();
  EXPECT_LT(before.size(), 1'000'000U);
  log.write(LogLevel::info, "read again");
  const auto lines = std::count(before.begin(), before.end(), '\n');
  EXPECT_EQ(written(), fmt::format("<4>{} messages lost: the log took nothing\n<6>read again\n", 1000 - lines));
}

TEST_F(LogTest, ContinuesInAFileAndReopensIt) {
  const std::string path = folder_ / "penstock.log", old = folder_ / "penstock.log.1";
  std::ofstream(path) << "earlier\n";
  Log log(fd());
  EXPECT_TRUE(log.reopen()) << "stderr has nothing to reopen";
  ASSERT_TRUE(log.continue_in(path));
  log.write(LogLevel::info, "one");
  EXPECT_EQ(written(), "");
  EXPECT_THAT(read(path), MatchesRegex("earlier\n[^ ]+Z info: one\n"));

  std::filesystem::rename(path, old);
  log.write(LogLevel::info, "two");
  ASSERT_TRUE(log.reopen());
  log.write(LogLevel::info, "three");
  EXPECT_THAT(read(old), HasSubstr("two"));
  EXPECT_THAT(read(path), MatchesRegex("[^ ]+Z info: three\n"));

  std::filesystem::rename(path, old);
  std::filesystem::create_directory(path);
  const auto refused = log.reopen();
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()), path + ": cannot write the log: Is a directory; it continues in the old file");
  log.write(LogLevel::info, "four");
  EXPECT_THAT(read(old), HasSubstr("four"));
}

TEST_F(LogTest, RefusesWhatIsNotAFile) {
  Log log(fd());
  const auto refused = log.continue_in("/dev/null");
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()), "/dev/null: cannot write the log: found not a file, expected a file");
}

TEST_F(LogTest, GoesOnWhenADiskThatWasFullTakesMore) {
  const std::string path = folder_ / "full.log";
  Log log(fd());
  ASSERT_TRUE(log.continue_in(path));
  {
    const FileSizeLimit limit(100);
    log.write(LogLevel::info, std::string(200, 'x'));
    log.write(LogLevel::info, "lost");
  }
  log.write(LogLevel::info, "there is room");
  EXPECT_THAT(read(path), MatchesRegex("[^ ]+Z info: x+\n[^ ]+Z warning: 2 messages lost: the log took nothing\n"
                                       "[^ ]+Z info: there is room\n"));
}

TEST_F(LogTest, EndsElsewhereIfItsFileTakesNothing) {
  const std::string path = folder_ / "full.log";
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  Log log(file);
  ASSERT_TRUE(log.continue_in(path));
  log.fall_back_to(fd());
  log.write(LogLevel::info, "fits");
  EXPECT_EQ(written(), "") << "the file takes it";
  {
    const FileSizeLimit limit(1);
    log.write(LogLevel::error, "report.json: cannot write");
    log.write(LogLevel::error, "the last one");
  }
  EXPECT_THAT(written(), MatchesRegex("[^ ]+Z error: report.json: cannot write\n[^ ]+Z error: the last one\n"));
  EXPECT_THAT(read(path), MatchesRegex("[^ ]+Z info: fits\n"));
  ::close(file);
}

}  // namespace
}  // namespace penstock
