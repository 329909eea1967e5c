// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The mistakes of a file that may have a million: the first hundred in full, the others counted. Or the first of
// another number, such as kMostLeftOut.

#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace penstock {

class ErrorList {
 public:
  /// For what is left out of a file and counted in summaries: 10,000 in full, and the others by their number.
  static constexpr std::size_t kMostLeftOut = 10'000;

  ErrorList() = default;
  explicit ErrorList(std::size_t shown) : shown_(shown) {}

  void add(Error error) {
    add([&] { return std::move(error); });
  }
  /// `make` returns the Error; it is not called when no more are shown.
  template <typename Make>
  requires requires(Make make) { Error{make()}; }
  void add(Make make) {
    if (errors_.size() < shown_) errors_.push_back(make());
    ++count_;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// The errors, and as a last one how many are not shown ("… and 23 more", at `place`).
  [[nodiscard]] Errors take(const Place& place = {}) && {
    if (count_ > errors_.size()) {
      const std::size_t more = count_ - errors_.size();
      errors_.push_back({{place.file, 0, 0}, "… and " + format_count(more) + " more", "", "", more});
    }
    return std::move(errors_);
  }

 private:
  std::size_t shown_ = 100;
  Errors errors_;
  std::size_t count_ = 0;
};

}  // namespace penstock
