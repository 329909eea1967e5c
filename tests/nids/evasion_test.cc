// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What an attacker does to evade rules (Ptacek & Newsham 1998), and what must be detected nevertheless: bytes in tiny
// pieces, in any order, several times with different contents, with checksums, TTLs or urgent pointers that the host
// treats differently from a simple sensor. If hosts differ, the policy selects one behaviour.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "nids/conversation.h"
#include "nids/scanner.h"

namespace penstock::nids::test {
namespace {

using stack::OverlapPolicy;

constexpr std::string_view kAttackRule = R"(alert tcp any any -> any 80 (content:"attack at dawn"; sid:1;))";
constexpr std::string_view kAttack = "we attack at dawn, or not";

ScanOptions with_policy(OverlapPolicy policy) {
  ScanOptions options;
  options.tracker.stream_policy = policy;
  options.tracker.fragment_policy = policy;
  options.tracker.every_version = false;
  return options;
}

ScanOptions on_the_path() {
  ScanOptions options;
  options.tracker.inline_streams = options.inspector.drops = true;
  return options;
}

std::uint64_t alerts_of(const Scanner& scanner, std::uint32_t sid = 1) {
  const auto found = scanner.counts().find(sid);
  return found == scanner.counts().end() ? 0 : found->second;
}

TEST(Evasion, TinySegmentsInAnyOrderHideNothing) {
  for (const std::size_t size : {1U, 2U, 3U, 7U}) {
    for (const bool reversed : {false, true}) {
      Scanner scanner(rules_of(kAttackRule));
      Conversation tcp(scanner);
      tcp.handshake();
      std::vector<std::size_t> starts;
      for (std::size_t at = 0; at < kAttack.size(); at += size) starts.push_back(at);
      if (reversed) std::reverse(starts.begin(), starts.end());
      for (const std::size_t at : starts) {
        tcp.send({.at = static_cast<std::uint32_t>(at), .payload = kAttack.substr(at, size), .acked = 0});
      }
      tcp.acknowledge(true, static_cast<std::uint32_t>(kAttack.size()));
      tcp.close();
      scanner.finish();
      EXPECT_EQ(alerts_of(scanner), 1U) << size << (reversed ? " reversed" : "");
    }
  }
}

/*  server   220 mx         250 mx              454 no │ 220 go ─ ServerHello …
    client           EHLO me        STARTTLS                   ClientHello … attack at dawn  */
TEST(Evasion, AFakedStartOfEncryptionHidesNothing) {
  const auto record = [](char type, const std::string& text) {
    return std::string{type, 3, 1, 0, static_cast<char>(text.size())} + text;
  };
  const std::string client_hello = record(22, "\1 hello"), server_hello = record(22, "\2 hello"),
                    change = record(20, "\1"), data = record(23, "noise");
  struct Case {
    std::string server_answers, server_goes_on;
    std::uint64_t alerts;
  };
  for (const auto& [answer, goes_on, alerts] : {Case{"454 no\r\n", "500 what?\r\n", 1},
                                                {"454 no\r\n", server_hello + change + data, 1},
                                                {"220 go\r\n", "500 what?\r\n", 1},
                                                {"", "", 1},
                                                {"220 go\r\n", server_hello + change + data, 0}}) {
    for (const ScanOptions& options : {ScanOptions(), on_the_path()}) {
      Scanner scanner(rules_of(kAttackRule), options);
      Conversation tcp(scanner);
      tcp.handshake();
      std::uint32_t sent[2] = {0, 0};
      const auto say = [&](bool to_server, std::string_view text) {
        std::uint32_t& at = sent[to_server ? 0 : 1];
        if (text.empty()) return;
        tcp.send({.to_server = to_server, .at = at, .payload = text});
        tcp.acknowledge(to_server, at += static_cast<std::uint32_t>(text.size()));
      };
      say(false, "220 mx\r\n");
      say(true, "EHLO me\r\n");
      say(false, "250 mx\r\n");
      say(true, "STARTTLS\r\n");
      say(false, answer);
      say(true, client_hello);
      say(false, goes_on);
      say(true, change + data);
      say(true, kAttack);
      tcp.close();
      scanner.finish();
      EXPECT_EQ(alerts_of(scanner), alerts) << answer << goes_on;
    }
  }
}

const Bytes kWindowScale = {1, 3, 3, 7};  // RFC 7323: by 2^7

TEST(Evasion, ThousandsOfHolesHideNothing) {
  for (const auto& [reversed, options] :
       {std::pair{false, ScanOptions()}, {true, ScanOptions()}, {false, on_the_path()}, {true, on_the_path()}}) {
    Scanner scanner(rules_of(kAttackRule), options);
    Conversation tcp(scanner);
    tcp.handshake(kWindowScale);
    tcp.acknowledge(true, 0);  // the first segment with the scaled window
    const std::string text = std::string(20000, '.') + std::string(kAttack);  // within the window
    std::vector<std::size_t> odd;
    for (std::size_t at = 1; at < text.size(); at += 2) odd.push_back(at);
    if (reversed) std::reverse(odd.begin(), odd.end());
    for (const std::size_t at : odd) {
      tcp.send({.at = static_cast<std::uint32_t>(at), .payload = std::string_view(text).substr(at, 1), .acked = 0});
    }
    for (std::size_t at = 0; at < text.size(); at += 2) {
      tcp.send({.at = static_cast<std::uint32_t>(at), .payload = std::string_view(text).substr(at, 1), .acked = 0});
    }
    tcp.acknowledge(true, static_cast<std::uint32_t>(text.size()));
    tcp.close();
    scanner.finish();
    EXPECT_EQ(alerts_of(scanner), 1U) << (reversed ? "reversed" : "") << options.inspector.drops;
  }
}

// More chunks than are offered at once.
TEST(Evasion, ThousandsOfHolesThatStayHideNothing) {
  for (const bool reset : {false, true}) {
    Scanner scanner(rules_of(kAttackRule));
    Conversation tcp(scanner);
    tcp.handshake(kWindowScale);
    tcp.acknowledge(true, 0);  // the first segment with the scaled window
    std::uint32_t at = 0;
    for (; at < 9000; at += 2) tcp.send({.at = at, .payload = ".", .acked = 0});
    tcp.send({.at = at + 1, .payload = kAttack.substr(0, 10), .acked = 0});
    tcp.send({.at = at + 11, .payload = kAttack.substr(10), .acked = 0});
    if (reset) tcp.send({.at = at + 1 + static_cast<std::uint32_t>(kAttack.size()), .flags = TcpHeader::kRst});
    scanner.finish();
    EXPECT_EQ(alerts_of(scanner), 1U) << reset;
  }
}

// 2560 bytes are inspected at once. An attacker knows where that ends, and the reference engine misses matches across
// this boundary.
TEST(Evasion, APatternAcrossTwoInspectionsIsFound) {
  for (std::size_t before = 2560 - 16; before <= 2560 + 2; ++before) {
    Scanner scanner(rules_of(kAttackRule));
    Conversation tcp(scanner);
    tcp.handshake();
    const std::string text = std::string(before, '.') + "attack at dawn" + std::string(4000, '.');
    for (std::size_t at = 0; at < text.size(); at += 512) {
      tcp.send({.at = static_cast<std::uint32_t>(at), .payload = std::string_view(text).substr(at, 512)});
      tcp.acknowledge(true, static_cast<std::uint32_t>(std::min(text.size(), at + 512)));
    }
    tcp.close();
    scanner.finish();
    EXPECT_EQ(alerts_of(scanner), 1U) << before;
  }
}

// Data for which a stream has no memory is not inspected as part of it. Inline it does not pass, unless configured.
TEST(Evasion, FullMemoryHidesNothingThatPasses) {
  for (const bool refuses : {false, true}) {
    ScanOptions options = on_the_path();
    options.tracker.refuse_when_full = refuses;
    options.tracker.stream_memory = 1 << 20;
    Scanner scanner(rules_of(kAttackRule), options);
    const std::string chaff(400, '.');
    for (std::uint16_t port = 1; port < 500; ++port) {  // each sends segments after holes
      Conversation tcp(scanner, port);
      tcp.handshake();
      tcp.send({.at = 1, .payload = chaff, .acked = 0});
      tcp.send({.at = 500, .payload = chaff, .acked = 0});
    }
    Conversation tcp(scanner);
    tcp.handshake();
    std::string passed;
    for (const std::size_t at : {0U, 10U}) {
      const std::string_view part = kAttack.substr(at, at == 0 ? 10 : std::string_view::npos);
      tcp.send({.at = static_cast<std::uint32_t>(at), .payload = part, .acked = 0});
      if (!scanner.dropped()) passed += part;
    }
    EXPECT_EQ(alerts_of(scanner), 0U);
    EXPECT_EQ(passed, refuses ? "" : kAttack);
    EXPECT_GT(scanner.tracker().stream_memory_refused, 2U);
    EXPECT_EQ(scanner.dropped(DropReason::stream_memory), refuses ? scanner.tracker().stream_memory_refused : 0U);
  }
}

Bytes attack_datagram() {
  return penstock::testing::packet()
      .eth()
      .ipv4("10.0.0.1", "10.0.0.2")
      .udp(4000, 53)
      .payload("we attack at dawn, or not")
      .bytes();
}

/// A fragment of the attack.
Bytes attack_fragment(std::uint16_t field, Bytes data) {
  return penstock::testing::packet()
      .eth()
      .ipv4("10.0.0.1", "10.0.0.2", 64, {}, field)
      .protocol(ip_protocol::kUdp)
      .raw(std::move(data))
      .bytes();
}

// Waiting fragments are not discarded while their datagram may still be completed, because the host has them.
TEST(Evasion, TooManyFragmentsHideNothingThatPasses) {
  for (const bool refuses : {false, true}) {
    ScanOptions options = on_the_path();
    options.tracker.refuse_when_full = refuses;
    options.tracker.fragment_memory = 1 << 16;
    Scanner scanner(rules_of(R"(drop udp any any -> any 53 (content:"attack at dawn"; sid:1;))"), options);
    const Bytes whole = attack_datagram();
    constexpr std::ptrdiff_t kData = 34, kSplit = kData + 16;
    std::uint64_t now = 1'000'000'000;
    const auto send = [&](std::uint16_t id, std::uint16_t field, Bytes data) {
      Bytes frame = attack_fragment(field, std::move(data));
      frame[14 + 4] = static_cast<std::uint8_t>(id >> 8);
      frame[14 + 5] = static_cast<std::uint8_t>(id);
      frame[14 + 10] = frame[14 + 11] = 0;
      const std::uint16_t sum = penstock::testing::slow_checksum(frame, 14, 34, 0);
      frame[14 + 10] = static_cast<std::uint8_t>(sum >> 8);
      frame[14 + 11] = static_cast<std::uint8_t>(sum);
      scanner.frame(frame, now += 1000);
    };
    send(1, 0x2000, Bytes(whole.begin() + kData, whole.begin() + kSplit));
    for (std::uint16_t id = 2; id < 500; ++id) send(id, 0x2000, Bytes(200, '.'));
    EXPECT_GT(scanner.tracker().fragment_memory_refused, 0U);
    EXPECT_EQ(scanner.dropped(DropReason::fragment_memory), refuses ? scanner.tracker().fragment_memory_refused : 0U);
    send(1, 2, Bytes(whole.begin() + kSplit, whole.end()));
    EXPECT_EQ(scanner.dropped(), refuses);
    EXPECT_EQ(alerts_of(scanner), refuses ? 1U : 0U);
  }
}

// Inline, data that is not part of any stream does not reach the host, which may be less strict than the sensor.
TEST(Evasion, SegmentsThatTheConnectionDoesNotAcceptDoNotPass) {
  Scanner scanner(rules_of(kAttackRule), on_the_path());
  Conversation tcp(scanner);
  tcp.handshake();
  const auto passes = [&](const Segment& segment) {
    tcp.send(segment);
    return !scanner.dropped();
  };
  tcp.send({.payload = "we ", .acked = 0});
  EXPECT_FALSE(passes({.at = 3, .payload = "attack ", .flags = TcpHeader::kPsh}));
  EXPECT_FALSE(passes({.at = 0x00100000, .payload = "attack "}));
  EXPECT_FALSE(passes({.at = 3, .payload = "attack ", .acked = 0x00100000}));
  EXPECT_EQ(scanner.dropped(DropReason::stream_invalid), 3U);
  EXPECT_TRUE(passes({.payload = "we ", .acked = 0})) << "sent again";
  EXPECT_TRUE(passes({.at = 3, .payload = "attack ", .acked = 0}));
  EXPECT_TRUE(passes({.at = 10, .payload = "at dawn", .acked = 0}));
  EXPECT_EQ(alerts_of(scanner), 1U);
}

std::string tls_record(char type, const std::string& data) {
  return std::string{type, 3, 3, static_cast<char>(data.size() >> 8), static_cast<char>(data.size())} + data;
}

// Encrypted data is not inspected; both sides must have agreed on encryption.
TEST(Evasion, OneSideAloneCannotSayThatItIsEncrypted) {
  const std::string client_hello = tls_record(22, '\1' + std::string(60, 'c')),
                    server_hello = tls_record(22, '\2' + std::string(60, 's')), change = tls_record(20, "\1"),
                    data = tls_record(23, "noise"), attack = tls_record(23, std::string(kAttack));
  const std::string ssh_client =
      "SSH-2.0-x\r\n" + std::string("\0\0\0\xc\xa\x14xxxxxxxxxx\0\0\0\xc\xa\x15xxxxxxxxxx", 32);
  struct Case {
    std::string first, answer, then;
    bool seen;
  };
  for (const Case& one : {Case{client_hello + change + data, "", attack, true},
                          {client_hello + change + data, "HTTP/1.1 400 Bad Request\r\n\r\n", attack, true},
                          {client_hello + change + data, tls_record(21, "\2\50"), attack, true},
                          {client_hello + change + data, server_hello + change + data, attack, false},
                          {ssh_client, "HTTP/1.1 400 Bad Request\r\n\r\n", std::string(kAttack), true},
                          {ssh_client, ssh_client, std::string(kAttack), false}}) {
    for (const ScanOptions& options : {ScanOptions(), on_the_path()}) {
      Scanner scanner(rules_of(kAttackRule), options);
      Conversation tcp(scanner);
      tcp.handshake();
      tcp.send({.payload = one.first});
      tcp.send({.to_server = false, .payload = one.answer});
      const auto at = static_cast<std::uint32_t>(one.first.size());
      // One record makes the session encrypted; later data is not inspected.
      tcp.send({.at = at, .payload = data});
      tcp.acknowledge(true, at + static_cast<std::uint32_t>(data.size()));
      tcp.send({.at = at + static_cast<std::uint32_t>(data.size()), .payload = one.then});
      tcp.close();
      scanner.finish();
      EXPECT_EQ(alerts_of(scanner), one.seen ? 1U : 0U)
          << one.answer.substr(0, 10) << (options.inspector.drops ? ", on the path" : "");
    }
  }
}

/// Novak & Sturges, "Target-Based TCP Stream Reassembly" (2007), by the position of a new segment relative to an old
/// one.
bool new_segment_is_kept(OverlapPolicy policy, int begin, int end, int old_begin, int old_end) {
  switch (policy) {
    case OverlapPolicy::first: return false;
    case OverlapPolicy::last: return true;
    case OverlapPolicy::bsd:      // the old one, unless the new one begins earlier
    case OverlapPolicy::windows:  // the same
      return begin < old_begin;
    case OverlapPolicy::linux_host:  // also if it begins at the same byte and ends later
      return begin < old_begin || (begin == old_begin && end > old_end);
    case OverlapPolicy::solaris:  // the new one, unless the old one ends later, or ends at the same byte and begins
                                  // earlier
      return end > old_end || (end == old_end && begin <= old_begin);
    case OverlapPolicy::bsd_right: break;  // only used for fragments
  }
  ADD_FAILURE();
  return false;
}

TEST(Evasion, OverlappingSegmentsAreSeenAsThePolicysHostsSeeThem) {
  constexpr int kOldBegin = 8, kOldEnd = 16, kLength = 24;
  for (const OverlapPolicy policy : {OverlapPolicy::first, OverlapPolicy::last, OverlapPolicy::bsd,
                                     OverlapPolicy::linux_host, OverlapPolicy::windows, OverlapPolicy::solaris}) {
    for (const int begin : {4, 8, 12}) {
      for (const int end : {14, 16, 20}) {
        std::string old_kept(kLength, '.'), new_kept(kLength, '.');
        for (int i = begin; i < end; ++i) old_kept[static_cast<std::size_t>(i)] = 'N';
        for (int i = kOldBegin; i < kOldEnd; ++i) {
          old_kept[static_cast<std::size_t>(i)] = 'O';
          if (i < begin || i >= end) new_kept[static_cast<std::size_t>(i)] = 'O';
        }
        for (int i = begin; i < end; ++i) new_kept[static_cast<std::size_t>(i)] = 'N';
        Scanner scanner(rules_of("alert tcp any any -> any any (content:\"" + old_kept + "\"; sid:1;)\n" +
                                 "alert tcp any any -> any any (content:\"" + new_kept + "\"; sid:2;)"),
                        with_policy(policy));
        Conversation tcp(scanner);
        tcp.handshake();
        const std::string o(kLength, 'O'), n(kLength, 'N'), dots(kLength, '.');
        const auto send = [&](const std::string& text, int from, int to) {
          if (from >= to) return;
          tcp.send({.at = static_cast<std::uint32_t>(from),
                    .payload = std::string_view(text).substr(0, static_cast<std::size_t>(to - from)),
                    .acked = 0});
        };
        send(o, kOldBegin, kOldEnd);
        send(n, begin, end);
        send(dots, std::max(end, kOldEnd), kLength);
        send(dots, 0, std::min(begin, kOldBegin));  // the first byte comes last, so nothing was inspected before
        tcp.acknowledge(true, kLength);
        tcp.close();
        scanner.finish();
        const bool new_wins = new_segment_is_kept(policy, begin, end, kOldBegin, kOldEnd);
        EXPECT_EQ(alerts_of(scanner, 1), new_wins ? 0U : 1U)
            << "policy " << static_cast<int>(policy) << ": " << begin << " to " << end;
        EXPECT_EQ(alerts_of(scanner, 2), new_wins ? 1U : 0U)
            << "policy " << static_cast<int>(policy) << ": " << begin << " to " << end;
      }
    }
  }
}

TEST(Evasion, TheOperatorDecidesAboutWrongChecksums) {
  for (const bool verify : {false, true}) {
    ScanOptions options = with_policy(OverlapPolicy::first);
    options.tracker.verify_checksums = verify;
    Scanner scanner(rules_of(kAttackRule), options);
    Conversation tcp(scanner);
    tcp.handshake();
    const std::string chaff(kAttack.size(), 'x');
    tcp.send({.payload = chaff, .acked = 0, .wrong_checksum = true});  // the host never accepts it
    tcp.send({.payload = kAttack, .acked = 0});
    tcp.acknowledge(true, static_cast<std::uint32_t>(kAttack.size()));
    tcp.close();
    scanner.finish();
    EXPECT_EQ(alerts_of(scanner), verify ? 1U : 0U);
    EXPECT_EQ(scanner.tracker().tcp_invalid_checksums, verify ? 1U : 0U);
  }
}

/// Sends the attack, and chaff at the same position that expires before the host.
void send_with_chaff(Conversation& tcp, bool chaff_first) {
  const std::string chaff(kAttack.size(), 'x');
  const Segment lost{.payload = chaff, .ttl = 2, .acked = 0}, real{.payload = kAttack, .acked = 0};
  tcp.send(chaff_first ? lost : real);
  tcp.send(chaff_first ? real : lost);
  tcp.acknowledge(true, static_cast<std::uint32_t>(kAttack.size()));
}

//   client                       on the way   host
//     seq 0 "xxxxxxx", TTL 2  ─▶     ✕
//     seq 0 "attack", TTL 64  ─▶         ─▶   reads it
//
// Only the host knows which of them arrived, so both are inspected.
TEST(Evasion, ASegmentThatDiesOnTheWayHidesNothing) {
  for (const bool chaff_first : {false, true}) {
    for (const OverlapPolicy policy : {OverlapPolicy::first, OverlapPolicy::last, OverlapPolicy::linux_host}) {
      ScanOptions options = with_policy(policy);
      options.tracker.every_version = true;
      Scanner scanner(rules_of(kAttackRule), options);
      Conversation tcp(scanner);
      tcp.handshake();
      send_with_chaff(tcp, chaff_first);
      tcp.close();
      scanner.finish();
      EXPECT_EQ(alerts_of(scanner), 1U) << chaff_first << static_cast<int>(policy);
      EXPECT_EQ(scanner.counters().contested_given_up, 0U);
    }
  }
}

// The attack's pieces come alternately from the two versions, so neither version has all of it.
TEST(Evasion, NoMixtureOfVersionsHidesAnAttack) {
  for (const std::size_t piece : {1U, 3U, 5U}) {
    Scanner scanner(rules_of(kAttackRule));
    Conversation tcp(scanner);
    tcp.handshake();
    for (const bool odd : {false, true}) {
      for (std::size_t at = 0; at < kAttack.size(); at += piece) {
        std::string text(kAttack.substr(at, piece));
        if ((at / piece % 2 == 1) == odd) text.assign(text.size(), 'x');
        tcp.send({.at = static_cast<std::uint32_t>(at), .payload = text, .acked = 0});
      }
    }
    tcp.acknowledge(true, static_cast<std::uint32_t>(kAttack.size()));
    tcp.close();
    scanner.finish();
    EXPECT_EQ(alerts_of(scanner), 1U) << piece;
  }
}

TEST(Evasion, IfOnlyThePolicysVersionIsInspectedOverlapsAreSeenByOnePolicyOrTheOther) {
  for (const bool chaff_first : {false, true}) {
    for (const OverlapPolicy policy : {OverlapPolicy::first, OverlapPolicy::last}) {
      Scanner scanner(rules_of(std::string(kAttackRule) + "\nalert tcp any any -> any 80 (ttl:<5; sid:2;)"),
                      with_policy(policy));
      Conversation tcp(scanner);
      tcp.handshake();
      send_with_chaff(tcp, chaff_first);
      tcp.close();
      scanner.finish();
      EXPECT_EQ(alerts_of(scanner), (policy == OverlapPolicy::last) == chaff_first ? 1U : 0U);
      EXPECT_EQ(alerts_of(scanner, 2), 1U);
    }
  }
}

TEST(Evasion, AResetOutsideTheWindowEndsNothing) {
  Scanner scanner(rules_of(kAttackRule));
  Conversation tcp(scanner);
  tcp.handshake();
  tcp.send({.at = 0x20000000, .flags = TcpHeader::kRst});
  tcp.send({.payload = kAttack});
  tcp.acknowledge(true, static_cast<std::uint32_t>(kAttack.size()));
  tcp.close();
  scanner.finish();
  EXPECT_EQ(alerts_of(scanner), 1U);
}

TEST(Evasion, DataAfterAResetIsSeenIfTheConnectionRestarts) {
  Scanner scanner(rules_of(kAttackRule));
  {
    Conversation tcp(scanner);
    tcp.handshake();
    tcp.send({.flags = TcpHeader::kRst});
  }
  Conversation again(scanner);  // the same ports
  again.handshake();
  again.send({.payload = kAttack});
  again.acknowledge(true, static_cast<std::uint32_t>(kAttack.size()));
  again.close();
  scanner.finish();
  EXPECT_EQ(alerts_of(scanner), 1U);
}

TEST(Evasion, DataThatWasNeverAcknowledgedIsSeenAtTheEnd) {
  for (const bool reset : {false, true}) {
    Scanner scanner(rules_of(kAttackRule));
    Conversation tcp(scanner);
    tcp.handshake();
    tcp.send({.payload = kAttack, .acked = 0});
    if (reset) tcp.send({.at = static_cast<std::uint32_t>(kAttack.size()), .flags = TcpHeader::kRst});
    scanner.finish();
    EXPECT_EQ(alerts_of(scanner), 1U) << reset;
  }
}

TEST(Evasion, AGapDoesNotHideWhatFollows) {
  Scanner scanner(rules_of(kAttackRule));
  Conversation tcp(scanner);
  tcp.handshake();
  tcp.send({.payload = "something that comes first"});
  tcp.send({.at = 1000, .payload = kAttack});  // the data between was lost only for the sensor
  tcp.acknowledge(true, 1000 + static_cast<std::uint32_t>(kAttack.size()));
  tcp.close();
  scanner.finish();
  EXPECT_GE(alerts_of(scanner), 1U) << "in the packet, which is outside of the window, and in the stream";
}

TEST(Evasion, DataAroundAGapIsNotJoined) {
  Scanner scanner(rules_of(kAttackRule));
  Conversation tcp(scanner);
  tcp.handshake();
  tcp.send({.payload = "we attack "});
  tcp.send({.at = 500, .payload = "at dawn"});
  tcp.acknowledge(true, 507);
  tcp.close();
  scanner.finish();
  EXPECT_EQ(alerts_of(scanner), 0U);
}

TEST(Evasion, DirectionsAreNotMixedUp) {
  Scanner scanner(rules_of(kAttackRule));
  Conversation tcp(scanner);
  tcp.handshake();
  tcp.send({.payload = "we attack "});
  tcp.send({.to_server = false, .payload = "at dawn"});
  tcp.close();
  scanner.finish();
  EXPECT_EQ(alerts_of(scanner), 0U);
}

// RFC 6093: hosts differ in how they use the pointer. The byte before it is out of band, and not in the stream.
TEST(Evasion, AnUrgentByteHidesNothing) {
  Scanner scanner(rules_of(kAttackRule));
  Conversation tcp(scanner);
  tcp.handshake();
  constexpr std::string_view kHidden = "we attXack at dawn";
  tcp.send({.payload = kHidden.substr(0, 7),
            .flags = TcpHeader::kAck | TcpHeader::kPsh | TcpHeader::kUrg,
            .acked = 0,
            .urgent = 7});
  tcp.send({.at = 7, .payload = kHidden.substr(7), .acked = 0});
  tcp.acknowledge(true, static_cast<std::uint32_t>(kHidden.size()));
  tcp.close();
  scanner.finish();
  EXPECT_EQ(alerts_of(scanner), 1U);
}

/// A UDP datagram in fragments of eight bytes, in any order.
TEST(Evasion, TinyFragmentsInAnyOrderHideNothing) {
  for (const bool reversed : {false, true}) {
    Scanner scanner(rules_of(R"(alert udp any any -> any 53 (content:"attack at dawn"; sid:1;))"));
    const Bytes whole = attack_datagram();
    constexpr std::size_t kData = 34;
    std::vector<std::size_t> starts;
    for (std::size_t at = kData; at < whole.size(); at += 8) starts.push_back(at);
    if (reversed) std::reverse(starts.begin(), starts.end());
    std::uint64_t now = 1'000'000'000;
    for (const std::size_t at : starts) {
      const std::size_t end = std::min(at + 8, whole.size());
      const auto field = static_cast<std::uint16_t>((at - kData) / 8 | (end < whole.size() ? 0x2000 : 0));
      Bytes frame = attack_fragment(field, Bytes(whole.begin() + static_cast<std::ptrdiff_t>(at),
                                                 whole.begin() + static_cast<std::ptrdiff_t>(end)));
      scanner.frame(frame, now += 1000);
    }
    scanner.finish();
    EXPECT_EQ(alerts_of(scanner), 1U) << reversed;
  }
}

/// The corpus' overlapping fragments, with two published models.
TEST(Evasion, OverlappingFragmentsAreSeenAsThePolicysHostsSeeThem) {
  const std::string folder = corpus();
  if (folder.empty()) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  const std::vector<std::pair<std::string, OverlapPolicy>> policies{
      {"first", OverlapPolicy::first},      {"last", OverlapPolicy::last},
      {"bsd", OverlapPolicy::bsd},          {"bsd-right", OverlapPolicy::bsd_right},
      {"linux", OverlapPolicy::linux_host}, {"windows", OverlapPolicy::windows},
      {"solaris", OverlapPolicy::solaris}};
  for (const auto& model : nlohmann::json::parse(std::ifstream(folder + "/reassembly/overlap_models.json"))) {
    std::string rules;
    std::vector<std::string> views;  // what the policies keep; the sid is the index
    std::map<std::string, std::size_t> sid_of;
    for (const auto& [name, policy] : policies) {
      std::string text;  // the first unit is the UDP header
      for (const char label : model.at("expected_units_by_policy").at(name).get<std::string>().substr(1)) {
        text += std::string(8, label);
      }
      if (std::find(views.begin(), views.end(), text) == views.end()) views.push_back(text);
      sid_of[name] = static_cast<std::size_t>(std::find(views.begin(), views.end(), text) - views.begin()) + 1;
    }
    for (std::size_t i = 0; i < views.size(); ++i) {
      rules += "alert udp any any -> any any (content:\"" + views[i] + "\"; dsize:" + std::to_string(views[i].size()) +
               "; sid:" + std::to_string(i + 1) + ";)\n";
    }
    for (const char* const version : {"v4", "v6"}) {
      for (const auto& [name, policy] : policies) {
        Scanner scanner(rules_of(rules), with_policy(policy));
        const std::string file =
            folder + "/reassembly/overlap_" + model.at("model").get<std::string>() + "_" + version + ".pcap";
        ASSERT_TRUE(scanner.capture(file)) << file;
        AlertCounts expected{{static_cast<std::uint32_t>(sid_of.at(name)), 1}};
        // The models are older than Linux 4.20, which discards overlapping fragments.
        if (policy == OverlapPolicy::linux_host) expected.clear();
        EXPECT_EQ(scanner.counts(), expected) << file << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace penstock::nids::test
