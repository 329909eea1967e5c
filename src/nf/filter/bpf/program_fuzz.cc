// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads text as the output of `tcpdump -ddd`. A program that is read must be the same after it is printed and read
// again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/read_program.h"

using namespace penstock::filter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto once = read_program({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!once) return 0;
  const auto again = read_program(dump(once->source(), DumpForm::decimal), "fuzz");
  if (!again || !std::ranges::equal(again->source(), once->source())) std::abort();
  return 0;
}
