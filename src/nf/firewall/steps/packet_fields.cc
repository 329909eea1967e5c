// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/packet_fields.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "base/byte_order.h"
#include "base/nanoseconds.h"
#include "packet/checksum.h"
#include "packet/ip.h"

namespace penstock::firewall {

namespace {

/// Calls `use(protocol, offset)` for each extension header of a packet of IPv6, and returns the protocol after them.
/// Parsing has found all of them to be complete.
template <typename Use>
std::uint8_t for_each_extension(PacketView packet, const Use& use) noexcept {
  const PacketLayout& layout = packet.layout();
  std::uint8_t next = packet.ipv6().next_header;
  std::uint32_t at = layout.network_offset + std::uint32_t{sizeof(Ipv6Header)};
  while (at + 8 <= layout.transport_offset) {
    const std::uint8_t* const header = packet.frame + at;
    use(next, at);
    const bool is_fixed = next == ip_protocol::kFragment;
    const bool is_ah = next == ip_protocol::kAh;
    at += is_fixed ? 8 : is_ah ? (header[1] + 2U) * 4 : (header[1] + 1U) * 8;
    next = header[0];
  }
  return next;
}

bool is_ipv6(PacketView packet) noexcept { return packet.layout().network == NetworkLayer::ipv6; }

}  // namespace

std::optional<std::uint8_t> routing_type_of(PacketView packet) noexcept {
  std::optional<std::uint8_t> type;
  if (!is_ipv6(packet)) return type;
  for_each_extension(packet, [&](std::uint8_t protocol, std::uint32_t at) {
    if (protocol == ip_protocol::kRouting && !type) type = packet.frame[at + 2];
  });
  return type;
}

std::optional<std::uint8_t> extension_headers_of(PacketView packet) noexcept {
  using Header = classify::ExtensionHeader;
  if (!is_ipv6(packet)) return std::nullopt;
  std::uint8_t headers = 0;
  const auto add = [&](std::uint8_t bit) { headers |= bit; };
  const std::uint8_t last = for_each_extension(packet, [&](std::uint8_t protocol, std::uint32_t /*at*/) {
    switch (protocol) {
      case ip_protocol::kHopByHop: return add(Header::kHopByHop);
      case ip_protocol::kDestinationOptions: return add(Header::kDestinationOptions);
      case ip_protocol::kRouting: return add(Header::kRouting);
      case ip_protocol::kFragment: return add(Header::kFragment);
      case ip_protocol::kAh: return add(Header::kAuthentication);
      default: return;
    }
  });
  constexpr std::uint8_t kEsp = 50, kNone = 59;
  add(last == kEsp ? Header::kEsp : last == kNone ? Header::kNone : Header::kProtocol);
  return headers;
}

std::optional<std::uint16_t> fragment_field_of(PacketView packet) noexcept {
  if (!is_ipv6(packet)) return packet.ipv4().fragment.value();
  std::optional<std::uint16_t> field;
  for_each_extension(packet, [&](std::uint8_t protocol, std::uint32_t at) {
    if (protocol == ip_protocol::kFragment && !field) field = packet.at<Be16>(at + 2).value();
  });
  return field;
}

void set_field(PacketView packet, const classify::SetField& set) noexcept {
  using Way = classify::SetField::Way;
  const auto changed = [&](std::uint8_t before) {
    switch (set.way) {
      case Way::add: return static_cast<std::uint8_t>(std::min<unsigned>(before + set.value, 255));
      case Way::subtract: return static_cast<std::uint8_t>(before - std::min(before, set.value));
      case Way::set: break;
    }
    return static_cast<std::uint8_t>((before & set.keep) ^ set.value);
  };
  const bool of_class = set.field == classify::SetField::Field::traffic_class;
  if (is_ipv6(packet)) {
    Ipv6Header& ip = packet.ipv6();
    if (!of_class) {
      ip.hop_limit = changed(ip.hop_limit);
      return;
    }
    const std::uint32_t word = ip.version_class_label.value();
    const std::uint32_t now = changed(static_cast<std::uint8_t>(word >> 20 & 0xff));
    ip.version_class_label.set((word & ~(0xffU << 20)) | now << 20);
    return;
  }
  Ipv4Header& ip = packet.ipv4();
  const auto word = [&] {
    return static_cast<std::uint16_t>(of_class ? ip.version_ihl << 8 | ip.tos : ip.ttl << 8 | ip.protocol);
  };
  const std::uint16_t before = word();
  std::uint8_t& field = of_class ? ip.tos : ip.ttl;
  field = changed(field);
  if (word() != before) ip.checksum.set(checksum_update(ip.checksum.value(), before, word()));
}

bool has_text(PacketView packet, const classify::FindText& find) noexcept {
  const PacketLayout& layout = packet.layout();
  const std::uint32_t length = std::min(layout.ip_bytes(), packet.length() - layout.network_offset);
  const std::uint32_t to = std::min<std::uint32_t>(find.to, length);
  if (find.from >= to) return false;
  const std::span<const std::uint8_t> bytes(packet.frame + layout.network_offset + find.from, to - find.from);
  const auto lower = [](int byte) { return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte; };
  const auto same = [&](std::uint8_t a, char b) {
    const int other = static_cast<unsigned char>(b);
    return find.any_case ? lower(a) == lower(other) : a == other;
  };
  return std::search(bytes.begin(), bytes.end(), find.text.begin(), find.text.end(), same) != bytes.end();
}

bool is_at(const classify::AtTime& at, std::uint64_t now_ns) noexcept {
  constexpr std::uint64_t kDay = 86'400;
  std::uint64_t now = now_ns / kNsPerSecond;
  if (now < at.from || now > at.to) return false;
  const std::uint64_t second = now % kDay;
  if (at.from_second < at.to_second) {
    if (second < at.from_second || second > at.to_second) return false;
  } else {
    if (second < at.from_second && second > at.to_second) return false;
    if (at.night_belongs_to_day_before && second <= at.to_second && now >= kDay) now -= kDay;
  }
  const std::chrono::sys_days day{std::chrono::days(now / kDay)};
  const auto bit = [](unsigned number) { return std::uint32_t{1} << number; };
  if ((at.weekdays & bit(std::chrono::weekday(day).c_encoding())) == 0) return false;
  return (at.days & bit(static_cast<unsigned>(std::chrono::year_month_day(day).day()))) != 0;
}

}  // namespace penstock::firewall
