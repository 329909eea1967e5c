// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares with the Linux kernel: reads what `ip` prints of all kinds of routes in a network namespace. Our lookups
// must give the same results as the kernel's (`ip route get`). Skipped if namespaces, virtual links or `ip` are not
// available.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "nf/router/fib.h"
#include "nf/router/neighbour_reader.h"
#include "nf/router/route_format.h"
#include "nf/router/route_reader.h"

namespace penstock::router {
namespace {

constexpr std::string_view kScript = R"(
cd "$1" || exit 77
ip link set lo up || exit 77
for name in lan wan; do
  ip link add $name type veth peer name ${name}_far || exit 77
  ip link set ${name}_far up && ip link set $name up || exit 77
done
ip addr add 10.0.0.1/24 dev lan
ip addr add 10.1.0.1/24 dev wan
ip -6 addr add 2001:db8:a::1/64 dev lan nodad || exit 77
ip -6 addr add 2001:db8:b::1/64 dev wan nodad
ip nexthop add id 10 via 10.0.0.7 dev lan
ip nexthop add id 11 via 10.1.0.8 dev wan
ip nexthop add id 20 group 10/11,3
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev lan
ip neigh add fe80::1 lladdr 02:00:00:00:00:03 dev wan router extern_learn
ip neigh add 10.0.0.3 nud failed dev lan
ip neigh add proxy 10.0.0.9 dev lan
ip -force -batch routes4.add 2>routes4.err
ip -6 -force -batch routes6.add 2>routes6.err
ip route >routes4
ip route show table local >local4
ip -6 route >routes6
ip -6 route show table local >local6
ip -o route >routes4.oneline
ip -d route >routes4.details
{ ip neigh; ip neigh show proxy; } >neighbours
for v in 4 6; do
  ip -$v -force -batch get$v.ask >get$v.out 2>get$v.err
  ip -$v -force -batch match$v.ask >match$v.out 2>match$v.err
done
exit 0
)";

/// Runs the script once for all tests of this file.
class KernelInterop : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = ::testing::TempDir() + "/kernel_interop_XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    write("script", kScript);
    write_routes();
    write_questions();
    const int status = std::system(
        ("unshare -rn sh " + directory_ + "/script " + directory_ + " >" + directory_ + "/log 2>&1").c_str());
    ran_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(directory_); }
  void SetUp() override {
    if (!ran_) GTEST_SKIP() << "no network namespace with virtual links here: " << text("log");
  }

  static void write(const std::string& name, std::string_view contents) {
    std::ofstream(directory_ + "/" + name) << contents;
  }
  static std::string text(const std::string& name) { return read_text_file(directory_ + "/" + name).value_or(""); }
  static std::vector<std::string> paths(std::initializer_list<std::string_view> names) {
    std::vector<std::string> all;
    for (const std::string_view name : names) all.push_back(directory_ + "/" + std::string(name));
    return all;
  }

  static void write_routes();
  static void write_questions();

  static inline std::string directory_;
  static inline bool ran_ = false;
  static inline std::vector<std::string> addresses4_, addresses6_;
};

void KernelInterop::write_routes() {
  std::mt19937 random(5);
  const auto any = [&](unsigned below) { return static_cast<unsigned>(random()) % below; };
  const auto hop4 = [&] {
    switch (any(5)) {
      case 0: return fmt::format("via 10.0.0.{} dev lan", 2 + any(200));
      case 1: return fmt::format("via 10.1.0.{}", 2 + any(200));
      case 2: return fmt::format("via inet6 fe80::{:x} dev wan", 1 + any(9));
      case 3: return fmt::format("via 5.5.5.{} dev lan onlink", 1 + any(9));
      default: return std::string(any(2) == 0 ? "dev lan" : "dev wan");
    }
  };
  const auto hop6 = [&] { return fmt::format("via fe80::{:x} dev {}", 1 + any(9), any(2) == 0 ? "lan" : "wan"); };
  const std::array<std::string_view, 4> nowhere{"blackhole", "unreachable", "prohibit", "throw"};
  const std::array<std::string_view, 4> attributes{"", " proto bgp", " mtu 1400", " initcwnd 20 rto_min 20ms"};

  std::string v4 =
      "route add default via 10.1.0.2\nroute add 20.0.1.0/24 nhid 10\nroute add 20.0.2.0/24 nhid 20\n"
      "route add 20.0.3.0/24 via 10.0.0.5\nroute append 20.0.3.0/24 via 10.0.0.6\n";
  std::string v6 =
      "route add default via fe80::1 dev wan\nroute add 2001:db8:5::/48 dev wan\n"
      "route append 2001:db8:5::/48 dev lan\n";
  for (int i = 0; i < 250; ++i) {
    const unsigned length = 10 + any(23);
    const Ipv4Prefix prefix{{(20U << 24 | (static_cast<std::uint32_t>(random()) & 0x3ff'ffff)) & ipv4_mask(length)},
                            static_cast<std::uint8_t>(length)};
    const std::string metric = any(3) == 0 ? fmt::format(" metric {}", any(50)) : "";
    if (any(5) == 0) {
      v4 += fmt::format("route add {} {}{}\n", nowhere[any(4)], to_string(prefix), metric);
    } else if (any(4) == 0) {
      v4 += fmt::format("route add {}{} nexthop {} weight {} nexthop {} weight {}\n", to_string(prefix), metric, hop4(),
                        1 + any(9), hop4(), 1 + any(9));
    } else {
      v4 += fmt::format("route {} {} {}{}{}\n", any(4) == 0 ? "append" : "add", to_string(prefix), hop4(), metric,
                        attributes[any(4)]);
    }
  }
  for (int i = 0; i < 150; ++i) {
    const unsigned length = 34 + any(95);
    const Ipv6Address mask = ipv6_mask(length);
    // Few values, so that prefixes nest and touch.
    const std::uint64_t low = std::uint64_t{any(3)} << 62 | any(4);
    const Ipv6Prefix prefix{{(0x2001'0db9'0000'0000 | any(4) << 30 | any(3)) & mask.high, low & mask.low},
                            static_cast<std::uint8_t>(length)};
    const std::string metric = any(3) == 0 ? fmt::format(" metric {}", 1 + any(50)) : "";
    if (any(5) == 0) {
      v6 += fmt::format("route add {} {}{}\n", nowhere[any(3)], to_string(prefix), metric);
    } else if (any(4) == 0) {
      v6 += fmt::format("route add {}{} nexthop {} weight {} nexthop {} weight {}\n", to_string(prefix), metric, hop6(),
                        1 + any(9), hop6(), 1 + any(9));
    } else {
      v6 += fmt::format("route {} {} {}{}{}\n", any(3) == 0 ? "append" : "add", to_string(prefix), hop6(), metric,
                        any(3) == 0 ? " expires 9000" : "");
    }
  }
  write("routes4.add", v4);
  write("routes6.add", v6);
}

/// Writes queries: the first and last address of every prefix, those next to them, and others.
void KernelInterop::write_questions() {
  std::mt19937 random(6);
  std::set<std::uint32_t> v4{parse_ipv4("10.0.0.1")->bits, parse_ipv4("10.0.0.255")->bits,
                             parse_ipv4("10.0.0.77")->bits, parse_ipv4("127.0.0.1")->bits, parse_ipv4("8.8.8.8")->bits};
  std::set<Ipv6Address> v6{*parse_ipv6("2001:db8:a::1"), *parse_ipv6("2001:db8:a::77"), *parse_ipv6("2001:db8:5::1"),
                           *parse_ipv6("2a00::1")};
  for (const char* const name : {"routes4.add", "routes6.add"}) {
    const std::string routes = text(name);
    Line line;
    for (LineReader lines(routes); lines.next(line);) {
      for (const Word& word : split_words(line.text)) {
        if (const auto p4 = parse_ipv4_prefix(word.text); p4 && word.text.find('/') != std::string_view::npos) {
          const std::uint32_t last = p4->address.bits | ~ipv4_mask(p4->length);
          v4.insert({p4->address.bits, last, p4->address.bits - 1, last + 1,
                     p4->address.bits | (static_cast<std::uint32_t>(random()) & ~ipv4_mask(p4->length))});
        } else if (const auto p6 = parse_ipv6_prefix(word.text); p6 && word.text.find('/') != std::string_view::npos) {
          const Ipv6Address mask = ipv6_mask(p6->length);
          const Ipv6Address last{p6->address.high | ~mask.high, p6->address.low | ~mask.low};
          v6.insert({p6->address, last, {last.high, last.low - 1}, {p6->address.high, p6->address.low + 1}});
        }
      }
    }
  }
  const auto ask = [](const auto& from, std::vector<std::string>& addresses, const std::string& version,
                      auto to_address) {
    std::string get;
    std::string match;
    for (const auto& item : from) {
      addresses.push_back(to_string(to_address(item)));
      get += "route get " + addresses.back() + "\n";
      match += "route get fibmatch " + addresses.back() + "\n";
    }
    write("get" + version + ".ask", get);
    write("match" + version + ".ask", match);
  };
  ask(v4, addresses4_, "4", [](std::uint32_t bits) { return Ipv4Address{bits}; });
  ask(v6, addresses6_, "6", [](const Ipv6Address& address) { return address; });
}

/// The kernel's reply to a query of a batch: the lines it printed, or its error.
struct Reply {
  std::string lines;
  std::string error;
};

/// `ip -force -batch` prints replies in order, and reports the lines that failed.
std::vector<Reply> replies(std::size_t questions, const std::string& out, const std::string& err) {
  std::vector<Reply> all(questions);
  std::string message;
  Line line;
  for (LineReader lines(err); lines.next(line);) {
    if (line.text.starts_with("Command failed")) {
      const auto number = parse_integer(line.text.substr(line.text.rfind(':') + 1));
      if (number && *number <= questions) all[*number - 1].error = message;
    } else {
      message = line.text;
    }
  }
  std::size_t at = ~std::size_t{0};
  for (LineReader lines(out); lines.next(line);) {
    const bool continues = line.text.starts_with("\t") || line.text.starts_with(" ");
    if (!continues) {
      do ++at;
      while (at < questions && !all[at].error.empty());
    }
    if (at < questions) all[at].lines += std::string(line.text) + "\n";
  }
  return all;
}

/// A group's type and next hops with their weights. The kernel prints an IPv6 group starting with the hop that it chose
/// last.
std::multiset<std::string> group_text(std::uint32_t group, bool v4, const NextHopTable& next_hops,
                                      const Devices& devices) {
  std::multiset<std::string> hops{std::string(to_string(next_hops.kind(group)))};
  for (const NextHop& hop : next_hops.hops(group)) {
    if (next_hops.kind(group) != RouteKind::unicast) continue;
    std::string text = fmt::format("weight {} ", hop.weight);
    append_hop(text, hop, v4, devices);
    hops.insert(text);
  }
  return hops;
}

/// Our tables, built from files that `ip` printed.
class Ours {
 public:
  explicit Ours(const std::vector<std::string>& files) {
    auto read = read_routes(files, devices);
    if (!read) throw std::runtime_error(to_string(read.error()));
    if (!read->unsupported.empty()) throw std::runtime_error(to_string(read->unsupported));
    routes = std::move(read->value);
    v4_ = *Fib4::build(Fib4Engine::kTrie4, routes.v4);
    v6_ = *Fib6::build(routes.v6);
  }

  struct Found {
    RouteKind kind = RouteKind::throw_;
    std::vector<std::string> hops;  // "via 10.0.0.2 dev lan"
  };
  [[nodiscard]] Found find(const std::string& address) const {
    const auto v4 = parse_ipv4(address);
    const std::uint32_t group = v4 ? v4_->lookup(*v4) : v6_->lookup(*parse_ipv6(address));
    if (group == kNoRoute) return {};
    Found found{routes.next_hops.kind(group), {}};
    if (found.kind == RouteKind::unicast) {
      for (const NextHop& hop : routes.next_hops.hops(group))
        append_hop(found.hops.emplace_back(), hop, v4.has_value(), devices);
    }
    return found;
  }

  [[nodiscard]] std::multiset<std::string> hops_of(std::uint32_t group, bool v4) const {
    return group_text(group, v4, routes.next_hops, devices);
  }

  Devices devices;
  RouteTable routes;

 private:
  std::optional<Fib4> v4_;
  std::optional<Fib6> v6_;
};

/// The next hop in a line of `ip route get`: "via 10.0.0.2 dev lan"; or the type.
std::string hop_of(const std::string& lines) {
  std::string hop;
  const auto words = split_words(std::string_view(lines).substr(0, lines.find('\n')));
  for (const std::string_view name : kRouteKindNames) {
    if (words[0].text == name) return std::string(name);
  }
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text == "via")
      hop += "via " + std::string(words[i + 1].text) + " " +
             (words[i + 1].text == "inet6" ? std::string(words[i + 2].text) + " " : "");
    if (words[i].text == "dev") hop += "dev " + std::string(words[i + 1].text);
  }
  return hop;
}

/// The errno texts with which the kernel refuses.
const std::map<RouteKind, std::string> kRefusals{{RouteKind::blackhole, "Invalid argument"},
                                                 {RouteKind::unreachable, "No route to host"},
                                                 {RouteKind::prohibit, "Permission denied"},
                                                 {RouteKind::throw_, "Network is unreachable"}};

void compare(const Ours& ours, const std::vector<std::string>& addresses, const std::vector<Reply>& kernel) {
  std::map<RouteKind, int> seen;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Ours::Found found = ours.find(addresses[i]);
    ++seen[found.kind];
    const Reply& reply = kernel[i];
    SCOPED_TRACE(addresses[i] + ": kernel '" + reply.lines + reply.error + "'");
    if (const auto refusal = kRefusals.find(found.kind); refusal != kRefusals.end()) {
      EXPECT_TRUE(reply.error.ends_with(refusal->second) || hop_of(reply.lines + " ") == to_string(found.kind))
          << to_string(found.kind);
    } else if (found.kind != RouteKind::unicast) {
      EXPECT_EQ(hop_of(reply.lines), to_string(found.kind));
    } else {
      ASSERT_EQ(reply.error, "");
      EXPECT_THAT(found.hops, ::testing::Contains(hop_of(reply.lines)));
    }
  }
  EXPECT_GT(seen[RouteKind::unicast], 100);
  for (const RouteKind kind : {RouteKind::local, RouteKind::blackhole, RouteKind::unreachable, RouteKind::prohibit}) {
    EXPECT_GT(seen[kind], 0) << to_string(kind);
  }
}

TEST_F(KernelInterop, Ipv4LookupsAreTheKernels) {
  const Ours ours(paths({"routes4", "local4"}));
  ASSERT_GT(ours.routes.v4.size(), 150U);
  compare(ours, addresses4_, replies(addresses4_.size(), text("get4.out"), text("get4.err")));
}

TEST_F(KernelInterop, Ipv6LookupsAreTheKernels) {
  const Ours ours(paths({"routes6", "local6"}));
  ASSERT_GT(ours.routes.v6.size(), 60U);
  compare(ours, addresses6_, replies(addresses6_.size(), text("get6.out"), text("get6.err")));
}

/// The route that the kernel finds (prefix, and all next hops with their weights) is the same as ours.
TEST_F(KernelInterop, MatchedRoutesAreTheKernels) {
  const Ours ours(paths({"routes4", "local4", "routes6", "local6"}));
  for (const bool v4 : {true, false}) {
    const auto& addresses = v4 ? addresses4_ : addresses6_;
    const std::string version = v4 ? "4" : "6";
    const auto kernel = replies(addresses.size(), text("match" + version + ".out"), text("match" + version + ".err"));
    int compared = 0;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      if (!kernel[i].error.empty()) continue;
      SCOPED_TRACE(addresses[i] + ": kernel '" + kernel[i].lines + "'");
      Devices devices;
      const auto theirs = parse_routes(kernel[i].lines, "fibmatch", devices);
      ASSERT_TRUE(theirs) << to_string(theirs.error());
      const auto check = [&](const auto& their_routes, const auto& our_routes) {
        ASSERT_EQ(their_routes.size(), 1U);
        const auto our = std::find_if(our_routes.begin(), our_routes.end(),
                                      [&](const auto& r) { return r.prefix == their_routes[0].prefix; });
        ASSERT_NE(our, our_routes.end());
        EXPECT_EQ(ours.hops_of(our->value, v4),
                  group_text(their_routes[0].value, v4, theirs->value.next_hops, devices));
        ++compared;
      };
      if (v4) {
        check(theirs->value.v4, ours.routes.v4);
      } else {
        check(theirs->value.v6, ours.routes.v6);
      }
    }
    EXPECT_GT(compared, 100);
  }
}

TEST_F(KernelInterop, EveryOutputFormatHasTheSameRoutes) {
  const auto lines = [](const Ours& ours) {
    std::vector<std::string> all;
    for (const Route4& route : ours.routes.v4) {
      append_route(all.emplace_back(), to_string(route.prefix), true, ours.routes.next_hops.kind(route.value),
                   ours.routes.next_hops.hops(route.value), ours.devices);
    }
    return all;
  };
  const auto plain = lines(Ours(paths({"routes4"})));
  EXPECT_EQ(lines(Ours(paths({"routes4.oneline"}))), plain);
  EXPECT_EQ(lines(Ours(paths({"routes4.details"}))), plain);
}

TEST_F(KernelInterop, NeighboursAreTheKernels) {
  Devices devices;
  const auto read = read_neighbours(paths({"neighbours"}), devices);
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_TRUE(read->unsupported.empty());
  std::vector<std::string> lines;
  for (const Neighbour& n : read->value) {
    lines.push_back(fmt::format("{} {}", devices.name(n.device), to_string(n.mac)));
  }
  EXPECT_THAT(lines, ::testing::IsSupersetOf({"lan 02:00:00:00:00:02", "wan 02:00:00:00:00:03"}));
  EXPECT_THAT(text("neighbours"), ::testing::HasSubstr("10.0.0.3 dev lan FAILED"));
  EXPECT_THAT(text("neighbours"), ::testing::HasSubstr("10.0.0.9 dev lan proxy"));
}

}  // namespace
}  // namespace penstock::router
