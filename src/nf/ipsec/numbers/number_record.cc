// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/numbers/number_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>

namespace penstock::ipsec {

namespace {

constexpr std::string_view kMagic = "penstock";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeadBytes = 44;
constexpr std::size_t kEntryBytes = 24;
constexpr std::size_t kChecksumBytes = 16;

template <typename Number>
void put(std::string& text, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) text += static_cast<char>(value >> (8 * i));
}

template <typename Number>
Number take(std::string_view& text) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Number>(value | static_cast<Number>(Number{static_cast<std::uint8_t>(text[i])} << (8 * i)));
  }
  text.remove_prefix(sizeof value);
  return value;
}

std::string checksum(std::string_view content, const Digest& seal) {
  const Digest digest = keyed_digest(seal, {reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
  return {reinterpret_cast<const char*>(digest.data()), kChecksumBytes};
}

constexpr std::size_t bytes_of(std::size_t runs, std::size_t entries) {
  return kHeadBytes + entries * kEntryBytes + runs * sizeof(std::uint16_t) + kChecksumBytes;
}
static_assert(bytes_of(kMostRuns, kMostRecordEntries) <= kSlotBytes);

/// Reads a slot. Most records are short, so a short read comes first.
tl::expected<std::string, int> read_slot(StateFolder& folder, const std::string& name, std::uint64_t offset) {
  constexpr std::size_t kFirstBytes = 4096;
  auto slot = folder.read(name, offset, kFirstBytes);
  if (!slot || slot->size() < kFirstBytes) return slot;
  std::string_view head = std::string_view(*slot).substr(kMagic.size() + sizeof kVersion);
  const auto runs = take<std::uint32_t>(head);
  const auto entries = take<std::uint32_t>(head);
  if (runs > kMostRuns || entries > kMostRecordEntries || bytes_of(runs, entries) <= kFirstBytes) return slot;
  return folder.read(name, offset, bytes_of(runs, entries));
}

}  // namespace

std::string encode(const NumberRecord& record, const Digest& seal) {
  assert(record.runs.size() <= kMostRuns && record.entries.size() <= kMostRecordEntries);
  std::string text(kMagic);
  put(text, kVersion);
  put(text, static_cast<std::uint32_t>(record.runs.size()));
  put(text, static_cast<std::uint32_t>(record.entries.size()));
  put(text, record.generation);
  put(text, record.file.inode);
  put(text, record.file.born_ns);
  for (const NumberRecord::Entry& entry : record.entries) {
    text.append(reinterpret_cast<const char*>(entry.sa.data()), entry.sa.size());
    put(text, entry.reserved);
  }
  for (const std::uint16_t run : record.runs) put(text, run);
  return text + checksum(text, seal);
}

tl::expected<NumberRecord, std::string> decode(std::string_view slot, const Digest& seal) {
  std::string_view rest = slot;
  if (rest.size() < kHeadBytes || !rest.starts_with(kMagic)) return tl::unexpected<std::string>("no record");
  rest.remove_prefix(kMagic.size());
  if (const auto version = take<std::uint32_t>(rest); version != kVersion)
    return tl::unexpected(fmt::format("a record of version {}", version));
  const auto runs = take<std::uint32_t>(rest);
  const auto entries = take<std::uint32_t>(rest);
  if (runs > kMostRuns || entries > kMostRecordEntries || slot.size() < bytes_of(runs, entries))
    return tl::unexpected<std::string>("a truncated record");
  const std::string_view content = slot.substr(0, bytes_of(runs, entries) - kChecksumBytes);
  if (slot.substr(content.size(), kChecksumBytes) != checksum(content, seal))
    return tl::unexpected<std::string>("a record with a wrong checksum");
  NumberRecord record;
  record.generation = take<std::uint64_t>(rest);
  record.file.inode = take<std::uint64_t>(rest);
  record.file.born_ns = take<std::uint64_t>(rest);
  record.entries.resize(entries);
  for (NumberRecord::Entry& entry : record.entries) {
    std::memcpy(entry.sa.data(), rest.data(), entry.sa.size());
    rest.remove_prefix(entry.sa.size());
    entry.reserved = take<std::uint64_t>(rest);
  }
  record.runs.resize(runs);
  for (std::uint16_t& run : record.runs) run = take<std::uint16_t>(rest);
  return record;
}

tl::expected<NumberRecord, std::string> read_record(StateFolder& folder, const std::string& name, const Digest& seal) {
  const auto identity = folder.identify(name);
  if (!identity) return tl::unexpected(std::string(std::strerror(identity.error())));
  tl::expected<NumberRecord, std::string> slots[2];
  for (std::uint64_t i = 0; i < 2; ++i) {
    const auto text = read_slot(folder, name, i * kSlotBytes);
    if (!text) return tl::unexpected(std::string(std::strerror(text.error())));
    slots[i] = decode(*text, seal);
    // In the other slot it could be older than its generation suggests.
    if (slots[i] && slot_of(slots[i]->generation) != i * kSlotBytes)
      slots[i] = tl::unexpected<std::string>("a record in the wrong place");
  }
  if (!slots[0] && !slots[1]) return tl::unexpected(slots[0].error());
  const bool both = slots[0] && slots[1];
  const bool second = !slots[0] || (both && slots[1]->generation > slots[0]->generation);
  NumberRecord record = std::move(*slots[second ? 1 : 0]);
  if (record.file != *identity) return tl::unexpected(std::string(kCopiedRecord));
  if (both) return record;
  for (NumberRecord::Entry& entry : record.entries) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    entry.reserved = entry.reserved > kMost - kMostReservation ? kMost : entry.reserved + kMostReservation;
  }
  // The next write must replace the damaged slot, whatever its generation was.
  return record;
}

}  // namespace penstock::ipsec
