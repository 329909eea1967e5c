// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the kernel does with packets that come in the clear, to itself and on their way through, under random policies
// of `in` and `fwd`: what it drops and which counter it counts that with (/proc/net/xfrm_stat) must be what
// check_inbound and the model say. In a network namespace of the test's own; skipped where there is none with IPsec
// policies.
//
//     test ──frame──▶ far ══ near ─▶ 10.0.0.1: policies `in`
//                                  └▶ 30.0.0.1 by the default route: policies `fwd`

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "nf/ipsec/packets_for_test.h"
#include "nf/ipsec/policy_reader.h"
#include "nf/ipsec/selection.h"

namespace penstock::ipsec {
namespace {

using penstock::testing::packet;

struct Flow {
  std::string source, destination;
  std::uint16_t source_port = 0, destination_port = 0;
  bool through = false;  // to another host
};

/// Packets and policies of few addresses and ports.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  std::size_t any(std::size_t n) { return random_() % n; }

  Flow flow() {
    Flow flow;
    flow.through = any(2) == 0;
    flow.source = fmt::format("20.0.{}.{}", any(2), 1 + any(3));
    flow.destination = flow.through ? fmt::format("30.0.{}.{}", any(2), 1 + any(3)) : "10.0.0.1";
    flow.source_port = static_cast<std::uint16_t>(5000 + any(3));
    flow.destination_port = static_cast<std::uint16_t>(6000 + any(3));
    return flow;
  }
  /// A line for `ip -batch`; the kernel takes no two of one selector and direction.
  std::string policy() {
    const bool through = any(2) == 0;
    std::string text = fmt::format("src {} dst {}", prefix("20.0"), through ? prefix("30.0") : "10.0.0.0/24");
    if (any(2) == 0) text += " proto udp";
    if (text.ends_with("udp") && any(2) == 0) text += fmt::format(" dport {}", 6000 + any(3));
    text += fmt::format(" dir {}", through ? "fwd" : "in");
    const std::string rest = fmt::format(" priority {} action {}", any(3), any(4) == 0 ? "block" : "allow");
    if (any(3) == 0) return text + rest;
    const bool tunnel = any(3) > 0;
    return text + rest +
           fmt::format(" tmpl src {} dst {} proto esp reqid {} mode {} level {}", endpoint(), endpoint(), any(2),
                       tunnel ? "tunnel" : "transport", any(3) == 0 ? "use" : "required");
  }

 private:
  std::string prefix(const std::string& net) {
    switch (any(3)) {
      case 0: return net + ".0.0/16";
      case 1: return fmt::format("{}.{}.0/24", net, any(2));
      default: return fmt::format("{}.{}.{}/32", net, any(2), 1 + any(3));
    }
  }
  std::string endpoint() { return any(2) == 0 ? "0.0.0.0" : "192.0.2.1"; }

  std::mt19937 random_;
};

// In the namespace.

/// A counter of "Name value" lines.
unsigned long xfrm_counter(const std::string& name) {
  std::ifstream file("/proc/net/xfrm_stat");
  std::string found;
  for (unsigned long value = 0; file >> found >> value;) {
    if (found == name) return value;
  }
  return 0;
}

/// IP packets that have come in, of all kinds.
unsigned long received() {
  std::ifstream file("/proc/net/snmp");
  std::string names, values;
  while (std::getline(file, names) && std::getline(file, values)) {
    if (!names.starts_with("Ip:")) continue;
    std::istringstream name_words(names), value_words(values);
    for (std::string name, value; name_words >> name && value_words >> value;) {
      if (name == "InReceives") return std::stoul(value);
    }
  }
  return 0;
}

bool runs(const std::string& command) { return std::system(("{ " + command + "; } >/dev/null 2>&1").c_str()) == 0; }

/// A frame that `near` takes for its own.
class Injector {
 public:
  Injector() : fd_(::socket(AF_PACKET, SOCK_RAW, 0)) {
    ifreq request{};
    std::strncpy(request.ifr_name, "near", sizeof request.ifr_name - 1);
    is_ready_ = fd_ >= 0 && ::ioctl(fd_, SIOCGIFHWADDR, &request) == 0;
    std::memcpy(mac_, request.ifr_hwaddr.sa_data, sizeof mac_);
    to_.sll_family = AF_PACKET;
    to_.sll_ifindex = static_cast<int>(::if_nametoindex("far"));
  }
  ~Injector() { ::close(fd_); }
  Injector(const Injector&) = delete;
  Injector& operator=(const Injector&) = delete;

  [[nodiscard]] bool send(Bytes frame) const {
    std::copy(std::begin(mac_), std::end(mac_), frame.begin());
    const auto* const to = reinterpret_cast<const sockaddr*>(&to_);
    return is_ready_ && ::sendto(fd_, frame.data(), frame.size(), 0, to, sizeof to_) > 0;
  }

 private:
  int fd_;
  bool is_ready_ = false;
  std::uint8_t mac_[6] = {};
  sockaddr_ll to_{};
};

Bytes frame_of(const Flow& flow) {
  return packet()
      .eth()
      .ipv4(flow.source, flow.destination)
      .udp(flow.source_port, flow.destination_port)
      .payload("x")
      .bytes();
}

const char* const kCounters[] = {"XfrmInTmplMismatch", "XfrmInPolBlock", "XfrmInNoPols", "XfrmInStateMismatch"};

/// What becomes of each flow's packet, as a line: the counter that has grown, or "accepted". False: not here.
bool ask_kernel(const std::string& commands, const std::vector<Flow>& flows, const std::string& folder) {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  // On one processor, a packet that has been counted has been through.
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &one);
  if (::sched_setaffinity(0, sizeof one, &one) != 0) return false;
  if (!runs("ip link add far type veth peer name near && ip link set far up && ip link set near up && "
            "ip addr add 10.0.0.1/24 dev near && ip route add default dev near && "
            "echo 1 >/proc/sys/net/ipv4/ip_forward && echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter && "
            "echo 0 >/proc/sys/net/ipv4/conf/near/rp_filter")) {
    return false;
  }
  std::ofstream(folder + "/commands") << commands;
  if (!runs("ip -batch " + folder + "/commands")) return false;
  if (!runs("ip xfrm policy >" + folder + "/policy.txt")) return false;
  if (xfrm_counter("XfrmInError") == 0 && !std::filesystem::exists("/proc/net/xfrm_stat")) return false;
  const Injector injector;
  std::ofstream answers(folder + "/answers");
  for (const Flow& flow : flows) {
    std::map<std::string, unsigned long> before;
    for (const char* const counter : kCounters) before[counter] = xfrm_counter(counter);
    const unsigned long packets = received();
    if (!injector.send(frame_of(flow))) return false;
    while (received() == packets) ::sched_yield();
    std::string answer = "accepted";
    for (const char* const counter : kCounters) {
      if (xfrm_counter(counter) != before[counter]) answer = counter;
    }
    answers << answer << "\n";
  }
  return true;
}

/// What check_inbound says, in the kernel's words.
std::string ours(const Selection& selection, const Flow& flow) {
  const RoomyFrame frame(frame_of(flow));
  firewall::Key key;
  make_selector_key(frame.view, key);
  std::uint32_t policy = kNoPolicy;
  selection.find_policies({&key, 1}, &policy);
  switch (check_inbound(selection.view(), policy, key, kNoSa)) {
    case Reason::none: return "accepted";
    case Reason::blocked: return "XfrmInPolBlock";
    case Reason::not_protected: return "XfrmInTmplMismatch";
    default: return "another reason";
  }
}

std::unique_ptr<const Selection> tables_of(std::vector<Policy> policies, Direction direction) {
  std::erase_if(policies, [&](const Policy& policy) { return policy.direction != direction; });
  SelectionSources sources;
  sources.policies = policies;
  auto built = Selection::build(sources, true);
  EXPECT_TRUE(built) << to_string(built.error());
  return std::move(built->value);
}

TEST(KernelInboundPolicies, DropInTheClearWhatOursDrop) {
  std::string folder = ::testing::TempDir() + "/inbound_policy_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::map<std::string, unsigned> answered;
  for (unsigned round = 0; round < 6; ++round) {
    Draw draw(round);
    std::map<std::string, std::string> by_selector;
    while (by_selector.size() < 30) {
      const std::string policy = draw.policy();
      by_selector.try_emplace(policy.substr(0, policy.find(" priority")), policy);
    }
    std::string commands;
    for (const auto& [selector, policy] : by_selector) commands += "xfrm policy add " + policy + "\n";
    std::vector<Flow> flows;
    for (int i = 0; i < 150; ++i) flows.push_back(draw.flow());

    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // a packet may never be counted
      ::_exit(ask_kernel(commands, flows, folder) ? 0 : 77);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
      std::filesystem::remove_all(folder);
      GTEST_SKIP() << "no network namespace with IPsec policies and their counters here";
    }
    const std::string text = read_text_file(folder + "/policy.txt").value_or("");
    const auto policies = parse_policies(text, "policy.txt");
    ASSERT_TRUE(policies) << to_string(policies.error());
    ASSERT_EQ(policies->value.size(), by_selector.size());
    const auto in = tables_of(policies->value, Direction::in);
    const auto through = tables_of(policies->value, Direction::forward);
    const std::string answers = read_text_file(folder + "/answers").value_or("");
    LineReader lines(answers);
    for (const Flow& flow : flows) {
      Line answer;
      ASSERT_TRUE(lines.next(answer));
      ASSERT_EQ(answer.text, ours(flow.through ? *through : *in, flow))
          << flow.source << ":" << flow.source_port << " -> " << flow.destination << ":" << flow.destination_port
          << "\n"
          << text;
      ++answered[std::string(answer.text)];
    }
  }
  std::filesystem::remove_all(folder);
  for (const char* const answer : {"accepted", "XfrmInPolBlock", "XfrmInTmplMismatch"})
    EXPECT_GT(answered[answer], 50U);
}

}  // namespace
}  // namespace penstock::ipsec
