// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/file_conflicts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text_file.h"

namespace penstock::config {

namespace {

/// Two paths name the same file if either member is equal.
struct FileIdentity {
  std::string path;
  std::optional<std::pair<dev_t, ino_t>> inode{};  // empty: the file does not exist
  friend bool operator==(const FileIdentity& a, const FileIdentity& b) {
    return a.path == b.path || (a.inode && a.inode == b.inode);
  }
};

FileIdentity identity_of(const std::string& path) {
  FileIdentity identity{resolved_path(path)};
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) identity.inode.emplace(status.st_dev, status.st_ino);
  return identity;
}

bool is_stdout(const std::string& path) {
  return path == "-" || path == "/dev/stdout" || path == "/dev/fd/1" || path == "/proc/self/fd/1";
}

bool is_device(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_character_file(path, none);
}

/// The standard input and the standard output may each be used only once.
void check_standard_streams(std::span<const Parameters::File> files, Errors& errors) {
  std::optional<Place> stdin_reader;
  std::optional<Place> stdout_writer;
  for (const Parameters::File& file : files) {
    if (!(file.written ? is_stdout(file.path) : file.path == "-")) continue;
    std::optional<Place>& other = file.written ? stdout_writer : stdin_reader;
    if (other) {
      errors.push_back({file.place,
                        file.written ? "standard output is already in use" : "standard input can be read only once",
                        "- here and at " + place_text(*other), "a file"});
    }
    other = file.place;
  }
}

}  // namespace

std::string place_text(const Place& place) {
  return place.line == 0 ? place.file : fmt::format("{}:{}", place.file, place.line);
}

bool writes_stdout(std::span<const Parameters::File> files) {
  return std::ranges::any_of(files, [](const Parameters::File& file) { return file.written && is_stdout(file.path); });
}

Errors file_conflicts(std::span<const Parameters::File> files) {
  Errors errors;
  check_standard_streams(files, errors);
  std::vector<FileIdentity> identities;
  identities.reserve(files.size());
  for (const Parameters::File& file : files) identities.push_back(identity_of(file.path));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Parameters::File& output = files[i];
    if (!output.written || is_stdout(output.path) || is_device(output.path)) continue;
    for (std::size_t j = 0; j < files.size(); ++j) {
      const Parameters::File& other = files[j];
      if (i == j || (other.written && j < i) || !(identities[i] == identities[j])) continue;
      errors.push_back(
          {output.place,
           "would overwrite the file that " + place_text(other.place) + (other.written ? " writes" : " reads"),
           in_quotes(output.path), "another file"});
    }
  }
  return errors;
}

}  // namespace penstock::config
