// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary bytes as the output of `nft -j list ruleset`, for filters and for translations. If it can be read,
// both engines must agree on a few keys, and no entry may refer to what does not exist.

#include <cstdint>
#include <string_view>

#include "nf/firewall/nftables/digest.h"
#include "nf/firewall/nftables/reader.h"
#include "nf/firewall/rules_for_fuzz.h"

using namespace penstock;
using namespace penstock::firewall;
using penstock::testing::check;

namespace {

void read_with(std::string_view text, const ReadOptions& options) {
  const auto read = read_nftables(text, "fuzz", options);
  if (!read) return;
  const classify::Ruleset& rules = read->value;
  for (std::size_t i = 0; i < rules.entries.size(); ++i) {
    const classify::Entry& entry = rules.entries[i];
    check(entry.rule < rules.rules.size() && !rules.rules[entry.rule].left_out);
    const bool skips = entry.action == classify::Action::skip;
    check(!skips || (entry.skip_to > i && entry.skip_to <= rules.entries.size()));
    const auto& translation = rules.rules[entry.rule].translation;
    check(!translation || (translation->range.first_address <= translation->range.last_address &&
                           translation->range.first_port <= translation->range.last_port));
  }
  static_cast<void>(decide_by_both_engines(rules));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(nftables::digest_of(text));
  ReadOptions options = options_for_fuzz(size);
  read_with(text, options);
  options.hook = Hook::prerouting;
  options.translates = true;
  read_with(text, options);
  options.translates = false;
  options.bridges = true;
  options.hook = size % 3 == 0 ? Hook::postrouting : Hook::forward;
  read_with(text, options);
  return 0;
}
