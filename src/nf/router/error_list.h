// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The mistakes of a file that may have a million: the first hundred in full, the others counted.

#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace penstock::router {

class ErrorList {
 public:
  /// `make` returns the Error; it is not called when no more are shown.
  template <typename Make>
  void add(Make make) {
    if (errors_.size() < kShown) {
      errors_.push_back(make());
    } else {
      ++more_;
    }
  }
  [[nodiscard]] std::size_t count() const noexcept { return errors_.size() + more_; }
  [[nodiscard]] bool empty() const noexcept { return errors_.empty(); }

  /// The errors, and what was not shown as a last one ("… and 23 more").
  [[nodiscard]] Errors take() && {
    if (more_ != 0) errors_.push_back({{}, fmt::format("… and {} more", format_count(more_)), "", ""});
    return std::move(errors_);
  }

 private:
  static constexpr std::size_t kShown = 100;
  Errors errors_;
  std::size_t more_ = 0;
};

}  // namespace penstock::router
