// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The IPv6 table, as host and device both see it: a poptrie (Asai & Ohara, SIGCOMM 2015) whose strides are the bytes
// that real prefixes end at: 16 bits at the root, then 8 by 8. A node is four words of 64 slots; a bit map and a
// population count stand for the slots, so a full table takes a few megabytes and a level costs one load of 24 bytes.
// Leaf-pushed, and equal neighbours among a word's leaves are stored once.
//
//     root     [ route | child 3 | … ]                            65,536 entries, see route_entry.h
//     nodes    [ word 0..3 | word 0..3 | … ]
//     leaves   [ entry | entry | … ]                              routes only
//
//     word     children  bit s: slot s has a child                its node: first_child + (children set below s)
//              runs      bit s: a new leaf begins at slot s       its leaf: first_leaf + (runs set up to s) - 1

#pragma once

#include <cstdint>

namespace penstock::router {

struct PoptrieWord {
  std::uint64_t children = 0;
  std::uint64_t runs = 0;  // slots with a child have no leaf: they neither begin nor end a run
  std::uint32_t first_child = 0;
  std::uint32_t first_leaf = 0;
};

struct PoptrieNode {
  PoptrieWord words[4];
};

/// Borrows the table's arrays, the host's or a copy of them on the device.
struct PoptrieView {
  static constexpr unsigned kRootBits = 16;
  static constexpr unsigned kStrideBits = 8;
  static constexpr std::uint32_t kRootEntries = std::uint32_t{1} << kRootBits;

  const std::uint32_t* root = nullptr;  // kRootEntries
  const PoptrieNode* nodes = nullptr;
  const std::uint32_t* leaves = nullptr;
  std::uint32_t node_count = 0;
  std::uint32_t leaf_count = 0;
};

}  // namespace penstock::router
