// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Uses as much memory and time as its input says, to test both limits. "memory MEGABYTES": in many blocks at the same
// time; "turns MEGABYTES": one block after the other; "time": runs forever.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t megabytes = std::strtoul(text.c_str() + text.find(' ') + 1, nullptr, 10);
  std::vector<std::vector<char>> blocks;
  for (std::size_t i = 0; i < megabytes; ++i) {
    if (text.starts_with("turns")) blocks.clear();
    blocks.emplace_back(std::size_t{1} << 20);
  }
  volatile bool for_ever = text.starts_with("time");
  while (for_ever) continue;
  return 0;
}
