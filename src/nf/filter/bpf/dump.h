// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// BPF programs as text, as tcpdump prints them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "nf/filter/bpf/program.h"

namespace penstock::filter {

/// Whether the machine has an instruction of this code.
[[nodiscard]] bool is_known(std::uint16_t code) noexcept;

/// Without number and jump targets: "ldh [12]", "jeq #0x800". A code that the machine does not have: "unimp 0xff".
[[nodiscard]] std::string to_string(const Instruction& instruction);

/// The line of `tcpdump -d` for instruction `number`, without line end: "(001) jeq      #0x800           jt 2	jf 5".
[[nodiscard]] std::string listing_line(const Instruction& instruction, std::size_t number);

/// `tcpdump -d`: a listing, `-dd`: a fragment of C, `-ddd`: decimal numbers, preceded by their count. Each line ends
/// with a line feed.
enum class DumpForm { listing, c, decimal };
[[nodiscard]] std::string dump(std::span<const Instruction> instructions, DumpForm form);

}  // namespace penstock::filter
