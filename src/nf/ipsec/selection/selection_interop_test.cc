// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random policies, SAs and packets, given to a kernel: what it does with each packet must be what selection_core.h and
// the model say. SAs encrypt nothing, so the test makes their packets by hand. Skipped where there is no network
// namespace with IPsec policies; the tests with SAs also where the kernel has no ESP.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/text_file.h"
#include "nf/ipsec/esp/packets_for_test.h"
#include "nf/ipsec/kernel_for_test.h"
#include "nf/ipsec/selection/kernel_draw_for_test.h"
#include "nf/ipsec/selection/model_terms_for_test.h"
#include "nf/ipsec/selection/selection.h"
#include "nf/ipsec/xfrm/policy_reader.h"
#include "nf/ipsec/xfrm/state_reader.h"

namespace penstock::ipsec {
namespace {

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

/// What left instead of the packet: "spi N", "clear", or empty if nothing of the packet's left.
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

/// The counter that grew, or what left, or "accepted" for packets to the kernel itself.
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

/// Runs in a separate process: passes the packets to the kernel, and writes one line for each.
int ask_kernel(Way way, unsigned seed, bool with_sas, const std::string& folder) {
  ::alarm(120);
  if (!enter_namespace()) return kNotHere;
  KernelDraw draw(seed, way);
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
  KernelDraw packets(seed + 1'000'000, way);
  for (std::uint32_t i = 1; i <= kProbes; ++i) {
    answers << answer_of(far, packets.probe(tables->states), tables->states, i) << std::endl;
  }
  return 0;
}

classify::Key key_of(const Flow& flow) {
  const RoomyFrame frame(flow.frame);
  classify::Key key;
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
    KernelDraw packets(seed + 1'000'000, way);
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
    const classify::Key key = key_of(probe.flow);
    std::uint32_t policy = kNoPolicy;
    selection.find_policies({&key, 1}, &policy);
    const auto sa = probe.sa ? static_cast<std::uint32_t>(*probe.sa) : kNoSa;
    const Reason reason = check_inbound(selection.view(), policy, key, sa);
    const auto applied = probe.sa ? std::vector<std::size_t>{*probe.sa} : std::vector<std::size_t>{};
    std::string expected =
        name_of(model::check_inbound(database, direction_of(probe.direction), packet_of(probe.flow), applied));
    const auto& selector = probe.sa ? database.states[*probe.sa].selector : std::nullopt;
    if (selector && selector->source.address.family != address_of(probe.flow.source).family) {
      // Linux compares the bits of addresses of different families.
      ASSERT_EQ(reason, Reason::policy_mismatch);
      ASSERT_EQ(expected, "XfrmInStateMismatch");
      return;
    }
    ++answered_[expected];
    if (expected == "accepted" && probe.direction == Direction::forward) expected = "clear";
    ASSERT_EQ(answer, expected);
    switch (reason) {
      case Reason::none: ASSERT_TRUE(answer == "accepted" || answer == "clear") << answer; break;
      case Reason::blocked: ASSERT_EQ(answer, "XfrmInPolBlock"); break;
      case Reason::no_policy: ASSERT_EQ(answer, "XfrmInNoPols"); break;
      case Reason::not_protected: ASSERT_EQ(answer, "XfrmInTmplMismatch"); break;
      case Reason::policy_mismatch:
        ASSERT_TRUE(answer == "XfrmInTmplMismatch" || answer == "XfrmInStateMismatch") << answer;
        break;
      default: FAIL() << "another reason";
    }
  }

  void outward(const Selection& selection, const Tables& tables, const model::Database& database, const Flow& flow,
               const std::string& answer) {
    const classify::Key key = key_of(flow);
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
      case model::Outbound::Action::no_state:
        // Fails if another SA has the template's SPI.
        ASSERT_TRUE(answer == "XfrmOutNoStates" || answer == "XfrmOutPolError") << answer;
        break;
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
