// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/packet_headers.h"

#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "stack/transport_checksum.h"

namespace penstock::nids {

namespace {

using stack::Bytes;
using stack::DecodedPacket;

// RFC 791 §3.1 and IANA's list.
constexpr std::uint8_t kEndOfOptions = 0, kNoOperation = 1, kRecordRoute = 7, kTimestamp = 68, kSecurity = 130,
                       kLooseRoute = 131, kStreamId = 136, kStrictRoute = 137, kRouterAlert = 148;

constexpr std::uint8_t kTcpEnd = 0, kTcpNoOperation = 1, kTcpMss = 2;

/// `option`: type, length and data. The pointers of route and timestamp options count from the option's first byte,
/// which is 1.
bool well_formed(Bytes option) noexcept {
  const std::size_t length = option.size();
  switch (option[0]) {
    case kRecordRoute:
    case kLooseRoute:
    case kStrictRoute: {
      if (length < 3) return false;
      const unsigned pointer = option[2];
      return pointer >= 4 && pointer % 4 == 0 && pointer <= length + 1;
    }
    case kTimestamp: {
      if (length < 5) return false;
      const unsigned pointer = option[2], flag = option[3] & 15U;
      const unsigned record = flag == 1 || flag == 3 ? 8 : 4;
      return pointer >= 5 && (pointer - 5) % record == 0 && pointer <= length + 1;
    }
    case kSecurity: return length == 11;
    case kStreamId:
    case kRouterAlert: return length == 4;
    default: return true;
  }
}

}  // namespace

bool has_ip_option(const IpOption& option, Bytes ipv4_header) noexcept {
  if (ipv4_header.size() <= sizeof(Ipv4Header)) return false;
  for (Bytes rest = ipv4_header.subspan(sizeof(Ipv4Header)); !rest.empty();) {
    const std::uint8_t type = rest[0];
    std::size_t length = 1;
    if (type != kEndOfOptions && type != kNoOperation) {
      if (rest.size() < 2 || rest[1] < 2 || rest[1] > rest.size()) return false;
      length = rest[1];
      if (!well_formed(rest.first(length))) return false;
    }
    if (option.any || type == option.option) return true;
    if (type == kEndOfOptions) return false;
    rest = rest.subspan(length);
  }
  return false;
}

std::optional<std::uint16_t> tcp_mss(Bytes tcp_header) noexcept {
  if (tcp_header.size() <= sizeof(TcpHeader)) return std::nullopt;
  for (Bytes rest = tcp_header.subspan(sizeof(TcpHeader)); !rest.empty() && rest[0] != kTcpEnd;) {
    if (rest[0] == kTcpNoOperation) {
      rest = rest.subspan(1);
      continue;
    }
    if (rest.size() < 2 || rest[1] < 2 || rest[1] > rest.size()) return std::nullopt;
    if (rest[0] == kTcpMss && rest[1] == 4) return static_cast<std::uint16_t>(rest[2] << 8 | rest[3]);
    rest = rest.subspan(rest[1]);
  }
  return std::nullopt;
}

std::optional<bool> checksum_valid(ChecksumMatch::Of of, const DecodedPacket& packet) noexcept {
  const auto is = [&](unsigned version, std::uint8_t protocol) {
    return packet.ip_version == version && packet.protocol == protocol && !packet.transport.empty();
  };
  const auto whole = [&](unsigned version, std::uint8_t protocol) -> std::optional<bool> {
    if (!is(version, protocol)) return std::nullopt;
    return stack::transport_checksum_is_right(packet, packet.ip_payload.size());
  };
  const auto udp = [&](unsigned version) -> std::optional<bool> {
    if (!is(version, ip_protocol::kUdp)) return std::nullopt;
    const auto& header = *reinterpret_cast<const UdpHeader*>(packet.transport.data());
    // No checksum (RFC 768).
    if (header.checksum.value() == 0 || header.length.value() > packet.ip_payload.size()) return std::nullopt;
    return stack::transport_checksum_is_right(packet, header.length.value());
  };
  switch (of) {
    case ChecksumMatch::Of::ipv4:
      if (packet.ip_version != 4 || packet.ip.size() < sizeof(Ipv4Header)) return std::nullopt;
      return checksum(packet.ip.data(), static_cast<std::uint32_t>(packet.ip.size())) == 0;
    case ChecksumMatch::Of::tcpv4: return whole(4, ip_protocol::kTcp);
    case ChecksumMatch::Of::tcpv6: return whole(6, ip_protocol::kTcp);
    case ChecksumMatch::Of::udpv4: return udp(4);
    case ChecksumMatch::Of::udpv6: return udp(6);
    case ChecksumMatch::Of::icmpv4: return whole(4, ip_protocol::kIcmp);
    case ChecksumMatch::Of::icmpv6: return whole(6, ip_protocol::kIcmpv6);
  }
  return std::nullopt;
}

}  // namespace penstock::nids
