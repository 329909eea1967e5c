// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// ESP between our chains and other software: Wireshark reads what a chain protects; DPDK's librte_ipsec opens it, and
// protects what a chain opens; captures with other implementations' ESP and of real traffic are processed. Each part is
// skipped if the software or the corpus is missing.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/testing/rounds.h"
#include "base/text_file.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/sa/esp_sa_table.h"
#include "packet/parse_core.h"
#include "port/capture_reader.h"
#include "property/conservation_check.h"
#include "property/corpus_packets.h"

namespace penstock {
namespace {

using namespace ipsec::testing;
using ipsec::Bytes;
using port::testing::Captured;
using port::testing::read_captures;
using port::testing::write_capture;
using property::Json;
using ::testing::HasSubstr;

std::string hex(const Bytes& bytes) { return fmt::format("{:02x}", fmt::join(bytes, "")); }

std::string key(std::size_t bytes, unsigned first) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += fmt::format("{:02x}", (first + i * 37) & 0xff);
  return text;
}

/// A command's output, and its exit status.
std::pair<std::string, int> output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {text, -1};
  char chunk[4096];
  for (std::size_t got = 0; (got = fread(chunk, 1, sizeof chunk, pipe)) > 0;) text.append(chunk, got);
  const int status = pclose(pipe);
  return {text, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

/// IP packets with UDP and without a link header, of several lengths.
std::vector<Bytes> datagrams(bool ipv6, std::uint16_t port) {
  std::vector<Bytes> all;
  for (const std::size_t payload : {0U, 1U, 10U, 17U, 100U, 1200U}) {
    penstock::testing::PacketBuilder b;
    ipv6 ? b.ipv6("2001:db8:1::1", "2001:db8:2::2") : b.ipv4("10.1.0.1", "10.2.0.2");
    all.push_back(b.udp(1000, port).payload(std::string(payload, 'p')).bytes());
  }
  return all;
}

/// The SA between these end points: gateways in tunnel mode, hosts in transport mode.
StateText state_between(bool ipv6, bool tunnel) {
  StateText state;
  if (tunnel) {
    state.source = ipv6 ? "2001:db8::1" : "192.0.2.1";
    state.destination = ipv6 ? "2001:db8::2" : "192.0.2.2";
  } else {
    state.source = ipv6 ? "2001:db8:1::1" : "10.1.0.1";
    state.destination = ipv6 ? "2001:db8:2::2" : "10.2.0.2";
    state.mode = "transport";
  }
  return state;
}
std::string template_of(const StateText& state) {
  return state.mode == "tunnel" ? tunnel_template(state.reqid, state.source, state.destination)
                                : transport_template(state.reqid);
}

class EspPeers : public property::Chains {
 protected:
  EspPeers() { lengths_change_ = true; }

  void write_raw(const std::string& name, const std::vector<Bytes>& packets) {
    std::vector<Captured> captured;
    for (const Bytes& bytes : packets) {
      captured.push_back({1'700'000'000'000'000'000 + captured.size() * 1000, static_cast<std::uint32_t>(bytes.size()),
                          LinkType::raw_ip, bytes});
    }
    EXPECT_EQ(write_capture(folder_ / name, captured).taken, captured.size());
  }
  std::vector<Bytes> read(const std::string& name) {
    std::vector<Bytes> packets;
    for (const Captured& one : read_captures({folder_ / name}).packets) packets.push_back(one.bytes);
    return packets;
  }

  /// Runs `ipsec` over the capture `in` with the files `state` and `policy`. Each run acts as a new machine: it records
  /// no numbers.
  Json run_ipsec(const std::string& direction, const std::string& in, const std::string& out,
                 const std::string& policy = ", policy: policy") {
    return run("ports: {in: {pcap: {read: \"" + in + "\"}}, out: {pcap: {write: " + out + "}}}\n" +
               "chain: [ipsec: {state: state" + policy + ", direction: " + direction + ", state_dir: none}]\n")
        .report;
  }
};

// Wireshark.

/// The SAs that Wireshark can check. For SAs with ESN, it reports the ICV as wrong.
std::vector<std::string> algorithms_of_wireshark() {
  std::vector<std::string> all;
  for (const char* const integrity : {"hmac(sha1) 0x{} 96", "hmac(sha256) 0x{} 128", "hmac(sha256) 0x{} 96"}) {
    const std::string name = integrity;
    const std::string text = fmt::format(fmt::runtime(name), key(name.find("sha1") != std::string::npos ? 20 : 32, 7));
    const std::string auth = "\tauth-trunc " + text + "\n";
    all.push_back(auth + "\tenc ecb(cipher_null) \n");
    for (const std::size_t bytes : {16U, 24U, 32U}) {
      all.push_back(auth + "\tenc cbc(aes) 0x" + key(bytes, 1) + "\n");
      all.push_back(auth + "\tenc rfc3686(ctr(aes)) 0x" + key(bytes + 4, 2) + "\n");
    }
  }
  for (const std::size_t bytes : {16U, 24U, 32U}) {
    for (const int bits : {64, 96, 128})
      all.push_back(fmt::format("\taead rfc4106(gcm(aes)) 0x{} {}\n", key(bytes + 4, 3), bits));
  }
  return all;
}

TEST_F(EspPeers, WiresharkAuthenticatesAndDecryptsWhatAChainProtects) {
  if (output_of("tshark --version 2>/dev/null").first.find("TShark") == std::string::npos)
    GTEST_SKIP() << "no tshark here";
  std::string states, policies, expected;
  std::vector<Bytes> packets;
  std::uint32_t number = 0;
  for (const std::string& algorithms : algorithms_of_wireshark()) {
    for (const bool ipv6 : {false, true}) {
      for (const bool tunnel : {false, true}) {
        for (const bool udp : {false, true}) {
          StateText state = state_between(ipv6, tunnel);
          state.algorithms = algorithms;
          state.spi = 0x1000 + number;
          state.take_own_key();
          state.reqid = 1 + number;
          if (udp)
            state.more = fmt::format("\tencap type espinudp sport 4500 dport 4500 addr {}\n", ipv6 ? "::" : "0.0.0.0");
          states += state();
          const auto port = static_cast<std::uint16_t>(10'000 + number++);
          for (const bool inner_ipv6 : {false, true}) {
            if (!tunnel && inner_ipv6 != ipv6) continue;
            policies +=
                policy_text(fmt::format("src {0} dst {0} proto udp dport {1}", inner_ipv6 ? "::/0" : "0.0.0.0/0", port),
                            "out", template_of(state), 1);
            for (const Bytes& bytes : datagrams(inner_ipv6, port)) {
              packets.push_back(bytes);
              // The plain text, in the form of RFC 4303 §2.4.
              Bytes text(bytes.begin() + (tunnel ? 0 : inner_ipv6 ? 40 : 20), bytes.end());
              const std::size_t unit = algorithms.find("cbc") != std::string::npos ? 16 : 4;
              std::uint8_t padding = 0;
              while ((text.size() + 2) % unit != 0) text.push_back(++padding);
              text.push_back(padding);
              text.push_back(!tunnel ? 17 : inner_ipv6 ? 41 : 4);
              expected += fmt::format("0x{:08x}\t1\t{}\n", state.spi, hex(text));
            }
          }
        }
      }
    }
  }
  put("state", states);
  put("policy", policies);
  write_raw("in.pcap", packets);
  const Json report = run_ipsec("out", "in.pcap", "esp.pcap");
  ASSERT_EQ(report["packets"]["forwarded"], packets.size()) << report["functions"][0]["dropped"];

  const auto read_states = ipsec::read_states(folder_ / "state");
  ASSERT_TRUE(read_states);
  std::filesystem::create_directories(folder_ / "wireshark");
  ASSERT_TRUE(write_text_file(folder_ / "wireshark/esp_sa", ipsec::esp_sa_table(read_states->value)));
  const auto tshark = [&](const std::string& fields) {
    return output_of("XDG_CONFIG_HOME=" + (folder_ / "") + " tshark -r " + (folder_ / "esp.pcap") +
                     " -o esp.enable_encryption_decode:TRUE -o esp.enable_authentication_check:TRUE"
                     " -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -T fields " +
                     fields + " 2>" + (folder_ / "log"))
        .first;
  };
  std::istringstream seen(tshark("-e esp.spi -e esp.icv_good -e esp.decrypted_data"));
  std::istringstream wanted(expected);
  std::size_t line = 0;
  for (std::string w, s; std::getline(wanted, w); ++line) {
    std::getline(seen, s);
    ASSERT_EQ(s, w) << "packet " << line;
  }
  EXPECT_EQ(line, packets.size());
  // 0 means a wrong checksum. If a packet has several headers, their values follow each other.
  EXPECT_EQ(tshark("-e ip.checksum.status -e udp.checksum.status").find('0'), std::string::npos);
}

// DPDK.

#ifdef PENSTOCK_RTE_IPSEC_PEER

struct PeerAlgorithm {
  std::string text;       // in the format of `ip xfrm state`
  std::string arguments;  // of the peer
};

std::vector<PeerAlgorithm> algorithms_of_dpdk() {
  std::vector<PeerAlgorithm> all;
  const std::string salt = key(4, 90);
  for (const std::string cipher : {"aes-cbc", "aes-ctr"}) {
    for (const std::size_t bytes : {16U, 24U, 32U}) {
      for (const std::string integrity : {"sha1", "sha256"}) {
        const std::string auth_key = key(integrity == "sha1" ? 20 : 32, 7);
        const bool cbc = cipher == "aes-cbc";
        all.push_back({fmt::format("\tauth-trunc hmac({}) 0x{} {}\n\tenc {} 0x{}{}\n", integrity, auth_key,
                                   integrity == "sha1" ? 96 : 128, cbc ? "cbc(aes)" : "rfc3686(ctr(aes))",
                                   key(bytes, 1), cbc ? "" : salt),
                       fmt::format("cipher={} key={} auth={} auth-key={}{}", cipher, key(bytes, 1), integrity, auth_key,
                                   cbc ? "" : " salt=" + salt)});
      }
    }
  }
  for (const std::size_t bytes : {16U, 32U}) {
    all.push_back({fmt::format("\taead rfc4106(gcm(aes)) 0x{}{} 128\n", key(bytes, 3), salt),
                   fmt::format("cipher=aes-gcm key={} salt={}", key(bytes, 3), salt)});
  }
  return all;
}

struct PeerMode {
  bool tunnel, ipv6, inner_ipv6;
};
constexpr PeerMode kPeerModes[] = {{true, false, false}, {true, false, true},   {true, true, false},
                                   {true, true, true},   {false, false, false}, {false, true, true}};

class EspWithDpdk : public EspPeers {
 protected:
  /// Returns false if it cannot run here.
  bool peer(const std::string& what, const std::string& in, const std::string& out, const std::string& arguments) {
    const auto [text, status] =
        output_of("ASAN_OPTIONS=detect_leaks=0 " + std::string(PENSTOCK_RTE_IPSEC_PEER) + " " + what + " " +
                  (folder_ / in) + " " + (folder_ / out) + " " + arguments + " 2>&1");
    EXPECT_EQ(status, 0) << text;
    EXPECT_THAT(text, HasSubstr("6 came out, 0 did not")) << what << " " << arguments;
    return status == 0;
  }

  void exchange(const PeerAlgorithm& algorithm, const PeerMode& mode, bool esn) {
    StateText state = state_between(mode.ipv6, mode.tunnel);
    state.algorithms = algorithm.text;
    state.esn = esn;
    if (esn) state.sent = state.received = 0x2'ffff'fffd;  // the lower half wraps between the packets
    SCOPED_TRACE(state());
    put("state", state());
    put("policy", everything("out", template_of(state)) + everything("fwd", template_of(state)));
    const std::vector<Bytes> packets = datagrams(mode.inner_ipv6, 2000);
    write_raw("plain.pcap", packets);
    // Inbound it expects the last received number, outbound the next one to be sent.
    const auto arguments = [&](std::uint64_t sequence) {
      return fmt::format("{} spi=0x{:x} sequence={} mode={} source={} destination={} inner={} esn={}",
                         algorithm.arguments, state.spi, sequence, state.mode, state.source, state.destination,
                         mode.inner_ipv6 ? 6 : 4, esn ? 1 : 0);
    };

    const Json out = run_ipsec("out", "plain.pcap", "ours.pcap");
    ASSERT_EQ(out["packets"]["forwarded"], packets.size()) << out["functions"][0]["dropped"];
    ASSERT_TRUE(peer("open", "ours.pcap", "opened.pcap", arguments(state.received)));
    ASSERT_EQ(read("opened.pcap"), packets) << "what we protect, it opens";

    ASSERT_TRUE(peer("protect", "plain.pcap", "theirs.pcap", arguments(state.sent + 1)));
    ASSERT_NE(read("theirs.pcap"), packets);
    const Json in = run_ipsec("in", "theirs.pcap", "back.pcap");
    ASSERT_EQ(in["packets"]["forwarded"], packets.size()) << in["functions"][0]["dropped"];
    ASSERT_EQ(read("back.pcap"), packets) << "what it protects, we open";
  }
};

TEST_F(EspWithDpdk, EachOpensWhatTheOtherProtectsByEveryAlgorithm) {
  std::size_t turn = 0;
  for (const PeerAlgorithm& algorithm : algorithms_of_dpdk()) {
    for (const bool esn : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(exchange(algorithm, kPeerModes[turn++ % std::size(kPeerModes)], esn));
    }
  }
}

TEST_F(EspWithDpdk, EachOpensWhatTheOtherProtectsInEveryMode) {
  const auto all = algorithms_of_dpdk();
  for (const PeerMode& mode : kPeerModes) {
    for (const bool esn : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(exchange(all.front(), mode, esn));
      ASSERT_NO_FATAL_FAILURE(exchange(all.back(), mode, esn));
    }
  }
}

#else

TEST(EspWithDpdk, IsAbsent) { GTEST_SKIP() << "built without DPDK (libdpdk-dev): its librte_ipsec is not asked"; }

#endif

// Captures.

class EspCaptures : public EspPeers {};

std::filesystem::path corpus() {
  const char* const set = std::getenv("PENSTOCK_CORPUS");
  return set != nullptr ? set : PENSTOCK_SOURCE_DIR "/../shared/data";
}

/// ESP of another implementation, with a 96-bit ICV whose key is unknown.
TEST_F(EspCaptures, OfAnotherImplementationAreOpened) {
  const std::filesystem::path capture = corpus() / "ipsec/captures/08-sunrise-sunset-aes.pcap";
  if (!std::filesystem::exists(capture)) GTEST_SKIP() << "no corpus: set PENSTOCK_CORPUS to the folder of test data";
  const Json said = Json::parse(std::ifstream(corpus() / "ipsec/captures/08-sunrise-sunset-aes.json"));
  StateText state;
  state.source = "192.1.2.23";
  state.destination = "192.1.2.45";
  state.spi = 0xd1234567;
  state.algorithms =
      "\tauth-trunc digest_null  96\n\tenc cbc(aes) 0x" + said["sas"]["0xd1234567"]["key"].get<std::string>() + "\n";
  put("state", state());
  const Json report = run_ipsec("in", capture.string(), "plain.pcap", "");
  const auto expected = read_captures({(corpus() / "ipsec/captures/08-sunrise-sunset-aes.plain.pcap").string()});
  const auto ours = read_captures({folder_ / "plain.pcap"});
  ASSERT_GT(expected.packets.size(), 5U);
  EXPECT_EQ(report["packets"]["forwarded"], report["packets"]["in"]);
  ASSERT_EQ(ours.packets.size(), expected.packets.size());
  constexpr std::ptrdiff_t kEthernet = 14;  // the expectation has no link header
  for (std::size_t i = 0; i < ours.packets.size(); ++i) {
    const Bytes& bytes = ours.packets[i].bytes;
    ASSERT_EQ(Bytes(bytes.begin() + kEthernet, bytes.end()), expected.packets[i].bytes) << i;
    EXPECT_EQ(ours.packets[i].timestamp_ns, expected.packets[i].timestamp_ns);
  }
}

/// The packet that must come back from a tunnel, or the reason why it does not enter one.
struct Expected {
  std::string reason;
  Captured packet;
};
Expected expectation_of(const Captured& given, bool cbc) {
  Expected expected{"", given};
  PacketLayout layout =
      parse(given.bytes.data(), static_cast<std::uint32_t>(given.bytes.size()), given.wire_length, given.link_type);
  if (!layout.is_ip()) return expected;
  const bool header = layout.has(PacketLayout::kNetworkHeader);
  // If there is a complete header, a contradiction in it takes precedence over truncation.
  if (header && layout.has(PacketLayout::kMalformed)) {
    expected.reason = "malformed";
  } else if (layout.has(PacketLayout::kTruncated)) {
    expected.reason = "truncated";
  } else if (!header) {
    expected.reason = "malformed";
  } else {
    // ESP header, IV, the padded plain text and the ICV; IPv4's length field includes its own header.
    const std::uint32_t unit = cbc ? 16 : 4;
    const std::uint32_t text = (layout.end - layout.network_offset + 2 + unit - 1) / unit * unit;
    const std::uint32_t length = (layout.network == NetworkLayer::ipv4 ? 20 : 0) + 8 + text + (cbc ? 16 + 12 : 8 + 16);
    if (length > 0xffff) expected.reason = "too_long";
  }
  // Only the link's padding is removed, and the wire may have had more of it.
  expected.packet.wire_length -= static_cast<std::uint32_t>(given.bytes.size()) - layout.end;
  expected.packet.bytes.resize(layout.end);
  return expected;
}

TEST_F(EspCaptures, OfRealTrafficComeBackFromATunnel) {
  const std::vector<std::string> files = property::corpus_captures();
  if (files.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  std::size_t captures = 0;
  std::size_t packets = 0;
  std::size_t tunnelled = 0;
  for (std::size_t at = 0; at < files.size(); at += penstock::testing::stride()) {
    const std::string& file = files[at];
    if (std::filesystem::file_size(file) > 4'000'000) continue;
    port::ReadControl control;
    auto capture = port::CaptureSequence::open({file}, control);
    if (!capture) continue;
    SCOPED_TRACE(file);
    const bool cbc = captures % 2 == 1;  // alternately
    std::vector<Captured> expected;
    std::map<std::string, std::size_t> dropped;
    port::CapturedFrame frame;
    while (capture->next(frame)) {
      ++packets;
      const Bytes bytes(frame.bytes.begin(), frame.bytes.end());
      Expected one = expectation_of({frame.timestamp_ns, frame.wire_length, frame.link_type, bytes}, cbc);
      if (one.reason.empty()) {
        expected.push_back(std::move(one.packet));
      } else {
        ++dropped[one.reason];
      }
    }
    StateText four, six;
    four.algorithms = cbc ? kCbcSha1 : kGcm;
    six = four;
    six.source = "2001:db8::1";
    six.destination = "2001:db8::2";
    six.spi = 0x1001;
    six.reqid = 2;
    six.esn = true;
    const std::string to_four = tunnel_template(1, four.source, four.destination);
    const std::string to_six = tunnel_template(2, six.source, six.destination);
    std::string policies;
    for (const std::string direction : {"out", "fwd"}) {
      policies += policy_text("src 0.0.0.0/0 dst 0.0.0.0/0", direction, to_four) +
                  policy_text("src ::/0 dst ::/0", direction, to_six);
    }
    put("state", four() + six());
    put("policy", policies);
    const Json out = run_ipsec("out", file, "esp.pcapng");
    std::map<std::string, std::size_t> reasons;
    for (const auto& [reason, count] : out["functions"][0]["dropped"]["reasons"].items()) {
      if (count != 0) reasons[reason] = count;
    }
    ASSERT_EQ(reasons, dropped);
    if (expected.empty()) continue;
    const Json in = run_ipsec("in", "esp.pcapng", "back.pcapng");
    ASSERT_EQ(in["packets"]["forwarded"], expected.size()) << in["functions"][0]["dropped"];
    for (const auto& sa : in["functions"][0]["details"]["sas"]) tunnelled += sa["packets"].get<std::size_t>();
    const auto back = read_captures({folder_ / "back.pcapng"}).packets;
    ASSERT_EQ(back.size(), expected.size());
    for (std::size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], expected[i]) << "packet " << i;
    ++captures;
  }
  EXPECT_GT(captures, penstock::testing::rounds(500));
  EXPECT_GT(packets, penstock::testing::rounds(10'000));
  EXPECT_GT(tunnelled, packets / 2);
}

}  // namespace
}  // namespace penstock
