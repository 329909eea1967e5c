// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/text_file.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string_view>

#include "base/testing/packed_text.h"

namespace penstock {
namespace {

using penstock::testing::gzip;
using penstock::testing::zstd;

namespace fs = std::filesystem;

/// Runs each test in a folder of its own, which is the current folder.
class InFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-text-file-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = fs::canonical(name);
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path("/");
    fs::remove_all(folder_);
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  static void write_bytes(const char* name, std::string_view bytes) { std::ofstream(name, std::ios::binary) << bytes; }

  fs::path folder_;
};

class TextFile : public InFolder {};
class ResolvedPath : public InFolder {};

TEST_F(TextFile, ReadsWhatItWroteAndLeavesNoTemporaryFile) {
  ASSERT_TRUE(write_text_file("text", "one\ntwo"));
  EXPECT_EQ(*read_text_file("text"), "one\ntwo");
  EXPECT_EQ(files(), 1);
}

TEST_F(TextFile, FollowsSymbolicLinksWhenWriting) {
  fs::create_directory("real");
  fs::create_symlink("real/old", "to-old");
  fs::create_symlink("to-new-too", "to-new");
  fs::create_symlink(folder_ / "real/new", "to-new-too");
  ASSERT_TRUE(write_text_file("real/old", "of an earlier run"));
  for (const char* link : {"to-old", "to-new"}) {
    EXPECT_TRUE(check_text_file_writable(link));
    ASSERT_TRUE(write_text_file(link, link));
    EXPECT_TRUE(fs::is_symlink(link)) << link;
  }
  EXPECT_EQ(*read_text_file("real/old"), "to-old");
  EXPECT_EQ(*read_text_file("real/new"), "to-new");
  EXPECT_EQ(files(), 4);
}

TEST_F(TextFile, UsesNoExistingNameForItsTemporaryFile) {
  std::ofstream("text.part") << "somebody's own";
  std::ofstream(".penstock-" + std::to_string(::getpid()) + "-0.part") << "left behind";
  ASSERT_TRUE(write_text_file("text", "all of it"));
  EXPECT_EQ(*read_text_file("text"), "all of it");
  EXPECT_EQ(*read_text_file("text.part"), "somebody's own");
  EXPECT_EQ(files(), 3);
}

unsigned mode_of(const char* path) {
  struct stat status {};
  EXPECT_EQ(::stat(path, &status), 0);
  return status.st_mode & 0777;
}

TEST_F(TextFile, KeepsTheModeOfAnExistingFileOrAppliesTheUmask) {
  const mode_t mask = ::umask(0027);
  std::ofstream("another") << "";
  ASSERT_TRUE(write_text_file("text", "new"));
  EXPECT_EQ(mode_of("text"), mode_of("another"));
  ASSERT_EQ(::chmod("text", 0664), 0);
  ASSERT_TRUE(write_text_file("text", "again"));
  EXPECT_EQ(mode_of("text"), 0664U);
  ::umask(mask);
}

TEST_F(TextFile, IsPrivateToTheOwnerOnRequestEvenIfItExisted) {
  const mode_t mask = ::umask(0);
  ASSERT_TRUE(write_text_file("secret", "key", FileAccess::owner));
  EXPECT_EQ(mode_of("secret"), 0600U);
  ASSERT_EQ(::chmod("secret", 0666), 0);
  ASSERT_TRUE(write_text_file("secret", "another", FileAccess::owner));
  EXPECT_EQ(mode_of("secret"), 0600U);
  ::umask(mask);
}

/// Sets the file limit during its lifetime.
class FileLimit {
 public:
  explicit FileLimit(std::uint64_t bytes) : before_(file_limit()) { set_file_limit(bytes); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;
  ~FileLimit() { set_file_limit(before_); }

 private:
  std::uint64_t before_;
};

TEST_F(TextFile, RefusesFilesOverTheSizeLimit) {
  const FileLimit limit(1'000'000);
  std::ofstream("most") << std::string(1'000'000, 'x');
  std::ofstream("more") << std::string(1'000'001, 'x');
  EXPECT_EQ(read_text_file("most")->size(), 1'000'000U);
  const std::string why =
      "file too large: found more than 976.6 KiB, expected at most 976.6 KiB (--file-limit raises it)";
  EXPECT_EQ(to_string(read_text_file("more").error()), "more: " + why);
  EXPECT_EQ(to_string(read_text_file("/dev/zero").error()), "/dev/zero: " + why) << "a device without end";
}

TEST_F(TextFile, RefusesLinesOverTheLengthLimit) {
  std::ofstream("most") << "one\n" << std::string(kMostLineBytes, 'x') << "\nthree";
  std::ofstream("more") << "one\n" << std::string(kMostLineBytes + 1, 'x') << "\nthree";
  EXPECT_EQ(read_lines("most")->size(), 4 + kMostLineBytes + 6);
  EXPECT_EQ(to_string(read_lines("more").error()),
            "more:2: line too long: found more than 1.0 MiB, expected at most 1.0 MiB");
}

TEST_F(TextFile, GivesUpOnTheReaderOfAPipeAfterAWait) {
  const std::string unread = folder_ / "unread";
  const std::string stuck = folder_ / "stuck";
  const std::string read = folder_ / "read";
  for (const std::string& pipe : {unread, stuck, read}) ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string text(1 << 20, 'x');  // more than fits into a pipe
  const auto write = [&](const std::string& pipe) {
    return std::async(std::launch::async, [&text, pipe] { return write_text_file(pipe, text); });
  };
  const int takes_nothing = ::open(stuck.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  auto to_unread = write(unread);
  auto to_stuck = write(stuck);
  auto to_read = write(read);
  EXPECT_EQ(read_text_file(read).value(), text);
  EXPECT_TRUE(to_read.get());
  EXPECT_EQ(to_string(to_unread.get().error()), unread +
                                                    ": cannot write: found a pipe without a reader for 2 s, "
                                                    "expected a reader, or a file");
  EXPECT_EQ(to_string(to_stuck.get().error()), stuck +
                                                   ": cannot write: found a pipe whose reader does not read for 2 s, "
                                                   "expected a reader that keeps reading, or a file");
  ::close(takes_nothing);
}

TEST_F(TextFile, ReportsAFullDevice) {
  const auto written = write_text_file("/dev/full", "text");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().front().message, "cannot write: No space left on device");
}

TEST_F(ResolvedPath, IsTheSameForAllPathsToAFile) {
  fs::create_directories("sub/deep");
  fs::create_symlink("sub/deep", "short");
  fs::create_symlink("sub/../dangling-too", "dangling");
  fs::create_symlink("file", "dangling-too");
  const std::string file = (folder_ / "file").string();
  for (const bool there : {false, true}) {
    for (const char* way : {"file", "./file", "sub/../file", "short/../../file", "dangling", "sub/../dangling"}) {
      EXPECT_EQ(resolved_path(way), file) << way << ' ' << there;
    }
    EXPECT_EQ(resolved_path(file), file);
    std::ofstream("file") << "";
  }
  EXPECT_NE(resolved_path("sub/file"), file);
}

TEST_F(ResolvedPath, LeavesPathsThatItCannotResolve) {
  fs::create_symlink("round", "round");
  for (const char* path : {"none/file", "round", "none/", "", "/dev/fd/99"}) {
    const std::string resolved = resolved_path(path);
    std::error_code error;
    EXPECT_FALSE(fs::exists(resolved, error)) << path;
  }
  EXPECT_EQ(resolved_path("none/file"), "none/file");
}

TEST_F(TextFile, DecompressesGzipAndZstandardByTheirFirstBytes) {
  const std::string text = "10.0.0.0/8 dev lan\n10.1.0.0/16 dev wan\n";
  for (const std::string& packed : {gzip(text), zstd(text), gzip(text.substr(0, 19)) + gzip(text.substr(19)),
                                    zstd(text.substr(0, 19)) + zstd(text.substr(19))}) {
    write_bytes("routes.txt", packed);  // the name must not matter
    EXPECT_EQ(*read_text_file("routes.txt"), text);
    EXPECT_EQ(*read_lines("routes.txt"), text);
  }
  write_bytes("empty.gz", gzip(""));
  EXPECT_EQ(*read_text_file("empty.gz"), "");
}

TEST_F(TextFile, SkipsAByteOrderMark) {
  const std::string mark = "\xef\xbb\xbf";
  for (const std::string& bytes : {mark + "10.0.0.0/8 dev lan\n", gzip(mark + "10.0.0.0/8 dev lan\n")}) {
    write_bytes("routes.txt", bytes);
    EXPECT_EQ(*read_text_file("routes.txt"), "10.0.0.0/8 dev lan\n");
  }
  write_bytes("twice.txt", mark + mark);
  EXPECT_EQ(*read_text_file("twice.txt"), mark) << "only at the start";
}

TEST_F(TextFile, NamesATruncatedOrCorruptCompressedFile) {
  const std::string text(10'000, 'x');
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    write_bytes("cut", packed.substr(0, packed.size() - 6));
    const auto cut = read_text_file("cut");
    ASSERT_FALSE(cut);
    EXPECT_EQ(to_string(cut.error()), "cut: cannot decompress: the compressed data is truncated");
    std::string garbled = packed;
    for (std::size_t i = 5; i < garbled.size(); ++i) garbled[i] = static_cast<char>(0xa5);
    write_bytes("garbled", garbled);
    const auto refused = read_text_file("garbled");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().front().place.file, "garbled");
    EXPECT_TRUE(refused.error().front().message.starts_with("cannot decompress: ")) << to_string(refused.error());
  }
}

TEST_F(TextFile, RefusesACompressedFileThatDecompressesBeyondTheLimit) {
  const std::uint64_t before = file_limit();
  const std::string text(3'000'000, '\n');
  set_file_limit(1'000'000);
  for (const std::string& packed : {gzip(text), zstd(text)}) {
    ASSERT_LT(packed.size(), 10'000U);
    write_bytes("bomb", packed);
    const auto refused = read_text_file("bomb");
    ASSERT_FALSE(refused);
    EXPECT_EQ(to_string(refused.error()), to_string(file_too_large("bomb")));
  }
  set_file_limit(text.size());
  write_bytes("fits", gzip(text));
  EXPECT_EQ(read_text_file("fits")->size(), text.size());
  set_file_limit(before);
}

TEST_F(TextFile, NamesThePathThatCannotBeRead) {
  const auto text = read_text_file("/nonexistent/file");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().front().place.file, "/nonexistent/file");
  EXPECT_FALSE(read_text_file("/tmp"));
}

TEST_F(TextFile, ChecksBeforehandWhetherItCanBeWritten) {
  const std::string folder = (folder_ / "writable").string();
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(write_text_file(folder + "/there", "as it was"));
  for (const auto check : {check_writable, check_text_file_writable}) {
    EXPECT_TRUE(check(folder + "/there"));
    EXPECT_TRUE(check(folder + "/new"));
    EXPECT_TRUE(check("/dev/null"));
    for (const std::string& path : {folder, folder + "/none/new", folder + "/there/new", folder + "/new/"}) {
      const auto writable = check(path);
      ASSERT_FALSE(writable) << path;
      EXPECT_EQ(writable.error().front().place.file, path);
      EXPECT_TRUE(writable.error().front().message.starts_with("cannot write: "));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder + "/new"));
  EXPECT_EQ(*read_text_file(folder + "/there"), "as it was");
}

TEST(LineReader, NumbersLinesAndAcceptsBothLineEnds) {
  LineReader lines("a\r\n\nb");
  Line line;
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line.text, "a");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line.text, "");
  ASSERT_TRUE(lines.next(line));
  EXPECT_EQ(line.text, "b");
  EXPECT_EQ(line.number, 3U);
  EXPECT_FALSE(lines.next(line));
}

TEST(SplitWords, ReturnsTheColumnOfEachWord) {
  const auto words = split_words("  via\t10.0.0.1 ");
  ASSERT_EQ(words.size(), 2U);
  EXPECT_EQ(words[0].text, "via");
  EXPECT_EQ(words[0].column, 3U);
  EXPECT_EQ(words[1].text, "10.0.0.1");
  EXPECT_EQ(words[1].column, 7U);
}

TEST(Split, KeepsEmptyPartsAndSpaces) {
  EXPECT_EQ(split("a|b c|d", '|'), (std::vector<std::string_view>{"a", "b c", "d"}));
  EXPECT_EQ(split(",0, 1,", ','), (std::vector<std::string_view>{"", "0", " 1", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

}  // namespace
}  // namespace penstock
