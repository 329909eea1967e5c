// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary lines as charon's log: whatever they are, the SAs are ones that the reader of `ip xfrm state` takes, and no
// problem contains a key.

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/testing/fuzz_check.h"
#include "base/text_file.h"
#include "control/ike/charon_log.h"
#include "nf/ipsec/xfrm/state_reader.h"

using namespace penstock;
using penstock::testing::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  control::CharonLog log({{"net", 1}, {"b{1}", 2}});
  LineReader lines(std::string_view(reinterpret_cast<const char*>(data), size));
  std::uint64_t offset = 0;
  for (Line line; lines.next(line); offset += line.text.size() + 1) log.add(line.text, offset);
  static_cast<void>(log.take_problems());
  check(log.needed_from(offset) <= offset && log.outbound() <= log.inbound());
  const auto states = ipsec::parse_states(log.state(), "fuzz");
  // Two CHILD_SAs with one SPI are the only mistake that charon could make.
  if (!states) {
    for (const Error& error : states.error()) check(error.message.starts_with("a second SA"));
    return 0;
  }
  check(states->unsupported.empty() && states->value.size() <= 2 * log.inbound());
  return 0;
}
