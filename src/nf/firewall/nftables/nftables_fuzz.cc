// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary bytes as the output of `nft -j list ruleset`. If it can be read, both engines must agree on a few
// keys, and no entry may refer to what does not exist.

#include <cstdint>
#include <string_view>

#include "nf/firewall/nftables/digest.h"
#include "nf/firewall/nftables/reader.h"
#include "nf/firewall/rules_for_fuzz.h"

using namespace penstock;
using namespace penstock::firewall;
using penstock::testing::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(nftables::digest_of(text));
  const auto read = read_nftables(text, "fuzz", options_for_fuzz(size));
  if (!read) return 0;
  const classify::Ruleset& rules = read->value;
  for (std::size_t i = 0; i < rules.entries.size(); ++i) {
    const classify::Entry& entry = rules.entries[i];
    check(entry.rule < rules.rules.size() && !rules.rules[entry.rule].left_out);
    const bool skips = entry.action == classify::Action::skip;
    check(!skips || (entry.skip_to > i && entry.skip_to <= rules.entries.size()));
  }
  static_cast<void>(decide_by_both_engines(rules));
  return 0;
}
