// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recursive flow classification (Gupta & McKeown, SIGCOMM 1999) in tables that are compressed with bitmaps (Liu et al.,
// CASES 2006), shared by host and device. Fields are cut into chunks of 16 bits. Phase 0 maps the value of each chunk
// to its class: values that no rule distinguishes share one. Each later phase maps two classes to the class of their
// combination, through a table with an element for each pair; the last one maps them to the entry.
//
//   source chunks ──────── source ─────┐
//   destination chunks ─── destination ┼─ first ─┐     (which two are combined first is up to the rules)
//   kind, ports, place … ─ rest ───────┴─────────┴─ last → entry
//
// A compressed table stores only the elements that differ from their predecessors:
//
//   block:  | bitmap: 32 elements, a bit for each that differs | number of such elements in earlier blocks |

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace penstock::classify {

inline constexpr std::uint32_t kRfcPlain = 0xffffffff;
inline constexpr std::uint32_t kRfcElementsPerBlock = 32;

/// A table; its parts are byte offsets in the memory of all tables.
struct RfcTable {
  std::uint32_t blocks = kRfcPlain;  // 8 bytes each; kRfcPlain: all elements are stored
  std::uint32_t values = 0;
  std::uint32_t columns = 1;  // of a phase with two classes: the element is row * columns + column
  std::uint8_t shift = 0;     // of phase 0: the element is value >> shift
  bool wide = false;          // elements take 4 bytes instead of 2
};

struct RfcChunk {
  RfcTable classes;      // phase 0
  RfcTable combination;  // of the earlier chunks' class with this chunk's; unused for the first chunk
  std::uint32_t at = 0;  // the chunk's lowest bit in the number
};

/// The class of a number: of its chunks from the highest to the lowest, without those that no rule distinguishes. If
/// none are left, all numbers are in class 0.
template <std::uint32_t Most>
struct RfcNumber {
  std::uint32_t count = 0;
  RfcChunk chunks[Most];
};

inline constexpr std::uint32_t kRfcRest = 5;  // kind, source port, destination port, place, connection

/// The tables for the packets of one address family.
struct RfcFamily {
  RfcNumber<8> source, destination;
  RfcNumber<2> kind;
  RfcNumber<1> source_port, destination_port, place, connection;
  /// The rest's dimensions in the order in which they are combined, and the tables that do so.
  std::uint8_t rest_order[kRfcRest] = {0, 1, 2, 3, 4};
  std::uint8_t rest_count = 0;
  /// The order in which source (0), destination (1) and rest (2) are combined.
  std::uint8_t order[3] = {0, 1, 2};
  bool has_first = false;  // otherwise only the nodes order[0] and order[2] matter
  RfcTable rest[kRfcRest - 1];
  RfcTable first;
  RfcTable last;  // elements are entry + 1; 0: no entry matches
};

/// Reads the tables' memory, which is one array, aligned to 8 bytes. A kernel that keeps it elsewhere, such as in
/// constant memory, passes a type of its own to the functions of rfc_core.h.
struct RfcMemory {
  const std::byte* base = nullptr;

  template <typename T>
  [[nodiscard]] PENSTOCK_HOST_DEVICE T load(std::uint32_t offset) const noexcept {
    return *reinterpret_cast<const T*>(base + offset);
  }
  /// Starts to fetch the table's part that has element `i`.
  PENSTOCK_HOST_DEVICE void prefetch([[maybe_unused]] const RfcTable& table,
                                     [[maybe_unused]] std::uint32_t i) const noexcept {
#ifndef __CUDA_ARCH__
    const std::uint32_t at = table.blocks == kRfcPlain ? table.values + i * (table.wide ? 4 : 2)
                                                       : table.blocks + i / kRfcElementsPerBlock * 8;
    __builtin_prefetch(base + at);
#endif
  }
};

/// Borrows the memory.
struct RfcView {
  RfcFamily ipv4, ipv6;
  std::uint32_t port_count = 0;  // number of ports that `place` distinguishes; see place_of()
  RfcMemory memory;
};

}  // namespace penstock::classify
