// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The errors of a file with many mistakes: the first hundred, and how many more there are.

#pragma once

#include <cstddef>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace penstock::firewall {

class Mistakes {
 public:
  static constexpr std::size_t kMost = 100;

  void add(Error error) {
    if (errors_.size() < kMost) errors_.push_back(std::move(error));
    ++count_;
  }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  [[nodiscard]] Errors take(const Place& place) {
    if (count_ > errors_.size()) {
      errors_.push_back({{place.file, 0, 0}, "… and " + format_count(count_ - errors_.size()) + " more", "", ""});
    }
    return std::move(errors_);
  }

 private:
  Errors errors_;
  std::size_t count_ = 0;
};

}  // namespace penstock::firewall
