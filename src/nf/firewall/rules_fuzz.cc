// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary bytes as a rule file. If it can be read, both engines must agree on a few keys.

#include <cstdint>

#include "classify/rfc_build.h"
#include "classify/rfc_core.h"
#include "nf/firewall/rules_for_fuzz.h"

using namespace penstock;
using namespace penstock::firewall;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = read_rules({reinterpret_cast<const char*>(data), size}, "fuzz", options_for_fuzz(size));
  if (!read) return 0;
  const auto decided = decide_by_both_engines(read->value);
  if (!decided) return 0;
  // RFC's tables grow fast; most small inputs fit.
  if (const auto tables = classify::build_rfc(read->value, {std::size_t{1} << 22, std::uint64_t{1} << 18})) {
    const classify::RfcView view = tables->view();
    for (std::size_t i = 0; i < decided->size(); ++i)
      penstock::testing::check(deciding_entry(view, keys_for_fuzz()[i]) == (*decided)[i]);
  }
  return 0;
}
