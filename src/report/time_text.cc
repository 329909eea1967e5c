// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/time_text.h"

#include <ctime>

#include "base/nanoseconds.h"

namespace penstock::report {

namespace {

/// The seconds within the minute: "41.123456".
void append_seconds(std::string& out, std::uint64_t timestamp_ns) {
  const std::uint64_t microseconds = timestamp_ns / 1000 % 60'000'000;
  std::array<char, 9> text{};
  std::uint64_t rest = microseconds;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (i == 2) {
      text[i] = '.';
      continue;
    }
    text[i] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  }
  out.append(text.data(), text.size());
}

}  // namespace

void TimeText::look_up(std::uint64_t minute) {
  minute_ = minute;
  const auto seconds = static_cast<std::time_t>(minute * 60);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  std::strftime(iso_.data(), iso_.size(), "%Y-%m-%dT%H:%M:", &local);
  std::strftime(us_.data(), us_.size(), "%m/%d/%Y-%H:%M:", &local);
  std::strftime(zone_.data(), zone_.size(), "%z", &local);
}

void TimeText::append_iso(std::string& out, std::uint64_t timestamp_ns) {
  if (const std::uint64_t minute = timestamp_ns / kNsPerSecond / 60; minute != minute_) look_up(minute);
  out.append(iso_.data());
  append_seconds(out, timestamp_ns);
  out.append(zone_.data());
}

void TimeText::append_us(std::string& out, std::uint64_t timestamp_ns) {
  if (const std::uint64_t minute = timestamp_ns / kNsPerSecond / 60; minute != minute_) look_up(minute);
  out.append(us_.data());
  append_seconds(out, timestamp_ns);
}

}  // namespace penstock::report
