// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a file of saved connections. What is read from it must survive being written and read again, and a small
// table must take it and go on with packets.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "conntrack/saved_connections.h"
#include "conntrack/table.h"

using namespace penstock;
using namespace penstock::conntrack;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::uint64_t kNowMs = 1'700'000'000'000;
  constexpr std::size_t kMostBytes = 1 << 20;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto read = read_saved_connections(text, "saved", kNowMs);
  if (!read) return 0;
  SavedConnectionsWriter writer(kMostBytes);
  Table table({.most_connections = 8, .most_fragments = 1, .seed = 1});
  table.will_write(NatKind::source);
  table.will_write(NatKind::destination);
  for (const SavedConnection& saved : *read) {
    writer.add(saved);
    const std::uint64_t before = table.counters().connections;
    table.restore(saved);
    // Both directions are found.
    if (table.counters().connections == before) continue;
    if (table.look_up(saved.record.original).connection == nullptr) std::abort();
    if (table.look_up(saved.record.reply).connection == nullptr) std::abort();
  }
  const std::string written = writer.finish(kNowMs);
  const auto again = read_saved_connections(written, "saved", kNowMs);
  if (!again || again->size() > writer.written()) std::abort();
  SavedConnectionsWriter other(kMostBytes);
  for (const SavedConnection& saved : *again) other.add(saved);
  // Times are written in milliseconds: less than one is none.
  if (again->size() == writer.written() && other.finish(kNowMs) != written) std::abort();
  for (std::uint64_t seconds = 1; seconds < 100; seconds += 7) table.expire(seconds * 1'000'000'000);
  return 0;
}
