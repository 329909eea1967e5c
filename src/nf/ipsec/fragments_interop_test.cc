// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fragments made by a Linux kernel: of ESP that we sealed and a program there sends, and of packets that the kernel
// sealed itself. Runs in a separate network namespace (kernel_for_test.h), over a link with a small MTU.
//
//     ESP or UDP socket, or xfrm policy ─▶ kernel ─▶ near (MTU 1280) ══ far ─▶ fragments ─▶ our inbound

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include <fstream>
#include <string>
#include <vector>

#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/kernel_for_test.h"

namespace penstock::ipsec {
namespace {

using namespace ipsec::testing;
using penstock::testing::packet;

constexpr int kNoKernel = 77;

/// A datagram that the kernel sends from one of its addresses.
struct Sending {
  bool ipv6 = false;
  int protocol = 0;  // ESP or UDP
  std::uint16_t port = 0;
  Bytes payload;
};

struct SocketAddress {
  SocketAddress(const char* text, std::uint16_t port) {
    if (::inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
      v4.sin_family = AF_INET;
      v4.sin_port = htons(port);
    } else {
      v6.sin6_family = static_cast<sa_family_t>(::inet_pton(AF_INET6, text, &v6.sin6_addr) == 1 ? AF_INET6 : AF_UNSPEC);
      v6.sin6_port = htons(port);
    }
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(this); }
  [[nodiscard]] socklen_t size() const { return v4.sin_family == AF_INET ? sizeof v4 : sizeof v6; }

  union {
    sockaddr_in6 v6{};
    sockaddr_in v4;
  };
};

bool send(const Sending& sending) {
  const bool udp = sending.protocol == IPPROTO_UDP;
  const SocketAddress from(sending.ipv6 ? "2001:db8:2::1" : "192.0.2.1", udp ? sending.port : std::uint16_t{0});
  const SocketAddress to(sending.ipv6 ? "2001:db8:9::9" : "203.0.113.9", udp ? sending.port : std::uint16_t{0});
  const int fd = ::socket(sending.ipv6 ? AF_INET6 : AF_INET, udp ? SOCK_DGRAM : SOCK_RAW, udp ? 0 : sending.protocol);
  const int never = IP_PMTUDISC_DONT;  // the kernel must fragment rather than set DF
  const bool sent = ::setsockopt(fd, sending.ipv6 ? int{IPPROTO_IPV6} : int{IPPROTO_IP},
                                 sending.ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &never, sizeof never) == 0 &&
                    ::bind(fd, from.get(), from.size()) == 0 &&
                    ::sendto(fd, sending.payload.data(), sending.payload.size(), 0, to.get(), to.size()) ==
                        static_cast<ssize_t>(sending.payload.size());
  ::close(fd);
  return sent;
}

/// Runs `commands`, sends the datagrams, and returns the frames that leave the kernel's end of the link.
class KernelFragments : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(::mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::vector<Bytes> frames_of(const std::vector<Sending>& sendings, const std::string& commands = "true") {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(in_namespace(sendings, commands));
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    kernel_is_there_ = !WIFEXITED(status) || WEXITSTATUS(status) != kNoKernel;
    if (kernel_is_there_) {
      EXPECT_EQ(status, 0) << "the kernel did not send";
    }
    std::vector<Bytes> frames;
    std::ifstream file(folder_ + "/frames", std::ios::binary);
    for (std::uint32_t size = 0; file.read(reinterpret_cast<char*>(&size), sizeof size);) {
      file.read(reinterpret_cast<char*>(frames.emplace_back(size).data()), size);
    }
    return frames;
  }

  bool kernel_is_there_ = false;

 private:
  int in_namespace(const std::vector<Sending>& sendings, const std::string& commands) const {
    if (!enter_namespace() || !runs("ip link set near mtu 1280 && ip link set far mtu 1280 && " + commands)) {
      return kNoKernel;
    }
    const FarEnd far;
    std::ofstream file(folder_ + "/frames", std::ios::binary);
    for (const Sending& sending : sendings) {
      if (!send(sending)) return 1;
      for (Bytes frame = far.receive(); !frame.empty(); frame = far.receive()) {
        const auto size = static_cast<std::uint32_t>(frame.size());
        file.write(reinterpret_cast<const char*>(&size), sizeof size);
        file.write(reinterpret_cast<const char*>(frame.data()), size);
      }
    }
    return file.good() ? 0 : 1;
  }

  std::string folder_ = ::testing::TempDir() + "/fragments_XXXXXX";
};

struct Case {
  const char* name;
  bool ipv6, udp, tunnel;
};

TEST_F(KernelFragments, OfSealedPacketsAreOpened) {
  for (const Case& one : {Case{"IPv4 tunnel", false, false, true}, Case{"IPv4 transport", false, false, false},
                          Case{"IPv6 tunnel", true, false, true}, Case{"IPv6 transport", true, false, false},
                          Case{"UDP", false, true, true}, Case{"UDP over IPv6", true, true, true}}) {
    SCOPED_TRACE(one.name);
    StateText state;
    state.source = one.ipv6 ? "2001:db8:2::1" : "192.0.2.1";
    state.destination = one.ipv6 ? "2001:db8:9::9" : "203.0.113.9";
    state.mode = one.tunnel ? "tunnel" : "transport";
    state.algorithms = kCbcSha1;
    if (one.udp) state.more = one.ipv6 ? "\tencap type espinudp sport 4500 dport 4500 addr ::\n" : kInUdp;
    std::vector<Bytes> inner;
    std::vector<Sending> sendings;
    End out = outwards(state(), everything("out", one.tunnel ? tunnel_template(1, state.source, state.destination)
                                                             : transport_template()));
    for (const std::size_t payload : {100U, 1200U, 1300U, 2400U, 2600U, 9000U, 60'000U}) {
      auto builder = packet().eth();
      if (one.ipv6) {
        builder.ipv6(state.source, state.destination);
      } else {
        builder.ipv4(state.source, state.destination);
      }
      inner.push_back(builder.udp(7, 9).payload(std::string(payload, 'i')).bytes());
      const Done sealed = out(inner.back());
      ASSERT_EQ(sealed.fate, "forwarded");
      const std::size_t esp_at = (one.ipv6 ? 14U + 40 : 14U + 20) + (one.udp ? 8 : 0);
      sendings.push_back({one.ipv6, one.udp ? IPPROTO_UDP : IPPROTO_ESP, 4500,
                          Bytes(sealed.bytes.begin() + static_cast<std::ptrdiff_t>(esp_at), sealed.bytes.end())});
    }
    const std::vector<Bytes> frames = frames_of(sendings);
    if (!kernel_is_there_) GTEST_SKIP() << "no network namespace here";
    EXPECT_GT(frames.size(), 60U) << "most are fragments";
    End in = inwards(state(), everything("fwd", one.tunnel ? tunnel_template(1, state.source, state.destination)
                                                           : transport_template()));
    std::vector<Bytes> opened;
    for (const Bytes& frame : frames) {
      const Done done = in(frame);
      ASSERT_THAT(done.fate, ::testing::AnyOf("consumed", "forwarded"));
      if (done.fate == "forwarded") opened.push_back(done.bytes);
    }
    ASSERT_EQ(opened.size(), inner.size());
    for (std::size_t i = 0; i < inner.size(); ++i) {
      // In transport mode the IP header is the kernel's.
      const std::ptrdiff_t from = one.tunnel ? 14 : one.ipv6 ? 54 : 34;
      EXPECT_EQ(Bytes(opened[i].begin() + from, opened[i].end()), Bytes(inner[i].begin() + from, inner[i].end())) << i;
    }
  }
}

TEST_F(KernelFragments, OfPacketsThatTheKernelHasSealedAreOpened) {
  for (const bool ipv6 : {false, true}) {
    StateText state;
    state.source = ipv6 ? "2001:db8:2::1" : "192.0.2.1";
    state.destination = ipv6 ? "2001:db8:7::7" : "198.51.100.7";
    state.algorithms = kCbcSha1;
    const std::string commands = fmt::format(
        "ip xfrm state add src {0} dst {1} proto esp spi 0x1000 reqid 1 mode tunnel"
        " auth-trunc 'hmac(sha1)' 0x5c3e9f0a7b2d4861e0f5a9c8d7b6134298eacb07 96"
        " enc 'cbc(aes)' 0x2f6ad91c58e37b04c1b8f5e29d607a43 && "
        "ip xfrm policy add {2} dir out tmpl src {0} dst {1} proto esp reqid 1 mode tunnel",
        state.source, state.destination,
        ipv6 ? "src 2001:db8:2::1/128 dst 2001:db8:9::9/128" : "src 192.0.2.1/32 dst 203.0.113.9/32");
    std::vector<Sending> sendings;
    for (const std::size_t payload : {100U, 1180U, 1250U, 2600U, 9000U}) {
      sendings.push_back({ipv6, IPPROTO_UDP, 4500, Bytes(payload, 'k')});
    }
    const std::vector<Bytes> frames = frames_of(sendings, commands);
    if (!kernel_is_there_) GTEST_SKIP() << "no kernel with ESP here";
    End in = inwards(state(), everything("fwd", tunnel_template(1, state.source, state.destination)));
    std::size_t bytes = 0, consumed = 0;
    for (const Bytes& frame : frames) {
      const Done done = in(frame);
      ASSERT_THAT(done.fate, ::testing::AnyOf("consumed", "forwarded"));
      (done.fate == "consumed" ? consumed : bytes) += done.fate == "consumed" ? 1 : done.bytes.size();
    }
    EXPECT_GT(consumed, 0U) << "the kernel cuts after ESP";
    EXPECT_GT(bytes, 100U + 1180 + 1250 + 2600 + 9000);
  }
}

}  // namespace
}  // namespace penstock::ipsec
