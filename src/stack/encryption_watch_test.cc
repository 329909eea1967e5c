// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/encryption_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/testing/bytes.h"

namespace penstock::stack {
namespace {

using penstock::testing::bytes_of;
using namespace std::string_literals;

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

// ---- From plain to encrypted
//
//   server   220 ready              250 STARTTLS             220 go ahead │ ServerHello …
//   client               EHLO me                 STARTTLS │ ClientHello …

/// What both sides say until the handshake.
struct Dialog {
  const char* name;
  std::vector<Said> said;
};

const std::string kStartTlsRequest =
    "\x30\x1d\x02\x01\x01\x77\x18\x80\x16"
    "1.3.6.1.4.1.1466.20037"s;
const std::string kStartTlsRequestOfActiveDirectory =
    "\x30\x84\0\0\0\x21\x02\x01\x01\x77\x84\0\0\0\x18\x80\x16"
    "1.3.6.1.4.1.1466.20037"s;
const std::string kStartTlsSuccess = "\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\x00\x04\x00\x04\x00"s;

std::vector<Dialog> dialogs() {
  return {
      {"SMTP",
       {{kServer, "220 mx ready\r\n"},
        {kClient, "EHLO me\r\n"},
        {kServer, "250-mx\r\n250-STARTTLS\r\n250 SIZE\r\n"},
        {kClient, "starttls\r\n"},
        {kServer, "220 go ahead\r\n"}}},
      {"SMTP with a long greeting, after a refusal",
       {{kServer, "220-mx\r\n220 ready\r\n"},
        {kClient, "HELO me\r\n"},
        {kServer, "250 mx\r\n"},
        {kClient, "STARTTLS\r\n"},
        {kServer, "454 not now\r\n"},
        {kClient, "NOOP\r\n"},
        {kServer, "250 ok\r\n"},
        {kClient, "STARTTLS\r\n"},
        {kServer, "220 now\r\n"}}},
      {"FTP",
       {{kServer, "220 ready\r\n"},
        {kClient, "FEAT\r\n"},
        {kServer, "211-Features:\r\n AUTH TLS\r\n211 End\r\n"},
        {kClient, "AUTH TLS\r\n"},
        {kServer, "234 ok\r\n"}}},
      {"FTP, the second mechanism",
       {{kServer, "220 ready\r\n"},
        {kClient, "AUTH TLS\r\n"},
        {kServer, "504 no\r\n"},
        {kClient, "AUTH SSL\r\n"},
        {kServer, "234\r\n"}}},
      {"POP3, after another question",
       {{kServer, "+OK ready\r\n"},
        {kClient, "AUTH\r\n"},
        {kServer, "-ERR unrecognized command\r\n"},
        {kClient, "CAPA\r\n"},
        {kServer, "+OK\r\nSTLS\r\n.\r\n"},
        {kClient, "STLS\r\n"},
        {kServer, "+OK begin\r\n"}}},
      {"POP3",
       {{kServer, "+OK ready\r\n"},
        {kClient, "CAPA\r\n"},
        {kServer, "+OK\r\nSTLS\r\n..\r\nUSER\r\n.\r\n"},
        {kClient, "STLS\r\n"},
        {kServer, "+OK begin\r\n"}}},
      {"IMAP",
       {{kServer, "* OK ready\r\n"},
        {kClient, "a1 ID (\"name\" \"a client with a long name\")\r\n"},
        {kServer, "* ID NIL\r\na1 OK\r\n"},
        {kClient, "a2 STARTTLS\r\n"},
        {kServer, "* CAPABILITY IMAP4rev1\r\na2 OK begin\r\n"}}},
      {"LDAP", {{kClient, kStartTlsRequest}, {kServer, kStartTlsSuccess}}},
      {"LDAP in long form",
       {{kClient, kStartTlsRequestOfActiveDirectory},
        {kServer,
         "\x30\x84\0\0\0\x28\x02\x01\x01\x78\x84\0\0\0\x1f\x0a\x01\x00\x04\x00\x04\x00\x8a\x16"
         "1.3.6.1.4.1.1466.20037"s}}},
      {"HTTP CONNECT",
       {{kClient, "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"},
        {kServer, "HTTP/1.1 200 Connection established\r\nVia: proxy\r\n\r\n"}}},
      {"HTTP CONNECT, with authentication",
       {{kClient, "CONNECT a:443 HTTP/1.1\r\n\r\n"},
        {kServer, "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 9\r\n\r\nHTTP/1.1 "},
        {kClient, "CONNECT a:443 HTTP/1.1\r\nProxy-Authorization: NTLM x\r\n\r\n"},
        {kServer, "HTTP/1.1 200\r\n\r\n"}}},
  };
}

std::vector<Said> handshake() {
  return {{kClient, kClientHello},
          {kServer, kServerHello + kChange + kFinished},
          {kClient, kChange + kFinished},
          {kServer, kData}};
}
std::vector<Said> operator+(std::vector<Said> a, const std::vector<Said>& b) {
  return a.insert(a.end(), b.begin(), b.end()), a;
}

TEST(EncryptionWatch, SeesTlsBeginWhereBothSidesAgreeOnIt) {
  for (const Dialog& dialog : dialogs()) {
    const std::vector<Said> all = dialog.said + handshake();
    EXPECT_EQ(encrypted_after(all), all.size()) << dialog.name;
  }
}

TEST(EncryptionWatch, ReadsDialogsByteByByte) {
  for (const Dialog& dialog : dialogs()) {
    EncryptionWatch watch;
    for (const Said& said : dialog.said + handshake()) {
      EXPECT_FALSE(watch.encrypted()) << dialog.name;
      for (const char c : said.bytes) watch.read(said.side, bytes_of({&c, 1}));
    }
    EXPECT_TRUE(watch.encrypted()) << dialog.name;
  }
}

// Off the path, a side's bytes are seen once the other has acknowledged them: the client's hello before the server's
// yes.
TEST(EncryptionWatch, TakesTheClientsHelloBeforeTheServersAnswer) {
  for (const Dialog& dialog : dialogs()) {
    std::vector<Said> early = dialog.said;
    early.insert(early.end() - 1, {kClient, kClientHello});
    early = early + std::vector<Said>{{kServer, kServerHello + kChange}, {kServer, kData}};
    EXPECT_EQ(encrypted_after(early), early.size()) << dialog.name;
    std::vector<Said> at_once = dialog.said;
    at_once[at_once.size() - 2].bytes += kClientHello;
    at_once.back().bytes += kServerHello + kChange;
    at_once.push_back({kServer, kData});
    EXPECT_EQ(encrypted_after(at_once), at_once.size()) << dialog.name << ", in one piece";
  }
}

TEST(EncryptionWatch, SeesSshInATunnelOfHttp) {
  EXPECT_EQ(encrypted_after({{kClient, "CONNECT a:22 HTTP/1.1\r\n\r\n"},
                             {kServer, "HTTP/1.1 200 ok\r\n\r\nSSH-2.0-a\r\n" + kKexInit + kKeyExchange + kNewKeys},
                             {kClient, "SSH-2.0-b\r\n" + kKexInit},
                             {kClient, kKeyExchange + kNewKeys}}),
            4U);
}

/// With these words for the last ones of the dialog.
std::vector<Said> ending(const Dialog& dialog, const std::string& server) {
  std::vector<Said> said = dialog.said;
  said.back().bytes = server;
  return said;
}

TEST(EncryptionWatch, DoesNotBelieveAClientThatTheServerDidNotAgreeWith) {
  const std::vector<std::string> refusals{"454 no\r\n",
                                          "454 no\r\n",
                                          "534 no\r\n",
                                          "534 no\r\n",
                                          "-ERR no\r\n",
                                          "-ERR no\r\n",
                                          "a2 NO\r\n",
                                          "\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\x02\x04\x00\x04\x00"s,
                                          "\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\x34\x04\x00\x04\x00"s,
                                          "HTTP/1.1 403 no\r\ncontent-length: 0\r\n\r\n",
                                          "HTTP/1.1 502 no\r\ncontent-length: 0\r\n\r\n"};
  const std::vector<Dialog> all = dialogs();
  ASSERT_EQ(refusals.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(encrypted_after(ending(all[i], refusals[i]) + handshake()), 0U) << all[i].name;
    EXPECT_EQ(encrypted_after(ending(all[i], "") + handshake()), 0U) << all[i].name << ": no answer";
    EXPECT_EQ(encrypted_after(ending(all[i], "what?\r\n") + handshake()), 0U) << all[i].name;
  }
}

TEST(EncryptionWatch, GoesOnWithWhatIsNoHandshake) {
  for (const Dialog& dialog : dialogs()) {
    for (const std::vector<Said>& more : std::vector<std::vector<Said>>{
             {{kClient, "attack at dawn\r\n"}, {kServer, kServerHello + kChange + kData}},
             {{kClient, kClientHello}, {kServer, "500 no TLS here\r\n"}, {kClient, kChange + kData}},
             {{kClient, kClientHello + kChange + kData + kData}},
             {{kServer, kServerHello + kChange + kData + kData}}}) {
      EXPECT_EQ(encrypted_after(dialog.said + more), 0U) << dialog.name;
    }
  }
}

// Some servers take what comes in one segment with STARTTLS for part of what is encrypted (CVE-2011-0411).
TEST(EncryptionWatch, GoesOnWithPlainCommandsBehindTheQuestion) {
  for (const Dialog& dialog : dialogs()) {
    std::vector<Said> said = dialog.said;
    ASSERT_EQ(said[said.size() - 2].side, kClient);
    said[said.size() - 2].bytes += "CAPA attack at dawn\r\n";
    EXPECT_EQ(encrypted_after(said + handshake()), 0U) << dialog.name;
  }
}

TEST(EncryptionWatch, TakesNoAnswerForAnother) {
  const Said greeting{kServer, "220 mx\r\n"};
  EXPECT_EQ(
      encrypted_after(std::vector<Said>{greeting,
                                        {kClient, "EHLO me\r\nNOOP\r\nSTARTTLS\r\n"},
                                        {kServer, "250-mx\r\n250 ok\r\n220 is the answer to NOOP\r\n454 no\r\n"}} +
                      handshake()),
      0U);
  EXPECT_EQ(encrypted_after(std::vector<Said>{greeting,
                                              {kClient, "EHLO me\r\nNOOP\r\nSTARTTLS\r\n"},
                                              {kServer, "250-mx\r\n250 ok\r\n250 ok\r\n220 go\r\n"}} +
                            handshake()),
            7U)
      << "commands in one go";
  EXPECT_EQ(encrypted_after(
                std::vector<Said>{{kServer, "* OK\r\n"}, {kClient, "a STARTTLS\r\n"}, {kServer, "b OK\r\na BAD\r\n"}} +
                handshake()),
            0U);
  EXPECT_EQ(encrypted_after(std::vector<Said>{{kServer, "220 ftp\r\n"},
                                              {kClient, "FEAT\r\nAUTH TLS\r\n"},
                                              {kServer, "211-x\r\n234 y\r\n211 z\r\n504 no\r\n"}} +
                            handshake()),
            0U)
      << "in the middle of an answer";
  EXPECT_EQ(encrypted_after(std::vector<Said>{{kClient, "CONNECT a:1 HTTP/1.1\r\n\r\n"},
                                              {kServer,
                                               "HTTP/1.1 407 no\r\nContent-Length: 40\r\n\r\n"
                                               "HTTP/1.1 200 ok\r\n\r\n"}} +
                            handshake()),
            0U)
      << "in the body of a refusal";
}

// What a mail says is no command.
TEST(EncryptionWatch, FollowsNoDialogIntoWhatItDoesNotKnow) {
  const std::vector<Said> greeted{{kServer, "220 mx\r\n"}, {kClient, "EHLO me\r\n"}, {kServer, "250 mx\r\n"}};
  EXPECT_EQ(encrypted_after(greeted +
                            std::vector<Said>{{kClient, "MAIL FROM:<a>\r\n"},
                                              {kServer, "250 ok\r\n"},
                                              {kClient, "RCPT TO:<b>\r\n"},
                                              {kServer, "250 ok\r\n"},
                                              {kClient, "DATA\r\n"},
                                              {kServer, "354 go\r\n"},
                                              {kClient, "STARTTLS\r\n"},
                                              {kServer, "220 go\r\n"}} +
                            handshake()),
            0U);
  EXPECT_EQ(
      encrypted_after(
          std::vector<Said>{{kServer, "* OK\r\n"}, {kClient, "a ID {12}\r\nb STARTTLS\r\n"}, {kServer, "b OK\r\n"}} +
          handshake()),
      0U)
      << "a literal";
  EXPECT_EQ(encrypted_after(std::vector<Said>{{kClient, "CONNECT a:1 HTTP/1.1\r\n\r\n"},
                                              {kServer, "HTTP/1.1 407 no\r\nTransfer-Encoding: chunked\r\n\r\n"},
                                              {kClient, "CONNECT a:1 HTTP/1.1\r\n\r\n"},
                                              {kServer, "HTTP/1.1 200 ok\r\n\r\n"}} +
                            handshake()),
            0U);
  EXPECT_EQ(encrypted_after(std::vector<Said>{{kClient, "GET / HTTP/1.1\r\n\r\nCONNECT a:1 HTTP/1.1\r\n\r\n"},
                                              {kServer, "HTTP/1.1 200 ok\r\n\r\n"}} +
                            handshake()),
            0U);
  std::vector<Said> chatter{{kServer, "220 mx\r\n"}};
  for (int i = 0; i < 100; ++i) chatter = chatter + std::vector<Said>{{kClient, "NOOP\r\n"}, {kServer, "250 ok\r\n"}};
  EXPECT_EQ(
      encrypted_after(chatter + std::vector<Said>{{kClient, "STARTTLS\r\n"}, {kServer, "220 go\r\n"}} + handshake()),
      0U);
}

TEST(EncryptionWatch, ReadsAHelloOfSslv2ThatOffersTls) {
  // Length with the high bit, the message, the version, lengths of ciphers, session and challenge.
  const std::string hello = "\x80\x1f\x01\x03\x01\x00\x06\x00\x00\x00\x10"s + std::string(22, 'c');
  const std::vector<Said> rest{
      {kServer, kServerHello + kChange + kFinished}, {kClient, kChange + kFinished}, {kClient, kData}};
  EXPECT_EQ(encrypted_after(std::vector<Said>{{kClient, hello}} + rest), 4U);
  EXPECT_EQ(encrypted_after(std::vector<Said>{{kClient, "\x80\x1f\x01\x00\x02"s + hello.substr(5, 28)}} + rest), 0U)
      << "SSLv2 itself";
  EXPECT_EQ(encrypted_after(std::vector<Said>{{kServer, hello}} + rest), 0U) << "by the server";
  EXPECT_EQ(encrypted_after({{kClient, hello + kChange + kData + kData}}), 0U) << "one side alone";
}

}  // namespace
}  // namespace penstock::stack
