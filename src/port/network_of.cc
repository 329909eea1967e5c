// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/network_of.h"

#include <cstddef>

#include "packet/ethernet.h"
#include "packet/parse_core.h"

namespace penstock::port {

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kPppoeHeader = 6, kMplsLabel = 4;
constexpr unsigned kMostLayers = 16;

/// Steps through the link layers; each step determines the next one. A step returns false if the next layer is unknown.
class Walk {
 public:
  explicit Walk(Bytes frame) noexcept { network_.bytes = frame; }

  Network link(LinkType link) noexcept {
    if (begin(link)) {
      for (unsigned layers = 0; layers < kMostLayers && network_.version == 0 && layer(); ++layers) {
      }
    }
    return network_;
  }

 private:
  [[nodiscard]] Bytes& rest() noexcept { return network_.bytes; }
  [[nodiscard]] std::uint16_t be16(std::size_t at) noexcept {
    return static_cast<std::uint16_t>(rest()[at] << 8 | rest()[at + 1]);
  }
  bool ip(std::uint8_t version) noexcept {
    network_.version = version;
    return true;
  }
  /// Skips a header of `length` bytes that contains the next EtherType.
  bool step(std::size_t length, std::size_t type_at) noexcept {
    if (rest().size() < length) return false;
    type_ = be16(type_at);
    rest() = rest().subspan(length);
    return true;
  }
  bool ethernet() noexcept { return step(sizeof(EthernetHeader), 12); }

  bool begin(LinkType link) noexcept {
    switch (link) {
      case LinkType::ethernet: return ethernet();
      case LinkType::linux_sll: return step(sizeof(LinuxSllHeader), 14);
      case LinkType::linux_sll2: return step(sizeof(LinuxSll2Header), 0);
      case LinkType::cisco_hdlc: return step(4, 2);
      case LinkType::raw_ip: return ip_by_version();
      case LinkType::null_host:
      case LinkType::loop: return family(link == LinkType::loop);
      case LinkType::ppp: {
        const bool has_address = !rest().empty() && rest()[0] == 0xff;
        if (has_address && rest().size() < 2) return false;
        rest() = rest().subspan(has_address ? 2 : 0);
        return ppp();
      }
    }
    return false;
  }

  bool ip_by_version() noexcept {
    const unsigned version = rest().empty() ? 0 : rest()[0] >> 4;
    return (version == 4 || version == 6) && ip(static_cast<std::uint8_t>(version));
  }
  bool family(bool network_order) noexcept {
    if (rest().size() < 4) return false;
    const std::uint32_t big = std::uint32_t{be16(0)} << 16 | be16(2);
    const std::uint16_t type =
        parse_detail::ether_type_of_family(network_order || (big & 0xffff0000) == 0 ? big : __builtin_bswap32(big));
    if (type == 0) return false;
    rest() = rest().subspan(4);
    return ip(type == ether_type::kIpv4 ? 4 : 6);
  }
  bool ppp() noexcept {
    const std::size_t width = !rest().empty() && (rest()[0] & 1) != 0 ? 1 : 2;
    if (rest().size() < width) return false;
    const std::uint16_t protocol = width == 1 ? rest()[0] : be16(0);
    rest() = rest().subspan(width);
    network_.is_vj = protocol == 0x002f;
    if (protocol == 0x0021 || network_.is_vj) return ip(4);
    if (protocol == 0x0281 || protocol == 0x0283) return mpls();
    return protocol == 0x0057 && ip(6);
  }

  bool layer() noexcept {
    switch (type_) {
      case ether_type::kIpv4: return ip(4);
      case ether_type::kIpv6: return ip(6);
      case ether_type::kVlan:
      case ether_type::kQinQ:
      case ether_type::kQinQLegacy: return vlan();
      case ether_type::kPppoeSession:
        if (rest().size() <= kPppoeHeader || be16(4) == 0) return false;
        rest() = rest().subspan(kPppoeHeader);
        return ppp();
      case ether_type::kMpls:
      case ether_type::kMplsMulticast: return mpls();
      case ether_type::kNsh: return nsh();
      case ether_type::kIeee8021ah: return step(18, 16);
      case ether_type::kVntag: return step(6, 4);
      case ether_type::kEtag: return step(8, 6);
      case ether_type::kDce:
        if (rest().size() < 2) return false;
        rest() = rest().subspan(2);
        return ethernet();
      default: return snap();
    }
  }
  bool vlan() noexcept {
    if (rest().size() < sizeof(VlanTag) || network_.vlan_count == Network::kMostVlanTags) return false;
    network_.vlan_ids[network_.vlan_count++] = be16(0) & 0xfff;
    return step(sizeof(VlanTag), 2);
  }
  bool snap() noexcept {
    if (type_ >= ether_type::kLeast || rest().size() < sizeof(SnapHeader)) return false;
    const auto& header = *reinterpret_cast<const SnapHeader*>(rest().data());
    return header.names_ether_type() && step(sizeof(SnapHeader), offsetof(SnapHeader, type));
  }
  bool mpls() noexcept {
    constexpr std::uint32_t kIpv4 = 0, kIpv6 = 2, kMostReserved = 15;
    std::uint32_t label = 0;
    for (bool bottom = false; !bottom; rest() = rest().subspan(kMplsLabel)) {
      if (rest().size() < kMplsLabel) return false;
      label = std::uint32_t{be16(0)} << 4 | rest()[2] >> 4;
      bottom = (rest()[2] & 1) != 0;
    }
    if (label == kIpv4) return ip(4);
    if (label == kIpv6) return ip(6);
    if (label < kMostReserved || rest().size() < kMplsLabel) return false;
    if (rest()[0] >> 4 != 0) return ip_by_version();
    rest() = rest().subspan(kMplsLabel);  // control word of a pseudowire
    return ethernet();
  }
  bool nsh() noexcept {
    if (rest().size() < 8) return false;
    const std::size_t length = (be16(0) & 0x3fU) * 4;
    const unsigned metadata = rest()[2], protocol = rest()[3];
    if (rest()[0] >> 6 != 0 || length >= rest().size() || (metadata != 1 && metadata != 2)) return false;
    if (metadata == 1 && length != 24) return false;
    rest() = rest().subspan(length);
    switch (protocol) {
      case 1: return ip(4);
      case 2: return ip(6);
      case 3: return ethernet();
      case 5: return mpls();
      default: return false;
    }
  }

  Network network_;
  std::uint16_t type_ = 0;
};

}  // namespace

Network network_of(Bytes frame, LinkType link) noexcept { return Walk(frame).link(link); }

}  // namespace penstock::port
