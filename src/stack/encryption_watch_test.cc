// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/encryption_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace penstock::stack {
namespace {

using namespace std::string_literals;

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::string tls(unsigned type, std::size_t length) {
  return std::string{static_cast<char>(type), 3, 1, static_cast<char>(length >> 8), static_cast<char>(length)} +
         std::string(length, 'x');
}
std::string ssh(unsigned message, std::uint8_t length) {
  return "\0\0\0"s + static_cast<char>(length) + '\4' + static_cast<char>(message) +
         std::string(std::size_t{length} - 2, 'x');
}

TEST(EncryptionWatch, SeesTlsEncryptedAtItsFirstApplicationData) {
  EncryptionWatch watch;
  EXPECT_TRUE(watch.read(Direction::to_server, bytes_of(tls(22, 300))));
  EXPECT_TRUE(watch.read(Direction::to_client, bytes_of(tls(22, 80) + tls(20, 1) + tls(22, 40))));
  EXPECT_FALSE(watch.encrypted());
  EXPECT_FALSE(watch.read(Direction::to_client, bytes_of(tls(23, 100).substr(0, 5))));
  EXPECT_FALSE(watch.encrypted());
  watch.read(Direction::to_client, bytes_of("x"));
  EXPECT_TRUE(watch.encrypted());
}

TEST(EncryptionWatch, TellsWhenARecordIsWhole) {
  EncryptionWatch watch;
  const std::string record = tls(22, 10);
  EXPECT_FALSE(watch.read(Direction::to_server, bytes_of(record).first(14)));
  EXPECT_TRUE(watch.read(Direction::to_server, bytes_of(record).subspan(14)));
}

TEST(EncryptionWatch, SeesSshEncryptedWhenBothSidesHaveNewKeys) {
  EncryptionWatch watch;
  watch.read(Direction::to_client, bytes_of("SSH-2.0-a\r\n" + ssh(20, 100) + ssh(21, 12)));
  EXPECT_FALSE(watch.encrypted());
  watch.read(Direction::to_server, bytes_of("SSH-2.0-b\r\n" + ssh(20, 100)));
  EXPECT_FALSE(watch.encrypted());
  watch.read(Direction::to_server, bytes_of(ssh(21, 12)));
  EXPECT_TRUE(watch.encrypted());
}

TEST(EncryptionWatch, ReadsBytesOneByOne) {
  EncryptionWatch of_tls, of_ssh;
  for (const char c : tls(22, 300) + tls(20, 1) + tls(23, 1)) {
    EXPECT_FALSE(of_tls.encrypted());
    of_tls.read(Direction::to_server, bytes_of({&c, 1}));
  }
  EXPECT_TRUE(of_tls.encrypted());
  for (const Direction side : {Direction::to_server, Direction::to_client}) {
    EXPECT_FALSE(of_ssh.encrypted());
    for (const char c : "SSH-2.0-a\n" + ssh(20, 50) + ssh(21, 12)) of_ssh.read(side, bytes_of({&c, 1}));
  }
  EXPECT_TRUE(of_ssh.encrypted());
}

TEST(EncryptionWatch, GivesUpOnOtherProtocolsAndBrokenRecords) {
  EncryptionWatch http, broken, short_ssh;
  http.read(Direction::to_server, bytes_of("GET / HTTP/1.1\r\n"));
  EXPECT_TRUE(http.done());
  EXPECT_FALSE(http.encrypted());
  broken.read(Direction::to_server, bytes_of(tls(22, 3) + "no record"));
  broken.read(Direction::to_client, bytes_of(tls(23, 3)));
  EXPECT_TRUE(broken.done());
  EXPECT_FALSE(broken.encrypted());
  short_ssh.read(Direction::to_server, bytes_of("SSH-2.0\n\0\0\0\1\0\0"s));
  EXPECT_TRUE(short_ssh.done());
  EXPECT_FALSE(short_ssh.encrypted());
}

}  // namespace
}  // namespace penstock::stack
