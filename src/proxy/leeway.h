// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How many bytes others may have on the device while tenants with latency bounds have batches (scheduler.h, `limit`).
// What a device bears is not known: little on it makes each batch short, but a device that has few batches at a time
// carries less, since they wait for launches and for the host. So it is tried, in windows of time:
//
//   level       0        1       2       3 …        23      each allows fewer bytes than the one before, by √2
//   in time?   late     late     yes     yes   late (few batches wait for themselves)
//   starves?                             yes     yes        others carry less than is promised to them
//                                ▲ the first that is in time and does not starve others
//
// If no level is both, the one with the fewest late batches of those that do not starve others. Loads change, so the
// level before is tried again: soon, since its batches may have been late because a tenant had just begun, but each
// time that it fails only after twice as many windows.

#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>

namespace penstock::proxy {

class Leeway {
 public:
  /// What a window has shown.
  struct Seen {
    /// Of the batches of the tenant with most of them late; empty: none has ended that was ordered at this level.
    std::optional<double> late;
    bool starves = false;  // others have carried less than is promised to them
  };
  /// After each window. `most`: bytes, of the first level.
  void adapt(const Seen& seen, double most) noexcept;
  /// Nothing is limited in the next window, so that it shows what others carry then.
  void pause() noexcept { pauses_ = true; }

  /// Whether others are limited now.
  [[nodiscard]] bool limits() const noexcept { return level_ > 0 && !pauses_; }
  /// Whether this window should be short: it is not known what to expect, or known that batches are late.
  [[nodiscard]] bool tries() const noexcept { return tries_ || pauses_; }
  [[nodiscard]] double bytes() const noexcept { return limits() ? bytes_ : std::numeric_limits<double>::infinity(); }

 private:
  static constexpr std::size_t kLevels = 24;
  static constexpr unsigned kNever = std::numeric_limits<unsigned>::max();
  static constexpr unsigned kSoon = 4, kSeldom = 128;  // windows
  struct Level {
    unsigned age = kNever;  // windows since it was tried
    unsigned wait = kSoon;  // it is tried again when it is older than this
    double late = 0;
    bool starves = false;
    [[nodiscard]] bool is_known() const noexcept { return age < kNever; }
    [[nodiscard]] bool is_due() const noexcept { return age > wait; }
  };
  [[nodiscard]] bool is_good(std::size_t level) const noexcept;
  [[nodiscard]] std::size_t next() const noexcept;

  std::array<Level, kLevels> levels_;
  std::size_t level_ = 0;
  double bytes_ = 0;
  unsigned stayed_ = 0;  // windows
  bool tries_ = false;
  bool pauses_ = false;
};

}  // namespace penstock::proxy
