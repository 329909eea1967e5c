// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/encryption_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace penstock::stack {
namespace {

using namespace std::string_literals;

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::string tls(unsigned type, const std::string& data) {
  return std::string{static_cast<char>(type), 3, 1, static_cast<char>(data.size() >> 8),
                     static_cast<char>(data.size())} +
         data;
}
std::string hello(char message, std::size_t length = 80) { return tls(22, message + std::string(length, 'x')); }
const std::string kClientHello = hello(1, 300), kServerHello = hello(2), kChange = tls(20, "\1"),
                  kFinished = tls(22, std::string(40, 'f')), kData = tls(23, std::string(100, 'd'));

std::string ssh(unsigned message, std::uint8_t length, std::uint8_t padding = 4) {
  return "\0\0\0"s + static_cast<char>(length) + static_cast<char>(padding) + static_cast<char>(message) +
         std::string(std::size_t{length} - 2, 'x');
}
const std::string kKexInit = ssh(20, 100), kKeyExchange = ssh(30, 60), kNewKeys = ssh(21, 12, 10);

struct Said {
  Direction side;
  std::string bytes;
};
constexpr Direction kClient = Direction::to_server, kServer = Direction::to_client;

/// After how many of these it was encrypted: 0: never.
std::size_t encrypted_after(const std::vector<Said>& all) {
  EncryptionWatch watch;
  for (std::size_t i = 0; i < all.size(); ++i) {
    watch.read(all[i].side, bytes_of(all[i].bytes));
    if (watch.encrypted()) return i + 1;
  }
  return 0;
}

TEST(EncryptionWatch, SeesTlsEncryptedAtTheFirstApplicationDataBehindBothSidesHandshakes) {
  // TLS 1.2: in full, and with a session that is resumed; the server's data first.
  EXPECT_EQ(encrypted_after({{kClient, kClientHello},
                             {kServer, kServerHello + hello(11) + hello(14)},
                             {kClient, hello(16) + kChange + kFinished},
                             {kServer, kChange + kFinished},
                             {kClient, kData}}),
            5U);
  EXPECT_EQ(encrypted_after({{kClient, kClientHello},
                             {kServer, kServerHello + kChange + kFinished},
                             {kClient, kChange + kFinished},
                             {kServer, kData}}),
            4U);
  // The client need not wait for the server's end of it ("false start", RFC 7918).
  EXPECT_EQ(encrypted_after({{kClient, kClientHello},
                             {kServer, kServerHello + hello(14)},
                             {kClient, hello(16) + kChange + kFinished + kData}}),
            3U);
  // TLS 1.3: with its look of 1.2, and without; with early data, of which the server has not said anything yet.
  EXPECT_EQ(encrypted_after({{kClient, kClientHello}, {kServer, kServerHello + kChange}, {kServer, kData}}), 3U);
  EXPECT_EQ(encrypted_after({{kClient, kClientHello + kData}, {kServer, kServerHello}, {kServer, kData}}), 3U);
}

TEST(EncryptionWatch, SeesItAtTheFirstByteOfApplicationData) {
  EncryptionWatch watch;
  watch.read(kClient, bytes_of(kClientHello + kChange));
  watch.read(kServer, bytes_of(kServerHello + kChange));
  EXPECT_FALSE(watch.read(kServer, bytes_of(kData.substr(0, 5))));
  EXPECT_FALSE(watch.encrypted());
  watch.read(kServer, bytes_of("x"));
  EXPECT_TRUE(watch.encrypted());
}

TEST(EncryptionWatch, DoesNotBelieveOneSide) {
  EXPECT_EQ(encrypted_after({{kClient, kClientHello + kChange + kFinished + kData + kData}}), 0U);
  EXPECT_EQ(
      encrypted_after(
          {{kClient, kClientHello + kChange + kData}, {kServer, "HTTP/1.1 400 Bad Request\r\n"}, {kClient, kData}}),
      0U);
  EXPECT_EQ(encrypted_after({{kClient, kClientHello + kChange + kData}, {kServer, tls(21, "\2\50")}, {kClient, kData}}),
            0U)
      << "the server's answer is an alert";
  EXPECT_EQ(encrypted_after({{kClient, kClientHello}, {kServer, kServerHello}, {kClient, kData}}), 0U)
      << "no side has changed ciphers";
  EXPECT_EQ(encrypted_after({{kClient, kServerHello + kChange}, {kServer, kServerHello + kChange}, {kClient, kData}}),
            0U)
      << "the client says what servers say";
  EXPECT_EQ(encrypted_after({{kServer, kServerHello + kChange + kData + kData}}), 0U);
  EXPECT_EQ(encrypted_after(
                {{kClient, kClientHello + tls(20, "\1GET /")}, {kServer, kServerHello + kChange}, {kClient, kData}}),
            0U)
      << "a change of ciphers is one byte";

  const std::string client = "SSH-2.0-b\r\n", server = "SSH-2.0-a\r\n";
  EXPECT_EQ(encrypted_after({{kClient, client + kKexInit + kNewKeys + kNewKeys}}), 0U);
  EXPECT_EQ(encrypted_after(
                {{kClient, client + kKexInit + kNewKeys}, {kServer, "no such command\r\n" + kKexInit + kNewKeys}}),
            0U);
  EXPECT_EQ(encrypted_after({{kServer, server + kKexInit + kNewKeys}, {kClient, "HELO\r\n" + kKexInit + kNewKeys}}),
            0U);
  EXPECT_EQ(encrypted_after({{kServer, server + kNewKeys}, {kClient, client + kKexInit + kNewKeys}}), 0U) << "no offer";
  EXPECT_EQ(encrypted_after({{kServer, server + kKexInit + ssh(21, 60)}, {kClient, client + kKexInit + kNewKeys}}), 0U)
      << "more than new keys";
}

TEST(EncryptionWatch, TellsWhenARecordIsWhole) {
  EncryptionWatch watch;
  EXPECT_FALSE(watch.read(kClient, bytes_of(kClientHello).first(305)));
  EXPECT_TRUE(watch.read(kClient, bytes_of(kClientHello).subspan(305)));
  EXPECT_TRUE(watch.read(kServer, bytes_of(kServerHello + kData.substr(0, 20))));
}

TEST(EncryptionWatch, SeesSshEncryptedWhenBothSidesHaveNewKeys) {
  EXPECT_EQ(encrypted_after({{kServer, "SSH-2.0-a\r\n" + kKexInit + kKeyExchange + kNewKeys},
                             {kClient, "SSH-2.0-b\r\n" + kKexInit},
                             {kClient, kKeyExchange + kNewKeys}}),
            3U);
  EXPECT_EQ(encrypted_after({{kClient, "SSH-2.0-b\r\n" + kKexInit + kNewKeys},
                             {kServer, "SS"},
                             {kServer, "H is for friends\r\nSSH-"},
                             {kServer, "2.0-a\n" + kKexInit + kNewKeys}}),
            4U)
      << "a server may send other lines first";
}

TEST(EncryptionWatch, ReadsBytesOneByOne) {
  EncryptionWatch of_tls, of_ssh;
  const auto read = [](EncryptionWatch& watch, Direction side, const std::string& bytes) {
    for (const char c : bytes) {
      EXPECT_FALSE(watch.encrypted());
      watch.read(side, bytes_of({&c, 1}));
    }
  };
  read(of_tls, kClient, kClientHello);
  read(of_tls, kServer, kServerHello + kChange + kFinished);
  read(of_tls, kClient, kChange + kFinished + tls(23, "d"));
  EXPECT_TRUE(of_tls.encrypted());
  // The server's first bytes before the client's tell what it is.
  read(of_ssh, kServer, "SS");
  read(of_ssh, kClient, "SSH-2.0-a\n" + kKexInit + kKeyExchange + kNewKeys);
  read(of_ssh, kServer, "H-2.0-a\n" + kKexInit + kKeyExchange + kNewKeys);
  EXPECT_TRUE(of_ssh.encrypted());
}

TEST(EncryptionWatch, GivesUpOnOtherProtocolsAndBrokenRecords) {
  const auto gives_up = [](const std::string& bytes) {
    EncryptionWatch watch;
    watch.read(kClient, bytes_of(bytes));
    return watch.done() && !watch.encrypted();
  };
  EXPECT_TRUE(gives_up("GET / HTTP/1.1\r\n"));
  EXPECT_TRUE(gives_up(kClientHello + "no record"));
  EXPECT_TRUE(gives_up(tls(22, "") + kClientHello));
  EXPECT_TRUE(gives_up("\x16\x03\x01\xff\xff\1"s)) << "longer than records are";
  EXPECT_TRUE(gives_up("SSH-2.0\n\0\0\0\1\0\0"s));
  EXPECT_TRUE(gives_up("SSH-" + std::string(300, '2')));
}

}  // namespace
}  // namespace penstock::stack
