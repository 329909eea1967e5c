// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as what two sides say to each other. In pieces and byte by byte they come to the same, and a side that says
// nothing has agreed to nothing.
//
// Input: for each piece the side, its length (two bytes, big-endian), its bytes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "stack/encryption_watch.h"

using namespace penstock::stack;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  EncryptionWatch in_pieces, by_bytes;
  std::array<bool, 2> said{};
  for (std::size_t at = 0; at + 3 <= size;) {
    const auto side = static_cast<Direction>(data[at] & 1);
    const std::size_t length = std::min(std::size_t{data[at + 1]} << 8 | data[at + 2], size - at - 3);
    at += 3;
    const std::vector<std::uint8_t> bytes(data + at, data + at + length);  // a byte too far is seen
    at += length;
    if (bytes.empty()) continue;
    said[static_cast<std::size_t>(side)] = true;
    const bool was_done = in_pieces.done(), was_encrypted = in_pieces.encrypted();
    if (!was_done) {
      in_pieces.read(side, bytes);
      for (const std::uint8_t byte : bytes) {
        if (!by_bytes.done()) by_bytes.read(side, {&byte, 1});
      }
    }
    require(in_pieces.encrypted() == by_bytes.encrypted());
    require(in_pieces.done() == by_bytes.done());
    require(!was_encrypted || in_pieces.encrypted());
    require(!in_pieces.encrypted() || (said[0] && said[1]));
  }
  return 0;
}
