// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where programs come from: libpcap's compiler, and the decimal text that `tcpdump -ddd` prints.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/filter/bpf/program.h"

struct pcap;

namespace penstock::filter {

struct CompileOptions {
  int link_type = 1;                   // DLT_… or LINKTYPE_…
  std::uint32_t snap_length = 262144;  // the return value of programs that match
  bool optimize = true;
  std::uint32_t netmask = 0xffffffff;  // for "ip broadcast"; PCAP_NETMASK_UNKNOWN
};

/// Compiles an expression for an open capture of libpcap, without verifying it. The error has libpcap's message.
[[nodiscard]] Result<std::vector<Instruction>> compile_for(pcap* capture, const std::string& expression, bool optimize,
                                                           std::uint32_t netmask, const Place& place);

/// Compiles an expression (pcap-filter(7)). An empty expression matches all packets. Thread-safe. The error has
/// libpcap's message.
[[nodiscard]] Result<Program> compile_expression(const std::string& expression, const CompileOptions& options,
                                                 const Place& place);

/// Reads the output of `tcpdump -ddd`: the number of instructions, then one per line: "code jt jf k", in decimal.
/// `link_type` is as for `Program::verify`.
[[nodiscard]] Result<Program> read_program(std::string_view text, const std::string& file, int link_type = 1);

}  // namespace penstock::filter
