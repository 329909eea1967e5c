// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/contested_text.h"

#include <algorithm>
#include <array>
#include <bit>

#include "nf/nids/detect/content_search.h"

namespace penstock::nids {

namespace {

[[nodiscard]] constexpr std::uint8_t to_upper(std::uint8_t byte) noexcept {
  return byte >= 'a' && byte <= 'z' ? static_cast<std::uint8_t>(byte & ~0x20) : byte;
}

std::uint32_t key_of(std::uint8_t first, std::uint8_t second) noexcept {
  return static_cast<std::uint32_t>(to_lower(first)) << 8 | to_lower(second);
}

/// Counting sort: the literals of each key, one key after the other.
template <typename KeyOf>
void sort_by_key(std::span<const std::uint32_t> literals, std::size_t keys, KeyOf key,
                 std::vector<std::uint32_t>& starts, std::vector<std::uint32_t>& sorted) {
  starts.assign(keys + 1, 0);
  for (const std::uint32_t literal : literals) ++starts[key(literal) + 1];
  for (std::size_t i = 1; i <= keys; ++i) starts[i] += starts[i - 1];
  sorted.resize(literals.size());
  std::vector<std::uint32_t> next(starts.begin(), starts.end() - 1);
  for (const std::uint32_t literal : literals) sorted[next[key(literal)]++] = literal;
}

}  // namespace

ContestedText::ContestedText() : bytes_(kMostBytes), set_of_(kMostBytes), offset_(kMostBytes) {
  sets_.reserve(kMostBytes);
}

void ContestedText::add(std::size_t at, std::uint8_t byte) {
  if (set_of_[at] == 0) {
    if (bytes_[at] == byte) return;
    sets_.emplace_back();
    set_of_[at] = static_cast<std::uint16_t>(sets_.size());
    sets_.back().set(bytes_[at]);
  }
  sets_[set_of_[at] - 1U].set(byte);
}

void ContestedText::read(const stack::StreamChunk& chunk, std::uint32_t left_out) {
  sets_.clear();
  size_ = seen_ = 0;
  left_out_ = false;
  const std::size_t length = std::min(chunk.bytes.size(), kMostBytes);
  std::array<std::uint64_t, stack::ContestedBytes::kMostUrgent> marks;
  std::size_t mark_count = 0, passed = 0;
  for (; left_out != 0; left_out &= left_out - 1) {
    marks[mark_count++] = chunk.urgent[static_cast<std::size_t>(std::countr_zero(left_out))].offset;
  }
  std::sort(marks.begin(), marks.begin() + mark_count);
  for (std::size_t i = 0; i < length; ++i) {
    const std::uint64_t offset = chunk.offset + i;
    while (passed < mark_count && marks[passed] < offset) ++passed;
    if (passed < mark_count && marks[passed] == offset) {
      left_out_ = true;
      continue;
    }
    bytes_[size_] = chunk.bytes[i];
    set_of_[size_] = 0;
    offset_[size_] = offset;
    ++size_;
    if (i < chunk.seen) seen_ = size_;
  }
  for (const stack::ContestedBytes::Version& version : chunk.versions) {
    if (!version.possible) continue;
    const auto* const first = std::lower_bound(offset_.data(), offset_.data() + size_, version.offset);
    for (auto at = static_cast<std::size_t>(first - offset_.data()); at < size_ && offset_[at] < version.end(); ++at) {
      add(at, version.data[offset_[at] - version.offset]);
    }
  }
}

bool ContestedText::may_be(std::size_t at, std::uint8_t byte, bool nocase) const noexcept {
  return nocase ? may_be(at, to_lower(byte)) || may_be(at, to_upper(byte)) : may_be(at, byte);
}

bool ContestedText::may_be_at(std::size_t at, std::span<const std::uint8_t> content, bool nocase) const noexcept {
  if (content.size() > size_ - at) return false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (!may_be(at + i, content[i], nocase)) return false;
  }
  return true;
}

std::optional<std::size_t> ContestedText::find(std::span<const std::uint8_t> content, bool nocase,
                                               std::size_t from) const noexcept {
  for (std::size_t at = from; at + content.size() <= size_; ++at) {
    if (may_be_at(at, content, nocase)) return at;
  }
  return std::nullopt;
}

ContestedText::Reading::Reading() : bytes_(kMostBytes), laid_(kMostBytes) {}

void ContestedText::Reading::begin(const ContestedText& text) noexcept {
  size_ = text.size();
  std::copy_n(text.bytes_.begin(), size_, bytes_.begin());
  std::fill_n(laid_.begin(), size_, std::uint8_t{0});
}

bool ContestedText::Reading::lay(const ContestedText& text, std::size_t at, std::span<const std::uint8_t> content,
                                 bool nocase) noexcept {
  const auto byte_at = [&](std::size_t i) {
    const std::uint8_t byte = content[i];
    return nocase && !text.may_be(at + i, byte) ? (to_lower(byte) == byte ? to_upper(byte) : to_lower(byte)) : byte;
  };
  const auto fits = [&](std::size_t i) {
    const std::uint8_t there = bytes_[at + i];
    return nocase ? to_lower(there) == to_lower(content[i]) : there == content[i];
  };
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (laid_[at + i] != 0 && !fits(i)) return false;
  }
  for (std::size_t i = 0; i < content.size(); ++i) {
    if (laid_[at + i] == 0 && !fits(i)) bytes_[at + i] = byte_at(i);
    laid_[at + i] = 1;
  }
  return true;
}

std::size_t ContestedText::Reading::begin_of(const ContestedText& text,
                                             const stack::ContestedBytes::Version& version) const noexcept {
  const auto* const offsets = text.offset_.data();
  return static_cast<std::size_t>(std::lower_bound(offsets, offsets + size_, version.offset) - offsets);
}

bool ContestedText::Reading::lay(const ContestedText& text, const stack::ContestedBytes::Version& version) noexcept {
  const std::size_t begin = begin_of(text, version);
  std::size_t end = begin;
  for (; end < size_ && text.offset_[end] < version.end(); ++end) {
    if (laid_[end] != 0 && bytes_[end] != version.data[text.offset_[end] - version.offset]) return false;
  }
  for (std::size_t at = begin; at < end; ++at) {
    bytes_[at] = version.data[text.offset_[at] - version.offset];
    laid_[at] = 1;
  }
  return true;
}

void ContestedText::Reading::fill(const ContestedText& text, const stack::ContestedBytes::Version& version) noexcept {
  for (std::size_t at = begin_of(text, version); at < size_ && text.offset_[at] < version.end(); ++at) {
    if (laid_[at] != 0) continue;
    bytes_[at] = version.data[text.offset_[at] - version.offset];
    laid_[at] = 1;
  }
}

ContestedSearch::ContestedSearch(std::span<const Literal> literals) {
  std::vector<std::uint32_t> shorts, others;
  for (std::uint32_t i = 0; i < literals.size(); ++i) (literals[i].bytes.size() == 1 ? shorts : others).push_back(i);
  sort_by_key(
      others, 1 << 16,
      [&](std::uint32_t literal) { return key_of(literals[literal].bytes[0], literals[literal].bytes[1]); }, starts_,
      literals_);
  sort_by_key(
      shorts, 1 << 8, [&](std::uint32_t literal) { return to_lower(literals[literal].bytes[0]); }, short_starts_,
      short_literals_);
}

std::span<const std::uint32_t> ContestedSearch::of_one_byte(std::uint8_t byte) const noexcept {
  const std::size_t key = to_lower(byte);
  return std::span(short_literals_).subspan(short_starts_[key], short_starts_[key + 1] - short_starts_[key]);
}

std::span<const std::uint32_t> ContestedSearch::of_two_bytes(std::uint8_t first, std::uint8_t second) const noexcept {
  const std::uint32_t key = key_of(first, second);
  return std::span(literals_).subspan(starts_[key], starts_[key + 1] - starts_[key]);
}

}  // namespace penstock::nids
