// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Collects the mistakes of a file that may have millions of them. The first 100 (or another limit, such as
// kMostLeftOut) are kept in full; the others are only counted.

#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace penstock {

class ErrorList {
 public:
  /// The limit for entries that are skipped and counted in summaries.
  static constexpr std::size_t kMostLeftOut = 10'000;

  ErrorList() = default;
  explicit ErrorList(std::size_t shown) : shown_(shown) {}

  void add(Error error) {
    add([&] { return std::move(error); });
  }
  /// `make` returns the Error. It is not called once the limit is reached.
  template <typename Make>
  requires requires(Make make) { Error{make()}; }
  void add(Make make) {
    if (errors_.size() < shown_) errors_.push_back(make());
    ++count_;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  /// The errors, followed by one for those over the limit, if any ("… and 23 more", in the file of `place`).
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
