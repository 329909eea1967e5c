// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Text files that users write, read whole and split into lines. Compressed files (gzip or Zstandard, by their first
// bytes) are decompressed, and a UTF-8 byte order mark is skipped. The size is limited before and after decompression,
// so that an endless device or pipe is an error and does not exhaust the memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace penstock {

/// The most bytes of a text file or of the standard input, both compressed and decompressed. It applies to the whole
/// process, and must be set before the first file is read (`--file-limit`). The default is 256 MiB.
[[nodiscard]] std::uint64_t file_limit() noexcept;
void set_file_limit(std::uint64_t bytes) noexcept;
/// The error for a file over this limit.
[[nodiscard]] Error file_too_large(const std::string& path);

/// The most bytes of a line that `read_lines` and StdinLines accept.
inline constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;

/// The content of the file, decompressed. Errors give the path and the system's reason. A directory is an error.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

/// All of the standard input.
[[nodiscard]] Result<std::string> read_stdin();

/// The content of an input that the user named: a path, or "-" for the standard input.
[[nodiscard]] Result<std::string> read_input(const std::string& path);
/// Like `read_input`, for use with LineReader: a line over kMostLineBytes is an error.
[[nodiscard]] Result<std::string> read_lines(const std::string& path);
/// Checks that no line of `text` is over kMostLineBytes; `name` is the input's name in messages.
[[nodiscard]] Result<void> check_lines(std::string_view text, const std::string& name);
/// The input's name in messages: the path, or "stdin".
[[nodiscard]] std::string input_name(const std::string& path);

/// Permissions of a written file. `as_usual`: those of the file that it replaces, or by the umask if it is new.
/// `owner`: only the owner has access.
enum class FileAccess : std::uint8_t { as_usual, owner };

/// Writes to a temporary file in the same folder and renames it, so that readers never see a partial file. Symbolic
/// links are followed and stay. Pipes and devices are written directly. A named pipe without a reader, or whose reader
/// takes nothing, is an error after 2 s.
[[nodiscard]] Result<void> write_text_file(const std::string& path, std::string_view text,
                                           FileAccess access = FileAccess::as_usual);

/// Writes to the standard output, after what stdio has buffered. Blocks even if the descriptor is non-blocking.
[[nodiscard]] Result<void> write_stdout(std::string_view text);

/// The absolute path without symbolic links, "." and "..", also for a file that does not exist yet. Two paths to the
/// same file give the same result, except for hard links. Returns `path` itself if it cannot be resolved.
[[nodiscard]] std::string resolved_path(const std::string& path);

/// Checks, without opening or creating anything, that the path could be written: the file may be overwritten, or its
/// folder accepts a new file.
[[nodiscard]] Result<void> check_writable(const std::string& path);

/// Like `check_writable`, for `write_text_file`. It does not compress, so the name must not have a compression suffix.
[[nodiscard]] Result<void> check_text_file_writable(const std::string& path);

/// The standard input, read as it arrives. Blocks only until a line is complete, so that an interactive user is
/// answered after each line.
class StdinLines {
 public:
  /// All complete lines that have arrived, at least one. The last line of the input may lack its line end. Empty at the
  /// end of the input. The view is valid until the next call. A line over kMostLineBytes is an error.
  [[nodiscard]] Result<std::string_view> next();
  /// The number of the first line that the last call of `next` returned; lines count from 1.
  [[nodiscard]] std::uint32_t first_line() const noexcept { return first_line_; }

 private:
  std::string text_;
  std::size_t given_ = 0;  // bytes of `text_` that the last call of `next` returned
  std::uint32_t first_line_ = 1;
  bool begun_ = false;
  bool ended_ = false;
};

/// One line of a text, without its line end ("\n" or "\r\n").
struct Line {
  std::uint32_t number = 0;  // from 1
  std::string_view text;
};

/// Iterates over the lines of `text`, which the caller keeps alive.
class LineReader {
 public:
  /// `first` is the number of the first line.
  explicit LineReader(std::string_view text, std::uint32_t first = 1) noexcept : rest_(text), number_(first - 1) {}
  /// False at the end; `line` is then unchanged.
  bool next(Line& line) noexcept;

 private:
  std::string_view rest_;
  std::uint32_t number_;
};

/// A word of a line, and the column (from 1) at which it starts.
struct Word {
  std::string_view text;
  std::uint32_t column = 0;
};

/// The words of a line, separated by spaces and tabs.
[[nodiscard]] std::vector<Word> split_words(std::string_view line);
/// Like the above, but reuses the memory of `words`, for files with millions of lines.
void split_words(std::string_view line, std::vector<Word>& words);

/// The parts of a text between separators, empty parts included.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

}  // namespace penstock
