// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/filter_programs.h"

#include <algorithm>
#include <utility>

#include "base/text_file.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::cli {

namespace {

bool starts_with_a_number(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  return !line.empty() && std::ranges::all_of(line, [](char c) { return c >= '0' && c <= '9'; });
}

void remove_comments(std::string& text) {
  for (std::size_t at = 0; (at = text.find('#', at)) != text.npos;) {
    text.erase(at, std::min(text.find('\n', at), text.size()) - at);
  }
}

}  // namespace

Result<FilterFile> read_filter_file(const std::string& path) {
  auto text = read_input(path);
  if (!text) return tl::unexpected(std::move(text.error()));
  FilterFile file{std::move(*text), input_name(path), false};
  file.is_program = starts_with_a_number(file.text);
  if (!file.is_program) remove_comments(file.text);
  return file;
}

Result<std::vector<filter::Instruction>> compile_for(pcap* capture, const std::string& expression, bool optimize,
                                                     const Place& place) {
  return filter::compile_for(capture, expression, optimize, 0, place);
}

}  // namespace penstock::cli
