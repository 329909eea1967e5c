// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests against iproute2 and the kernel. Random SAs and policies are written as the kernel's netlink messages and
// printed by `ip` itself (`ip xfrm monitor file`); reading that output must restore them. This covers all algorithms,
// whatever this machine's kernel supports. Policies are also given to a kernel in a separate network namespace; it must
// pass and block the same packets as ours do in the order in which they are read. Skipped if `ip` or the namespace is
// not available.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <linux/xfrm.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "nf/ipsec/xfrm/policy_reader.h"
#include "nf/ipsec/xfrm/state_reader.h"

namespace penstock::ipsec {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

// The parts of an SA or policy that are compared.

std::string hex(const Secret& secret) { return fmt::format("{:02x}", fmt::join(secret.bytes(), "")); }

std::string to_text(const std::optional<std::uint16_t>& half) { return half ? std::to_string(*half) : "any"; }

std::string to_text(const Selector& selector) {
  return fmt::format("{} -> {} protocol {} {} {} dev '{}'", to_string(selector.source), to_string(selector.destination),
                     selector.protocol, to_text(selector.source_port), to_text(selector.destination_port),
                     selector.device);
}

std::string to_text(const Lifetimes& lifetimes) {
  const auto one = [](const Lifetime& limit) {
    return fmt::format("{}/{}/{}/{}", limit.bytes, limit.packets, limit.seconds_from_add, limit.seconds_from_use);
  };
  return fmt::format("soft {} hard {} carried {}/{} added {} used {}", one(lifetimes.soft), one(lifetimes.hard),
                     lifetimes.bytes, lifetimes.packets, lifetimes.added.value_or(0), lifetimes.first_used.value_or(0));
}

std::string to_text(const SecurityAssociation& sa) {
  std::string text = fmt::format(
      "{} -> {} spi {:x} reqid {} {} cipher {} {} {} integrity {} {} icv {} window {} sent {} received {} of {:x}\n",
      to_string(sa.source), to_string(sa.destination), sa.spi, sa.reqid,
      sa.mode == Mode::tunnel ? "tunnel" : "transport", static_cast<int>(sa.cipher), hex(sa.cipher_key), hex(sa.salt),
      static_cast<int>(sa.integrity), hex(sa.integrity_key), sa.icv_bytes, sa.replay_window, sa.sequence.sent,
      sa.sequence.received, fmt::join(sa.sequence.window, ","));
  text += fmt::format("flags {}{}{}{}{}{}{}{}\n", sa.esn, sa.no_ecn, sa.decap_dscp, sa.dont_encap_dscp,
                      sa.no_pmtu_discovery, sa.icmp, sa.any_family, sa.sequence_may_wrap);
  if (sa.udp) {
    text += fmt::format("udp {} {} {}\n", sa.udp->source_port, sa.udp->destination_port, to_string(sa.udp->original));
  }
  if (sa.selector) text += to_text(*sa.selector) + "\n";
  return text + fmt::format("tfc {} {}", sa.tfc_bytes, to_text(sa.lifetimes));
}

std::string to_text(const Policy& policy) {
  std::string text = fmt::format("{} {} {} priority {} index {} icmp {} {}\n", static_cast<int>(policy.direction),
                                 policy.action == PolicyAction::block ? "block" : "allow", to_text(policy.selector),
                                 policy.priority, policy.index, policy.icmp, to_text(policy.lifetimes));
  for (const Template& wanted : policy.templates) {
    text += fmt::format("{} -> {} spi {:x} reqid {} {} {}\n", to_string(wanted.source), to_string(wanted.destination),
                        wanted.spi, wanted.reqid, wanted.mode == Mode::tunnel ? "tunnel" : "transport",
                        wanted.optional ? "use" : "required");
  }
  return text;
}

// The kernel's representation.

xfrm_address_t to_kernel(const IpAddress& address) {
  xfrm_address_t kernel{};
  if (const auto* v4 = std::get_if<Ipv4Address>(&address)) {
    kernel.a4 = htonl(v4->bits);
  } else {
    const auto& v6 = std::get<Ipv6Address>(address);
    for (unsigned i = 0; i < 16; ++i) {
      reinterpret_cast<std::uint8_t*>(&kernel)[i] =
          static_cast<std::uint8_t>((i < 8 ? v6.high : v6.low) >> (56 - i % 8 * 8));
    }
  }
  return kernel;
}

std::uint16_t family_of(bool ipv6) { return ipv6 ? AF_INET6 : AF_INET; }

xfrm_selector to_kernel(const Selector& selector) {
  xfrm_selector kernel{};
  kernel.family = family_of(is_ipv6(selector.source));
  const auto split = [](const IpPrefix& prefix, xfrm_address_t& address, std::uint8_t& length) {
    std::visit(
        [&](const auto& of_family) {
          address = to_kernel(IpAddress(of_family.address));
          length = of_family.length;
        },
        prefix);
  };
  split(selector.source, kernel.saddr, kernel.prefixlen_s);
  split(selector.destination, kernel.daddr, kernel.prefixlen_d);
  kernel.proto = selector.protocol;
  if (selector.source_port) {
    kernel.sport = htons(*selector.source_port);
    kernel.sport_mask = 0xffff;
  }
  if (selector.destination_port) {
    kernel.dport = htons(*selector.destination_port);
    kernel.dport_mask = 0xffff;
  }
  if (!selector.device.empty()) kernel.ifindex = 1;
  return kernel;
}

xfrm_lifetime_cfg to_kernel(const Lifetimes& lifetimes) {
  return {lifetimes.soft.bytes,
          lifetimes.hard.bytes,
          lifetimes.soft.packets,
          lifetimes.hard.packets,
          lifetimes.soft.seconds_from_add,
          lifetimes.hard.seconds_from_add,
          lifetimes.soft.seconds_from_use,
          lifetimes.hard.seconds_from_use};
}

xfrm_lifetime_cur current_of(const Lifetimes& lifetimes) {
  return {lifetimes.bytes, lifetimes.packets, static_cast<std::uint64_t>(lifetimes.added.value_or(0)),
          static_cast<std::uint64_t>(lifetimes.first_used.value_or(0))};
}

/// Builds a netlink message.
class Message {
 public:
  template <typename Header>
  Message(std::uint16_t type, const Header& header) : bytes_(NLMSG_SPACE(sizeof header)) {
    nlmsghdr netlink{};
    netlink.nlmsg_type = type;
    std::memcpy(bytes_.data(), &netlink, sizeof netlink);
    std::memcpy(bytes_.data() + NLMSG_HDRLEN, &header, sizeof header);
  }
  void add(std::uint16_t type, const void* data, std::size_t size) {
    const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(size)), type};
    const std::size_t at = bytes_.size();
    bytes_.resize(at + RTA_SPACE(size));
    std::memcpy(&bytes_[at], &attribute, sizeof attribute);
    std::memcpy(&bytes_[at + RTA_LENGTH(0)], data, size);
  }
  template <typename Value>
  void add(std::uint16_t type, const Value& value) {
    add(type, &value, sizeof value);
  }
  /// Adds a fixed part followed by a key or other variable data.
  template <typename Head>
  void add_with_tail(std::uint16_t type, const Head& head, const std::vector<std::uint8_t>& tail) {
    std::vector<std::uint8_t> all(sizeof head + tail.size());
    std::memcpy(all.data(), &head, sizeof head);
    std::copy(tail.begin(), tail.end(), all.begin() + sizeof head);
    add(type, all.data(), all.size());
  }
  [[nodiscard]] std::string bytes() const {
    std::vector<std::uint8_t> all = bytes_;
    const auto length = static_cast<std::uint32_t>(all.size());
    std::memcpy(all.data(), &length, sizeof length);
    return {all.begin(), all.end()};
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

template <typename Algorithm>
void set_name(Algorithm& algorithm, const char* name) {
  std::strncpy(algorithm.alg_name, name, sizeof algorithm.alg_name - 1);
}

std::string state_message(const SecurityAssociation& sa) {
  xfrm_usersa_info info{};
  info.family = family_of(is_ipv6(sa.destination));
  info.saddr = to_kernel(sa.source);
  info.id = {to_kernel(sa.destination), htonl(sa.spi), IPPROTO_ESP};
  info.reqid = sa.reqid;
  info.mode = sa.mode == Mode::tunnel ? XFRM_MODE_TUNNEL : XFRM_MODE_TRANSPORT;
  const bool ring = sa.esn || sa.replay_window > 32;
  info.replay_window = static_cast<std::uint8_t>(ring ? 0 : sa.replay_window);
  info.flags =
      static_cast<std::uint8_t>((sa.no_ecn ? XFRM_STATE_NOECN : 0) | (sa.decap_dscp ? XFRM_STATE_DECAP_DSCP : 0) |
                                (sa.no_pmtu_discovery ? XFRM_STATE_NOPMTUDISC : 0) | (sa.icmp ? XFRM_STATE_ICMP : 0) |
                                (sa.any_family ? XFRM_STATE_AF_UNSPEC : 0) | (sa.esn ? XFRM_STATE_ESN : 0));
  if (sa.selector) info.sel = to_kernel(*sa.selector);
  info.lft = to_kernel(sa.lifetimes);
  info.curlft = current_of(sa.lifetimes);
  Message message(XFRM_MSG_NEWSA, info);

  const auto bytes_of = [](const Secret& key, const Secret& salt) {
    std::vector<std::uint8_t> bytes(key.bytes().begin(), key.bytes().end());
    bytes.insert(bytes.end(), salt.bytes().begin(), salt.bytes().end());
    return bytes;
  };
  const std::vector<std::uint8_t> key = bytes_of(sa.cipher_key, sa.salt);
  const auto key_bits = static_cast<unsigned>(key.size() * 8);
  if (sa.cipher == Cipher::aes_gcm) {
    xfrm_algo_aead aead{};
    set_name(aead, "rfc4106(gcm(aes))");
    aead.alg_key_len = key_bits;
    aead.alg_icv_len = sa.icv_bytes * 8U;
    message.add_with_tail(XFRMA_ALG_AEAD, aead, key);
  } else {
    xfrm_algo cipher{};
    set_name(cipher, sa.cipher == Cipher::null      ? "ecb(cipher_null)"
                     : sa.cipher == Cipher::aes_cbc ? "cbc(aes)"
                                                    : "rfc3686(ctr(aes))");
    cipher.alg_key_len = key_bits;
    message.add_with_tail(XFRMA_ALG_CRYPT, cipher, key);
    // As the kernel does: the second is for tools that do not know the first.
    xfrm_algo_auth cut{};
    xfrm_algo whole{};
    const char* const name = sa.integrity == Integrity::digest_null    ? "digest_null"
                             : sa.integrity == Integrity::hmac_sha1_96 ? "hmac(sha1)"
                                                                       : "hmac(sha256)";
    set_name(cut, name);
    set_name(whole, name);
    cut.alg_key_len = whole.alg_key_len = static_cast<unsigned>(sa.integrity_key.size() * 8);
    cut.alg_trunc_len = sa.icv_bytes * 8U;
    message.add_with_tail(XFRMA_ALG_AUTH_TRUNC, cut, bytes_of(sa.integrity_key, {}));
    message.add_with_tail(XFRMA_ALG_AUTH, whole, bytes_of(sa.integrity_key, {}));
  }
  if (sa.udp) {
    message.add(XFRMA_ENCAP, xfrm_encap_tmpl{UDP_ENCAP_ESPINUDP, htons(sa.udp->source_port),
                                             htons(sa.udp->destination_port), to_kernel(sa.udp->original)});
  }
  const auto low = [](std::uint64_t number) { return static_cast<std::uint32_t>(number); };
  const auto high = [](std::uint64_t number) { return static_cast<std::uint32_t>(number >> 32); };
  const SequenceState& sequence = sa.sequence;
  if (ring) {
    xfrm_replay_state_esn replay{};
    replay.bmp_len = (sa.replay_window + 31) / 32;
    replay.oseq = low(sequence.sent);
    replay.oseq_hi = high(sequence.sent);
    replay.seq = low(sequence.received);
    replay.seq_hi = high(sequence.received);
    replay.replay_window = sa.replay_window;
    std::vector<std::uint32_t> bitmap(replay.bmp_len);
    for (std::uint32_t i = 0; i < sequence.window.size() * 32; ++i) {
      if ((sequence.window[i / 32] >> i % 32 & 1) == 0) continue;
      const std::uint32_t top = (replay.seq - 1) % sa.replay_window;
      const std::uint32_t bit = (top + sa.replay_window - i) % sa.replay_window;
      bitmap[bit / 32] |= 1U << bit % 32;
    }
    std::vector<std::uint8_t> tail(bitmap.size() * 4);
    if (!bitmap.empty()) std::memcpy(tail.data(), bitmap.data(), tail.size());
    message.add_with_tail(XFRMA_REPLAY_ESN_VAL, replay, tail);
  } else {
    message.add(XFRMA_REPLAY_VAL, xfrm_replay_state{low(sequence.sent), low(sequence.received),
                                                    sequence.window.empty() ? 0 : sequence.window[0]});
  }
  const std::uint32_t extra = (sa.dont_encap_dscp ? XFRM_SA_XFLAG_DONT_ENCAP_DSCP : 0U) |
                              (sa.sequence_may_wrap ? XFRM_SA_XFLAG_OSEQ_MAY_WRAP : 0U);
  if (extra != 0) message.add(XFRMA_SA_EXTRA_FLAGS, extra);
  if (sa.tfc_bytes != 0) message.add(XFRMA_TFCPAD, sa.tfc_bytes);
  return message.bytes();
}

std::string policy_message(const Policy& policy) {
  xfrm_userpolicy_info info{};
  info.sel = to_kernel(policy.selector);
  info.lft = to_kernel(policy.lifetimes);
  info.curlft = current_of(policy.lifetimes);
  info.priority = policy.priority;
  info.index = policy.index;
  info.dir = policy.direction == Direction::out  ? XFRM_POLICY_OUT
             : policy.direction == Direction::in ? XFRM_POLICY_IN
                                                 : XFRM_POLICY_FWD;
  info.action = policy.action == PolicyAction::block ? XFRM_POLICY_BLOCK : XFRM_POLICY_ALLOW;
  info.flags = policy.icmp ? XFRM_POLICY_ICMP : 0;
  Message message(XFRM_MSG_NEWPOLICY, info);
  std::vector<xfrm_user_tmpl> templates;
  for (const Template& wanted : policy.templates) {
    xfrm_user_tmpl& kernel = templates.emplace_back();
    kernel = {};
    kernel.family = family_of(is_ipv6(wanted.source));
    kernel.saddr = to_kernel(wanted.source);
    kernel.id = {to_kernel(wanted.destination), htonl(wanted.spi), IPPROTO_ESP};
    kernel.reqid = wanted.reqid;
    kernel.mode = wanted.mode == Mode::tunnel ? XFRM_MODE_TUNNEL : XFRM_MODE_TRANSPORT;
    kernel.optional = wanted.optional;
    kernel.aalgos = kernel.ealgos = kernel.calgos = ~0U;
  }
  if (!templates.empty()) message.add(XFRMA_TMPL, templates.data(), templates.size() * sizeof templates[0]);
  message.add(XFRMA_POLICY_TYPE, xfrm_userpolicy_type{});
  return message.bytes();
}

/// Random SAs and policies.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::uint64_t any(std::uint64_t below) { return random_() % below; }
  bool maybe() { return any(2) == 0; }

  IpAddress address(bool ipv6) {
    if (!ipv6) return Ipv4Address{static_cast<std::uint32_t>(random_())};
    return Ipv6Address{0x2001'0db8'0000'0000 | any(3), any(2) == 0 ? random_() : any(9)};
  }
  IpPrefix prefix(bool ipv6) {
    if (ipv6) {
      const auto length = static_cast<std::uint8_t>(any(129));
      const Ipv6Address mask = ipv6_mask(length);
      return Ipv6Prefix{{random_() & mask.high, random_() & mask.low}, length};
    }
    const auto length = static_cast<std::uint8_t>(any(33));
    return Ipv4Prefix{{static_cast<std::uint32_t>(random_()) & ipv4_mask(length)}, length};
  }
  Selector selector(bool ipv6) {
    constexpr std::array<std::uint8_t, 10> kProtocols{0, 1, 6, 17, 47, 50, 58, 89, 132, 253};
    Selector selector{prefix(ipv6), prefix(ipv6), kProtocols[any(kProtocols.size())], {}, {}, maybe() ? "lo" : ""};
    const bool key = selector.protocol == 47;  // for GRE both halves or none
    if (selector.protocol != 0 && maybe()) selector.source_port = static_cast<std::uint16_t>(1 + any(200));
    if (key ? selector.source_port.has_value() : selector.protocol != 0 && maybe()) {
      selector.destination_port = static_cast<std::uint16_t>(any(200));
    }
    return selector;
  }
  Lifetimes lifetimes() {
    const auto limit = [&] { return maybe() ? kUnlimited : random_() >> any(64); };
    const auto date = [&]() -> std::optional<std::int64_t> {
      if (maybe()) return std::nullopt;
      return 1'700'000'000 + static_cast<std::int64_t>(any(100'000'000));
    };
    return {{limit(), limit(), any(4000), any(4000)},
            {limit(), limit(), any(4000), any(4000)},
            random_() >> any(64),
            random_() >> any(64),
            date(),
            date()};
  }
  Secret secret(std::size_t bytes) {
    std::vector<std::uint8_t> key(bytes);
    for (std::uint8_t& byte : key) byte = static_cast<std::uint8_t>(random_());
    return Secret(key);
  }

  SecurityAssociation state(std::uint32_t spi) {
    SecurityAssociation sa;
    const bool ipv6 = maybe();
    sa.source = address(ipv6);
    sa.destination = address(ipv6);
    sa.spi = spi;
    sa.reqid = static_cast<std::uint32_t>(random_());
    sa.mode = maybe() ? Mode::tunnel : Mode::transport;
    sa.cipher = static_cast<Cipher>(any(4));
    const std::size_t key_bytes = 16 + 8 * any(3);
    if (sa.cipher != Cipher::null) sa.cipher_key = secret(key_bytes);
    if (sa.cipher == Cipher::aes_ctr || sa.cipher == Cipher::aes_gcm) sa.salt = secret(4);
    if (sa.cipher == Cipher::aes_gcm) {
      sa.icv_bytes = static_cast<std::uint8_t>(8 + 4 * any(3));
    } else {
      sa.integrity = static_cast<Integrity>(1 + any(4));
      sa.icv_bytes = static_cast<std::uint8_t>(icv_bytes(sa.integrity));
      if (sa.integrity == Integrity::digest_null) {
        sa.icv_bytes = static_cast<std::uint8_t>(any(17));
      } else {
        sa.integrity_key = secret(sa.integrity == Integrity::hmac_sha1_96 ? 20 : 32);
      }
    }
    sa.esn = maybe();
    sa.replay_window = static_cast<std::uint32_t>(maybe() ? any(33) : any(4097));
    const std::uint64_t most = sa.esn ? ~std::uint64_t{0} : 0xffff'ffff;
    sa.sequence.sent = random_() & most;
    sa.sequence.received = std::max<std::uint64_t>(random_() & most, 5000);
    if (sa.replay_window != 0) {
      sa.sequence.window.resize((sa.replay_window + 31) / 32);
      sa.sequence.window[0] = 1;  // the highest number itself
      for (std::uint32_t i = 0; i < sa.replay_window; ++i) {
        sa.sequence.window[i / 32] |= static_cast<std::uint32_t>(any(2)) << i % 32;
      }
    }
    sa.no_ecn = maybe();
    sa.decap_dscp = maybe();
    sa.dont_encap_dscp = maybe();
    sa.no_pmtu_discovery = maybe();
    sa.icmp = maybe();
    sa.any_family = maybe();
    sa.sequence_may_wrap = maybe();
    if (maybe()) sa.udp = UdpEncapsulation{4500, static_cast<std::uint16_t>(random_()), address(ipv6)};
    if (maybe()) sa.selector = selector(ipv6);
    if (maybe()) sa.tfc_bytes = static_cast<std::uint32_t>(1 + any(1500));
    sa.lifetimes = lifetimes();
    return sa;
  }

  Policy policy() {
    Policy policy;
    const bool ipv6 = maybe();
    policy.direction = static_cast<Direction>(any(3));
    policy.action = any(4) == 0 ? PolicyAction::block : PolicyAction::allow;
    policy.selector = selector(ipv6);
    policy.priority = static_cast<std::uint32_t>(random_());
    policy.index = static_cast<std::uint32_t>(1 + any(9999));
    policy.icmp = maybe();
    for (std::size_t count = any(3); count > 0; --count) {
      const bool tunnel = maybe();
      const bool outer = tunnel ? maybe() : ipv6;
      policy.templates.push_back({address(outer), address(outer), static_cast<std::uint32_t>(maybe() ? 0 : random_()),
                                  static_cast<std::uint32_t>(random_()), tunnel ? Mode::tunnel : Mode::transport,
                                  maybe()});
    }
    policy.lifetimes = lifetimes();
    return policy;
  }

 private:
  std::mt19937_64 random_;
};

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return text;
  char chunk[4096];
  for (std::size_t got = 0; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, got);
  pclose(pipe);
  return text;
}

/// Messages for `ip` to print.
class PrintedByIp : public ::testing::Test {
 protected:
  void SetUp() override {
    if (output_of("ip -V").find("iproute2") == std::string::npos) GTEST_SKIP() << "no `ip` here";
    // Avoids times of day that occur twice a year, which would be ambiguous.
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string printed(const std::string& messages, const std::string& options) {
    std::ofstream(path_, std::ios::binary) << messages;
    return output_of("ip " + options + " xfrm monitor file " + path_);
  }

  std::string path_ = ::testing::TempDir() + "/xfrm_interop_test_" + std::to_string(::getpid());
};

TEST_F(PrintedByIp, SasAreReadAsTheyAre) {
  Maker maker(1);
  std::vector<SecurityAssociation> states;
  std::string messages;
  for (std::uint32_t i = 0; i < 400; ++i) messages += state_message(states.emplace_back(maker.state(i + 1)));
  for (const std::string options : {"", "-s", "-o", "-o -s", "-d"}) {
    SCOPED_TRACE("ip " + options);
    const std::string text = printed(messages, options);
    const auto read = parse_states(text, "state.txt");
    ASSERT_TRUE(read) << to_string(read.error()) << "\n" << text.substr(0, 3000);
    EXPECT_THAT(read->unsupported, IsEmpty()) << to_string(read->unsupported);
    ASSERT_THAT(read->value, SizeIs(states.size()));
    for (std::size_t i = 0; i < states.size(); ++i) {
      SecurityAssociation expected = states[i];
      if (options.find("-s") == std::string::npos) {  // without -s `ip` does not print them
        expected.lifetimes = {};
        expected.dont_encap_dscp = expected.sequence_may_wrap = false;
      }
      ASSERT_EQ(to_text(read->value[i]), to_text(expected));
    }
  }
}

TEST_F(PrintedByIp, PoliciesAreReadAsTheyAre) {
  Maker maker(2);
  std::vector<Policy> policies;
  std::string messages;
  for (int i = 0; i < 400; ++i) messages += policy_message(policies.emplace_back(maker.policy()));
  std::ranges::sort(policies, {}, &Policy::priority);
  for (const std::string options : {"", "-s", "-o", "-o -s", "-d"}) {
    SCOPED_TRACE("ip " + options);
    const std::string text = printed(messages, options);
    const auto read = parse_policies(text, "policy.txt");
    ASSERT_TRUE(read) << to_string(read.error()) << "\n" << text.substr(0, 3000);
    EXPECT_THAT(read->unsupported, IsEmpty()) << to_string(read->unsupported);
    ASSERT_THAT(read->value, SizeIs(policies.size()));
    for (std::size_t i = 0; i < policies.size(); ++i) {
      Policy expected = policies[i];
      if (options.find("-s") == std::string::npos) {
        expected.lifetimes = {};
        expected.index = 0;
      }
      ASSERT_EQ(to_text(read->value[i]), to_text(expected));
    }
  }
}

/// UDP from one of the namespace's own addresses.
struct Flow {
  std::uint32_t source = 0, destination = 0;
  std::uint16_t source_port = 0, destination_port = 0;
};

bool selects(const Selector& selector, const Flow& flow) {
  const auto* source = std::get_if<Ipv4Prefix>(&selector.source);
  const auto* destination = std::get_if<Ipv4Prefix>(&selector.destination);
  return source != nullptr && contains(*source, Ipv4Address{flow.source}) &&
         contains(*destination, Ipv4Address{flow.destination}) &&
         (selector.protocol == 0 || selector.protocol == IPPROTO_UDP) &&
         selector.source_port.value_or(flow.source_port) == flow.source_port &&
         selector.destination_port.value_or(flow.destination_port) == flow.destination_port;
}

/// The kernel's result if a policy blocks comes from the first route lookup of a flow.
std::string kernel_says(const Flow& flow) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = htonl(flow.source);
  from.sin_port = htons(flow.source_port);
  sockaddr_in to = from;
  to.sin_addr.s_addr = htonl(flow.destination);
  to.sin_port = htons(flow.destination_port);
  std::string answer = "allow";
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0) {
    answer = std::string("bind: ") + std::strerror(errno);
  } else if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    answer = errno == EPERM ? "block" : std::strerror(errno);
  }
  ::close(fd);
  return answer;
}

/// Policies with few, partly equal priorities, nested and overlapping. The kernel allows only one per selector.
constexpr std::size_t kPolicies = 60;
std::string commands_of(Maker& maker) {
  std::string commands;
  std::set<std::string> selectors;
  while (selectors.size() < kPolicies) {
    const auto prefix = [&](unsigned net) {
      const auto length = static_cast<unsigned>(maker.any(4) == 0 ? 0 : 8 + 2 * maker.any(13));
      const std::uint32_t address = net << 24 | static_cast<std::uint32_t>(maker.any(4) << 8 | maker.any(4));
      return to_string(Ipv4Prefix{{address & ipv4_mask(length)}, static_cast<std::uint8_t>(length)});
    };
    std::string upper;
    if (maker.maybe()) {
      upper = maker.any(4) == 0 ? " proto tcp" : " proto udp";
      if (maker.maybe()) upper += fmt::format(" sport {}", 5000 + maker.any(3));
      if (maker.maybe()) upper += fmt::format(" dport {}", 6000 + maker.any(3));
    }
    const std::string selector = fmt::format("src {} dst {}{}", prefix(10), prefix(20), upper);
    if (!selectors.insert(selector).second) continue;
    commands += fmt::format("xfrm policy add {} dir out priority {} action {}\n", selector, maker.any(3),
                            maker.maybe() ? "block" : "allow");
  }
  return commands;
}

/// Runs in a separate namespace and writes to `answers` the kernel's own listing of its policies, and one line per
/// flow. False if no namespace with IPsec policies is available.
bool ask_kernel(const std::string& commands, const std::vector<Flow>& flows, const std::string& folder) {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const auto runs = [](const std::string& command) {
    return std::system(("{ " + command + "; } >/dev/null 2>&1").c_str()) == 0;
  };
  if (!runs("ip link add far type veth peer name near && ip link set far up && ip link set near up")) return false;
  for (unsigned i = 0; i < 16; ++i) {
    if (!runs(fmt::format("ip addr add 10.0.{}.{}/32 dev near", i / 4, i % 4 + 1))) return false;
  }
  if (!runs("ip route add default dev near")) return false;
  std::ofstream(folder + "/commands") << commands;
  if (!runs("ip -batch " + folder + "/commands")) return false;
  if (!runs("ip xfrm policy >" + folder + "/policy.txt")) return false;
  std::ofstream answers(folder + "/answers");
  for (const Flow& flow : flows) answers << kernel_says(flow) << "\n";
  return true;
}

TEST(KernelPolicies, BlockWhatOursBlockInTheOrderOfTheReader) {
  std::string folder = ::testing::TempDir() + "/xfrm_interop_XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::size_t decided = 0;
  for (unsigned round = 0; round < 5; ++round) {
    Maker maker(100 + round);
    const std::string commands = commands_of(maker);
    std::vector<Flow> flows;
    for (int i = 0; i < 400; ++i) {
      const auto net = [&](unsigned first, unsigned host) {
        return first << 24 | static_cast<std::uint32_t>(maker.any(4) << 8 | (maker.any(4) + host));
      };
      flows.push_back({net(10, 1), net(20, 0), static_cast<std::uint16_t>(5000 + maker.any(4)),
                       static_cast<std::uint16_t>(6000 + maker.any(4))});
    }
    const pid_t child = ::fork();
    if (child == 0) ::_exit(ask_kernel(commands, flows, folder) ? 0 : 77);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
      std::filesystem::remove_all(folder);
      GTEST_SKIP() << "no network namespace with IPsec policies here";
    }
    const std::string text = read_text_file(folder + "/policy.txt").value_or("");
    const auto policies = parse_policies(text, "policy.txt");
    ASSERT_TRUE(policies) << to_string(policies.error());
    EXPECT_THAT(policies->unsupported, IsEmpty());
    ASSERT_THAT(policies->value, SizeIs(kPolicies));
    const std::string answers = read_text_file(folder + "/answers").value_or("");
    LineReader lines(answers);
    for (const Flow& flow : flows) {
      const auto decides =
          std::ranges::find_if(policies->value, [&](const Policy& p) { return selects(p.selector, flow); });
      const bool none = decides == policies->value.end();
      Line answer;
      ASSERT_TRUE(lines.next(answer));
      ASSERT_EQ(answer.text, !none && decides->action == PolicyAction::block ? "block" : "allow")
          << to_string(Ipv4Address{flow.source}) << ":" << flow.source_port << " -> "
          << to_string(Ipv4Address{flow.destination}) << ":" << flow.destination_port << " by "
          << (none ? "none" : to_text(*decides)) << "\n"
          << text;
      decided += none ? 0 : 1;
    }
  }
  EXPECT_GT(decided, 500U);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace penstock::ipsec
