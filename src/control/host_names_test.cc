// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The oracle is libpcap: its lookups end up here instead of in the C library.

#include "control/host_names.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <pcap/pcap.h>

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "control/packet_filter.h"

namespace {
std::vector<std::string> looked_up;
}

// These take the places of the C library's for libpcap. There is no such host and no such network.
extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints, addrinfo** result) {
  std::array<unsigned char, 16> address{};
  const bool is_address =
      node != nullptr && (::inet_pton(AF_INET, node, &address) == 1 || ::inet_pton(AF_INET6, node, &address) == 1);
  if (node != nullptr && !is_address) {
    looked_up.emplace_back(node);
    return EAI_NONAME;
  }
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(node, service, hints, result);
}
extern "C" int getnetbyname_r(const char* name, netent*, char*, size_t, netent** result, int*) {
  looked_up.emplace_back(name);
  *result = nullptr;
  return 0;
}

namespace penstock::control {
namespace {

/// What libpcap looks up.
std::vector<std::string> lookups_of(const std::string& expression) {
  looked_up.clear();
  pcap_t* const handle = ::pcap_open_dead(DLT_EN10MB, 65535);
  bpf_program program{};
  if (::pcap_compile(handle, &program, expression.c_str(), 1, PCAP_NETMASK_UNKNOWN) == 0) ::pcap_freecode(&program);
  ::pcap_close(handle);
  return looked_up;
}

TEST(HostNames, AreFound) {
  for (const std::string name : {"example.com", "gateway1", "1st", "de.ad", "a-b", "tcp-x", "xn--p1ai", "icmp6x"}) {
    for (const std::string before : {"host ", "", "tcp and (src host ", "port 80 or net ", "port 80 and not dst ",
                                     "portrange 1-2 and ip ", "ether proto 0x800 and gateway "}) {
      const std::string expression = before + name + (before.find('(') != std::string::npos ? ")" : "");
      EXPECT_EQ(host_name_in(expression), name) << expression;
    }
    EXPECT_EQ(lookups_of("host " + name), std::vector{name}) << "the oracle works";
    EXPECT_EQ(lookups_of("net " + name), std::vector{name}) << "the oracle works";
  }
  EXPECT_EQ(host_name_in("host \\tcp"), "tcp") << "an escaped keyword is a name";
}

TEST(HostNames, AreNotSeenWhereThereAreNone) {
  for (const std::string expression : {"",
                                       "tcp port http or https",
                                       "port domain and not port 80",
                                       "udp portrange 6000-6010",
                                       "ip proto \\tcp",
                                       "ip proto ospf",
                                       "ether proto \\ip",
                                       "host 10.0.0.1 and net 10.0.0/24",
                                       "net 192.168.0.0 mask 255.255.0.0",
                                       "host fe80::1 or ::ffff:10.0.0.1",
                                       "net 2001:db8::/32",
                                       "ether host 02:00:00:00:00:01",
                                       "ether src 02-00-00-00-00-01",
                                       "ether dst aabb.ccdd.eeff",
                                       "ether dst deadbeefcafe",
                                       "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
                                       "ip[0:2] = 0x4500",
                                       "icmp[icmptype] == icmp-echo",
                                       "len <= 100",
                                       "vlan 5 and mpls 1000",
                                       "less 64 or greater 1500",
                                       "ether multicast",
                                       "icmp6[icmp6type]=icmp6-neighborsolicit",
                                       "pppoes 27 and (tcp or udp)"}) {
    EXPECT_EQ(host_name_in(expression), "") << expression;
    EXPECT_EQ(lookups_of(expression), std::vector<std::string>()) << expression;
    EXPECT_TRUE(PacketFilter::compile(expression)) << expression;
  }
}

TEST(HostNames, NoneThatLibpcapLooksUpIsMissed) {
  constexpr auto kParts = std::to_array<std::string_view>(
      {"host ",  "net ",      "src ",     "dst ",  "port ", "portrange ", "proto ", "ip ",    "ip6 ",
       "tcp ",   "ether ",    "gateway ", "and ",  "or ",   "not ",       "(",      ")",      "http ",
       "\\tcp ", "10.0.0.1 ", "fe80::1 ", "80 ",   "1-2 ",  "foo ",       "a.b ",   "0x12 ",  "de:ad:be:ef:00:01 ",
       "c0de ",  "less ",     "vlan ",    "[0:2]", "= ",    "tcp-syn ",   "x:y ",   "\\a|b ", "ab-c ",
       "ab:cd ", "1:2 "});
  std::mt19937 random(7);
  std::size_t lookups = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string expression;
    for (std::size_t parts = 1 + random() % 6; parts > 0; --parts) expression += kParts[random() % kParts.size()];
    const auto asked = lookups_of(expression);
    lookups += asked.empty() ? 0 : 1;
    if (!asked.empty()) {
      ASSERT_NE(host_name_in(expression), "") << expression << ": " << asked.front();
    }
  }
  EXPECT_GT(lookups, 100U);
}

TEST(HostNames, AreRefusedInFiltersOfClients) {
  const auto filter = PacketFilter::compile("host example.com");
  ASSERT_FALSE(filter);
  EXPECT_EQ(
      to_string(filter.error()),
      "filter: a run does not look names up, because it would have to wait for name servers: found 'example.com', "
      "expected an address or a network, such as the output of `getent ahosts example.com`");
}

}  // namespace
}  // namespace penstock::control
