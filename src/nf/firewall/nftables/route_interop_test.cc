// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares with the kernel which packets pass rules that ask for routes and for types of addresses, at prerouting: in a
// network namespace with the same addresses and routes. Needs root and nft; skipped otherwise.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/testing/tunnel_namespace.h"
#include "function/testing/attached_stage.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/nftables/document.h"
#include "nf/firewall/nftables/kernel_for_test.h"
#include "nf/firewall/rules_for_test.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::firewall::nftables {
namespace {

using function::FoundRoute;
using testing::succeeds;

struct TestRoute {
  const char* prefix;
  std::vector<PortIndex> ports;  // none: it drops packets
  const char* kind = "";
};

/// Besides the default routes to d1 and the routes to d2 of ForwardingKernel.
const std::vector<TestRoute> kRoutes{{"10.4.0.0/16", {2, 0}},          {"10.8.0.0/16", {}, "unreachable"},
                                     {"10.9.0.0/16", {}, "blackhole"}, {"10.9.1.0/24", {0}},
                                     {"10.7.0.0/16", {}, "prohibit"},  {"2001:dba::/32", {}, "blackhole"},
                                     {"2001:dba:1::/48", {0}}};
/// The addresses of d0, d1 and d2.
constexpr std::array<const char*, 5> kAddresses{"10.1.0.1/16 dev d0", "2001:db8:1::1/64 dev d0",
                                                "203.0.113.5/24 dev d1", "2001:db8:5::5/64 dev d1",
                                                "192.0.2.1/31 dev d2"};

std::vector<function::PortAddresses> addresses() {
  std::vector<function::PortAddresses> ports(3);
  ports[0] = {parse_ipv4("10.1.0.1"), parse_ipv6("2001:db8:1::1"), std::uint8_t{16}, std::uint8_t{64}};
  ports[1] = {parse_ipv4("203.0.113.5"), parse_ipv6("2001:db8:5::5"), std::uint8_t{24}, std::uint8_t{64}};
  ports[2] = {parse_ipv4("192.0.2.1"), std::nullopt, std::uint8_t{31}, std::nullopt};
  return ports;
}

/// The same routes as the kernel's, looked up one after the other.
class Routes final : public function::NetworkFunction, public function::RouteSource {
 public:
  Routes() {
    for (const TestRoute& route : kRoutes) add(route.prefix, route.ports);
    add("0.0.0.0/0", {1});
    add("10.3.0.0/16", {2});
    add("10.1.0.0/16", {0});
    add("203.0.113.0/24", {1});
    add("192.0.2.0/31", {2});
    add("::/0", {1});
    add("2001:db9::/32", {2});
    add("2001:db8:1::/64", {0});
    add("2001:db8:5::/64", {1});
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return nullptr; }
  std::string description() const override { return "routes"; }
  std::unique_ptr<function::RouteReader> read_routes() override { return std::make_unique<Reader>(*this); }

 private:
  struct Reader final : function::RouteReader {
    explicit Reader(const Routes& of) : routes(of) {}
    void refresh() noexcept override {}
    FoundRoute find(NetworkLayer family, const Ipv6Address& address) const noexcept override {
      FoundRoute best;
      int length = -1;
      const auto consider = [&](const auto& routes_of_family, const auto& key) {
        for (const auto& [prefix, route] : routes_of_family) {
          if (static_cast<int>(prefix.length) <= length || !contains(prefix, key)) continue;
          best = route;
          length = static_cast<int>(prefix.length);
        }
      };
      if (family == NetworkLayer::ipv4) consider(routes.v4, Ipv4Address{static_cast<std::uint32_t>(address.low)});
      if (family == NetworkLayer::ipv6) consider(routes.v6, address);
      return best;
    }
    const Routes& routes;
  };

  void add(const char* prefix, const std::vector<PortIndex>& ports) {
    FoundRoute route;
    if (!ports.empty()) route = {FoundRoute::Kind::unicast, 0, ports.front()};
    for (const PortIndex port : ports) route.ports |= std::uint64_t{1} << port;
    if (const auto ipv4 = parse_ipv4_prefix(prefix)) v4.emplace_back(*ipv4, route);
    if (const auto ipv6 = parse_ipv6_prefix(prefix)) v6.emplace_back(*ipv6, route);
  }

  function::NfTraits traits_;
  std::vector<std::pair<Ipv4Prefix, FoundRoute>> v4;
  std::vector<std::pair<Ipv6Prefix, FoundRoute>> v6;
};

struct Probe {
  std::string source, destination;
  Packet bytes;
};

constexpr std::uint16_t kFirstPort = 1000;

std::vector<Probe> probes() {
  const std::vector<std::string> from4{
      "10.1.2.3",        "10.1.0.1",     "10.1.255.255", "10.1.0.0",       "203.0.113.5", "203.0.113.255",
      "203.0.113.9",     "10.3.0.1",     "10.4.0.1",     "10.7.0.1",       "10.8.0.1",    "10.9.0.1",
      "10.9.1.1",        "198.51.100.9", "127.0.0.1",    "0.0.0.0",        "0.0.0.1",     "224.0.0.1",
      "255.255.255.255", "192.0.2.0",    "192.0.2.1",    "127.255.255.255"};
  const std::vector<std::string> to4{"10.3.0.1",     "10.1.0.1",     "255.255.255.255", "224.0.0.5",
                                     "239.1.1.1",    "10.8.0.1",     "10.4.0.1",        "203.0.113.255",
                                     "10.1.255.255", "198.51.100.1", "10.1.2.3"};
  const std::vector<std::string> from6{"2001:db8:1::2", "2001:db8:1::1", "2001:db8:1::", "2001:db8:5::5",
                                       "2001:db8:5::",  "2001:db8:5::9", "2001:db9::1",  "2001:dba::1",
                                       "2001:dba:1::1", "2001:470::1",   "::",           "fe80::7",
                                       "fe80::",        "fe80:1::7"};
  const std::vector<std::string> to6{"2001:db9::1", "2001:db8:1::1", "ff02::1",       "ff0e::5", "2001:db8:1::",
                                     "2001:dba::5", "2001:470::1",   "2001:db8:1::2", "fe80::9"};
  std::vector<Probe> made;
  const auto add = [&](const std::string& from, const std::string& to, testing::PacketBuilder packet) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + made.size());
    made.push_back({from, to, packet.udp(7, port).payload("0123456789").bytes()});
  };
  for (const std::string& from : from4) {
    for (const std::string& to : to4) add(from, to, testing::packet().ipv4(from, to));
  }
  for (const std::string& from : from6) {
    for (const std::string& to : to6) add(from, to, testing::packet().ipv6(from, to));
  }
  return made;
}

ReadOptions options() {
  ReadOptions options;
  options.interfaces.ports.assign(ForwardingKernel::kInterfaces.begin(), ForwardingKernel::kInterfaces.end());
  options.interfaces.out_known = false;
  options.hook = Hook::prerouting;
  options.host = make_host_addresses(addresses());
  return options;
}

class RoutesOfKernel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    kernel = ForwardingKernel::start(why);
    if (!kernel) return;
    EXPECT_TRUE(succeeds("ip link set lo up"));  // as on each host: with its addresses
    for (const std::string address : kAddresses) EXPECT_TRUE(succeeds("ip addr add " + address + " nodad")) << address;
    EXPECT_TRUE(succeeds("ip -6 addr add fe80::1:0/64 dev d0 nodad"));
    // Without a gateway, the kernel would take `::` for the anycast address of this route's prefix.
    EXPECT_TRUE(succeeds("ip -6 route replace default via 2001:db8:5::1 dev d1"));
    for (const TestRoute& route : kRoutes) {
      const std::string family = std::string_view(route.prefix).find(':') == std::string_view::npos ? "" : "-6 ";
      std::string command = fmt::format("ip {}route add {} {}", family, route.kind, route.prefix);
      for (const PortIndex port : route.ports)
        command += fmt::format("{} dev d{}", route.ports.size() > 1 ? " nexthop" : "", port);
      EXPECT_TRUE(succeeds(command)) << command;
    }
    arrives = passed();
  }
  static void TearDownTestSuite() { kernel.reset(); }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  /// The ports of the probes that pass the loaded rules.
  static std::set<std::uint16_t> passed() {
    const std::string file = ::testing::TempDir() + "penstock-seen.nft";
    std::ofstream(file)
        << "table inet seen {\nset passed {\ntype inet_service; flags dynamic; size 65535;\n}\nchain c "
           "{\ntype filter hook prerouting priority -100;\nudp sport 7 add @passed { udp dport }\n}\n}\n";
    EXPECT_TRUE(succeeds("nft -f " + file));
    std::vector<Packet> packets;
    for (const Probe& probe : kProbes) packets.push_back(probe.bytes);
    static_cast<void>(kernel->forward(packets));
    std::set<std::uint16_t> ports;
    const auto visited = visit_objects(ForwardingKernel::rules(), "rules", 100'000,
                                       [&](std::size_t, const std::string& kind, const Json& value) {
                                         if (kind != "set" || value["name"] != "passed") return true;
                                         for (const Json& port : value.value("elem", Json::array()))
                                           ports.insert(port.get<std::uint16_t>());
                                         return true;
                                       });
    EXPECT_TRUE(visited) << to_string(visited.error());
    return ports;
  }

  /// Sends all probes that arrive through the loaded rules and our firewall with `rules`.
  static void compare(const std::string& rules, RuleFormat format) {
    ReadOptions as = options();
    as.format = format;
    auto read = read_rules(rules, "rules", as);
    ASSERT_TRUE(read) << to_string(read.error());
    ASSERT_TRUE(read->unsupported.empty()) << to_string(read->unsupported);
    Firewall::Setup setup;
    setup.answering.addresses = addresses();
    setup.hook = Hook::prerouting;
    auto made = Firewall::build(std::move(read->value), classify::Engine::bitvector, std::move(setup));
    ASSERT_TRUE(made) << to_string(made.error());
    Routes routes;
    const std::array<function::NetworkFunction*, 2> chain{made->get(), &routes};
    ASSERT_EQ(to_string((*made)->join(chain)), "");
    const std::set<std::uint16_t> passes = passed();
    function::testing::AttachedStage stage(**made);
    std::size_t compared = 0, accepted = 0;
    for (std::size_t i = 0; i < kProbes.size(); ++i) {
      const auto port = static_cast<std::uint16_t>(kFirstPort + i);
      const Probe& probe = kProbes[i];
      const auto length = static_cast<std::uint32_t>(probe.bytes.size());
      Packet bytes = probe.bytes;
      PacketDescriptor descriptor;
      descriptor.length = descriptor.wire_length = length;
      descriptor.link_type = LinkType::raw_ip;
      descriptor.layout = parse(bytes.data(), length, length, LinkType::raw_ip);
      descriptor.verdict = Verdict::forward();
      if (!arrives.contains(port)) continue;
      const bool ipv4 = descriptor.layout.network == NetworkLayer::ipv4;
      if (format == (ipv4 ? RuleFormat::ip6tables : RuleFormat::iptables)) continue;
      PacketView view{bytes.data(), &descriptor};
      stage.process({&view, 1});
      ++compared;
      accepted += descriptor.verdict.alive() ? 1 : 0;
      EXPECT_EQ(descriptor.verdict.alive(), passes.contains(port))
          << "ours, the kernel's: from " << probe.source << " to " << probe.destination << "\n"
          << rules;
    }
    EXPECT_GT(accepted, 0U) << rules;
    EXPECT_LT(accepted, compared) << rules;
  }

  static inline std::unique_ptr<ForwardingKernel> kernel;
  static inline std::string why;
  static inline const std::vector<Probe> kProbes = probes();
  static inline std::set<std::uint16_t> arrives;  // those of packets that come to prerouting at all
};

TEST_F(RoutesOfKernel, SendsProbesThatArrive) { EXPECT_GT(arrives.size(), kProbes.size() * 8 / 10); }

TEST_F(RoutesOfKernel, FindsTheRoutesOfNftables) {
  for (const char* const rule :
       {"fib saddr . iif oif missing drop", "fib saddr . iif oif exists drop",
        "fib saddr . mark . iif oif missing drop", "fib saddr oif missing drop", "fib saddr oif exists accept; drop",
        "fib daddr oif missing drop", "fib daddr . iif oif exists drop", "fib saddr oifname \"d1\" drop",
        "fib saddr oifname != \"d0\" drop", "fib daddr oifname \"d0\" drop", "fib daddr . iif oifname != \"d0\" drop",
        "fib saddr oif \"d0\" accept; drop", "fib saddr oifname { \"d0\", \"d2\" } accept; drop"}) {
    SCOPED_TRACE(rule);
    std::string rules = rule, answer;
    for (std::size_t at = 0; (at = rules.find("; ", at)) != std::string::npos;) rules.replace(at, 2, "\n");
    rules = "table inet t {\nchain c {\ntype filter hook prerouting priority raw;\n" + rules + "\n}\n}\n";
    if (!ForwardingKernel::load(rules, answer)) {
      ADD_FAILURE() << answer;
      continue;
    }
    compare(ForwardingKernel::rules(), RuleFormat::nftables);
  }
}

TEST_F(RoutesOfKernel, KnowsTheTypesOfAddressesOfNftables) {
  for (const char* const rule :
       {"fib daddr type local drop", "fib saddr type local drop", "fib daddr type broadcast drop",
        "fib saddr type broadcast drop", "fib daddr type anycast drop", "fib saddr type anycast drop",
        "fib daddr type multicast drop", "fib daddr type { local, broadcast } drop",
        "fib daddr type != { local, anycast, broadcast } drop", "fib saddr type != broadcast drop"}) {
    SCOPED_TRACE(rule);
    std::string answer;
    const std::string rules =
        fmt::format("table inet t {{\nchain c {{\ntype filter hook prerouting priority raw;\n{}\n}}\n}}\n", rule);
    if (!ForwardingKernel::load(rules, answer)) {
      ADD_FAILURE() << answer;
      continue;
    }
    compare(ForwardingKernel::rules(), RuleFormat::nftables);
  }
}

TEST_F(RoutesOfKernel, FiltersByReversePathAsIptables) {
  for (const NetworkLayer family : {NetworkLayer::ipv4, NetworkLayer::ipv6}) {
    const bool ipv4 = family == NetworkLayer::ipv4;
    std::vector<std::string> matches{"rpfilter",
                                     "rpfilter --invert",
                                     "rpfilter --loose",
                                     "rpfilter --loose --invert",
                                     "rpfilter --accept-local",
                                     "rpfilter --loose --accept-local --invert",
                                     "rpfilter --validmark --invert",
                                     "addrtype --dst-type LOCAL",
                                     "addrtype --dst-type ANYCAST",
                                     "addrtype --src-type LOCAL,ANYCAST",
                                     "addrtype --dst-type MULTICAST",
                                     "addrtype ! --src-type LOCAL"};
    if (ipv4) {
      std::erase(matches, "addrtype --dst-type ANYCAST");  // there are none
      matches.insert(matches.end(), {"addrtype --dst-type BROADCAST", "addrtype --src-type BROADCAST",
                                     "addrtype ! --dst-type LOCAL,BROADCAST,MULTICAST"});
    }
    for (const std::string& match : matches) {
      SCOPED_TRACE(match);
      const std::string rules =
          fmt::format("*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m {} -j DROP\nCOMMIT\n", match);
      const std::string file = ::testing::TempDir() + "penstock-rules.iptables";
      std::ofstream(file) << rules;
      std::string answer;
      EXPECT_TRUE(ForwardingKernel::load("", answer)) << answer;
      if (!succeeds(fmt::format("{}-nft-restore <{}", ipv4 ? "iptables" : "ip6tables", file))) {
        ADD_FAILURE() << "iptables refuses the rules";
        continue;
      }
      compare(rules, ipv4 ? RuleFormat::iptables : RuleFormat::ip6tables);
    }
  }
}

}  // namespace
}  // namespace penstock::firewall::nftables
