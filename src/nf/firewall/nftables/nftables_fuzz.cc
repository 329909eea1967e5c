// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary bytes as the output of `nft -j list ruleset`. If it can be read, both engines must agree on a few
// keys, and no entry may refer to what does not exist.

#include <cstdlib>
#include <string_view>

#include "classify/classifier.h"
#include "nf/firewall/nftables/reader.h"
#include "nf/firewall/tuple_reader.h"

using namespace penstock;
using namespace penstock::firewall;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<classify::Key> keys = *read_tuples(
      "10.0.0.1 192.168.1.1 tcp 1024 80\n10.1.2.3 8.8.8.8 udp 53 53\n0.0.0.0 255.255.255.255 icmp 0 0\n"
      "2001:db8::1 fe80::1 tcp 1 443\n:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 58 0 65535\n",
      "keys");
  ReadOptions options;
  options.interfaces.ports = {"lan", "eth0"};
  options.interfaces.unknown_is_none = size % 2 == 0;
  // Small inputs can expand to a million entries; comparing the engines on these would take too long.
  options.most_rules = 2000;
  const auto read = read_nftables({reinterpret_cast<const char*>(data), size}, "fuzz", options);
  if (!read) return 0;
  const classify::Ruleset& rules = read->value;
  for (std::size_t i = 0; i < rules.entries.size(); ++i) {
    const classify::Entry& entry = rules.entries[i];
    const bool skips = entry.action == classify::Action::skip;
    if (entry.rule >= rules.rules.size() || rules.rules[entry.rule].left_out) std::abort();
    if (skips && (entry.skip_to <= i || entry.skip_to > rules.entries.size())) std::abort();
  }
  const auto linear = classify::make_classifier(classify::Engine::linear, rules);
  const auto bitvector = classify::make_classifier(classify::Engine::bitvector, rules);
  if (!linear || !bitvector) return 0;
  std::vector<std::uint32_t> slow(keys.size()), quick(keys.size());
  (*linear)->classify(keys, slow.data());
  (*bitvector)->classify(keys, quick.data());
  if (slow != quick) std::abort();
  return 0;
}
