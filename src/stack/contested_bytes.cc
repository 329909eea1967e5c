// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/contested_bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace penstock::stack {
namespace {

constexpr unsigned kOrder = std::bit_width(sizeof(ContestedBytes) - 1);

unsigned order_for(std::size_t bytes) noexcept {
  return std::max<unsigned>(MemoryPool::kSmallestOrder, static_cast<unsigned>(std::bit_width(bytes - 1)));
}

}  // namespace

ContestedBytes* ContestedBytes::make(MemoryPool& pool) noexcept {
  std::byte* const piece = pool.take(kOrder);
  return piece == nullptr ? nullptr : new (piece) ContestedBytes;
}

void ContestedBytes::free(MemoryPool& pool, ContestedBytes* contested) noexcept {
  if (contested == nullptr) return;
  while (contested->version_count_ > 0) contested->remove(pool, contested->version_count_ - 1);
  contested->~ContestedBytes();
  pool.give(reinterpret_cast<std::byte*>(contested), kOrder);
}

void ContestedBytes::remove(MemoryPool& pool, std::size_t index) noexcept {
  const Version& version = versions_[index];
  pool.give(reinterpret_cast<std::byte*>(const_cast<std::uint8_t*>(version.data)), version.order);
  bytes_ -= version.length;
  std::copy(versions_.begin() + static_cast<std::ptrdiff_t>(index) + 1, versions_.begin() + version_count_,
            versions_.begin() + static_cast<std::ptrdiff_t>(index));
  --version_count_;
}

// Removes the version that is farthest ahead among those that are not `possible`, since anyone can send such data.
// Otherwise removes one that has been inspected, as it can only matter for a match that continues in later bytes.
void ContestedBytes::displace_one(MemoryPool& pool) noexcept {
  const auto all = versions();
  auto found = all.end();
  for (auto it = all.begin(); it != all.end(); ++it) {
    if (!it->possible && (found == all.end() || it->offset > found->offset)) found = it;
  }
  if (found == all.end()) {
    found = std::find_if(all.begin(), all.end(), [](const Version& version) { return version.offered; });
  }
  remove(pool, found == all.end() ? 0 : static_cast<std::size_t>(found - all.begin()));
}

bool ContestedBytes::is_farthest(std::uint64_t offset) const noexcept {
  return std::all_of(versions().begin(), versions().end(),
                     [offset](const Version& version) { return version.possible || version.offset <= offset; });
}

ContestedBytes::Added ContestedBytes::add(MemoryPool& pool, std::uint64_t offset, Bytes bytes, Kind kind) noexcept {
  if (bytes.empty()) return Added::known;
  for (Version& version : versions()) {
    if (version.offset > offset || version.end() < offset + bytes.size()) continue;
    if (std::memcmp(version.data + (offset - version.offset), bytes.data(), bytes.size()) != 0) continue;
    version.possible = version.possible || kind == Kind::taken;
    return Added::known;
  }
  bool displaced = false;
  const bool is_full = version_count_ == kMostVersions || bytes_ + bytes.size() > kMostBytes;
  if (is_full && kind == Kind::refused && is_farthest(offset)) return Added::no_room;
  while (version_count_ > 0 && (version_count_ == kMostVersions || bytes_ + bytes.size() > kMostBytes)) {
    displace_one(pool);
    displaced = true;
  }
  const unsigned order = order_for(bytes.size());
  std::byte* const piece = pool.take(order);
  if (piece == nullptr) return Added::no_room;
  std::memcpy(piece, bytes.data(), bytes.size());
  versions_[version_count_++] = {.offset = offset,
                                 .data = reinterpret_cast<const std::uint8_t*>(piece),
                                 .length = static_cast<std::uint32_t>(bytes.size()),
                                 .order = static_cast<std::uint8_t>(order),
                                 .possible = kind == Kind::taken};
  bytes_ += bytes.size();
  return displaced ? Added::displaced : Added::added;
}

ContestedBytes::Added ContestedBytes::add_urgent(std::uint64_t offset) noexcept {
  for (const UrgentMark& mark : urgent()) {
    if (mark.offset == offset) return Added::known;
  }
  if (urgent_count_ < kMostUrgent) {
    urgent_[urgent_count_++] = {.offset = offset};
    return Added::added;
  }
  // Replace a mark that has been inspected, or else the one farthest ahead, which may be the new one itself.
  UrgentMark mark{.offset = offset};
  const auto goes_before = [](const UrgentMark& a, const UrgentMark& b) {
    return a.offered != b.offered ? b.offered : a.offset < b.offset;
  };
  UrgentMark& last = *std::max_element(urgent_.begin(), urgent_.end(), goes_before);
  if (goes_before(mark, last)) last = mark;
  return Added::displaced;
}

bool ContestedBytes::contradicts(std::uint64_t offset, Bytes bytes) const noexcept {
  return std::any_of(versions().begin(), versions().end(), [&](const Version& version) {
    const std::uint64_t begin = std::max(offset, version.offset);
    const std::uint64_t end = std::min(offset + bytes.size(), version.end());
    return begin < end && std::memcmp(bytes.data() + (begin - offset), version.data + (begin - version.offset),
                                      static_cast<std::size_t>(end - begin)) != 0;
  });
}

bool ContestedBytes::acknowledge(std::uint64_t offset) noexcept {
  if (offset <= acknowledged_) return false;
  acknowledged_ = offset;
  for (Version& version : versions()) version.possible = version.possible || version.offset < offset;
  return true;
}

bool ContestedBytes::waits(std::uint64_t limit) const noexcept {
  const auto version_waits = [limit](const Version& version) {
    return version.possible && !version.offered && version.offset < limit;
  };
  const auto mark_waits = [limit](const UrgentMark& mark) { return !mark.offered && mark.offset < limit; };
  return std::any_of(versions().begin(), versions().end(), version_waits) ||
         std::any_of(urgent().begin(), urgent().end(), mark_waits);
}

ContestedBytes::Offered ContestedBytes::offered() const noexcept {
  Offered offered;
  for (std::size_t i = 0; i < version_count_; ++i) offered.versions[i] = versions_[i].offered;
  for (std::size_t i = 0; i < urgent_count_; ++i) offered.urgent[i] = urgent_[i].offered;
  return offered;
}

void ContestedBytes::set_offered(const Offered& offered) noexcept {
  for (std::size_t i = 0; i < version_count_; ++i) versions_[i].offered = offered.versions[i];
  for (std::size_t i = 0; i < urgent_count_; ++i) urgent_[i].offered = offered.urgent[i];
}

void ContestedBytes::forget_before(MemoryPool& pool, std::uint64_t offset) noexcept {
  for (std::size_t i = version_count_; i-- > 0;) {
    if (versions_[i].end() <= offset) remove(pool, i);
  }
  const auto* const last = std::remove_if(urgent_.begin(), urgent_.begin() + urgent_count_,
                                          [offset](const UrgentMark& mark) { return mark.offset < offset; });
  urgent_count_ = static_cast<std::uint32_t>(last - urgent_.begin());
}

void ContestedBytes::shift(std::uint64_t bytes) noexcept {
  for (Version& version : versions()) version.offset += bytes;
  for (UrgentMark& mark : urgent()) mark.offset += bytes;
  acknowledged_ += bytes;
}

std::uint64_t ContestedBytes::right_edge() const noexcept {
  std::uint64_t edge = 0;
  for (const Version& version : versions()) edge = std::max(edge, version.end());
  return edge;
}

}  // namespace penstock::stack
