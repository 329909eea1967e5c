// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/request_target.h"

#include <algorithm>
#include <string_view>

namespace penstock::nids {

namespace {

constexpr std::size_t kMostMethodBytes = 32;

std::string_view text_of(std::span<const std::uint8_t> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr bool is_method_byte(char c) noexcept { return (c >= 'A' && c <= 'Z') || c == '-' || c == '_'; }

int hex_digit(std::uint8_t c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = c | 0x20;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/// The size of the path without its last segment: "/a/b/" -> "/a/".
std::size_t parent(std::span<const std::uint8_t> path, std::size_t size) noexcept {
  if (size > 1) --size;
  while (size > 0 && path[size - 1] != '/') --size;
  return std::max<std::size_t>(size, 1);
}

}  // namespace

bool RequestTargets::next(Target& target) noexcept {
  while (!rest_.empty()) {
    const std::string_view rest = text_of(rest_);
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest_ = end == rest.npos ? std::span<const std::uint8_t>{} : rest_.subspan(end + 1);

    std::size_t method = 0;
    while (method < line.size() && method <= kMostMethodBytes && is_method_byte(line[method])) ++method;
    const std::size_t version = line.rfind(" HTTP/");
    if (method == 0 || method > kMostMethodBytes || version == line.npos || version <= method || line[method] != ' ') {
      continue;
    }
    const std::size_t first = line.find_first_not_of(' ', method);
    if (first >= version) continue;
    const std::size_t last = line.find_last_not_of(' ', version);
    target.bytes = {reinterpret_cast<const std::uint8_t*>(line.data()) + first, last + 1 - first};
    target.is_authority = line.substr(0, method) == "CONNECT";
    return true;
  }
  return false;
}

std::span<const std::uint8_t> normal_target(const RequestTargets::Target& target,
                                            std::span<std::uint8_t> room) noexcept {
  if (target.is_authority || room.empty()) return {};
  std::span<const std::uint8_t> from = target.bytes;
  const std::string_view whole = text_of(from);
  if (const std::size_t scheme = whole.find("://"); scheme != whole.npos && scheme < whole.find_first_of("/?")) {
    const std::size_t path = whole.find_first_of("/?", scheme + 3);
    if (path == whole.npos) return {};
    from = from.subspan(path);
  }
  std::size_t size = 0;
  std::size_t at = 0;
  const auto ends_dots = [&](std::size_t dots) {
    return size > dots && room[size - 1 - dots] == '/' &&
           std::all_of(room.begin() + static_cast<std::ptrdiff_t>(size - dots),
                       room.begin() + static_cast<std::ptrdiff_t>(size), [](std::uint8_t c) { return c == '.'; });
  };
  const auto follow_dots = [&] {
    if (ends_dots(1)) {
      size -= 1;
    } else if (ends_dots(2)) {
      size = parent(room, size - 2);
    }
  };
  for (; at < from.size() && from[at] != '?' && size < room.size(); ++at) {
    std::uint8_t c = from[at];
    if (c == '%' && at + 2 < from.size() && hex_digit(from[at + 1]) >= 0 && hex_digit(from[at + 2]) >= 0) {
      c = static_cast<std::uint8_t>(hex_digit(from[at + 1]) * 16 + hex_digit(from[at + 2]));
      at += 2;
    }
    if (c == '\\') c = '/';
    if (c == '/') {
      follow_dots();
      if (size > 0 && room[size - 1] == '/') continue;
    }
    room[size++] = c;
  }
  follow_dots();
  for (; at < from.size() && size < room.size(); ++at) room[size++] = from[at];
  return room.first(size);
}

}  // namespace penstock::nids
