// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random conversations: a connection that carries a signature, and attacks (moves) that change its script. The same
// seed and index give the same script.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evasion/script.h"

namespace penstock::evasion {

struct GeneratorOptions {
  bool ipv6 = true;
  std::vector<std::string> only{};    // names of the moves to use; empty: all that are on by default
  std::vector<std::string> except{};  // names of moves to leave out
  unsigned most_moves = 5;
  bool innocent = false;  // no signature: a text that no rule matches replaces it
};

[[nodiscard]] Script generate(std::uint64_t seed, std::uint64_t index, const GeneratorOptions& options);

}  // namespace penstock::evasion
