// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/xfrm/state_reader.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <set>
#include <tuple>

#include "base/testing/rounds.h"

namespace penstock::ipsec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Texts are printed by iproute2 6.1, including spaces at line ends, unless a test names another version.

constexpr std::string_view kTunnel =
    "src 192.0.2.1 dst 198.51.100.7\n"
    "\tproto esp spi 0xc1a2b3d4 reqid 17 mode tunnel\n"
    "\treplay-window 0 flag af-unspec esn\n"
    "\taead rfc4106(gcm(aes)) 0x000102030405060708090a0b0c0d0e0fa0a1a2a3 128\n"
    "\tanti-replay esn context:\n"
    "\t seq-hi 0x1, seq 0x23, oseq-hi 0x2, oseq 0x456\n"
    "\t replay_window 128, bitmap-length 4\n"
    "\t 00000000 00000000 00000007 00000000 \n";

constexpr std::string_view kTransport =
    "src 2001:db8::1 dst 2001:db8::2\n"
    "\tproto esp spi 0x00000100 reqid 0 mode transport\n"
    "\treplay-window 32 flag noecn decap-dscp nopmtudisc\n"
    "\tauth-trunc hmac(sha256) 0x101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f 128\n"
    "\tenc cbc(aes) 0x303132333435363738393a3b3c3d3e3f\n"
    "\tanti-replay context: seq 0x7, oseq 0x0, bitmap 0x0000005b\n"
    "\tsel src 2001:db8::1/128 dst 2001:db8::2/128 proto tcp sport 80 \n";

Read<SecurityAssociations> read(std::string_view text) {
  auto states = parse_states(text, "state.txt");
  EXPECT_TRUE(states) << to_string(states.error());
  return states ? *std::move(states) : Read<SecurityAssociations>{};
}

/// Parses a text with one SA and nothing unsupported.
SecurityAssociation read_one(std::string_view text) {
  Read<SecurityAssociations> states = read(text);
  EXPECT_THAT(states.unsupported, IsEmpty()) << to_string(states.unsupported);
  EXPECT_THAT(states.value, SizeIs(1));
  return states.value.empty() ? SecurityAssociation{} : std::move(states.value.front());
}

std::string error_of(std::string_view text) {
  const auto states = parse_states(text, "state.txt");
  return states ? "" : to_string(states.error());
}

/// The message for a text whose only SA is skipped.
std::string left_out(std::string_view text) {
  const Read<SecurityAssociations> states = read(text);
  EXPECT_THAT(states.value, IsEmpty());
  return to_string(states.unsupported);
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string_view::npos) << what;
  return std::string(text.substr(0, at)) + std::string(by) + std::string(text.substr(at + what.size()));
}

std::string digits(std::size_t bytes, unsigned first = 0) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", (first + i) & 0xff);
  return text;
}

std::string hex(const Secret& secret) { return fmt::format("{:02x}", fmt::join(secret.bytes(), "")); }

/// A tunnel SA with these algorithm lines.
std::string with(std::string_view algorithms) {
  return fmt::format(
      "src 10.0.0.1 dst 10.0.0.2\n\tproto esp spi 0x00000101 reqid 1 mode tunnel\n\treplay-window 32 \n{}"
      "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n",
      algorithms);
}

TEST(StateReader, ReadsATunnelOfGcmWithEsn) {
  const SecurityAssociation sa = read_one(kTunnel);
  EXPECT_EQ(to_string(sa.source), "192.0.2.1");
  EXPECT_EQ(to_string(sa.destination), "198.51.100.7");
  EXPECT_EQ(sa.spi, 0xc1a2b3d4U);
  EXPECT_EQ(sa.reqid, 17U);
  EXPECT_EQ(sa.mode, Mode::tunnel);
  EXPECT_EQ(sa.cipher, Cipher::aes_gcm);
  EXPECT_EQ(hex(sa.cipher_key), digits(16));
  EXPECT_EQ(hex(sa.salt), "a0a1a2a3");
  EXPECT_EQ(sa.integrity, Integrity::none);
  EXPECT_TRUE(sa.integrity_key.empty());
  EXPECT_EQ(sa.icv_bytes, 16);
  EXPECT_TRUE(sa.esn);
  EXPECT_TRUE(sa.any_family);
  EXPECT_FALSE(sa.no_ecn || sa.decap_dscp || sa.no_pmtu_discovery || sa.icmp || sa.sequence_may_wrap);
  EXPECT_EQ(sa.replay_window, 128U);
  EXPECT_EQ(sa.sequence.received, 0x1'0000'0023U);
  EXPECT_EQ(sa.sequence.sent, 0x2'0000'0456U);
  EXPECT_FALSE(sa.selector);
  EXPECT_EQ(sa.lifetimes, Lifetimes{});
  EXPECT_EQ(sa.line, 1U);
}

TEST(StateReader, ReadsATransportSaOfCbcWithAWindow) {
  const SecurityAssociation sa = read_one(kTransport);
  EXPECT_EQ(to_string(sa.destination), "2001:db8::2");
  EXPECT_EQ(sa.spi, 0x100U);
  EXPECT_EQ(sa.mode, Mode::transport);
  EXPECT_EQ(sa.cipher, Cipher::aes_cbc);
  EXPECT_EQ(hex(sa.cipher_key), digits(16, 0x30));
  EXPECT_TRUE(sa.salt.empty());
  EXPECT_EQ(sa.integrity, Integrity::hmac_sha256_128);
  EXPECT_EQ(hex(sa.integrity_key), digits(32, 0x10));
  EXPECT_EQ(sa.icv_bytes, 16);
  EXPECT_FALSE(sa.esn);
  EXPECT_TRUE(sa.no_ecn && sa.decap_dscp && sa.no_pmtu_discovery);
  EXPECT_EQ(sa.replay_window, 32U);
  EXPECT_EQ(sa.sequence, (SequenceState{.sent = 0, .received = 7, .window = {0x5b}}));
  ASSERT_TRUE(sa.selector);
  EXPECT_EQ(to_string(sa.selector->source), "2001:db8::1/128");
  EXPECT_EQ(sa.selector->protocol, 6);
  EXPECT_EQ(sa.selector->source_port, 80);
  EXPECT_EQ(sa.selector->destination_port, std::nullopt);
}

TEST(StateReader, ReadsSeveralAndTheirLines) {
  const auto states = read(std::string(kTunnel) + "# by hand\n\n" + std::string(kTransport));
  ASSERT_THAT(states.value, SizeIs(2));
  EXPECT_EQ(states.value[1].line, 11U);
  EXPECT_THAT(read("").value, IsEmpty());
}

/// The kernel's ring: the last received number is at (seq - 1) mod window.
TEST(StateReader, TurnsTheKernelsRingIntoAWindow) {
  // 0x23 is at 34, in the ring's second word from the end: bits 32, 33, 34 are 0x21, 0x22, 0x23.
  EXPECT_THAT(read_one(kTunnel).sequence.window, ElementsAre(7U, 0U, 0U, 0U));
  const auto around = replaced(replaced(kTunnel, "seq 0x23,", "seq 0x1,"), "00000000 00000000 00000007 00000000",
                               "c0000000 00000000 00000000 00000001");
  // 0x1 is at 0; the two before it wrap around the end.
  EXPECT_THAT(read_one(around).sequence.window, ElementsAre(7U, 0U, 0U, 0U));
  const auto wide = replaced(replaced(kTunnel, "replay_window 128", "replay_window 100"),
                             "00000000 00000000 00000007 00000000", "00000008 00000000 00000004 00000001");
  // (0x100000023 low half - 1) mod 100 = 34; bit 99 is 35 before it, bit 0 is 34 before it.
  EXPECT_THAT(read_one(wide).sequence.window, ElementsAre(1U, 1U << 2 | 1U << 3, 0U, 0U));
}

TEST(StateReader, ReadsAWindowOverThirtyTwoWithoutEsn) {
  const auto text =
      replaced(replaced(kTunnel, "flag af-unspec esn", "flag af-unspec"),
               "seq-hi 0x1, seq 0x23, oseq-hi 0x2, oseq 0x456", "seq-hi 0x0, seq 0x23, oseq-hi 0x0, oseq 0x456");
  const SecurityAssociation sa = read_one(text);
  EXPECT_FALSE(sa.esn);
  EXPECT_EQ(sa.replay_window, 128U);
  EXPECT_EQ(sa.sequence.sent, 0x456U);
  EXPECT_THAT(error_of(replaced(kTunnel, "flag af-unspec esn", "flag af-unspec")),
              HasSubstr("sequence numbers over 2^32 without ESN"));
}

class Algorithms
    : public ::testing::TestWithParam<
          std::tuple<std::tuple<const char*, Cipher, std::size_t, std::size_t>,
                     std::tuple<const char*, const char*, Integrity, std::size_t, std::size_t>, std::size_t>> {};

TEST_P(Algorithms, AreReadWithTheirKeys) {
  const auto& [cipher, integrity, key_bytes] = GetParam();
  const auto& [cipher_name, cipher_is, salt, any_key] = cipher;
  const auto& [integrity_name, bits, integrity_is, integrity_key, icv] = integrity;
  const std::string key = any_key == 0 ? "" : "0x" + digits(key_bytes + salt, 0x40);
  const std::string second = integrity_key == 0 ? "" : "0x" + digits(integrity_key, 0x80);
  const SecurityAssociation sa = read_one(
      with(fmt::format("\tauth-trunc {} {} {}\n\tenc {} {}\n", integrity_name, second, bits, cipher_name, key)));
  EXPECT_EQ(sa.cipher, cipher_is);
  EXPECT_EQ(hex(sa.cipher_key) + hex(sa.salt), any_key == 0 ? "" : key.substr(2));
  EXPECT_EQ(sa.salt.size(), salt);
  EXPECT_EQ(sa.integrity, integrity_is);
  EXPECT_EQ(hex(sa.integrity_key), second.empty() ? "" : second.substr(2));
  EXPECT_EQ(sa.icv_bytes, icv);
}

INSTANTIATE_TEST_SUITE_P(
    OfEsp, Algorithms,
    ::testing::Combine(::testing::Values(std::tuple{"cbc(aes)", Cipher::aes_cbc, 0, 1},
                                         std::tuple{"rfc3686(ctr(aes))", Cipher::aes_ctr, 4, 1},
                                         std::tuple{"ecb(cipher_null)", Cipher::null, 0, 0},
                                         std::tuple{"cipher_null", Cipher::null, 0, 0}),
                       ::testing::Values(std::tuple{"hmac(sha1)", "96", Integrity::hmac_sha1_96, 20, 12},
                                         std::tuple{"hmac(sha256)", "128", Integrity::hmac_sha256_128, 32, 16},
                                         std::tuple{"hmac(sha256)", "96", Integrity::hmac_sha256_96, 32, 12},
                                         std::tuple{"digest_null", "0", Integrity::digest_null, 0, 0},
                                         std::tuple{"digest_null", "96", Integrity::digest_null, 0, 12}),
                       ::testing::Values(16, 24, 32)));

TEST(StateReader, ReadsGcmOfAllLengths) {
  for (const std::size_t key : {16U, 24U, 32U}) {
    for (const unsigned bits : {64U, 96U, 128U}) {
      const SecurityAssociation sa =
          read_one(with(fmt::format("\taead rfc4106(gcm(aes)) 0x{} {}\n", digits(key + 4), bits)));
      EXPECT_EQ(sa.cipher_key.size(), key);
      EXPECT_EQ(sa.salt.size(), 4U);
      EXPECT_EQ(sa.icv_bytes * 8U, bits);
    }
  }
}

TEST(StateReader, KnowsWhatTheKernelCutsToUnlessTold) {
  const auto text = [](std::string_view auth) {
    return with(fmt::format("\tauth {} 0x{}\n\tenc ecb(cipher_null) \n", auth, digits(20)));
  };
  EXPECT_EQ(read_one(text("hmac(sha1)")).integrity, Integrity::hmac_sha1_96);
  EXPECT_EQ(read_one(text("hmac(sha256)")).integrity, Integrity::hmac_sha256_96);
  EXPECT_EQ(read_one(with("\tauth digest_null \n\tenc ecb(cipher_null) \n")).icv_bytes, 0);
}

TEST(StateReader, LeavesOutWhatItHasNoAlgorithmFor) {
  const std::string key = "0x" + digits(16);
  const auto integrity = [&](std::string_view of) {
    return left_out(with(fmt::format("\tauth-trunc {}\n\tenc cbc(aes) {}\n", of, key)));
  };
  const auto cipher = [&](std::string_view of) {
    return left_out(with(fmt::format("\tauth-trunc hmac(sha1) 0x{} 96\n\tenc {}\n", digits(20), of)));
  };
  EXPECT_EQ(integrity("hmac(md5) 0x" + digits(16) + " 96"),
            "state.txt:4:13: this integrity algorithm is not supported: this SA is left out: found 'hmac(md5)', "
            "expected hmac(sha1) truncated to 96 bits, hmac(sha256) to 128 or 96, or digest_null");
  EXPECT_THAT(integrity("xcbc(aes) " + key + " 96"), HasSubstr("'xcbc(aes)'"));
  EXPECT_THAT(integrity("hmac(sha512) 0x" + digits(64) + " 256"), HasSubstr("'hmac(sha512)'"));
  EXPECT_THAT(integrity("hmac(sha1) 0x" + digits(20) + " 160"),
              HasSubstr("hmac(sha1) truncated to this length is not supported: this SA is left out: found '160'"));
  EXPECT_THAT(integrity("hmac(sha1) 0x" + digits(65) + " 96"), HasSubstr("a key over 64 bytes is not supported"));
  EXPECT_THAT(integrity("digest_null  160"), HasSubstr("digest_null is supported only"));
  EXPECT_THAT(cipher("cbc(des3_ede) 0x" + digits(24)), HasSubstr("this cipher is not supported"));
  EXPECT_THAT(cipher("cbc(blowfish) " + key), HasSubstr("'cbc(blowfish)'"));
  EXPECT_THAT(cipher("cbc(camellia) " + key), HasSubstr("'cbc(camellia)'"));
  EXPECT_THAT(left_out(with("\taead rfc7539esp(chacha20,poly1305) 0x" + digits(36) + " 128\n")),
              HasSubstr("found 'rfc7539esp(chacha20,poly1305)'"));
  EXPECT_THAT(left_out(with("\taead rfc4543(gcm(aes)) 0x" + digits(20) + " 128\n")), HasSubstr("'rfc4543(gcm(aes))'"));
  EXPECT_THAT(left_out(with("\taead rfc4309(ccm(aes)) 0x" + digits(19) + " 128\n")), HasSubstr("'rfc4309(ccm(aes))'"));
  EXPECT_THAT(left_out(with("\tenc cbc(aes) " + key + "\n")), HasSubstr("a cipher without integrity"));
}

TEST(StateReader, RefusesKeysOfWrongLengthsWithoutShowingThem) {
  const auto cbc = [](std::string_view key) {
    return error_of(with(fmt::format("\tauth-trunc hmac(sha1) 0x{} 96\n\tenc cbc(aes) {}\n", digits(20, 0x80), key)));
  };
  EXPECT_EQ(cbc("0x" + digits(17)),
            "state.txt:5:15: not a key of cbc(aes): found 17 bytes, expected 16, 24 or 32 bytes");
  EXPECT_EQ(cbc("0x" + digits(16) + "1"),
            "state.txt:5:15: not a key: found 33 digits, expected an even number of them");
  EXPECT_EQ(cbc("0x" + digits(10) + "0g" + digits(5)),
            "state.txt:5:38: not a key: found a character that is not a hexadecimal digit, expected 0 to 9, a to f");
  EXPECT_THAT(cbc(""), HasSubstr("found 0 bytes"));
  EXPECT_THAT(error_of(with("\taead rfc4106(gcm(aes)) 0x" + digits(16) + " 128\n")),
              HasSubstr("found 16 bytes, expected 20, 28 or 36 bytes, of which the last 4 are the salt"));
  EXPECT_THAT(error_of(with("\taead rfc4106(gcm(aes)) 0x" + digits(20) + " 100\n")),
              HasSubstr("not an ICV length of AES-GCM: found '100', expected 64, 96 or 128"));
  EXPECT_THAT(error_of(with("\tauth-trunc hmac(sha1)  96\n\tenc ecb(cipher_null) \n")),
              HasSubstr("an algorithm without a key"));
}

TEST(StateReader, TellsThatTheKeysAreHidden) {
  EXPECT_EQ(error_of(with("\taead rfc4106(gcm(aes)) <<Keys hidden>> 128\n")),
            "state.txt:4:25: the keys are not in this file: found '<<Keys hidden>>', expected `ip xfrm state` without "
            "nokeys");
  EXPECT_THAT(error_of(with("\tauth-trunc hmac(sha1) <<Keys hidden>> 96\n\tenc cbc(aes) <<Keys hidden>>\n")),
              HasSubstr("4:24: the keys are not in this file"));
}

TEST(StateReader, RefusesAlgorithmsThatDoNotGoTogether) {
  const std::string aead = "\taead rfc4106(gcm(aes)) 0x" + digits(20) + " 128\n";
  const std::string auth = "\tauth-trunc hmac(sha1) 0x" + digits(20) + " 96\n";
  const std::string enc = "\tenc cbc(aes) 0x" + digits(16) + "\n";
  EXPECT_THAT(error_of(with(aead + enc)), HasSubstr("an AEAD algorithm together with another algorithm"));
  EXPECT_THAT(error_of(with(aead + auth)), HasSubstr("an AEAD algorithm together with another algorithm"));
  EXPECT_THAT(error_of(with(auth)), HasSubstr("without a cipher"));
  EXPECT_THAT(error_of(with(auth + enc + enc)), HasSubstr("state.txt:6:2: a second cipher"));
  EXPECT_THAT(error_of(with(auth + auth + enc)), HasSubstr("a second integrity algorithm"));
  EXPECT_THAT(left_out(with("")), HasSubstr("for which the kernel has no keys yet"));
}

TEST(StateReader, LeavesOutOtherProtocolsAndModes) {
  const auto by = [&](std::string_view what, std::string_view with) { return left_out(replaced(kTunnel, what, with)); };
  EXPECT_EQ(by("proto esp spi 0xc1a2b3d4", "proto ah spi 0xc1a2b3d4"),
            "state.txt:2:8: only ESP is supported: this SA is left out: found 'ah'");
  EXPECT_THAT(by("proto esp", "proto comp"), HasSubstr("'comp'"));
  EXPECT_THAT(by("proto esp spi 0xc1a2b3d4", "proto hao"), HasSubstr("'hao'"));
  EXPECT_THAT(by("mode tunnel", "mode beet"),
              HasSubstr("2:41: only transport and tunnel mode are supported: this SA is left out: found "
                        "'beet'"));
  EXPECT_THAT(by("mode tunnel", "mode ro"), HasSubstr("'ro'"));
  EXPECT_THAT(by("mode tunnel", "mode in_trigger"), HasSubstr("'in_trigger'"));
  EXPECT_THAT(by("mode tunnel", "mode iptfs"), HasSubstr("'iptfs'"));
  EXPECT_THAT(by("mode tunnel", "mode 9"), HasSubstr("'9'"));
}

TEST(StateReader, LeavesOutSasThatTheKernelWaitsForKeysOf) {
  EXPECT_THAT(left_out("src 10.0.0.1 dst 10.0.0.2\n"
                       "\tproto esp spi 0x0dc07d69 reqid 5 mode tunnel\n"
                       "\treplay-window 0 \n"
                       "\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000\n"
                       "\tsel src 10.0.0.1/32 dst 10.0.0.2/32 \n"),
              HasSubstr("state.txt:1: an SA without algorithms, for which the kernel has no keys yet"));
  EXPECT_THAT(left_out("src 10.0.0.1 dst 10.0.0.2\n"
                       "\tproto esp spi 0x00000000 reqid 5 mode tunnel\n"
                       "\treplay-window 0 \n"),
              HasSubstr("for which the kernel has no keys yet"));
}

TEST(StateReader, ReadsUdpEncapsulation) {
  const auto encapsulated = [](std::string_view line) {
    return replaced(kTunnel, "\tanti", std::string(line) + "\n\tanti");
  };
  const SecurityAssociation sa = read_one(encapsulated("\tencap type espinudp sport 4500 dport 61000 addr 0.0.0.0"));
  ASSERT_TRUE(sa.udp);
  EXPECT_EQ(*sa.udp, (UdpEncapsulation{4500, 61000, Ipv4Address{}}));
  EXPECT_THAT(left_out(encapsulated("\tencap type espinudp-nonike sport 4500 dport 4500 addr 0.0.0.0")),
              HasSubstr("'espinudp-nonike'"));
  EXPECT_THAT(left_out(encapsulated("\tencap type espintcp sport 4500 dport 4500 addr 0.0.0.0")),
              HasSubstr("'espintcp'"));
  EXPECT_THAT(error_of(encapsulated("\tencap type espinudp sport 4500 dport 65536 addr 0.0.0.0")),
              HasSubstr("not a port: found '65536', expected 0 to 65535"));
  EXPECT_THAT(error_of(encapsulated("\tencap type espinudp sport 4500 dport 4500 addr ::")),
              HasSubstr("a different family"));
}

TEST(StateReader, TakesMarksAndInterfacesForWhatTheyAreToUnmarkedPackets) {
  const auto marked = [](std::string_view line) { return replaced(kTunnel, "\taead", std::string(line) + "\n\taead"); };
  read_one(marked("\tmark 0/0xff "));
  EXPECT_THAT(left_out(marked("\tmark 0x3/0xff ")), HasSubstr("4:2: marks are not supported"));
  EXPECT_THAT(left_out(marked("\tmark -1/0xffffffff")), HasSubstr("marks are not supported"));  // before 4.19
  EXPECT_THAT(left_out(replaced(kTunnel, "\tanti", "\tif_id 0x9\n\tanti")),
              HasSubstr("xfrm interfaces are not supported"));
  const auto output = read(marked("\tmark 0/0 output-mark 0x5/0xff"));
  EXPECT_THAT(output.value, SizeIs(1));
  EXPECT_THAT(to_string(output.unsupported), HasSubstr("4:11: output marks are not supported: this mark is ignored"));
  EXPECT_THAT(error_of(marked("\tmark 5")), HasSubstr("not a mark: found '5', expected VALUE/MASK"));
}

TEST(StateReader, PassesOverWhatIsOfTheKernelAlone) {
  const auto text = std::string(kTunnel) +
                    "\tcrypto offload parameters: dev eth0 dir out mode packet\n"
                    "\ttfcpad 1400\n"
                    "\tdir out\n"
                    "\tpcpu-num 3\n";
  const SecurityAssociation sa = read_one(replaced(text, "\tanti", "\tlastused 2024-08-29 12:33:12\n\tanti"));
  EXPECT_EQ(sa.tfc_bytes, 1400U);
  EXPECT_EQ(sa.direction, Direction::out);
}

/// iproute2 6.10 and later omits what the direction does not use.
TEST(StateReader, ReadsTheHalfContextsOfSasWithADirection) {
  const auto out = replaced(replaced(kTunnel, "replay-window 0 ", ""),
                            "\n\t seq-hi 0x1, seq 0x23, oseq-hi 0x2, oseq 0x456\n"
                            "\t replay_window 128, bitmap-length 4\n\t 00000000 00000000 00000007 00000000 \n",
                            "\t oseq-hi 0x0, oseq 0xa\n\tdir out\n");
  EXPECT_EQ(read_one(out).sequence, (SequenceState{.sent = 10, .received = 0, .window = {}}));
  EXPECT_EQ(read_one(out).replay_window, 0U);
  const auto in = std::string(replaced(kTunnel, ", oseq-hi 0x2, oseq 0x456", "")) + "\tdir in\n";
  EXPECT_EQ(read_one(in).sequence.received, 0x1'0000'0023U);
  EXPECT_EQ(read_one(in).direction, Direction::in);
}

TEST(StateReader, ReadsWhatIpDashSPrints) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const SecurityAssociation sa = read_one(
      "src 10.0.0.1 dst 10.0.0.2\n"
      "\tproto esp spi 0x00000101(257) reqid 1(0x00000001) mode tunnel\n"
      "\treplay-window 32 seq 0x00000000 flag af-unspecextra_flag dont-encap-dscp oseq-may-wrap (0x00100000)\n"
      "\tauth-trunc hmac(sha1) 0x" +
      digits(20) +
      " (160 bits) 96\n"
      "\tenc rfc3686(ctr(aes)) 0x" +
      digits(20) +
      " (160 bits)\n"
      "\tanti-replay context: seq 0x0, oseq 0x2, bitmap 0x00000000\n"
      "\tsel src 10.1.0.0/16 dst 0.0.0.0/0 uid 0\n"
      "\tlifetime config:\n"
      "\t  limit: soft 1000(bytes), hard 18446744073709551614(bytes)\n"
      "\t  limit: soft (INF)(packets), hard 5(packets)\n"
      "\t  expire add: soft 3000(sec), hard 3600(sec)\n"
      "\t  expire use: soft 0(sec), hard 60(sec)\n"
      "\tlifetime current:\n"
      "\t  168(bytes), 2(packets)\n"
      "\t  add 1970-01-02 00:00:01 use -\n"
      "\tstats:\n"
      "\t  replay-window 0 replay 0 failed 0\n");
  EXPECT_EQ(sa.spi, 257U);
  EXPECT_TRUE(sa.any_family && sa.dont_encap_dscp && sa.sequence_may_wrap);
  EXPECT_EQ(sa.cipher, Cipher::aes_ctr);
  EXPECT_EQ(sa.replay_window, 32U);
  EXPECT_EQ(sa.sequence.sent, 2U);
  ASSERT_TRUE(sa.selector);
  EXPECT_EQ(to_string(sa.selector->destination), "0.0.0.0/0");
  const Lifetimes& lifetimes = sa.lifetimes;
  EXPECT_EQ(lifetimes.soft, (Lifetime{1000, kUnlimited, 3000, 0}));
  EXPECT_EQ(lifetimes.hard, (Lifetime{18446744073709551614U, 5, 3600, 60}));
  EXPECT_EQ(lifetimes.bytes, 168U);
  EXPECT_EQ(lifetimes.packets, 2U);
  EXPECT_EQ(lifetimes.added, 86401);
  EXPECT_EQ(lifetimes.first_used, std::nullopt);
}

TEST(StateReader, ReadsWhatIpDashOPrintsAndWhatHasLostItsIndentation) {
  std::string one_line(kTunnel);
  std::string pasted;
  for (const char c : kTunnel) {
    if (c != '\t') pasted += c;
  }
  std::replace(one_line.begin(), one_line.end(), '\n', '\\');
  for (const std::string& text : {one_line + "\n" + one_line, pasted + replaced(pasted, "0xc1a2b3d4", "0xff")}) {
    const auto states = read(replaced(text, "0xc1a2b3d4", "0xfe"));
    ASSERT_THAT(states.value, SizeIs(2)) << text;
    EXPECT_EQ(states.value[0].sequence.received, 0x1'0000'0023U);
  }
  const auto wrong = replaced(one_line, "mode tunnel", "mode tunnel\\\treplay-window x");
  EXPECT_EQ(error_of(wrong), fmt::format("state.txt:1:{}: not a window: found 'x', expected 0 to 4096",
                                         wrong.find("window x") + std::string_view("window ").size() + 1));
}

TEST(StateReader, TellsAllMistakesWithTheirPlaces) {
  EXPECT_EQ(error_of("what\nsrc 10.0.0.1\nsrc 10.0.0.1 dst 10.0.0.256\nsrc 10.0.0.1 dst ::1\nsrc a\n"
                     "src 10.0.0.1 to 10.0.0.2\nsrc 10.0.0.1 dst 10.0.0.2 proto esp spi x\n"),
            "state.txt:1:1: not the start of an `ip xfrm` SA: found 'what', expected src ADDRESS dst ADDRESS\n"
            "state.txt:2:13: the SA is incomplete: expected dst\n"
            "state.txt:3:18: not an address: found '10.0.0.256', expected an IP address\n"
            "state.txt:4:18: source and destination are of different address families: found '::1', expected addresses "
            "of one family\n"
            "state.txt:5:5: not an address: found 'a', expected an IP address\n"
            "state.txt:6:14: unexpected word: found 'to', expected dst\n"
            "state.txt:7:41: not an SPI: found 'x', expected 0 to 4294967295");
  EXPECT_THAT(error_of(replaced(kTunnel, "replay_window 128", "replay_window 129")),
              HasSubstr("7:36: a bitmap shorter than the window"));
  EXPECT_THAT(error_of(replaced(kTunnel, "00000007 00000000 ", "00000007")), HasSubstr("the SA is incomplete"));
  EXPECT_THAT(error_of(replaced(kTunnel, "00000007", "0000000x")), HasSubstr("not a word of the bitmap"));
  EXPECT_THAT(error_of(replaced(kTunnel, "bitmap-length 4", "bitmap-length 400")), HasSubstr("not a number of words"));
}

TEST(StateReader, RefusesASecondSaOfAnSpiAndDestination) {
  EXPECT_EQ(error_of(std::string(kTunnel) + std::string(kTransport) + std::string(kTunnel)),
            "state.txt:17:16: a second SA with this SPI and destination: expected one; the first is in line 1");
  const auto elsewhere = replaced(kTunnel, "dst 198.51.100.7", "dst 198.51.100.8");
  EXPECT_THAT(read(std::string(kTunnel) + elsewhere).value, SizeIs(2));
}

TEST(StateReader, LeavesOutAnSaWithAWordThatItDoesNotKnow) {
  EXPECT_EQ(left_out(std::string(kTunnel) + "\tnew-thing 5\n"),
            "state.txt:9:2: unknown word in an SA: this SA is left out: found 'new-thing'");
  EXPECT_THAT(left_out(std::string(kTunnel) + "\tsecurity context system_u:object_r:x:s0 \n"),
              HasSubstr("security labels are not supported"));
  EXPECT_THAT(left_out(std::string(kTunnel) + "\tcoa 10.0.0.1\n"), HasSubstr("Mobile IPv6 is not supported"));
}

TEST(StateReader, NamesTheFileThatIsNotThere) {
  const auto states = read_states("/nowhere/state.txt");
  ASSERT_FALSE(states);
  EXPECT_THAT(to_string(states.error()), HasSubstr("/nowhere/state.txt"));
}

TEST(StateReader, ReadsTenThousandSas) {
  std::string text;
  for (unsigned i = 0; i < 10'000; ++i) {
    text += replaced(kTunnel, "0xc1a2b3d4", fmt::format("0x{:08x}", i + 1));
  }
  const auto states = read(text);
  ASSERT_THAT(states.value, SizeIs(10'000));
  EXPECT_EQ(states.value.back().spi, 10'000U);
}

/// Texts with keys of random digits and random mistakes.
class NoKeyIsShown : public ::testing::Test {
 protected:
  static constexpr std::size_t kDigits = 8;  // so many consecutive digits of a key must not appear

  std::string new_key(std::size_t bytes) {
    std::string key;
    for (std::size_t i = 0; i < bytes * 2; ++i) key += "0123456789abcdef"[any(16)];
    for (std::size_t i = 0; i + kDigits <= key.size(); ++i) pieces_.insert(key.substr(i, kDigits));
    return "0x" + key;
  }
  std::string new_text() {
    pieces_.clear();
    std::string text = replaced(kTunnel, "0x000102030405060708090a0b0c0d0e0fa0a1a2a3", new_key(20));
    text += with(fmt::format("\tauth-trunc hmac(sha256) {} 128\n\tenc cbc(aes) {}\n", new_key(32), new_key(16)));
    text += with(fmt::format("\tauth-trunc hmac(md5) {} 96\n\tenc cbc(blowfish) {}\n", new_key(16), new_key(16)));
    text += replaced(with(fmt::format("\tauth hmac(sha1) {} (160 bits)\n\tenc rfc3686(ctr(aes)) {} (288 bits)\n",
                                      new_key(20), new_key(36))),
                     "0x00000101", "0x00000102");
    return text;
  }

  void change(std::string& text) {
    const std::size_t at = any(text.size());
    switch (any(7)) {
      case 0: text.erase(at, 1 + any(3)); return;
      case 1: text.insert(at, 1, static_cast<char>(any(256))); return;
      case 2: text[at] = static_cast<char>(any(256)); return;
      case 3: text.insert(at, 1, " \n\t\\x,(0"[any(8)]); return;
      case 4: {  // replaces a word by another
        const std::string word = word_at(text, any(text.size()));
        const auto start = text.find_last_of(" \t\n", at);
        const auto end = text.find_first_of(" \t\n", at);
        if (start != std::string::npos && end != std::string::npos) text.replace(start + 1, end - start - 1, word);
        return;
      }
      case 5: text.resize(at + 1); return;
      default: {  // removes a line
        const auto start = text.rfind('\n', at);
        const auto end = text.find('\n', at + 1);
        if (start != std::string::npos && end != std::string::npos) text.erase(start, end - start);
        return;
      }
    }
  }
  static std::string word_at(const std::string& text, std::size_t at) {
    const auto start = text.find_last_of(" \t\n", at);
    const auto from = start == std::string::npos ? 0 : start + 1;
    return text.substr(from, text.find_first_of(" \t\n", from) - from);
  }

  void expect_no_key(const Errors& errors, const std::string& text) {
    for (const Error& error : errors) {
      const std::string said = to_string(error);
      for (std::size_t i = 0; i + kDigits <= said.size(); ++i) {
        ASSERT_FALSE(pieces_.contains(said.substr(i, kDigits))) << said << "\nof\n" << text;
      }
    }
  }

  std::size_t any(std::size_t below) { return random_() % below; }

  std::mt19937 random_{20261};
  std::set<std::string> pieces_;
};

TEST_F(NoKeyIsShown, WhateverTheFileIsLike) {
  std::size_t refused = 0;
  for (std::uint32_t i = 0; i < penstock::testing::rounds(30'000); ++i) {
    std::string text = new_text();
    for (std::size_t changes = 1 + any(4); changes > 0; --changes) change(text);
    const auto states = parse_states(text, "state.txt");
    ASSERT_NO_FATAL_FAILURE(expect_no_key(states ? states->unsupported : states.error(), text));
    if (!states) ++refused;
  }
  EXPECT_GT(refused, penstock::testing::rounds(10'000));
}

TEST(StateReader, RefusesMoreSasThanTheBoundUsedOrNot) {
  // One SA, one that is skipped because it has no SPI, and another.
  const std::string text = std::string(kTunnel) + "src 1.1.1.1 dst 2.2.2.2\n\tproto esp spi 0x0 reqid 0 mode tunnel\n" +
                           std::string(kTransport);
  EXPECT_TRUE(parse_states(text, "state.txt", 3)) << to_string(parse_states(text, "state.txt", 3).error());
  const auto refused = parse_states(text, "state.txt", 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error()),
            "state.txt:11: too many SA entries: found more than 2, expected at most 2 (most_entries raises it)");
}

TEST(StateReader, RefusesAnSaOfTooManyWords) {
  std::string text = "src 1.1.1.1 dst 2.2.2.2\n";
  for (std::size_t i = 0; i < kMostWords; ++i) text += "\tword\n";
  EXPECT_EQ(error_of(text + std::string(kTunnel)),
            "state.txt:1:1: the SA has too many words: found 'src', expected at most 10,000");
}

}  // namespace
}  // namespace penstock::ipsec
