// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/process_use.h"

#include <unistd.h>

#include <charconv>
#include <string>
#include <string_view>

#include "base/system_file.h"

namespace penstock {

namespace {

std::uint64_t number_of(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Of words with a space between them, that at this position.
std::string_view word(std::string_view text, unsigned position) {
  for (; position > 0; --position) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return {};
    text.remove_prefix(space + 1);
  }
  return text.substr(0, text.find(' '));
}

/// Unix time.
std::uint64_t boot_time(std::string_view stat) {
  constexpr std::string_view kKey = "\nbtime ";
  const std::size_t at = stat.find(kKey);
  return at == std::string_view::npos ? 0 : number_of(stat.substr(at + kKey.size()));
}

}  // namespace

ProcessUse process_use(const std::filesystem::path& proc) {
  const std::string text = system_file(proc / "self/stat");
  // proc(5): the second field, the program's name, may contain anything. What follows it begins with field 3.
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return {};
  const std::string_view fields = std::string_view(text).substr(name_end + 2);
  const auto ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto seconds = [&](unsigned field) {
    return static_cast<double>(number_of(word(fields, field - 3))) / ticks_per_s;
  };
  ProcessUse use;
  use.cpu_s = seconds(14) + seconds(15);
  if (const std::uint64_t boot = boot_time(system_file(proc / "stat")))
    use.started_s = static_cast<double>(boot) + seconds(22);
  use.resident_bytes = number_of(word(fields, 24 - 3)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return use;
}

}  // namespace penstock
