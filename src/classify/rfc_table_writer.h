// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes an RFC table element by element, compressed with a bitmap. At the end, the elements are stored in full if that
// takes less memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "classify/rfc_layout.h"

namespace penstock::classify {

class RfcTableWriter {
 public:
  /// The least memory that a table with so many elements takes.
  [[nodiscard]] static constexpr std::uint64_t least_bytes(std::uint64_t elements) noexcept {
    return elements / kRfcElementsPerBlock * sizeof(std::uint64_t);
  }

  void add(std::uint32_t element) {
    if (count_ % kRfcElementsPerBlock == 0) blocks_.push_back(std::uint64_t{values_.size()} << 32);
    if (count_ == 0 || element != values_.back()) {
      blocks_.back() |= std::uint64_t{1} << (count_ % kRfcElementsPerBlock);
      values_.push_back(element);
      highest_ = highest_ < element ? element : highest_;
    }
    ++count_;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Of the table as it would be stored now.
  [[nodiscard]] std::size_t memory_bytes() const noexcept;
  /// Appends the table to the memory of all tables, which must stay below 4 GiB.
  [[nodiscard]] RfcTable append_to(std::vector<std::uint64_t>& memory, std::uint32_t columns, std::uint8_t shift) const;

 private:
  [[nodiscard]] std::size_t width() const noexcept { return highest_ > 0xffff ? 4 : 2; }
  [[nodiscard]] std::size_t compressed_bytes() const noexcept;

  std::vector<std::uint64_t> blocks_;
  std::vector<std::uint32_t> values_;
  std::uint64_t count_ = 0;
  std::uint32_t highest_ = 0;
};

}  // namespace penstock::classify
