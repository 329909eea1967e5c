// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/raw_capture_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace penstock::port {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif
#else
constexpr bool kIsSanitized = false;
#endif

constexpr std::uint64_t kCaptureBytes = 16 << 20;
constexpr std::uint64_t kRecords = (kCaptureBytes - 24) / RawRecord::kHeaderBytes;

/// A capture of empty packets, in which all but the file header is a hole.
class LargeCapture {
 public:
  LargeCapture() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-raw-XXXXXX").string();
    const int fd = ::mkstemp(name.data());
    if (fd >= 0) ::close(fd);
    path_ = name;
    const std::array<std::uint32_t, 6> header{0xa1b2c3d4, 2 | 4 << 16, 0, 0, 262144, 1};
    std::ofstream(path_, std::ios::binary).write(reinterpret_cast<const char*>(header.data()), sizeof header);
    std::filesystem::resize_file(path_, kCaptureBytes - (kCaptureBytes - 24) % RawRecord::kHeaderBytes);
  }
  LargeCapture(const LargeCapture&) = delete;
  LargeCapture& operator=(const LargeCapture&) = delete;
  ~LargeCapture() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

/// Leaves this process less address space than a window onto a file's pages takes.
bool limit_address_space() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (6 << 20);
  const rlimit limit{most, most};
  return ::setrlimit(RLIMIT_AS, &limit) == 0;
}

/// The records of the capture; 0 if it cannot be read.
std::uint64_t records_of(const std::string& path, std::uint64_t& read_at_first) {
  ReadControl control;
  auto reader = RawCaptureReader::open(path, control);
  if (!reader) return 0;
  read_at_first = control.bytes_read.load();
  std::uint64_t count = 0;
  for (auto records = (*reader)->next(); !records.empty(); records = (*reader)->next()) count += records.size();
  return (*reader)->reason().empty() ? count : 0;
}

TEST(RawCaptureReader, MapsALargeFile) {
  const LargeCapture capture;
  std::uint64_t read_at_first = 0;
  EXPECT_EQ(records_of(capture.path(), read_at_first), kRecords);
  EXPECT_GE(read_at_first, 8U << 20);
}

TEST(RawCaptureReader, ReadsAFileThatCannotBeMapped) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer needs the address space";
  const LargeCapture capture;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!limit_address_space()) ::_exit(1);
    std::uint64_t read_at_first = 0;
    if (records_of(capture.path(), read_at_first) != kRecords) ::_exit(2);
    ::_exit(read_at_first < 8U << 20 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "2: not all records, 3: the file was mapped";
}

TEST(RawCaptureReader, OpensANamedPipeOnlyOnce) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("penstock-pipe-{}", ::getpid())).string();
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const std::array<std::uint32_t, 10> capture{0xa1b2c3d4, 2 | 4 << 16, 0, 0, 262144, 1, 1, 0, 0, 0};
  for (int round = 0; round < 300; ++round) {  // the moment between two openings is short
    const pid_t writer = ::fork();
    ASSERT_GE(writer, 0);
    if (writer == 0) {
      // Writes as soon as there is a reader, and leaves.
      ::signal(SIGPIPE, SIG_IGN);
      ::alarm(10);
      int fd = -1;
      while (fd < 0) fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK);
      ::_exit(::write(fd, capture.data(), sizeof capture) == sizeof capture ? 0 : 1);
    }
    ::usleep(500);
    const int timer = ::timerfd_create(CLOCK_MONOTONIC, 0);
    const itimerspec limit{{}, {5, 0}};
    ::timerfd_settime(timer, 0, &limit, nullptr);
    ReadControl control;
    control.stop_fd = timer;
    {
      const auto reader = RawCaptureReader::open(path, control);
      EXPECT_TRUE(reader) << "round " << round;
      if (reader) {
        EXPECT_EQ((*reader)->next().size(), 1U);
      }
    }
    ::close(timer);
    int status = 0;
    ::waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0) << "its reader went away";
    if (HasFailure()) break;
  }
  std::filesystem::remove(path);
}

TEST(RawCaptureReader, RefusesAFileShorterThanAHeader) {
  const LargeCapture capture;
  for (const std::uintmax_t size : {std::uintmax_t{0}, std::uintmax_t{23}}) {
    std::filesystem::resize_file(capture.path(), size);
    ReadControl control;
    EXPECT_FALSE(RawCaptureReader::open(capture.path(), control)) << size;
  }
}

}  // namespace
}  // namespace penstock::port
