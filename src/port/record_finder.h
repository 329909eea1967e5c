// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the records in a piece of a capture in this machine's byte order. A record's place is known only once the
// length of the record before it has been read, so a reader waits for memory once per packet. Here, several scouts walk
// from record to record at once, each in its own part of the piece, so that their waits overlap. All but the first
// guess where a record begins. What a scout has found counts only from a place on that the records before lead to, so
// the result is that of one walk from the first record, whatever the bytes are.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "port/record_formats.h"

namespace penstock::port {

/// `Format` is ClassicRecords or PcapngBlocks.
template <typename Format>
class RecordFinder {
 public:
  static constexpr std::size_t kMostPieceBytes = 1 << 20;

  RecordFinder();

  /// Finds the records from the begin of `piece` to the first one that has no `Format::end_of`. Also brings the first
  /// bytes of their packets into the cache.
  void find(std::span<const std::uint8_t> piece) noexcept;

  /// Where the records begin. Valid until the next call of `find`.
  [[nodiscard]] std::span<const std::uint32_t> places() const noexcept { return {places_.data(), count_}; }
  /// The end of the last record; 0 if there is none.
  [[nodiscard]] std::size_t end() const noexcept { return end_; }

 private:
  static constexpr std::size_t kScouts = 8;

  struct Scout {
    std::size_t at = 0;  // the place of the next record
    std::size_t part_end = 0;
    std::uint32_t* first = nullptr;  // the places that it has found
    std::uint32_t* last = nullptr;
  };

  void walk(std::span<const std::uint8_t> piece, std::span<Scout> scouts) noexcept;

  std::vector<std::uint32_t> places_, found_;
  std::size_t count_ = 0;
  std::size_t end_ = 0;
};

extern template class RecordFinder<ClassicRecords>;
extern template class RecordFinder<PcapngBlocks>;

}  // namespace penstock::port
