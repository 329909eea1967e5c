// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/steps/packet_fields.h"

#include <gtest/gtest.h>

#include "packet/checksum.h"
#include "packet/ip.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall {
namespace {

using classify::SetField;
using penstock::testing::packet;

/// A packet that owns its bytes.
struct Parsed {
  explicit Parsed(penstock::testing::Bytes frame) : bytes(std::move(frame)) {
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
    parse(view());
  }
  PacketView view() { return {bytes.data(), &descriptor}; }
  penstock::testing::Bytes bytes;
  PacketDescriptor descriptor;
};

Parsed udp4(std::string_view text = "x") {
  return Parsed(packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(text).bytes());
}

TEST(PacketFields, SettingAFieldOfIpv4UpdatesTheChecksum) {
  using Field = SetField::Field;
  using Way = SetField::Way;
  Parsed parsed = udp4();
  const auto sum_is_right = [&] {
    return checksum_finish(checksum_add(parsed.view().frame + parsed.view().layout().network_offset, 20)) == 0;
  };
  ASSERT_TRUE(sum_is_right());
  set_field(parsed.view(), {Field::traffic_class, Way::set, 46 << 2, 3});
  EXPECT_EQ(parsed.view().ipv4().tos, 46 << 2);
  EXPECT_TRUE(sum_is_right());
  for (const auto& [way, value, ttl] : std::vector<std::tuple<Way, int, int>>{{Way::set, 9, 9},
                                                                              {Way::add, 5, 14},
                                                                              {Way::subtract, 4, 10},
                                                                              {Way::subtract, 200, 0},
                                                                              {Way::add, 255, 255}}) {
    set_field(parsed.view(), {Field::hop_limit, way, static_cast<std::uint8_t>(value), 0});
    EXPECT_EQ(parsed.view().ipv4().ttl, ttl);
    EXPECT_TRUE(sum_is_right());
  }
}

TEST(PacketFields, SetsFieldsOfIpv6) {
  Parsed parsed(packet().eth().ipv6("fd00::1", "fd00::2").udp(1, 2).payload("x").bytes());
  const std::uint32_t before = parsed.view().ipv6().version_class_label.value();
  set_field(parsed.view(), {SetField::Field::traffic_class, SetField::Way::set, 8 << 2, 3});
  EXPECT_EQ(parsed.view().ipv6().version_class_label.value(), before | 8 << 22);
  set_field(parsed.view(), {SetField::Field::hop_limit, SetField::Way::set, 7, 0});
  EXPECT_EQ(parsed.view().ipv6().hop_limit, 7);
}

TEST(PacketFields, FindsTextBetweenTwoOffsetsFromTheIpHeader) {
  Parsed parsed = udp4("GET /Worm HTTP");  // from byte 28 on
  const auto has = [&](const char* text, std::uint16_t from, std::uint16_t to, bool any_case = false) {
    return has_text(parsed.view(), {text, from, to, any_case});
  };
  EXPECT_TRUE(has("Worm", 0, 0xffff));
  EXPECT_FALSE(has("worm", 0, 0xffff));
  EXPECT_TRUE(has("worm", 0, 0xffff, true));
  EXPECT_TRUE(has("GET", 28, 31));
  EXPECT_FALSE(has("GET", 28, 30));
  EXPECT_FALSE(has("GET", 29, 0xffff));
  EXPECT_FALSE(has("GET", 60, 50));
}

TEST(PacketFields, KnowsExtensionHeadersAndFragments) {
  using Header = classify::ExtensionHeader;
  Parsed plain(packet().eth().ipv6("fd00::1", "fd00::2").udp(1, 2).payload("x").bytes());
  EXPECT_EQ(extension_headers_of(plain.view()), Header::kProtocol);
  EXPECT_EQ(fragment_field_of(plain.view()), std::nullopt);
  Parsed more(packet().eth().ipv6("fd00::1", "fd00::2").extension(0).fragment6(1).udp(1, 2).payload("x").bytes());
  EXPECT_EQ(extension_headers_of(more.view()), Header::kHopByHop | Header::kFragment | Header::kProtocol);
  EXPECT_EQ(fragment_field_of(more.view()), 1);
  EXPECT_EQ(extension_headers_of(udp4().view()), std::nullopt);
  EXPECT_EQ(fragment_field_of(udp4().view()), 0);
}

TEST(PacketFields, KnowsTimesOfUtc) {
  constexpr std::uint64_t kTuesdayNight = 1'700'000'000;  // 2023-11-14 22:13:20
  const auto is_now = [&](const classify::AtTime& at) { return is_at(at, kTuesdayNight * 1'000'000'000); };
  EXPECT_TRUE(is_now({}));
  EXPECT_TRUE(is_now({.from_second = 20 * 3600, .to_second = 23 * 3600}));
  EXPECT_FALSE(is_now({.from_second = 8 * 3600, .to_second = 20 * 3600}));
  EXPECT_TRUE(is_now({.from_second = 20 * 3600, .to_second = 6 * 3600}));
  EXPECT_TRUE(is_now({.weekdays = 1 << 2}));
  EXPECT_FALSE(is_now({.weekdays = 0x7f & ~(1 << 2)}));
  EXPECT_TRUE(is_now({.days = 1 << 14}));
  EXPECT_FALSE(is_now({.to = kTuesdayNight - 1}));
  const classify::AtTime mondays_night{.from_second = 23 * 3600, .to_second = 22 * 3600 + 1800, .weekdays = 1 << 1};
  EXPECT_FALSE(is_now(mondays_night));
  classify::AtTime contiguous = mondays_night;
  contiguous.night_belongs_to_day_before = true;
  EXPECT_TRUE(is_now(contiguous));
}

}  // namespace
}  // namespace penstock::firewall
