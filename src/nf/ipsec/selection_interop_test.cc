// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random policies, SAs and packets, given to a kernel: what it does with each packet must be what selection_core.h and
// the model say. SAs encrypt nothing, so the test makes their packets by hand. Skipped where there is no network
// namespace with IPsec policies; the tests with SAs also where the kernel has no ESP.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <numeric>
#include <random>
#include <set>

#include "base/text_file.h"
#include "nf/ipsec/kernel_for_test.h"
#include "nf/ipsec/model_terms_for_test.h"
#include "nf/ipsec/packets_for_test.h"
#include "nf/ipsec/policy_reader.h"
#include "nf/ipsec/selection.h"
#include "nf/ipsec/state_reader.h"

namespace penstock::ipsec {
namespace {

enum class Way : std::uint8_t { in, out };  // a round has policies of `in` and `fwd`, or of `out`

/// A packet: to the kernel itself, or on its way through; in the clear, or by an SA.
struct Probe {
  Flow flow;
  Direction direction = Direction::forward;
  std::optional<std::size_t> sa;
};

class Draw {
 public:
  Draw(unsigned seed, Way way) : random_(seed), way_(way) {}
  std::size_t any(std::size_t n) { return random_() % n; }
  bool chance(std::size_t n) { return any(n) == 0; }

  // Few of everything. The first 32 bits of the peers differ: that is all that Linux compares where the inner packet is
  // IPv4 and the tunnel IPv6.
  std::string peer(bool ipv6) {
    if (!ipv6) return fmt::format("198.51.100.{}", 1 + any(2));
    return chance(2) ? "2001:db8:64::1" : "2001:db9:64::2";
  }
  std::string local(bool ipv6) { return fmt::format("{}{}", ipv6 ? "2001:db8:2::" : "192.0.2.", 1 + any(2)); }
  std::string host(bool ipv6, unsigned net) {
    return fmt::format("{}{}{}{}", ipv6 ? "2001:db8:" : "", net, ipv6 ? "::" : ".0.0.", 1 + any(3));
  }
  static std::string anywhere(bool ipv6) { return ipv6 ? "::" : "0.0.0.0"; }

  /// Lines for `ip -batch`.
  std::string state(std::uint32_t spi) {
    const bool ipv6 = chance(2), transport = chance(3), in = way_ == Way::in;
    std::string source = in ? peer(ipv6) : local_source(ipv6);
    if (transport) source = chance(3) ? anywhere(ipv6) : host(ipv6, 20);
    const std::string destination = in ? local(ipv6) : transport ? host(ipv6, 30) : peer(ipv6);
    std::string text = fmt::format(
        "xfrm state add src {} dst {} proto esp spi {} reqid {} mode {} auth digest_null \"\" enc ecb(cipher_null) "
        "\"\"",
        source, destination, spi, any(3), transport ? "transport" : "tunnel");
    if (!transport && chance(2)) return text + " flag af-unspec";
    if (chance(3)) text += " sel " + selector(transport ? ipv6 : chance(2), transport && in);
    return text + "\n";
  }
  /// One for each selector and direction, as the kernel has it.
  std::string policies(std::size_t count) {
    std::set<std::string> selectors;
    std::string text;
    std::vector<std::size_t> priorities(count);
    std::iota(priorities.begin(), priorities.end(), 0);
    std::shuffle(priorities.begin(), priorities.end(), random_);
    while (selectors.size() < count) {
      const bool ipv6 = chance(2), here = way_ == Way::in && chance(2);
      const std::string chosen = selector(ipv6, here) + " dir " + (way_ == Way::out ? "out" : here ? "in" : "fwd");
      if (!selectors.insert(chosen).second) continue;
      text += fmt::format("xfrm policy add {} priority {} action {}", chosen, priorities[selectors.size() - 1],
                          chance(6) ? "block" : "allow");
      if (!chance(5)) text += " tmpl " + wanted(ipv6);
      text += "\n";
    }
    return text;
  }
  Probe probe(const std::vector<SecurityAssociation>& states) {
    Probe probe;
    if (way_ == Way::in && !states.empty() && !chance(3)) probe.sa = any(states.size());
    const bool transport = probe.sa && states[*probe.sa].mode == Mode::transport;
    if (transport || (way_ == Way::in && chance(2))) probe.direction = Direction::in;
    const bool ipv6 = transport ? is_ipv6(states[*probe.sa].destination) : chance(2);
    const std::string source = host(ipv6, 20);
    const std::string destination = transport                          ? to_string(states[*probe.sa].destination)
                                    : probe.direction == Direction::in ? local(ipv6)
                                                                       : host(ipv6, 30);
    fill(probe.flow, ipv6, source, destination, probe.direction == Direction::forward && chance(4));
    return probe;
  }

 private:
  /// What the kernel chooses itself where a template leaves it open.
  static std::string local_source(bool ipv6) { return ipv6 ? "2001:db8:2::1" : "192.0.2.1"; }

  std::string prefix(bool ipv6, const std::string& address) {
    if (chance(3)) return anywhere(ipv6) + "/0";
    if (chance(2))
      return ipv6 ? address.substr(0, address.rfind(':') + 1) + "/64" : address.substr(0, address.rfind('.')) + ".0/24";
    return address + (ipv6 ? "/128" : "/32");
  }
  std::string selector(bool ipv6, bool here) {
    std::string text =
        fmt::format("src {} dst {}", prefix(ipv6, host(ipv6, 20)), prefix(ipv6, here ? local(ipv6) : host(ipv6, 30)));
    if (chance(2)) return text;
    if (chance(3)) {
      text += ipv6 ? " proto ipv6-icmp" : " proto icmp";
      if (chance(2)) text += fmt::format(" type {}", icmp_type(ipv6));
      if (text.find("type") != std::string::npos && chance(2)) text += fmt::format(" code {}", any(2));
      return text;
    }
    text += chance(3) ? " proto tcp" : " proto udp";
    if (chance(3)) text += fmt::format(" sport {}", 1 + any(2));
    if (chance(3)) text += fmt::format(" dport {}", 1 + any(2));
    return text;
  }
  /// Answers to echoes, and echoes; of IPv6 also one without a meaning.
  std::size_t icmp_type(bool ipv6) { return ipv6 ? std::array<std::size_t, 3>{128, 129, 200}[any(3)] : any(2) * 8; }

  std::string wanted(bool selector_is_ipv6) {
    const bool transport = chance(3);
    const bool ipv6 = transport ? selector_is_ipv6 : chance(2), in = way_ == Way::in;
    const std::string source = chance(3) ? anywhere(ipv6) : in ? peer(ipv6) : local(ipv6);
    const std::string destination = chance(in ? 3 : 8) ? anywhere(ipv6) : in ? local(ipv6) : peer(ipv6);
    std::string text = fmt::format("src {} dst {} proto esp", source, destination);
    if (chance(8)) text += fmt::format(" spi {}", 256 + any(8));
    text += fmt::format(" reqid {} mode {}", any(3), transport ? "transport" : "tunnel");
    // Newer kernels refuse tunnels of `level use` outward.
    return text + (chance(4) && (in || transport) ? " level use" : "");
  }
  void fill(Flow& flow, bool ipv6, const std::string& source, const std::string& destination, bool fragment) {
    flow.source = ipv6 ? IpAddress(*parse_ipv6(source)) : IpAddress(*parse_ipv4(source));
    flow.destination = ipv6 ? IpAddress(*parse_ipv6(destination)) : IpAddress(*parse_ipv4(destination));
    auto builder = testing::packet().eth();
    const bool first_of_all = chance(2);
    if (ipv6) {
      builder.ipv6(source, destination);
      if (fragment) builder.fragment6(first_of_all ? 1 : 8);
    } else {
      builder.ipv4(source, destination, 64, {}, static_cast<std::uint16_t>(!fragment ? 0 : first_of_all ? 0x2000 : 1));
    }
    std::uint16_t first = static_cast<std::uint16_t>(1 + any(3)), second = static_cast<std::uint16_t>(1 + any(3));
    switch (any(3)) {
      case 0:
        flow.protocol = ip_protocol::kTcp;
        builder.tcp(first, second);
        break;
      case 1:
        flow.protocol = ip_protocol::kUdp;
        builder.udp(first, second);
        break;
      default:
        flow.protocol = ipv6 ? ip_protocol::kIcmpv6 : ip_protocol::kIcmp;
        first = static_cast<std::uint16_t>(icmp_type(ipv6));
        second = static_cast<std::uint16_t>(any(2));
        builder.icmp(static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(second));
    }
    if (!fragment) {
      flow.first = first;
      flow.second = second;
    }
    flow.frame = builder.payload("12345678").bytes();
  }

  std::mt19937 random_;
  Way way_;
};

constexpr std::size_t kEthernet = 14;
std::size_t header_bytes(bool ipv6) { return ipv6 ? 40 : 20; }

//  inner packet (tunnel), or what follows its IP header (transport)
//  │                 padding: 1, 2, …
//  ▼                 ▼
// ┌─────┬──────────┬─────────┬─────────┬────────┬─────────────┐
// │ IP  │ SPI, seq │ payload │ padding │ length │ next header │   no ICV
// └─────┴──────────┴─────────┴─────────┴────────┴─────────────┘
Bytes by_sa(const Flow& flow, const SecurityAssociation& sa, std::uint32_t sequence) {
  const bool ipv6 = is_ipv6(flow.source), tunnel = sa.mode == Mode::tunnel;
  const std::size_t payload_at = kEthernet + (tunnel ? 0 : header_bytes(ipv6));
  Bytes esp;
  for (const std::uint32_t word : {sa.spi, sequence}) {
    for (int shift = 24; shift >= 0; shift -= 8) esp.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  esp.insert(esp.end(), flow.frame.begin() + static_cast<std::ptrdiff_t>(payload_at), flow.frame.end());
  std::uint8_t padding = 0;
  while (esp.size() % 4 != 2) esp.push_back(++padding);
  esp.push_back(padding);
  esp.push_back(!tunnel ? flow.protocol : ipv6 ? ip_protocol::kIpv6 : ip_protocol::kIpv4);
  const std::string source = to_string(tunnel ? sa.source : flow.source);
  auto builder = testing::packet().eth();
  if (is_ipv6(sa.destination)) {
    builder.ipv6(source, to_string(sa.destination));
  } else {
    builder.ipv4(source, to_string(sa.destination));
  }
  return builder.protocol(ip_protocol::kEsp).raw(esp).bytes();
}

/// What has left instead of the packet: "spi N", "clear", or nothing where it is none of the packet's.
std::string what_left(const Bytes& frame, const Flow& flow) {
  if (frame.size() < kEthernet + 20) return "";
  const bool ipv6 = frame[kEthernet] >> 4 == 6;
  std::size_t at = kEthernet + header_bytes(ipv6);
  std::uint8_t protocol = frame[kEthernet + (ipv6 ? 6 : 9)];
  if (ipv6 && protocol == ip_protocol::kFragment && frame.size() > at + 8) {
    protocol = frame[at];
    at += 8;
  }
  if (protocol == ip_protocol::kEsp && frame.size() >= at + 4) {
    return fmt::format("spi {}", frame[at] << 24 | frame[at + 1] << 16 | frame[at + 2] << 8 | frame[at + 3]);
  }
  const std::size_t addresses = kEthernet + (ipv6 ? 8 : 12), end = kEthernet + header_bytes(ipv6);
  const bool same = frame.size() >= end && flow.frame.size() >= end &&
                    std::equal(&frame[addresses], &frame[end], &flow.frame[addresses]);
  return same ? "clear" : "";
}

/// The counter that has grown, or what has left, or "accepted" for packets to the kernel itself.
std::string answer_of(const FarEnd& far, const Probe& probe, const std::vector<SecurityAssociation>& states,
                      std::uint32_t sequence) {
  const auto before = xfrm_counters();
  const bool tunnel = probe.sa && states[*probe.sa].mode == Mode::tunnel;
  const unsigned long expected = received() + (tunnel ? 2 : 1);
  while (!far.receive().empty()) {
  }
  if (!far.send(probe.sa ? by_sa(probe.flow, states[*probe.sa], sequence) : probe.flow.frame)) return "not sent";
  for (int tries = 0; tries < 2000; ++tries) {
    const bool is_through = received() >= expected;
    std::string grown;
    for (const auto& [name, value] : xfrm_counters()) {
      if (value != before.at(name)) grown += name;
    }
    if (!grown.empty()) return grown;
    if (is_through && probe.direction == Direction::in) return "accepted";
    for (Bytes frame = far.receive(); !frame.empty(); frame = far.receive()) {
      if (std::string left = what_left(frame, probe.flow); !left.empty()) return left;
    }
    ::sched_yield();
  }
  return "lost";
}

struct Tables {
  std::vector<SecurityAssociation> states;
  std::vector<Policy> policies;
};
std::optional<Tables> read_tables(const std::string& folder) {
  const std::string state_text = read_text_file(folder + "/state.txt").value_or("");
  const std::string policy_text = read_text_file(folder + "/policy.txt").value_or("");
  Tables tables;
  if (!state_text.empty()) {
    auto states = parse_states(state_text, "state.txt");
    if (!states || !states->unsupported.empty()) return std::nullopt;
    tables.states = std::move(states->value);
  }
  auto policies = parse_policies(policy_text, "policy.txt");
  if (!policies || !policies->unsupported.empty()) return std::nullopt;
  tables.policies = std::move(policies->value);
  return tables;
}

constexpr int kNotHere = 77;
constexpr int kProbes = 250;

/// In a process of its own: asks the kernel, and writes a line for each packet.
int ask_kernel(Way way, unsigned seed, bool with_sas, const std::string& folder) {
  ::alarm(120);
  if (!enter_namespace()) return kNotHere;
  Draw draw(seed, way);
  std::string states;
  for (std::uint32_t i = 0; with_sas && i < 14; ++i) states += draw.state(256 + i) + "\n";
  std::ofstream(folder + "/states") << states;
  std::ofstream(folder + "/policies") << draw.policies(36);
  if (!runs("ip -batch " + folder + "/states && ip xfrm state >" + folder + "/state.txt")) return kNotHere;
  if (!runs("ip -batch " + folder + "/policies && ip xfrm policy >" + folder + "/policy.txt")) return 1;
  const std::optional<Tables> tables = read_tables(folder);
  if (!tables) return 2;
  const FarEnd far;
  std::ofstream answers(folder + "/answers");
  Draw packets(seed + 1'000'000, way);
  for (std::uint32_t i = 1; i <= kProbes; ++i) {
    answers << answer_of(far, packets.probe(tables->states), tables->states, i) << std::endl;
  }
  return 0;
}

firewall::Key key_of(const Flow& flow) {
  const RoomyFrame frame(flow.frame);
  firewall::Key key;
  make_selector_key(frame.view, key);
  return key;
}

std::string name_of(model::Inbound decision) {
  switch (decision) {
    case model::Inbound::accept: return "accepted";
    case model::Inbound::state_mismatch: return "XfrmInStateMismatch";
    case model::Inbound::no_policy: return "XfrmInNoPols";
    case model::Inbound::policy_block: return "XfrmInPolBlock";
    case model::Inbound::template_mismatch: break;
  }
  return "XfrmInTmplMismatch";
}

class KernelSelection : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void compare(Way way, bool with_sas, unsigned rounds) {
    for (unsigned seed = 0; seed < rounds && !HasFatalFailure(); ++seed) {
      SCOPED_TRACE(fmt::format("seed {}", seed));
      const pid_t child = ::fork();
      if (child == 0) ::_exit(ask_kernel(way, seed, with_sas, folder_));
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (WIFEXITED(status) && WEXITSTATUS(status) == kNotHere) {
        GTEST_SKIP() << "no network namespace with IPsec policies here, or no ESP";
      }
      ASSERT_EQ(status, 0);
      const std::optional<Tables> tables = read_tables(folder_);
      ASSERT_TRUE(tables);
      compare(way, seed, *tables);
    }
  }

  std::map<std::string, unsigned> answered_;

 private:
  void compare(Way way, unsigned seed, const Tables& tables) {
    const model::Database database = database_of(tables.states, tables.policies);
    const auto in = selection_of(tables, Direction::in), forward = selection_of(tables, Direction::forward);
    const auto out = selection_of(tables, Direction::out);
    const std::string answers = read_text_file(folder_ + "/answers").value_or("");
    LineReader lines(answers);
    Draw packets(seed + 1'000'000, way);
    for (int i = 0; i < kProbes && !HasFatalFailure(); ++i) {
      const Probe probe = packets.probe(tables.states);
      Line line;
      ASSERT_TRUE(lines.next(line));
      const std::string answer(line.text);
      SCOPED_TRACE(fmt::format(
          "packet {}: {} -> {} protocol {} {} {} SA {}\n{}{}", i, to_string(probe.flow.source),
          to_string(probe.flow.destination), probe.flow.protocol, probe.flow.first.value_or(9999),
          probe.flow.second.value_or(9999), probe.sa ? std::to_string(tables.states[*probe.sa].spi) : "none",
          read_text_file(folder_ + "/states").value_or(""), read_text_file(folder_ + "/policies").value_or("")));
      if (way == Way::out) {
        outward(*out, tables, database, probe.flow, answer);
      } else {
        inward(probe.direction == Direction::in ? *in : *forward, database, probe, answer);
      }
    }
  }

  static std::unique_ptr<const Selection> selection_of(const Tables& tables, Direction direction) {
    std::vector<Policy> policies = tables.policies;
    std::erase_if(policies, [&](const Policy& policy) { return policy.direction != direction; });
    SelectionSources sources;
    sources.states = tables.states;
    sources.policies = policies;
    auto built = Selection::build(sources, direction != Direction::out);
    EXPECT_TRUE(built) << to_string(built.error());
    return std::move(built->value);
  }

  void inward(const Selection& selection, const model::Database& database, const Probe& probe,
              const std::string& answer) {
    const firewall::Key key = key_of(probe.flow);
    std::uint32_t policy = kNoPolicy;
    selection.find_policies({&key, 1}, &policy);
    const auto sa = probe.sa ? static_cast<std::uint32_t>(*probe.sa) : kNoSa;
    const Reason reason = check_inbound(selection.view(), policy, key, sa);
    const auto applied = probe.sa ? std::vector<std::size_t>{*probe.sa} : std::vector<std::size_t>{};
    std::string expected =
        name_of(model::check_inbound(database, direction_of(probe.direction), packet_of(probe.flow), applied));
    // A packet of another family than the SA's selector is dropped where its tunnel's header is removed.
    const bool other_family =
        probe.sa && database.states[*probe.sa].selector &&
        database.states[*probe.sa].selector->source.address.family != address_of(probe.flow.source).family;
    if (other_family) expected = "XfrmInStateModeError";
    ++answered_[expected];
    if (expected == "accepted" && probe.direction == Direction::forward) expected = "clear";
    ASSERT_EQ(answer, expected);
    const bool mismatch = reason == Reason::policy_mismatch || reason == Reason::not_protected;
    ASSERT_EQ(reason == Reason::none        ? "accepted"
              : reason == Reason::blocked   ? "XfrmInPolBlock"
              : reason == Reason::no_policy ? "XfrmInNoPols"
                                            : "a mismatch",
              answer == "clear"                                            ? "accepted"
              : mismatch && (answer.ends_with("Mismatch") || other_family) ? "a mismatch"
                                                                           : answer);
  }

  void outward(const Selection& selection, const Tables& tables, const model::Database& database, const Flow& flow,
               const std::string& answer) {
    const firewall::Key key = key_of(flow);
    std::uint32_t policy = kNoPolicy;
    selection.find_policies({&key, 1}, &policy);
    Selected selected;
    if (policy != kNoPolicy) {
      selected = select_outbound(selection.view(), policy, key, [](std::uint32_t) { return SaStatus::valid; });
    }
    const model::Outbound expected = model::decide_outbound(database, packet_of(flow));
    ++answered_[answer.starts_with("spi") ? "protected" : answer];
    if (answer.starts_with("spi")) {
      const auto sa = static_cast<std::uint32_t>(
          std::ranges::find(tables.states, std::stoul(answer.substr(4)), &SecurityAssociation::spi) -
          tables.states.begin());
      ASSERT_NE(std::ranges::find(expected.states, sa), expected.states.end()) << answer;
      ASSERT_NE(std::ranges::find(expected.states, selected.sa), expected.states.end());
      return;
    }
    ASSERT_EQ(selected.sa, kNoSa) << answer;
    switch (expected.action) {
      case model::Outbound::Action::clear: ASSERT_EQ(answer, "clear"); break;
      case model::Outbound::Action::blocked: ASSERT_EQ(answer, "XfrmOutPolBlock"); break;
      case model::Outbound::Action::no_endpoint:
      case model::Outbound::Action::no_state: ASSERT_EQ(answer, "XfrmOutNoStates"); break;
      case model::Outbound::Action::protect: ASSERT_EQ(answer, "an SPI"); break;
    }
    ASSERT_EQ(selected.reason == Reason::none, answer == "clear");
    ASSERT_EQ(selected.reason == Reason::blocked, answer == "XfrmOutPolBlock");
  }

  std::string folder_ = ::testing::TempDir() + "/selection_XXXXXX";
};

TEST_F(KernelSelection, DropsInwardWhatOursDropsWithoutSas) {
  compare(Way::in, false, 12);
  if (IsSkipped()) return;
  for (const char* const answer : {"accepted", "XfrmInPolBlock", "XfrmInTmplMismatch"}) {
    EXPECT_GT(answered_[answer], 50U) << answer;
  }
}

TEST_F(KernelSelection, DropsOutwardWhatOursDropsWithoutSas) {
  compare(Way::out, false, 12);
  if (IsSkipped()) return;
  for (const char* const answer : {"clear", "XfrmOutPolBlock", "XfrmOutNoStates"}) {
    EXPECT_GT(answered_[answer], 50U) << answer;
  }
}

TEST_F(KernelSelection, AcceptsInwardBySaWhatOursAccepts) {
  compare(Way::in, true, 40);
  if (IsSkipped()) return;
  for (const char* const answer :
       {"accepted", "XfrmInPolBlock", "XfrmInTmplMismatch", "XfrmInNoPols", "XfrmInStateMismatch"}) {
    EXPECT_GT(answered_[answer], 50U) << answer;
  }
}

TEST_F(KernelSelection, ProtectsOutwardByTheSasOfOurs) {
  compare(Way::out, true, 40);
  if (IsSkipped()) return;
  for (const char* const answer : {"clear", "protected", "XfrmOutPolBlock", "XfrmOutNoStates"}) {
    EXPECT_GT(answered_[answer], 50U) << answer;
  }
}

}  // namespace
}  // namespace penstock::ipsec
