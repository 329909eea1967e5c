// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/rfc_table_writer.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace penstock::classify {

namespace {

std::uint32_t bytes_so_far(const std::vector<std::uint64_t>& memory) {
  return static_cast<std::uint32_t>(memory.size() * sizeof(std::uint64_t));
}

/// Appends elements of `Stored`, padded to 8 bytes.
template <typename Stored>
void append_elements(std::span<const std::uint32_t> elements, std::vector<std::uint64_t>& memory) {
  const std::size_t at = memory.size();
  memory.resize(at + (elements.size() * sizeof(Stored) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t));
  auto* to = reinterpret_cast<std::byte*>(memory.data() + at);
  for (const std::uint32_t element : elements) {
    const auto stored = static_cast<Stored>(element);
    std::memcpy(to, &stored, sizeof stored);
    to += sizeof stored;
  }
}

}  // namespace

std::size_t RfcTableWriter::compressed_bytes() const noexcept {
  return blocks_.size() * sizeof(std::uint64_t) + values_.size() * width();
}

std::size_t RfcTableWriter::memory_bytes() const noexcept { return std::min(compressed_bytes(), count_ * width()); }

RfcTable RfcTableWriter::append_to(std::vector<std::uint64_t>& memory, std::uint32_t columns,
                                   std::uint8_t shift) const {
  RfcTable table;
  table.columns = columns;
  table.shift = shift;
  table.wide = width() == 4;
  std::vector<std::uint32_t> all;
  std::span<const std::uint32_t> stored = values_;
  if (compressed_bytes() < count_ * width()) {
    table.blocks = bytes_so_far(memory);
    memory.insert(memory.end(), blocks_.begin(), blocks_.end());
  } else {
    all.reserve(count_);
    std::size_t next = 0;
    for (std::uint64_t i = 0; i < count_; ++i) {
      next += blocks_[i / kRfcElementsPerBlock] >> (i % kRfcElementsPerBlock) & 1;
      all.push_back(values_[next - 1]);
    }
    stored = all;
  }
  table.values = bytes_so_far(memory);
  if (table.wide) {
    append_elements<std::uint32_t>(stored, memory);
  } else {
    append_elements<std::uint16_t>(stored, memory);
  }
  return table;
}

}  // namespace penstock::classify
