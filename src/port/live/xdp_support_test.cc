// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replies as Linux 6.18 gave them, recorded byte by byte.

#include "port/live/xdp_support.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace penstock::port {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::uint8_t> from_hex(std::string_view text) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(digit(text[i]) * 16 + digit(text[i + 1])));
  return bytes;
}

// The reply to CTRL_CMD_GETFAMILY for netdev, and the error for a name that is no family's.
constexpr std::string_view kFamily =
    "1c0100001000000001000000207f0000010200000b0002006e65746465760000060001001400000008000300010000000800040000000000"
    "0800050000000000a4000600140001000800010001000000080002000e000000140002000800010005000000080002000e00000014000300"
    "080001000a000000080002000e00000014000400080001000b000000080002000e00000014000500080001000c000000080002000c000000"
    "14000600080001000d000000080002000b00000014000700080001000e000000080002000b00000014000800080001000f00000008000200"
    "0a00000038000700180001000800020004000000090001006d676d74000000001c00020008000200050000000e000100706167652d706f6f"
    "6c000000";
constexpr std::string_view kNoFamily =
    "340000000200000001000000207f0000feffffff20000000100001000100000000000000030100000c0002006e6f646576787800";

// An interface in the reply to NETDEV_CMD_DEV_GET. lo (1) and a bridge (4): nothing. veth (2): native mode with several
// buffers. tun (5): native mode. virtio_net (4 of another machine): zero-copy, with one buffer.
constexpr std::string_view kLoopback =
    "400000001400000001000000207f00000101000008000100010000000c00030000000000000000000c00050000000000000000000c00060000"
    "00000000000000";
constexpr std::string_view kVeth =
    "400000001400000001000000207f00000101000008000100020000000c00030023000000000000000c00050007000000000000000c00060000"
    "00000000000000";
constexpr std::string_view kTap =
    "400000001400000001000000207f00000101000008000100050000000c00030007000000000000000c00050000000000000000000c00060000"
    "00000000000000";
constexpr std::string_view kVirtio =
    "4800000014000000010000007c7f00000101000008000100040000000c0003002b000000000000000c00050000000000000000000c00060000"
    "000000000000000800040001000000";
constexpr std::string_view kEnd = "140000000300020001000000207f000000000000";

std::map<int, XdpSupport> support_in(const std::string& replies) {
  std::map<int, XdpSupport> found;
  static_cast<void>(add_xdp_support(from_hex(replies), found));
  return found;
}

/// A message whose replies are parts of one answer.
std::string in_parts(std::string_view message) {
  std::string marked(message);
  marked.replace(12, 4, "0200");  // NLM_F_MULTI
  return marked;
}

/// That of virtio_net, with other values.
std::string device(std::string_view features, std::string_view segments) {
  std::string reply(kVirtio);
  reply.replace(reply.find("2b00000000000000"), 2, features);
  reply.replace(reply.size() - 8, 2, segments);
  return reply;
}

TEST(XdpSupport, ReadsTheNumberOfTheFamily) {
  EXPECT_EQ(family_in(from_hex(kFamily)), 0x14);
  EXPECT_EQ(family_in(from_hex(kNoFamily)), std::nullopt);
  EXPECT_EQ(family_in({}), std::nullopt);
}

TEST(XdpSupport, ReadsWhatRealDriversSupport) {
  const XdpSupport none, veth{true, false, true, 0}, tap{true, false, false, 0}, virtio{true, true, true, 1};
  EXPECT_THAT(support_in(std::string(kLoopback) + std::string(kVeth) + std::string(kVirtio) + std::string(kTap)),
              ElementsAre(Pair(1, none), Pair(2, veth), Pair(4, virtio), Pair(5, tap)));
}

TEST(XdpSupport, ReadsZeroCopyOfSeveralBuffers) {
  EXPECT_THAT(support_in(device("2b", "08")), ElementsAre(Pair(4, XdpSupport{true, true, true, 8})));
}

TEST(XdpSupport, AssumesOneBufferWithZeroCopyBeforeLinux66) {
  std::string reply = device("2b", "08");
  reply.resize(reply.size() - 16);
  reply.replace(0, 2, "40");
  EXPECT_THAT(support_in(reply), ElementsAre(Pair(4, XdpSupport{true, true, true, 1})));
}

TEST(XdpSupport, NeedsRedirectionForNativeMode) {
  EXPECT_THAT(support_in(device("29", "01")), ElementsAre(Pair(4, XdpSupport{})));
}

TEST(XdpSupport, ReadsAnAnswerOfSeveralParts) {
  std::map<int, XdpSupport> found;
  EXPECT_TRUE(add_xdp_support(from_hex(in_parts(kLoopback)), found));
  EXPECT_TRUE(add_xdp_support(from_hex(in_parts(kVeth)), found));
  EXPECT_FALSE(add_xdp_support(from_hex(kEnd), found));
  EXPECT_EQ(found.size(), 2U);
  EXPECT_FALSE(add_xdp_support({}, found)) << "an error would be repeated for ever";
}

TEST(XdpSupport, SurvivesAnyTruncation) {
  const std::vector<std::uint8_t> whole = from_hex(std::string(kVirtio) + std::string(kEnd));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<std::uint8_t> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    std::map<int, XdpSupport> found;
    static_cast<void>(add_xdp_support(part, found));
    EXPECT_EQ(found.size(), length < kVirtio.size() / 2 ? 0U : 1U) << length;
  }
}

}  // namespace
}  // namespace penstock::port
