// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// How far into packets a program can look, so that no more bytes need to be copied to a device.

#pragma once

#include <cstdint>
#include <span>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

/// The program may load any byte.
inline constexpr std::uint32_t kUnbounded = 0xffffffff;

/// The program's result depends only on so many of a packet's first bytes, and on the packet's lengths. Loads at X are
/// bounded if X is: after MSH it is at most 60, for example.
[[nodiscard]] std::uint32_t reach(std::span<const Instruction> program);

/// The greatest of several programs.
[[nodiscard]] std::uint32_t reach(std::span<const Program> programs);

}  // namespace penstock::filter
