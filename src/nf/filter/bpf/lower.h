// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Puts a checked program into the terms that all engines know: Linux's loads become loads from the frame, shifts by K
// use five bits of it, and loops are unrolled. Internal to the verifier.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

/// Loops are what libpcap generates for `protochain`: a round for each header of the chain. A program returns 0 after
/// kMostRounds jumps backwards, or fewer if it would be longer than kMostUnrolled, but not fewer than kFewestRounds.
inline constexpr std::size_t kMostRounds = 128;
inline constexpr std::size_t kFewestRounds = 8;
/// Nothing if the program would be too long.
[[nodiscard]] std::optional<std::vector<Instruction>> lower(std::span<const Instruction> instructions, int link_type);

}  // namespace penstock::filter
