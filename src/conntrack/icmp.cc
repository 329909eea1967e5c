// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/icmp.h"

#include <array>

#include "packet/ip.h"

namespace penstock::conntrack {
namespace {

struct Pair {
  std::uint8_t request, reply;
};
// Echo, timestamp, information, address mask.
constexpr std::array<Pair, 4> kV4 = {{{8, 0}, {13, 14}, {15, 16}, {17, 18}}};
// Echo, node information.
constexpr std::array<Pair, 2> kV6 = {{{128, 129}, {139, 140}}};

template <typename Pairs>
std::optional<std::uint8_t> counterpart(const Pairs& pairs, std::uint8_t type) noexcept {
  for (const Pair& pair : pairs) {
    if (pair.request == type) return pair.reply;
    if (pair.reply == type) return pair.request;
  }
  return std::nullopt;
}

template <typename Pairs>
IcmpKind request_or_reply(const Pairs& pairs, std::uint8_t type) noexcept {
  for (const Pair& pair : pairs) {
    if (pair.request == type) return IcmpKind::request;
    if (pair.reply == type) return IcmpKind::reply;
  }
  return IcmpKind::other;
}

}  // namespace

IcmpKind icmp_kind(std::uint8_t protocol, std::uint8_t type) noexcept {
  if (protocol == ip_protocol::kIcmp) {
    // Unreachable, source quench, redirect, time exceeded, parameter problem.
    const bool error = type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
    return error ? IcmpKind::error : request_or_reply(kV4, type);
  }
  constexpr std::uint8_t kFirstInformation = 128, kRedirect = 137;
  if (type < kFirstInformation) return IcmpKind::error;
  if (type == kRedirect) return IcmpKind::redirect;
  if ((type >= 130 && type <= 136) || type == 143 || type == 151 || type == 152) return IcmpKind::untracked;
  return request_or_reply(kV6, type);
}

std::optional<std::uint8_t> icmp_counterpart(std::uint8_t protocol, std::uint8_t type) noexcept {
  return protocol == ip_protocol::kIcmp ? counterpart(kV4, type) : counterpart(kV6, type);
}

}  // namespace penstock::conntrack
