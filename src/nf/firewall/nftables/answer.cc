// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/answer.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "nf/firewall/nftables/values.h"

namespace penstock::firewall::nftables {

namespace {

struct CodeOfBoth {
  std::string_view name;
  std::uint64_t number;  // NFT_REJECT_ICMPX_*
  classify::Answer answer;
};
constexpr std::array<CodeOfBoth, 4> kCodesOfBoth{{{"no-route", 0, {false, 0, 0}},
                                                  {"port-unreachable", 1, {false, 3, 4}},
                                                  {"host-unreachable", 2, {false, 1, 3}},
                                                  {"admin-prohibited", 3, {false, 13, 1}}}};

}  // namespace

std::optional<classify::Answer> read_answer(std::string_view type, const Json& code) {
  classify::Answer answer;
  if (type == "icmpx") {
    const auto is_meant = [&](const CodeOfBoth& known) { return code == known.name || code == known.number; };
    const auto found = std::ranges::find_if(kCodesOfBoth, is_meant);
    if (found == kCodesOfBoth.end()) return std::nullopt;
    return found->answer;
  }
  const bool ipv4 = type == "icmp";
  const auto number = read_number(ipv4 ? Type::icmp_code : Type::icmpv6_code, code);
  if (!number) return std::nullopt;
  (ipv4 ? answer.ipv4_code : answer.ipv6_code) = static_cast<std::uint8_t>(*number);
  return answer;
}

}  // namespace penstock::firewall::nftables
