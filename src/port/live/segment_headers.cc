// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/segment_headers.h"

#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::port {

namespace {

using Kind = SegmentHeaders::Kind;

/// Goes from one header to the next. Nothing is read from `end_` on, where the transport header begins.
class Walk {
 public:
  Walk(const std::uint8_t* frame, std::size_t end, std::uint8_t protocol) noexcept
      : frame_(frame), end_(end), protocol_(protocol) {}

  [[nodiscard]] bool run() noexcept {
    std::uint16_t type = 0;
    if (!ethernet(type)) return false;
    while (found_.count < SegmentHeaders::kMostLayers) {
      std::uint8_t next = 0;
      if (type == ether_type::kIpv4 ? !ipv4(next) : type != ether_type::kIpv6 || !ipv6(next)) return false;
      if (at_ == end_) return next == protocol_;
      switch (next) {
        case ip_protocol::kIpv4: type = ether_type::kIpv4; break;
        case ip_protocol::kIpv6: type = ether_type::kIpv6; break;
        case ip_protocol::kUdp: return has(sizeof(UdpHeader)) && add(Kind::tunnel_udp) && inner(sizeof(UdpHeader));
        case ip_protocol::kGre: return gre();
        default: return false;
      }
    }
    return false;
  }
  [[nodiscard]] const SegmentHeaders& found() const noexcept { return found_; }

 private:
  template <typename Header>
  [[nodiscard]] const Header& header(std::size_t at) const noexcept {
    return *reinterpret_cast<const Header*>(frame_ + at);
  }
  [[nodiscard]] bool has(std::size_t bytes) const noexcept { return end_ - at_ >= bytes; }

  bool add(Kind kind, std::size_t at, std::size_t destination) noexcept {
    if (found_.count == SegmentHeaders::kMostLayers) return false;
    const std::size_t removed = found_.jumbo_at != 0 ? SegmentHeaders::kJumboBytes : 0;
    found_.layers[found_.count++] = {kind, at - removed, destination - removed};
    return true;
  }
  bool add(Kind kind) noexcept { return add(kind, at_, at_); }

  bool ethernet(std::uint16_t& type) noexcept {
    if (!has(sizeof(EthernetHeader))) return false;
    type = header<EthernetHeader>(0).type.value();
    at_ = sizeof(EthernetHeader);
    constexpr unsigned kMostTags = 8;
    for (unsigned tags = 0; type == ether_type::kVlan || type == ether_type::kQinQ; ++tags) {
      if (tags == kMostTags || !has(sizeof(VlanTag))) return false;
      type = header<VlanTag>(at_).type.value();
      at_ += sizeof(VlanTag);
    }
    return true;
  }

  bool ipv4(std::uint8_t& next) noexcept {
    if (!has(sizeof(Ipv4Header))) return false;
    const auto& ip = header<Ipv4Header>(at_);
    const std::size_t length = ip.header_length();
    if (ip.version() != 4 || length < sizeof ip || !has(length)) return false;
    if ((ip.fragment.value() & (Ipv4Header::kMoreFragments | Ipv4Header::kOffsetMask)) != 0) return false;
    next = ip.protocol;
    if (!add(Kind::ipv4, at_, at_ + offsetof(Ipv4Header, destination))) return false;
    at_ += length;
    return true;
  }

  bool ipv6(std::uint8_t& next) noexcept {
    if (!has(sizeof(Ipv6Header)) || header<Ipv6Header>(at_).version_class_label.value() >> 28 != 6) return false;
    const std::size_t start = at_;
    std::size_t destination = at_ + offsetof(Ipv6Header, destination);
    next = header<Ipv6Header>(at_).next_header;
    const bool no_length = header<Ipv6Header>(at_).payload_length.value() == 0;
    at_ += sizeof(Ipv6Header);
    bool jumbo = false;
    while (next == ip_protocol::kHopByHop || next == ip_protocol::kRouting ||
           next == ip_protocol::kDestinationOptions) {
      constexpr std::size_t kUnit = 8;
      if (!has(kUnit)) return false;
      const std::size_t length = (header<Ipv6Extension>(at_).length + std::size_t{1}) * kUnit;
      if (!has(length) || (next == ip_protocol::kRouting && !routing(length, destination))) return false;
      constexpr std::uint8_t kJumboPayload = 0xc2;
      if (next == ip_protocol::kHopByHop && length == kUnit && frame_[at_ + 2] == kJumboPayload && no_length &&
          found_.jumbo_at == 0 && at_ == start + sizeof(Ipv6Header)) {
        jumbo = true;
      }
      next = header<Ipv6Extension>(at_).next_header;
      at_ += length;
    }
    if (!add(Kind::ipv6, start, destination)) return false;
    if (!jumbo) return true;
    found_.jumbo_at = start + sizeof(Ipv6Header);
    if (destination > found_.jumbo_at) found_.layers[found_.count - 1].destination -= SegmentHeaders::kJumboBytes;
    return true;
  }

  /// The last address of a routing header is where the packet goes in the end (RFC 8754 §2: the first one).
  [[nodiscard]] bool routing(std::size_t length, std::size_t& destination) const noexcept {
    constexpr std::uint8_t kSource = 0, kMobile = 2, kSegment = 4;
    constexpr std::size_t kAddress = 16, kFixed = 8;
    const std::uint8_t type = frame_[at_ + 2], segments_left = frame_[at_ + 3];
    if (segments_left == 0) return true;
    if (length < kFixed + kAddress) return false;
    if (type == kSegment) {
      destination = at_ + kFixed;
    } else if (type == kSource || type == kMobile) {
      destination = at_ + length - kAddress;
    } else {
      return false;
    }
    return true;
  }

  bool gre() noexcept {
    constexpr std::size_t kLeast = 4, kWithChecksum = 8;
    if (!has(kLeast)) return false;
    const std::uint16_t flags = header<Be16>(at_).value();
    if ((flags & GreHeader::kSequence) != 0) return false;  // each segment would need a number
    const bool checked = (flags & GreHeader::kChecksum) != 0;
    if (checked && (!has(kWithChecksum) || !add(Kind::tunnel_gre))) return false;
    return inner(checked ? kWithChecksum : kLeast);
  }

  /// The IP header that ends at the transport header, at least `least` bytes from here.
  bool inner(std::size_t least) noexcept {
    const std::size_t room = end_ - at_ - least;
    constexpr std::size_t kLongestIpv4 = 60;
    for (std::size_t length = sizeof(Ipv4Header); length <= kLongestIpv4 && length <= room; length += 4) {
      const std::size_t at = end_ - length;
      const auto& ip = header<Ipv4Header>(at);
      if (ip.version() == 4 && ip.header_length() == length && ip.protocol == protocol_ &&
          checksum(frame_ + at, static_cast<std::uint32_t>(length)) == 0) {
        return add(Kind::ipv4, at, at + offsetof(Ipv4Header, destination));
      }
    }
    if (room < sizeof(Ipv6Header)) return false;
    const std::size_t at = end_ - sizeof(Ipv6Header);
    const auto& ip = header<Ipv6Header>(at);
    return ip.version_class_label.value() >> 28 == 6 && ip.next_header == protocol_ &&
           add(Kind::ipv6, at, at + offsetof(Ipv6Header, destination));
  }

  const std::uint8_t* const frame_;
  const std::size_t end_;
  const std::uint8_t protocol_;
  std::size_t at_ = 0;
  SegmentHeaders found_;
};

}  // namespace

std::optional<SegmentHeaders> find_segment_headers(std::span<const std::uint8_t> frame, std::size_t transport,
                                                   std::uint8_t protocol) noexcept {
  if (transport > frame.size()) return std::nullopt;
  Walk walk(frame.data(), transport, protocol);
  if (!walk.run()) return std::nullopt;
  return walk.found();
}

}  // namespace penstock::port
