// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What HTTP requests ask for, found in a payload or a stream by their request lines alone: for regular expressions with
// the flags U and I, as long as there is no buffer http.uri that follows the messages.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::nids {

/// Walks `GET /index.html HTTP/1.1` and the like at the beginning of lines.
class RequestTargets {
 public:
  explicit RequestTargets(std::span<const std::uint8_t> text) noexcept : rest_(text) {}

  struct Target {
    std::span<const std::uint8_t> bytes;  // as it came
    bool is_authority = false;            // of CONNECT: a host, and no path
  };
  /// False where there is no more.
  bool next(Target& target) noexcept;

 private:
  std::span<const std::uint8_t> rest_;
};

/// Path and query as the server takes them: without scheme and host, %XX of the path decoded, its slashes as one, `.`
/// and `..` followed (RFC 3986 §5.2.4). What is over the room's size is cut. The bytes are in `room`.
[[nodiscard]] std::span<const std::uint8_t> normal_target(const RequestTargets::Target& target,
                                                          std::span<std::uint8_t> room) noexcept;

}  // namespace penstock::nids
