// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The lines are strongSwan 5.9.8's, from two daemons with kernel-libipsec; what they say about other things is left
// out.

#include "control/ike/charon_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/text_file.h"
#include "nf/ipsec/xfrm/state_reader.h"

namespace penstock::control {
namespace {

using ipsec::Direction;
using ipsec::SecurityAssociation;
using testing::HasSubstr;

constexpr std::string_view kFirst =
    R"(00[LIB] loaded plugins: charon-systemd openssl kernel-libipsec kernel-netlink socket-default vici
10[NET] received packet: from 192.0.2.2[4501] to 192.0.2.1[4500] (224 bytes)
10[ENC] parsed IKE_AUTH response 1 [ IDr AUTH SA TSi TSr N(MOBIKE_SUP) N(NO_ADD_ADDR) ]
10[IKE] IKE_SA net[1] established between 192.0.2.1[a]...192.0.2.2[b]
10[CFG] selected proposal: ESP:AES_GCM_16_128/NO_EXT_SEQ
10[CHD] CHILD_SA net{1} state change: CREATED => INSTALLING
10[CHD]   using AES_GCM_16 for encryption
10[CHD] seed => 64 bytes @ 0x7fb65abf5960
10[CHD]    0: D9 BC 83 81 2E 16 FD 69 F0 30 8E 01 CA B3 90 76  .......i.0.....v
10[CHD]   16: 33 96 B7 05 A8 ED 92 DB 12 D0 59 85 29 EE 82 14  3.........Y.)...
10[CHD] encryption initiator key => 20 bytes @ 0x7fb61c044660
10[CHD]    0: D4 DB 02 61 2D C0 C7 38 D5 D6 33 97 96 AC 01 1F  ...a-..8..3.....
10[CHD]   16: 06 A3 A4 5D                                      ...]
10[CHD] encryption responder key => 20 bytes @ 0x7fb61c044820
10[CHD]    0: 1B C3 34 6F 3B 57 D0 13 49 04 04 2D 02 E8 8F 05  ..4o;W..I..-....
10[CHD]   16: BA B9 F1 AA                                      ....
10[CHD] adding inbound ESP SA
10[CHD]   SPI 0x0a5ca9d1, src 192.0.2.2 dst 192.0.2.1
10[CHD] adding outbound ESP SA
10[CHD]   SPI 0xedb5b532, src 192.0.2.1 dst 192.0.2.2
10[IKE] CHILD_SA net{1} established with SPIs 0a5ca9d1_i edb5b532_o and TS 10.1.0.0/24 === 10.2.0.0/24
10[CHD] CHILD_SA net{1} state change: INSTALLING => INSTALLED
)";

/// The peer replaces it.
constexpr std::string_view kRekey = R"(04[NET] received packet: from 192.0.2.2[4501] to 192.0.2.1[4500] (208 bytes)
04[ENC] parsed CREATE_CHILD_SA request 1 [ N(REKEY_SA) SA No TSi TSr ]
04[CFG] selected proposal: ESP:AES_CBC_128/HMAC_SHA2_256_128/NO_EXT_SEQ
04[CHD] CHILD_SA net{2} state change: CREATED => INSTALLING
04[CHD]   using AES_CBC for encryption
04[CHD]   using HMAC_SHA2_256_128 for integrity
04[CHD] encryption initiator key => 16 bytes @ 0x7faac003a490
04[CHD]    0: C0 20 0D 09 3B AD 33 FB 61 5C FF C2 E5 72 7E F6  . ..;.3.a\...r~.
04[CHD] encryption responder key => 16 bytes @ 0x7faac00443a0
05[NET] received packet: from 192.0.2.9[4500] to 192.0.2.1[4500] (80 bytes)
04[CHD]    0: F2 0C DC AA 17 DC 66 5E 16 EA 8C 4A D5 58 B5 F6  ......f^...J.X..
04[CHD] integrity initiator key => 32 bytes @ 0x7faac0039540
04[CHD]    0: 96 60 E0 92 86 7E 51 C6 3C 3E 38 66 B9 BC 58 61  .`...~Q.<>8f..Xa
04[CHD]   16: D8 4B 42 11 B2 EB 08 21 BF BE 66 86 3B 96 3C B5  .KB....!..f.;.<.
04[CHD] integrity responder key => 32 bytes @ 0x7faab4004ef0
04[CHD]    0: 22 43 5F DD 3C 25 07 3A 87 44 46 89 52 91 10 AF  "C_.<%.:.DF.R...
04[CHD]   16: FD 52 71 95 22 60 DB 57 98 4A 9F 77 B4 5D 39 39  .Rq."`.W.J.w.]99
04[CHD] adding inbound ESP SA
04[CHD]   SPI 0x84e609f5, src 192.0.2.2 dst 192.0.2.1
04[CHD] registering outbound ESP SA
04[CHD]   SPI 0x36c7b194, src 192.0.2.1 dst 192.0.2.2
04[CHD] CHILD_SA net{2} state change: INSTALLING => INSTALLED
04[CHD] CHILD_SA net{1} state change: INSTALLED => REKEYING
04[CHD] CHILD_SA net{1} state change: REKEYING => REKEYED
)";

constexpr std::string_view kSwitch = R"(06[NET] received packet: from 192.0.2.2[4501] to 192.0.2.1[4500] (80 bytes)
06[ENC] parsed INFORMATIONAL request 2 [ D ]
06[CHD] CHILD_SA net{1} state change: REKEYED => DELETING
06[CHD] CHILD_SA net{1} state change: DELETING => DELETED
06[CHD] adding outbound ESP SA
06[CHD]   SPI 0x36c7b194, src 192.0.2.1 dst 192.0.2.2
)";

class CharonLogTest : public testing::Test {
 protected:
  void add(std::string_view text) {
    LineReader lines(text);
    for (Line line; lines.next(line);) {
      log_.add(line.text, at_);
      at_ += line.text.size() + 1;
    }
  }
  void add_with(std::string text, std::string_view what, std::string_view instead) {
    ASSERT_NE(text.find(what), std::string::npos);
    while (text.find(what) != std::string::npos) text.replace(text.find(what), what.size(), instead);
    add(text);
  }
  ipsec::SecurityAssociations sas() const {
    auto read = ipsec::parse_states(log_.state(), "state");
    EXPECT_TRUE(read) << to_string(read.error());
    EXPECT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
    return std::move(read->value);
  }
  std::string spis() const {
    std::string text;
    for (const SecurityAssociation& sa : sas())
      text += fmt::format("{} {:08x} ", sa.direction == Direction::out ? "out" : "in", sa.spi);
    return text;
  }
  void expect_refused(std::string_view why) {
    EXPECT_TRUE(sas().empty());
    const Errors problems = log_.take_problems();
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_THAT(to_string(problems), HasSubstr(why));
  }

  CharonLog log_{{{"net", 7}}};
  std::uint64_t at_ = 0;
};

std::string hex(const ipsec::Secret& secret) { return fmt::format("{:02x}", fmt::join(secret.bytes(), "")); }

TEST_F(CharonLogTest, TakesBothSasOfAChild) {
  add(kFirst);
  EXPECT_TRUE(log_.take_changed());
  const ipsec::SecurityAssociations all = sas();
  ASSERT_EQ(all.size(), 2U);
  const SecurityAssociation& out = all[0];
  EXPECT_EQ(out.direction, Direction::out);
  EXPECT_EQ(out.spi, 0xedb5b532U);
  EXPECT_EQ(ipsec::to_string(out.source), "192.0.2.1");
  EXPECT_EQ(ipsec::to_string(out.destination), "192.0.2.2");
  EXPECT_EQ(out.reqid, 7U);
  EXPECT_EQ(out.mode, ipsec::Mode::tunnel);
  EXPECT_EQ(out.cipher, ipsec::Cipher::aes_gcm);
  EXPECT_EQ(out.icv_bytes, 16);
  EXPECT_EQ(hex(out.cipher_key) + hex(out.salt), "d4db02612dc0c738d5d6339796ac011f06a3a45d");
  EXPECT_EQ(out.udp, (ipsec::UdpEncapsulation{4500, 4501, Ipv4Address{}}));
  const SecurityAssociation& in = all[1];
  EXPECT_EQ(in.direction, Direction::in);
  EXPECT_EQ(in.spi, 0x0a5ca9d1U);
  EXPECT_EQ(ipsec::to_string(in.destination), "192.0.2.1");
  EXPECT_EQ(hex(in.cipher_key) + hex(in.salt), "1bc3346f3b57d0134904042d02e88f05bab9f1aa");
  EXPECT_EQ(in.udp, (ipsec::UdpEncapsulation{4501, 4500, Ipv4Address{}}));
  EXPECT_GT(in.replay_window, 1000U);
}

TEST_F(CharonLogTest, MakesTheNewSasBeforeItBreaksTheOldOnes) {
  add(kFirst);
  add(kRekey);
  EXPECT_EQ(spis(), "out edb5b532 in 0a5ca9d1 in 84e609f5 ");
  add(kSwitch);
  EXPECT_EQ(spis(), "out 36c7b194 out edb5b532 in 0a5ca9d1 in 84e609f5 ");
  EXPECT_TRUE(log_.take_changed());
  add("08[CHD] CHILD_SA net{1} state change: DELETED => DESTROYING\n");
  EXPECT_TRUE(log_.take_changed());
  EXPECT_EQ(spis(), "out 36c7b194 in 84e609f5 ");
}

TEST_F(CharonLogTest, TakesTheInitiatorsKeysForWhatTheInitiatorSends) {
  add(kFirst);
  add(kRekey);
  add(kSwitch);
  const ipsec::SecurityAssociations all = sas();
  EXPECT_EQ(hex(all[0].cipher_key), "f20cdcaa17dc665e16ea8c4ad558b5f6");
  EXPECT_EQ(hex(all[0].integrity_key),
            "22435fdd3c25073a8744468952"
            "9110affd5271952260db57984a9f77b45d3939");
  EXPECT_EQ(hex(all[3].cipher_key), "c0200d093bad33fb615cffc2e5727ef6");
  EXPECT_EQ(hex(all[3].integrity_key), "9660e092867e51c63c3e3866b9bc5861d84b4211b2eb0821bfbe66863b963cb5");
  EXPECT_EQ(all[3].integrity, ipsec::Integrity::hmac_sha256_128);
}

TEST_F(CharonLogTest, CarriesIpv6) {
  add_with(std::string(kFirst), "192.0.2.", "2001:db8::");
  const ipsec::SecurityAssociations all = sas();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(ipsec::to_string(all[0].destination), "2001:db8::2");
}

TEST_F(CharonLogTest, RefusesByNameWhatItDoesNotCarry) {
  struct Case {
    std::string_view what, instead, why;
  };
  for (const Case& one : {Case{"using AES_GCM_16", "using CHACHA20_POLY1305", "'CHACHA20_POLY1305'"},
                          Case{"/NO_EXT_SEQ", "/EXT_SEQ", "extended sequence numbers"},
                          Case{"selected proposal", "configured proposals", "does not say what was negotiated"},
                          Case{"parsed IKE_AUTH response", "generated", "does not say what was negotiated"},
                          Case{"[4500]", "[500]", "may lack UDP encapsulation"},
                          Case{"kernel-libipsec ", "", "may lack UDP encapsulation"},
                          Case{"net{1}", "other{1}", "a child that no --child names: found 'other'"},
                          Case{"10[CHD]   16: BA B9 F1 AA", "10[CHD]   16: BA B9 F1 A", "lacks a key"},
                          Case{"10[CHD]   16: BA B9", "11[CHD]   16: BA B9", "lacks a key"}}) {
    SCOPED_TRACE(one.instead);
    add_with(std::string(kFirst), one.what, one.instead);
    expect_refused(one.why);
  }
}

TEST_F(CharonLogTest, RefusesAChildWhoseAddressesChange) {
  add(kFirst);
  add("05[CHD] CHILD_SA net{1} state change: INSTALLED => UPDATING\n");
  expect_refused("charon changes its addresses or ports");
}

TEST_F(CharonLogTest, ForgetsTheSasOfADaemonThatStartsAgain) {
  add(kFirst);
  add("00[LIB] loaded plugins: charon-systemd openssl kernel-libipsec kernel-netlink socket-default vici\n");
  EXPECT_TRUE(sas().empty());
}

TEST_F(CharonLogTest, KeepsTheSasWhenTheLogIsRotated) {
  add(kFirst);
  log_.begin_file();
  EXPECT_EQ(sas().size(), 2U);
  EXPECT_EQ(log_.needed_from(1000), 0U);
}

TEST_F(CharonLogTest, IgnoresTextsOfThePeerThatLookLikeLines) {
  add_with(std::string(kFirst), "10[IKE] IKE_SA net[1]",
           "10[IKE] 10[CHD] CHILD_SA net{1} state change: A => DESTROYING");
  EXPECT_EQ(sas().size(), 2U);
}

TEST_F(CharonLogTest, NeedsTheLinesOfTheOldestChildInUse) {
  add(kFirst);
  EXPECT_EQ(log_.needed_from(100'000), kFirst.find("10[NET]"));
  const std::uint64_t rekey = at_;
  add(kRekey);
  add(kSwitch);
  add("08[CHD] CHILD_SA net{1} state change: DELETED => DESTROYING\n");
  EXPECT_EQ(log_.needed_from(100'000), rekey);
}

}  // namespace
}  // namespace penstock::control
