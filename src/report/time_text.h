// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Formats packet times as Suricata's logs do: local time with microseconds. It caches the current minute, so each
// worker has its own.

#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

namespace penstock::report {

class TimeText {
 public:
  /// EVE: "2026-11-21T20:24:41.123456+0100".
  void append_iso(std::string& out, std::uint64_t timestamp_ns);
  /// fast.log: "11/21/2026-20:24:41.123456".
  void append_us(std::string& out, std::uint64_t timestamp_ns);

 private:
  void look_up(std::uint64_t minute);

  std::uint64_t minute_ = std::numeric_limits<std::uint64_t>::max();  // since the epoch; the minute that the cached
                                                                      // texts stand for
  std::array<char, 32> iso_{};                                        // "2026-11-21T20:24:"
  std::array<char, 32> us_{};                                         // "11/21/2026-20:24:"
  std::array<char, 8> zone_{};                                        // "+0100"
};

}  // namespace penstock::report
