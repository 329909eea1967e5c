// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Follows a real kernel, in a network namespace of its own: after many changes, our lookups must give what the kernel's
// own do (RTM_GETROUTE with RTM_F_FIB_MATCH). Skipped where a namespace or virtual links are not available.
//
// PENSTOCK_ROUTE_SECONDS=30 makes the test of the rate of changes longer, PENSTOCK_ROUTES=900000 its table larger.

#include "control/kernel/table_follower.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "control/kernel/message_builder_for_test.h"
#include "nf/router/route_words.h"

namespace penstock::control {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class InterfacePort final : public port::Port {
 public:
  explicit InterfacePort(std::string name) : name_(std::move(name)) {}
  bool reads() const noexcept override { return true; }
  bool writes() const noexcept override { return true; }
  Result<void> open(const port::Opening& /*opening*/) override { return {}; }
  port::RxQueue* rx(unsigned /*worker*/) noexcept override { return nullptr; }
  port::TxQueue* tx(unsigned /*worker*/) noexcept override { return nullptr; }
  Errors close() override { return {}; }
  std::optional<port::InterfaceName> interface() const override { return port::InterfaceName{name_, ""}; }

 private:
  const std::string name_;
};

bool sh(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

/// The kernel's answer for an address: "via 10.0.0.1 lan weight 1", "blackhole", "none".
class KernelLookup {
 public:
  KernelLookup() : socket_(std::move(RouteSocket::open().value())) {}

  template <typename Address>
  std::string operator()(const Address& address) {
    rtmsg part{};
    const std::vector<std::uint8_t> bytes = bytes_of(address);
    part.rtm_family = bytes.size() == 4 ? AF_INET : AF_INET6;
    part.rtm_dst_len = static_cast<std::uint8_t>(bytes.size() * 8);
    part.rtm_flags = RTM_F_FIB_MATCH;
    MessageBuilder request(RTM_GETROUTE, NLM_F_REQUEST);
    request.fixed(part).attribute(RTA_DST, bytes);
    EXPECT_TRUE(socket_.send(request.bytes()));
    std::span<const std::uint8_t> answer;
    EXPECT_EQ(socket_.receive(answer, true), RouteSocket::Received::messages);
    const auto& header = *reinterpret_cast<const nlmsghdr*>(answer.data());
    if (header.nlmsg_type == NLMSG_ERROR)
      return name_of_error(*static_cast<const int*>(mnl_nlmsg_get_payload(&header)));
    const KernelMessage message = read_message(answer.first(header.nlmsg_len));
    if (!std::holds_alternative<RouteMessage>(message)) return "not a route";
    const auto& route = std::get<RouteMessage>(message);
    if (route.kind != RouteKind::unicast) return std::string(router::to_string(route.kind));
    std::string text;
    for (const KernelHop& hop : route.hops) {
      char name[IF_NAMESIZE] = "";
      static_cast<void>(::if_indextoname(hop.interface, name));
      text += fmt::format("{} {} {}; ", to_string(hop.gateway), name, route.hops.size() == 1 ? 1 : hop.weight);
    }
    return text;
  }

 private:
  static std::string name_of_error(int error) {
    switch (-error) {
      case EINVAL: return "blackhole";
      case EACCES: return "prohibit";
      case EHOSTUNREACH: return "unreachable";
      case ENETUNREACH:
      case EAGAIN: return "none";
      default: return fmt::format("error {}", -error);
    }
  }
  RouteSocket socket_;
};

/// A chain with a router on the interfaces lan and wan of a namespace, which also has mgmt.
class TableFollowerTest : public ::testing::Test {
 protected:
  /// Runs `test` in a thread in a new network namespace.
  void in_namespace(const std::function<void()>& test) {
    bool possible = false;
    std::thread([&] {
      if (::unshare(CLONE_NEWNET) != 0) return;
      for (const char* const name : {"lan", "wan", "mgmt"}) {
        if (!sh(fmt::format(
                "ip link add {0} type veth peer name {0}_far && ip link set {0} up && ip link set {0}_far up", name)))
          return;
      }
      possible =
          sh("ip link set lo up && ip addr add 10.0.0.1/24 dev lan && ip addr add 10.1.0.1/24 dev wan && "
             "ip addr add 10.2.0.1/24 dev mgmt && ip -6 addr add 2001:db8:a::1/64 dev lan nodad && "
             "ip -6 addr add 2001:db8:b::1/64 dev wan nodad");
      if (possible) test();
    }).join();
    if (!possible) GTEST_SKIP() << "no network namespace with virtual links here";
  }

  void follow() {
    for (const char* const name : {"lan", "wan"}) chain_.ports.push_back({name, std::make_unique<InterfacePort>(name)});
    router::RouterConfig config;
    config.devices = router::Devices(std::vector<std::string>{"lan", "wan"});
    config.ports.resize(2, {{}, true});
    config.neighbours.emplace();
    config.from_kernel.routes = config.from_kernel.neighbours = true;
    config.from_kernel.most_routes = 2'000'000;
    chain_.functions.push_back({"router", router::Router::build(std::move(config)).value()});
    auto followers = follow_kernel(chain_);
    ASSERT_TRUE(followers) << to_string(followers.error());
    ASSERT_EQ(followers->size(), 1U);
    follower_ = std::move(followers->front());
  }
  void TearDown() override { follower_.reset(); }

  [[nodiscard]] router::Router& router() { return static_cast<router::Router&>(*chain_.functions[0].function); }

  /// Our answer for an address, as by KernelLookup.
  template <typename Address>
  std::string lookup(const Address& address) {
    const router::RouterTables& tables = router().tables().newest();
    std::uint32_t value = 0;
    if constexpr (std::is_same_v<Address, Ipv4Address>) {
      value = tables.v4.lookup(address);
    } else {
      value = tables.v6.lookup(address);
    }
    if (value == router::kNoRoute) return "none";
    const router::Hop* hop = &tables.hops[value];
    if (hop->kind == RouteKind::throw_) return "none";
    if (hop->kind != RouteKind::unicast) return std::string(router::to_string(hop->kind));
    std::string text;
    const bool single = hop->upper_bound == ~std::uint32_t{0};
    for (;; ++hop) {
      const router::NextHop& next = tables.next_hops[static_cast<std::size_t>(hop - tables.hops.data())];
      text += fmt::format("{} {} {}; ", to_string(next.gateway), next.device == 0 ? "lan" : "wan",
                          single ? 1 : next.weight);
      if (hop->upper_bound == ~std::uint32_t{0}) return text;
    }
  }

  /// Next hops through mgmt are not used, and the weight of the only one does not matter.
  static std::string as_ours(const std::string& kernels) {
    std::string text;
    std::size_t hops = 0;
    for (std::size_t at = 0; at < kernels.size();) {
      const std::size_t end = kernels.find("; ", at);
      if (end == std::string::npos) return kernels;
      const std::string hop = kernels.substr(at, end + 2 - at);
      if (hop.find(" mgmt ") == std::string::npos && ++hops > 0) text += hop;
      at = end + 2;
    }
    if (hops == 1) return text.substr(0, text.rfind(' ', text.size() - 3)) + " 1; ";
    return text.empty() ? "elsewhere" : text;
  }

  template <typename Address>
  void expect_same(const std::vector<Address>& addresses) {
    KernelLookup kernel;
    std::vector<std::string> expected;
    for (const Address& address : addresses) expected.push_back(as_ours(kernel(address)));
    std::size_t first = 0;  // that differs
    const Clock::time_point end = Clock::now() + 10s;
    do {
      first = 0;
      while (first < addresses.size() && lookup(addresses[first]) == expected[first]) ++first;
    } while (first < addresses.size() && Clock::now() < end && (std::this_thread::sleep_for(20ms), true));
    if (first < addresses.size())
      ADD_FAILURE() << "address " << first << ": " << lookup(addresses[first]) << ", the kernel: " << expected[first];
  }

  [[nodiscard]] nlohmann::json report() const {
    nlohmann::json json;
    follower_->report(json);
    return json;
  }

  run::Chain chain_;
  std::unique_ptr<TableFollower> follower_;
};

/// Commands for `ip -batch`, of all kinds, on few prefixes.
class RandomCommands {
 public:
  std::string next() {
    switch (any(24)) {
      case 0: return "link set wan down";
      case 1:
      case 2: return "link set wan up";
      case 3: return "address add 10.1.0.1/24 dev wan";
      case 4: return fmt::format("address {} 10.5.{}.1/24 dev lan", any(2) == 0 ? "add" : "del", any(3));
      default: return any(3) == 0 ? ipv6() : ipv4();
    }
  }
  std::vector<Ipv4Address> addresses4(std::size_t count) {
    std::vector<Ipv4Address> all;
    while (all.size() < count) all.push_back({any(10) == 0 ? 0x0a000000 | any(0x60200) : 0x14000000 | any(0x80000)});
    return all;
  }
  std::vector<Ipv6Address> addresses6(std::size_t count) {
    std::vector<Ipv6Address> all;
    while (all.size() < count) all.push_back({0x2001'0db9'0000'0000 | std::uint64_t{any(4)} << 30 | any(3), any(5)});
    return all;
  }

 private:
  std::uint32_t any(std::uint32_t below) { return static_cast<std::uint32_t>(random_()) % below; }
  std::string verb() {
    static constexpr std::array kVerbs{"add", "append", "prepend", "replace", "del", "del"};
    return kVerbs[any(kVerbs.size())];
  }
  std::string hop4() {
    switch (any(6)) {
      case 0: return fmt::format("via 10.0.0.{} dev lan", 2 + any(9));
      case 1: return fmt::format("via 10.1.0.{} dev wan", 2 + any(9));
      case 2: return fmt::format("via 10.2.0.{} dev mgmt", 2 + any(9));
      case 3: return fmt::format("via inet6 fe80::{:x} dev wan", 1 + any(9));
      case 4: return fmt::format("via 5.5.5.{} dev lan onlink", 1 + any(9));
      default: return any(2) == 0 ? "dev lan" : "dev wan";
    }
  }
  std::string ipv4() {
    const unsigned length = 14 + any(17);
    const Ipv4Prefix prefix{{(0x14000000 | any(4) << 17 | any(4) << 8) & ipv4_mask(length)},
                            static_cast<std::uint8_t>(length)};
    const std::string metric = any(2) == 0 ? fmt::format(" metric {}", any(4)) : "";
    static constexpr std::array kKinds{"blackhole", "unreachable", "prohibit"};
    if (any(6) == 0) return fmt::format("route {} {} {}{}", verb(), kKinds[any(3)], to_string(prefix), metric);
    if (any(4) == 0) {
      return fmt::format("route {} {}{} nexthop {} weight {} nexthop {} weight {}", verb(), to_string(prefix), metric,
                         hop4(), 1 + any(3), hop4(), 1 + any(3));
    }
    const std::string source = any(8) == 0 ? fmt::format(" src 10.5.{}.1", any(3)) : "";
    return fmt::format("route {} {} {}{}{}", verb(), to_string(prefix), hop4(), metric, source);
  }
  std::string ipv6() {
    const unsigned length = 34 + any(30);
    const Ipv6Address mask = ipv6_mask(length);
    const Ipv6Prefix prefix{{(0x2001'0db9'0000'0000 | std::uint64_t{any(4)} << 30) & mask.high, 0},
                            static_cast<std::uint8_t>(length)};
    const std::string metric = fmt::format(" metric {}", 1 + any(3));
    if (any(6) == 0) return fmt::format("-6 route {} blackhole {}{}", verb(), to_string(prefix), metric);
    const auto hop = [&] { return fmt::format("via fe80::{:x} dev {}", 1 + any(5), any(2) == 0 ? "lan" : "wan"); };
    if (any(4) == 0)
      return fmt::format("-6 route {} {}{} nexthop {} nexthop {}", verb(), to_string(prefix), metric, hop(), hop());
    return fmt::format("-6 route {} {} {}{}", verb(), to_string(prefix), hop(), metric);
  }

  std::mt19937 random_{7};
};

TEST_F(TableFollowerTest, FindsWhatTheKernelFindsAfterEveryKindOfChange) {
  in_namespace([&] {
    follow();
    const std::string batch = ::testing::TempDir() + fmt::format("/follower-{}.batch", ::getpid());
    RandomCommands random;
    for (int round = 0; round < 12 && !HasFailure(); ++round) {
      std::ofstream file(batch);
      for (int i = 0; i < 120; ++i) file << random.next() << '\n';
      file << "link set wan up\n";
      file.close();
      static_cast<void>(sh("ip -force -batch " + batch));
      SCOPED_TRACE(round);
      expect_same(random.addresses4(800));
      expect_same(random.addresses6(300));
    }
    std::filesystem::remove(batch);
    EXPECT_EQ(report()["malformed"], 0);
  });
}

TEST_F(TableFollowerTest, TakesMacsAndNeighboursFromTheKernel) {
  in_namespace([&] {
    ASSERT_TRUE(sh("ip link set lan address 02:00:00:00:01:01"));
    ASSERT_TRUE(sh("ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev lan"));
    follow();
    const auto mac_of = [&](const char* address) -> std::string {
      const auto* const mac =
          router().tables().newest().neighbours.view().find(router::mapped(*parse_ipv4(address)), 0);
      return mac == nullptr ? "none" : penstock::to_string(*mac);
    };
    const auto becomes = [](const std::function<bool()>& condition) {
      const Clock::time_point end = Clock::now() + 5s;
      while (!condition() && Clock::now() < end) std::this_thread::sleep_for(5ms);
      return condition();
    };
    EXPECT_EQ(mac_of("10.0.0.7"), "02:00:00:00:00:07");
    EXPECT_EQ(penstock::to_string(router().tables().newest().ports[0].mac), "02:00:00:00:01:01");
    ASSERT_TRUE(sh("ip neigh replace 10.0.0.7 lladdr 02:00:00:00:00:08 dev lan"));
    EXPECT_TRUE(becomes([&] { return mac_of("10.0.0.7") == "02:00:00:00:00:08"; }));
    ASSERT_TRUE(sh("ip neigh del 10.0.0.7 dev lan"));
    EXPECT_TRUE(becomes([&] { return mac_of("10.0.0.7") == "none"; }));
    ASSERT_TRUE(sh("ip link set lan address 02:00:00:00:01:02"));
    EXPECT_TRUE(
        becomes([&] { return penstock::to_string(router().tables().newest().ports[0].mac) == "02:00:00:00:01:02"; }));
    // A packet lacked a neighbour: the kernel looks for it.
    follower_->missing().note(router::mapped(*parse_ipv4("10.0.0.99")), 0);
    EXPECT_TRUE(becomes([] { return sh("ip neigh show 10.0.0.99 dev lan | grep -qE 'INCOMPLETE|FAILED'"); }));
  });
}

double cpu_seconds_of_follower() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "kernel-tables") continue;
    std::uint64_t ns = 0;
    std::ifstream(task.path() / "schedstat") >> ns;
    return static_cast<double>(ns) / 1e9;
  }
  return 0;
}

std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
}

TEST_F(TableFollowerTest, KeepsUpWithTenThousandChangesASecond) {
  in_namespace([&] {
    constexpr std::uint32_t kEachSecond = 10'000;
    const std::uint32_t seconds = from_environment("PENSTOCK_ROUTE_SECONDS", 2);
    const std::uint32_t routes = from_environment("PENSTOCK_ROUTES", 50'000);
    RouteSocket socket = std::move(RouteSocket::open().value());
    std::mt19937 random(3);
    const int lan = static_cast<int>(::if_nametoindex("lan"));
    const auto prefix = [&](std::uint32_t number) { return Ipv4Address{0x14000000 + (number << 8)}; };
    std::vector<std::uint8_t> requests;
    const auto append = [&](std::uint32_t number, bool removes) {
      const std::string gateway = fmt::format("10.0.0.{}", 2 + random() % 200);
      MessageBuilder message = removes ? route_message(RTM_DELROUTE, NLM_F_REQUEST, to_string(prefix(number)), 24, {})
                                       : route_message(RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_REPLACE,
                                                       to_string(prefix(number)), 24, {{gateway, lan}});
      auto& part = *static_cast<rtmsg*>(mnl_nlmsg_get_payload(message.header()));
      part.rtm_protocol = RTPROT_STATIC;
      part.rtm_scope = removes ? RT_SCOPE_NOWHERE : RT_SCOPE_UNIVERSE;
      if (removes) part.rtm_type = RTN_UNSPEC;
      requests.insert(requests.end(), message.bytes().begin(), message.bytes().end());
    };
    const auto send = [&] {
      ASSERT_TRUE(socket.send(requests));
      requests.clear();
      std::span<const std::uint8_t> refusals;  // of routes that are not there
      while (socket.receive(refusals) != RouteSocket::Received::nothing) continue;
    };
    for (std::uint32_t i = 0; i < routes; ++i) {
      append(i, false);
      if (i % 64 == 63 || i + 1 == routes) send();
    }
    const Clock::time_point before_reading = Clock::now();
    follow();
    const double reading = std::chrono::duration<double>(Clock::now() - before_reading).count();

    const double cpu = cpu_seconds_of_follower();
    const Clock::time_point start = Clock::now();
    for (std::uint32_t sent = 0; sent < kEachSecond * seconds;) {
      for (int i = 0; i < 50; ++i, ++sent) append(static_cast<std::uint32_t>(random()) % routes, random() % 3 == 0);
      send();
      std::this_thread::sleep_until(start + std::chrono::microseconds(sent * (1'000'000 / kEachSecond)));
    }
    const Clock::time_point end = Clock::now();
    append(routes, false);
    send();
    const Ipv4Address last = prefix(routes);
    while (lookup(last) == "none" && Clock::now() < end + 10s) std::this_thread::sleep_for(1ms);
    const double lag = std::chrono::duration<double>(Clock::now() - end).count();
    const double took = std::chrono::duration<double>(end - start).count();
    const double used = cpu_seconds_of_follower() - cpu;
    fmt::print(
        "{} routes read in {:.2f} s; {} changes in {:.1f} s; CPU {:.2f} s; the last one in use after {:.0f} ms; {}\n",
        routes, reading, kEachSecond * seconds, took, used, lag * 1000, report().dump());
    EXPECT_LT(lag, 2.0);
    EXPECT_EQ(report()["losses"], 0);
    std::vector<Ipv4Address> addresses;
    for (int i = 0; i < 5000; ++i)
      addresses.push_back({prefix(static_cast<std::uint32_t>(random()) % (routes + 9)).bits + 1});
    expect_same(addresses);
  });
}

}  // namespace
}  // namespace penstock::control
