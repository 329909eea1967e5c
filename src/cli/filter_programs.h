// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The programs of `penstock filter`, from expressions and files, as tcpdump takes them.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/filter/bpf/program.h"

struct pcap;

namespace penstock::cli {

/// The text of -F: either a program, as `tcpdump -ddd` prints it, or an expression.
struct FilterFile {
  std::string text;
  std::string name;  // in messages
  bool is_program = false;
};

/// `path` "-" is the standard input. If the first line is a number, the file has a program. In an expression, the rest
/// of a line from # on is a comment, as in tcpdump.
[[nodiscard]] Result<FilterFile> read_filter_file(const std::string& path);

/// Compiles an expression for the capture as tcpdump does: that it is a file, and its byte order, matter. The netmask
/// is 0, so "ip broadcast" matches the destinations 0.0.0.0 and 255.255.255.255.
[[nodiscard]] Result<std::vector<filter::Instruction>> compile_for(pcap* capture, const std::string& expression,
                                                                   bool optimize, const Place& place);

}  // namespace penstock::cli
