// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A BPF program as a C++ function, instruction by instruction.

#pragma once

#include <span>
#include <string>
#include <string_view>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

/// u32 NAME(PacketWindow packet, bool& undecided): the return value. `undecided` is set if bytes that are not there
/// decide.
[[nodiscard]] std::string direct_text(std::span<const Instruction> program, std::string_view name);

}  // namespace penstock::filter
