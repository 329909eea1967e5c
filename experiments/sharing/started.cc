// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/started.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"

namespace penstock::experiments {

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string last_line(const std::string& output, const std::string& folder) {
  constexpr std::size_t kMost = 240;
  const auto printed = read_input(output);
  if (!printed) return {};
  std::string last;
  for (const std::string_view line : split(*printed, '\n')) {
    if (!trimmed(line).empty()) last = trimmed(line);
  }
  // Times differ from one point to the next, which have the same reason.
  constexpr std::string_view kError = " error: ";
  const std::size_t error = last.find(kError);
  const bool has_time = !last.empty() && last.front() >= '0' && last.front() <= '9';  // unlike "CUDA error: ..."
  if (has_time && error != std::string::npos && last.find(' ') == error) last.erase(0, error + kError.size());
  for (std::size_t at = last.find(folder); !folder.empty() && at != std::string::npos; at = last.find(folder))
    last.erase(at, folder.size());
  return printable(last.substr(0, kMost));
}

Result<void> wait_until_ready(Program& program, const Readiness& how, const std::function<bool()>& is_ready) {
  constexpr std::chrono::milliseconds kLook{10};
  const auto latest = std::chrono::steady_clock::now() + how.patience;
  while (!is_ready()) {
    if (program.ended_within(kLook)) {
      const std::string why = last_line(how.output, how.folder);
      return failure({{}, how.what + " ends at once", why.empty() ? "no message" : why, ""});
    }
    if (how.stop->load()) return failure({{}, "stopped", "", ""});
    if (std::chrono::steady_clock::now() > latest)
      return failure({{}, fmt::format("{} is not ready after {}", how.what, format_duration(how.patience)), "", ""});
  }
  return {};
}

}  // namespace penstock::experiments
