// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random programs that the verifier accepts.

#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

/// Uses all instructions, with offsets, constants and shifts near their limits. Jumps go forwards.
[[nodiscard]] std::vector<Instruction> random_program(std::mt19937& random);

}  // namespace penstock::filter
