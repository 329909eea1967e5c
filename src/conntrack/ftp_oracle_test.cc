// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The helper of FTP, compared with the kernel's: with and without NAT, what leaves must be the same, byte for byte, and
// so must the connections that both remember; connections that are not expected do not pass. Lines have mistakes of all
// kinds. Hosts check as well that the bytes of their connection are numbered without gaps. Needs root and nft; see
// nat_oracle_test.cc.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "conntrack/testing/ftp_traffic.h"
#include "conntrack/testing/nat_comparison.h"

namespace penstock::conntrack {
namespace {

using FtpOracle = KernelTest<NatKernel>;

struct Setting {
  NatRuleSet rules;
  bool client_inside = true;
  bool to_public = false;  // the server has a public address
};

std::vector<Setting> settings() {
  const NatStatement none;
  const NatStatement snat{"snat", {"198.51.100.1", "2001:db8:1::1"}, {"198.51.100.1", "2001:db8:1::1"}};
  const NatStatement long_snat{
      "snat", {"198.51.100.201", "2001:db8:1::1:2:3:4"}, {"198.51.100.201", "2001:db8:1::1:2:3:4"}};
  const NatStatement masquerade{"masquerade", {}, {}};
  const NatStatement dnat{"dnat", {"10.1.0.1", "2001:db8::1"}, {"10.1.0.1", "2001:db8::1"}};
  return {
      {{"no NAT", none, none, true, true}, true, false},
      {{"no NAT, client outside", none, none, true, true}, false, false},
      {{"source", none, snat, true, true}, true, false},
      {{"source, longer", none, long_snat, true, true}, true, false},
      {{"masquerade", none, masquerade, true, true}, true, false},
      {{"destination", dnat, none, true, true}, false, true},
      {{"both", dnat, snat, true, true}, false, true},
  };
}

std::string numbers_of(const std::string& address, std::uint16_t port) {
  std::string text = address;
  std::ranges::replace(text, '.', ',');
  return fmt::format("{},{},{}", text, port >> 8, port & 0xff);
}

/// Without mistakes.
std::string announcement(const FtpSession& session, bool client, bool extended, std::uint16_t port) {
  const std::string& own = session.address_of(client);
  extended |= session.is_v6();
  if (client && extended) return fmt::format("EPRT |{}|{}|{}|\r\n", session.is_v6() ? 2 : 1, own, port);
  if (client) return fmt::format("PORT {}\r\n", numbers_of(own, port));
  if (extended) return fmt::format("229 Entering Extended Passive Mode (|||{}|)\r\n", port);
  return fmt::format("227 Entering Passive Mode ({}).\r\n", numbers_of(own, port));
}

/// With a mistake, or another way to say it.
std::string changed(Random& random, std::string line) {
  const auto length = static_cast<std::uint32_t>(line.size());
  constexpr std::string_view kBytes = "0123456789,,..||()  \r\nPORTEPRTport22:x/";
  switch (random.below(12)) {
    case 0: return line.substr(0, random.below(length) + 1);
    case 1: line[random.below(length)] = kBytes[random.below(kBytes.size())]; return line;
    case 2: line.insert(random.below(length), 1, kBytes[random.below(kBytes.size())]); return line;
    case 3: line.erase(random.below(length), 1 + random.below(3)); return line;
    case 4: std::ranges::replace(line, '|', "!:1.a,"[random.below(6)]); return line;
    case 5:
      for (char& c : line) c = static_cast<char>(std::tolower(c));
      return line;
    case 6: return line + line;
    case 7: return random.one_in(2) ? line.substr(0, line.size() - 1) : line.substr(0, line.size() - 2) + "\n";
    case 8: return line + "NOOP\r\n";
    case 9: return random.one_in(2) ? "227 =" + line.substr(line.find_first_of("123456789", 4)) : "PORT  " + line;
    case 10: return line.substr(0, 5) + "0" + line.substr(5);
    default: return "NOOP\r\n" + line;
  }
}

/// What we refuse and Linux does not, or reads otherwise: a port of 0, and PORT in a connection of IPv6.
bool differs(const FtpSession& session, const std::string& line) {
  const std::string start = line.substr(0, 4);
  const bool old_form = strncasecmp(start.c_str(), "port", 4) == 0 || start == "227 ";
  return old_form &&
         (session.is_v6() || line.find(",0,0") != std::string::npos || line.find(",,") != std::string::npos);
}

class Conversation {
 public:
  Conversation(Random& random, FtpSession& session, std::uint16_t first_port)
      : random_(random), session_(session), port_(first_port) {}

  void step() {
    const bool client = random_.one_in(2);
    switch (random_.below(10)) {
      case 0: session_.acknowledge(client, 0, random_.one_in(2)); return;
      case 1: say(client, client ? "NOOP\r\n" : "200 ok\r\n"); return;
      case 2: say(client, client ? "RETR a" : "200-a\r\n200 "); return;
      case 3: connect(!client, session_.is_v6() ? "EPRT |2|2001:db8::9|7777|\r\n" : "PORT 10,1,0,1,30,30\r\n"); return;
      case 4:
      case 5: {
        const std::string line = changed(random_, announcement(session_, client, random_.one_in(2), next_port()));
        if (!line.empty() && !differs(session_, line)) say(client, line);
        say(client, "x\r\n");
        return;
      }
      default: announce(client); return;
    }
  }

 private:
  std::uint16_t next_port() { return port_ += static_cast<std::uint16_t>(1 + random_.below(40)); }

  void announce(bool client) {
    const std::string line = announcement(session_, client, random_.one_in(2), next_port());
    std::optional<std::string> got = say(client, line);
    if (got && random_.one_in(5)) got = session_.say(client, line, false, true);  // as if it had been lost
    if (random_.one_in(3)) session_.acknowledge(!client, 0, random_.one_in(2));
    if (!got || random_.one_in(4)) return;
    connect(!client, *got);
    if (random_.one_in(4)) connect(!client, *got);  // it is expected once
  }
  std::optional<std::string> say(bool client, const std::string& text) {
    return session_.say(client, text, random_.one_in(4));
  }
  void connect(bool client, const std::string& line) {
    const auto from_port = static_cast<std::uint16_t>(client ? 40'000 + ++connections_ : 20'000 + ++connections_);
    session_.connect(client, line, from_port, !random_.one_in(5));
  }

  Random& random_;
  FtpSession& session_;
  std::uint16_t port_;
  std::uint16_t connections_ = 0;
};

TEST_F(FtpOracle, HelpsAlike) {
  constexpr std::size_t kSteps = 40;
  Counters all;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (const Setting& setting : settings()) {
      for (const bool v6 : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, IPv{}, seed {}, round {}", setting.rules.name, v6 ? 6 : 4, seed, round));
        Random random(seed + round * 100 + (v6 ? 50 : 0));
        NatComparison comparison(*kernel, setting.rules);
        const auto send = [&](Side side, const Packet& packet) { return comparison.send(side, packet); };
        const std::string inside = v6 ? "2001:db8::1" : "10.1.0.1", outside = v6 ? "2001:db8:2::1" : "10.2.0.1";
        const std::string server =
            setting.to_public ? (v6 ? "2001:db8:1::9" : "198.51.100.9") : (setting.client_inside ? outside : inside);
        const Side side = setting.client_inside ? Side::inside : Side::outside;
        const std::string client = setting.client_inside ? inside : outside;
        FtpSession session(send, side, {client, server, 3'000, 21}, random.one_in(2) ? 0xffffff80 : 1'000);
        ASSERT_TRUE(session.open());
        ASSERT_TRUE(session.say(false, "220 hello\r\n"));
        ASSERT_TRUE(session.say(true, "USER me\r\n"));
        Conversation conversation(random, session, static_cast<std::uint16_t>(1'000 + random.below(40'000)));
        for (std::size_t i = 0; i < kSteps && comparison.same() && !HasFailure(); ++i) conversation.step();
        if (!comparison.same() || HasFailure()) return;
        const Counters& counters = comparison.counters();
        all.announced += counters.announced;
        all.arrived += counters.arrived;
        all.incomplete_announcements += counters.incomplete_announcements;
      }
    }
  }
  fmt::print("{} announcements, {} of them in vain, {} not complete\n", all.announced, all.announced - all.arrived,
             all.incomplete_announcements);
  EXPECT_GT(all.arrived, 50);
  EXPECT_GT(all.announced, all.arrived);
  EXPECT_GT(all.incomplete_announcements, 5);
}

}  // namespace
}  // namespace penstock::conntrack
