// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/fits_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace penstock::port {
namespace {

constexpr std::size_t kMtu = 1500;

bool fits(std::size_t length, std::uint16_t type = ether_type::kIpv4, LinkType link_type = LinkType::ethernet) {
  std::vector<std::uint8_t> frame(std::max(length, sizeof(EthernetHeader)));
  frame[12] = static_cast<std::uint8_t>(type >> 8);
  frame[13] = static_cast<std::uint8_t>(type);
  PacketDescriptor packet{};
  packet.length = static_cast<decltype(packet.length)>(length);
  packet.link_type = link_type;
  return fits_link({frame.data(), &packet}, kMtu);
}

TEST(FitsLink, TakesFramesUpToTheMtuAndTheirHeader) {
  EXPECT_TRUE(fits(kMtu + 14));
  EXPECT_FALSE(fits(kMtu + 15));
}

TEST(FitsLink, DoesNotCountAVlanTag) {
  EXPECT_TRUE(fits(kMtu + 18, ether_type::kVlan));
  EXPECT_FALSE(fits(kMtu + 19, ether_type::kVlan));
}

TEST(FitsLink, RefusesWhatIsNoEthernetFrame) {
  EXPECT_TRUE(fits(14));
  EXPECT_FALSE(fits(13));
  EXPECT_FALSE(fits(60, ether_type::kIpv4, LinkType::raw_ip));
}

}  // namespace
}  // namespace penstock::port
