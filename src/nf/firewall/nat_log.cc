// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nat_log.h"

#include <fmt/format.h>

#include <chrono>
#include <iterator>

#include "base/ip_address.h"

namespace penstock::firewall {

namespace {

std::string text_of(const Ipv6Address& address, std::uint8_t ip_version) {
  return ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(address.low)}) : to_string(address);
}

}  // namespace

void NatLog::tell(const conntrack::BlockEvent& event) noexcept {
  const bool allocated = event.kind == conntrack::BlockEvent::Kind::allocated;
  writer_.line([&](std::string& to) {
    times_.append_iso(to, event.time_ns);
    fmt::format_to(std::back_inserter(to), " penstock: {} HOST={} ADDRESS={} PORTS={}-{}",
                   allocated ? "allocated" : "released", text_of(event.subscriber.address, event.subscriber.ip_version),
                   text_of(event.address, event.subscriber.ip_version), event.first_port, event.last_port);
  });
  if (!is_waiting_) oldest_ = report::EventLog::Clock::now();
  is_waiting_ = true;
}

bool NatLog::flush_if_due() noexcept {
  constexpr std::chrono::seconds kLongestWait{1};
  if (!is_waiting_) return true;
  if (report::EventLog::Clock::now() - oldest_ < kLongestWait) return false;
  writer_.flush();
  is_waiting_ = false;
  return true;
}

}  // namespace penstock::firewall
