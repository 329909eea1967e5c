// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/scan_captures.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "base/text_file.h"
#include "port/capture_reader.h"

namespace penstock::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoTime = std::numeric_limits<std::uint64_t>::max();

/// "a.pcap", "a.pcap3" (tcpdump -C), "a.pcapng.gz", "a.cap", "a.dmp".
bool is_named_as_capture(std::string_view name) {
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  return name.find(".pcap") != name.npos || name.ends_with(".cap") || name.ends_with(".dmp");
}

struct Found {
  std::uint64_t first_ns;
  std::string path;
};

/// Fails with the reason if the file is to be skipped.
Result<Found> look_at(const std::string& path) {
  port::ReadControl control;
  auto reader = port::CaptureReader::open(path, control);
  if (reader) {
    port::CapturedFrame frame;
    const bool has_packet = reader->next(frame) == port::CaptureReader::Status::packet;
    return Found{has_packet ? frame.timestamp_ns : kNoTime, path};
  }
  if (is_named_as_capture(path)) return Found{kNoTime, path};  // the error is reported when it is read
  return failure(std::move(reader).error());
}

Result<void> add_folder(const std::string& folder, Captures& captures) {
  std::error_code error;
  std::vector<Found> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code none;
    if (entry->path().filename().string().starts_with('.')) continue;
    if (!entry->is_regular_file(none)) {
      captures.left_out.push_back(
          {{path, 0, 0}, "left out", entry->is_directory(none) ? "a folder in a folder" : "not a regular file", ""});
    } else if (auto looked = look_at(path)) {
      found.push_back(std::move(*looked));
    } else {
      Error why = std::move(looked.error().front());
      why.message = "left out: " + why.message;
      captures.left_out.push_back(std::move(why));
    }
  }
  if (error) return failure(system_error(folder, "cannot read the folder", error.message()));
  if (found.empty()) return failure(Error{{folder, 0, 0}, "no captures in this folder", "", "pcap or pcapng files"});
  std::ranges::sort(found, {}, [](const Found& f) { return std::tie(f.first_ns, f.path); });
  for (Found& one : found) captures.paths.push_back(std::move(one.path));
  return {};
}

/// Removes duplicates, even under different paths. Multiple uses of "-" stay, and are refused later.
void read_once(Captures& captures) {
  std::unordered_set<std::string> seen;
  std::erase_if(captures.paths, [&](const std::string& path) {
    if (path == "-" || seen.insert(resolved_path(path)).second) return false;
    captures.left_out.push_back({{path, 0, 0}, "given more than once: it is read only once", "", ""});
    return true;
  });
}

}  // namespace

Captures find_captures(const std::vector<std::string>& given) {
  Captures captures;
  for (const std::string& path : given) {
    std::error_code none;
    if (path == "-" || !fs::is_directory(path, none)) {
      captures.paths.push_back(path);
    } else if (auto added = add_folder(path, captures); !added) {
      append(captures.errors, std::move(added).error());
    }
  }
  read_once(captures);
  std::ranges::sort(captures.left_out, {}, [](const Error& error) { return error.place.file; });
  return captures;
}

}  // namespace penstock::cli
