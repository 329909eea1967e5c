// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Text files that users write, read whole and walked line by line; compressed ones (gzip, Zstandard, by their first
// bytes) are unpacked, and a UTF-8 byte order mark at the start is skipped. What is read is bounded, before and after
// that: a device or a pipe without end is an error, not the end of the memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock {

/// Most bytes of a text file or of the standard input, packed and unpacked, for the whole process: 256 MiB unless it is
/// set, which is done before the first file is read (`--file-limit`).
[[nodiscard]] std::uint64_t file_limit() noexcept;
void set_file_limit(std::uint64_t bytes) noexcept;
/// For a file that is longer than that.
[[nodiscard]] Error file_too_large(const std::string& path);

/// Most bytes of a line in what `read_lines` and StdinLines read.
inline constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;

/// The file's bytes, unpacked. Errors name the path and the system's reason; a directory is an error.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

/// All of the standard input.
[[nodiscard]] Result<std::string> read_stdin();

/// What a user names to be read: the file of that path, or "-" for all of the standard input.
[[nodiscard]] Result<std::string> read_input(const std::string& path);
/// The same of a text for LineReader: a line over kMostLineBytes is an error.
[[nodiscard]] Result<std::string> read_lines(const std::string& path);
/// Whether all lines of `text` keep to that; `name` is the text's in messages.
[[nodiscard]] Result<void> check_lines(std::string_view text, const std::string& name);
/// Its name in messages: the path, or "stdin".
[[nodiscard]] std::string input_name(const std::string& path);

/// Who may read a file that is written: whom the umask lets, or whom the file let that was there; or its owner alone.
enum class FileAccess : std::uint8_t { as_usual, owner };

/// Writes by way of a temporary file beside it and a rename, so that a reader never sees half of it. A symbolic link is
/// followed and stays; a pipe or a device is written to as it is. A named pipe whose reader does not come, or takes
/// nothing, for 2 s is an error.
[[nodiscard]] Result<void> write_text_file(const std::string& path, std::string_view text,
                                           FileAccess access = FileAccess::as_usual);

/// To the standard output, behind what stdio has for it. Waits where it is non-blocking and has no room.
[[nodiscard]] Result<void> write_stdout(std::string_view text);

/// The path without links and detours, of a file that is there or is yet to be made (a link may lead to it): paths that
/// lead to one file come out equal, hard links aside. Where that cannot be told, `path` as it is.
[[nodiscard]] std::string resolved_path(const std::string& path);

/// Whether that path can be written, as far as shows without doing so: it may be overwritten, or its folder takes a new
/// file. Nothing is opened or made.
[[nodiscard]] Result<void> check_writable(const std::string& path);

/// The same for `write_text_file`, which compresses nothing: nor may the name promise that.
[[nodiscard]] Result<void> check_text_file_writable(const std::string& path);

/// The standard input as it comes. Waits for a line and no longer: who asks one thing at a time is answered at once.
class StdinLines {
 public:
  /// Whole lines, all that are there; the input's last may lack its end. Empty at the end of the input. Held until the
  /// next call. A line over kMostLineBytes is an error.
  [[nodiscard]] Result<std::string_view> next();
  /// The number, from 1, of the first of the lines that `next` gave last.
  [[nodiscard]] std::uint32_t first_line() const noexcept { return first_line_; }

 private:
  std::string text_;
  std::size_t given_ = 0;  // bytes of it that `next` gave last
  std::uint32_t first_line_ = 1;
  bool begun_ = false;
  bool ended_ = false;
};

/// One line of a text, without its line end ("\n" or "\r\n").
struct Line {
  std::uint32_t number = 0;  // from 1
  std::string_view text;
};

/// Walks the lines of `text`, which the caller keeps alive.
class LineReader {
 public:
  /// `first` is the number of the text's first line.
  explicit LineReader(std::string_view text, std::uint32_t first = 1) noexcept : rest_(text), number_(first - 1) {}
  /// False at the end; then `line` is as it was.
  bool next(Line& line) noexcept;

 private:
  std::string_view rest_;
  std::uint32_t number_;
};

/// A word of a line and the column, from 1, at which it starts.
struct Word {
  std::string_view text;
  std::uint32_t column = 0;
};

/// The words of a line, parted by spaces and tabs.
[[nodiscard]] std::vector<Word> split_words(std::string_view line);
/// The same into `words`, whose memory is used again: for files of a million lines.
void split_words(std::string_view line, std::vector<Word>& words);

/// The parts of a text, between separators: one more than there are of these, empty ones too.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

}  // namespace penstock
