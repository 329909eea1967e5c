// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the targets of HTTP requests in a payload or a stream by their request lines alone. Regular expressions with
// the flags U and I use it, because there is no buffer http.uri yet that follows the HTTP messages.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::nids {

/// Iterates over request lines such as `GET /index.html HTTP/1.1`.
class RequestTargets {
 public:
  explicit RequestTargets(std::span<const std::uint8_t> text) noexcept : rest_(text) {}

  struct Target {
    std::span<const std::uint8_t> bytes;  // as received
    bool is_authority = false;            // CONNECT: a host without a path
  };
  /// False if there are no more.
  bool next(Target& target) noexcept;

 private:
  std::span<const std::uint8_t> rest_;
};

/// The normalised path and query, as the server interprets them: without scheme and host, %XX of the path decoded,
/// repeated slashes merged, `.` and `..` resolved (RFC 3986 §5.2.4). The result is written to `room`, and truncated to
/// its size.
[[nodiscard]] std::span<const std::uint8_t> normal_target(const RequestTargets::Target& target,
                                                          std::span<std::uint8_t> room) noexcept;

}  // namespace penstock::nids
