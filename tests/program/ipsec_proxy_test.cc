// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs with outbound `ipsec` on the device of a proxy: the peer gets what it gets from the CPU, and no number and no IV
// is used twice, whatever dies or is reloaded.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "program/proxy_for_test.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

const std::string kAddresses = "src 192.0.2.1 dst 192.0.2.2";
const std::string kTemplate = "\ttmpl " + kAddresses + "\n\t\tproto esp reqid ";

std::string state_of(int spi, const std::string& algorithms, const std::string& more = "") {
  return kAddresses + "\n\tproto esp spi 0x0000" + std::to_string(spi) + " reqid " + std::to_string(spi) +
         " mode tunnel\n\treplay-window 32 \n" + algorithms + more;
}
const std::string kGcm = state_of(1000, "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n");
const std::string kCbc = state_of(1001,
                                  "\tauth-trunc hmac(sha256) "
                                  "0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 128\n"
                                  "\tenc cbc(aes) 0x2f6ad91c58e37b04c1b8f5e29d607a43\n");

class IpsecInProxy : public ProxyProgram {
 protected:
  void SetUp() override {
    Program::SetUp();
    write("state.txt", kGcm + kCbc);
    write("policy.txt", "src 0.0.0.0/0 dst 0.0.0.0/0 proto tcp\n\tdir out priority 1\n" + kTemplate +
                            "1001 mode tunnel\nsrc 0.0.0.0/0 dst 0.0.0.0/0\n\tdir out priority 2\n" + kTemplate +
                            "1000 mode tunnel\n");
  }
  /// A chain from a capture, or from `source`, whose report and capture have its name.
  void chain(const std::string& name, const std::string& run, const std::string& functions,
             const std::string& source = "pcap: {read: in.pcap}") const {
    write(name + ".yaml", "ports:\n  lan: {" + source + "}\n  wan: {pcap: {write: " + name + ".pcap}}\nchain: [" +
                              functions + "]\nrun: {" + run + "}\noutputs: {report: " + name +
                              ".json, control: " + name + ".control}\n");
  }

  struct Esp {
    std::string sa, number, iv;  // bytes; of CBC, the IV is only its first half
  };
  /// Of the capture, which may be cut off.
  [[nodiscard]] std::vector<Esp> esp_in(const std::string& capture) const {
    constexpr std::size_t kFileHeader = 24, kRecordHeader = 16, kProtocolAt = 14 + 9, kSpiAt = 14 + 20;
    const std::string file = read(capture);
    std::vector<Esp> all;
    std::uint32_t length = 0;
    for (std::size_t at = kFileHeader; at + kRecordHeader <= file.size(); at += length) {
      std::memcpy(&length, file.data() + at + 8, sizeof length);
      at += kRecordHeader;
      if (at + length > file.size()) break;
      const std::string bytes = file.substr(at, length);
      if (bytes.size() < kSpiAt + 16 || bytes[kProtocolAt] != 50) continue;
      all.push_back({bytes.substr(kSpiAt, 4), bytes.substr(kSpiAt + 4, 4), bytes.substr(kSpiAt + 8, 8)});
    }
    return all;
  }
  /// Adds the numbers and IVs of a capture. Returns how many packets it has.
  std::size_t add(const std::string& capture) {
    const std::vector<Esp> all = esp_in(capture);
    for (const Esp& esp : all) {
      EXPECT_TRUE(numbers_.insert(esp.sa + esp.number).second) << "a number was used twice";
      EXPECT_TRUE(ivs_.insert(esp.sa + esp.iv).second) << "an IV was used twice";
    }
    return all.size();
  }
  [[nodiscard]] static std::uint32_t value(const std::string& big_endian) {
    std::uint32_t number = 0;
    for (const char byte : big_endian) number = number << 8 | static_cast<std::uint8_t>(byte);
    return number;
  }
  /// Whether the numbers of each SA follow each other without a gap, in the order of the packets.
  [[nodiscard]] static bool are_consecutive(const std::vector<Esp>& all) {
    std::map<std::string, std::uint32_t> last;
    return std::ranges::all_of(all, [&](const Esp& esp) {
      const auto found = last.find(esp.sa);
      const std::uint32_t number = value(esp.number);
      const bool follows = found == last.end() || number == found->second + 1;
      last[esp.sa] = number;
      return follows;
    });
  }

  /// A chain of a peer that opens what the chain `name` has sent.
  void peer_of(const std::string& name) const {
    chain(name + "-in", "processor: cpu", "ipsec: {state: state.txt, direction: in, state_dir: none}",
          "pcap: {read: " + name + ".pcap}");
  }
  void expect_same_at_the_peer() const {
    EXPECT_GT(json("proxied.json")["gpu"]["segments"], 0);
    EXPECT_EQ(json("proxied.json")["gpu"]["failures"], 0);
    EXPECT_EQ(json("proxied.json")["packets"], json("cpu.json")["packets"]);
    EXPECT_EQ(json("proxied-in.json")["packets"], json("cpu-in.json")["packets"]);
    EXPECT_EQ(json("proxied-in.json")["packets"]["dropped"], 0);
    EXPECT_TRUE(read("cpu-in.pcap") == read("proxied-in.pcap"));
  }

  const std::string kOut = "ipsec: {state: state.txt, policy: policy.txt, state_dir: kept}";
  std::set<std::string> numbers_, ivs_;
};

TEST_F(IpsecInProxy, GivesThePeerWhatTheCpuGives) {
  chain("cpu", "processor: cpu", kOut);
  chain("proxied", "processor: gpu, proxy: sock", kOut);
  for (const std::string name : {"cpu", "proxied"}) peer_of(name);
  ASSERT_EQ(script("proxy; for c in cpu proxied cpu-in proxied-in; do penstock run -q $c.yaml || exit 1; done"), 0)
      << read("err");
  expect_same_at_the_peer();
  const std::size_t of_cpu = add("cpu.pcap");
  EXPECT_GT(of_cpu, 50U);
  EXPECT_EQ(add("proxied.pcap"), of_cpu);
  EXPECT_TRUE(are_consecutive(esp_in("proxied.pcap")));
}

#ifdef PENSTOCK_PROXY_PROGRAM
/// The first one drops some packets and changes the others.
TEST_F(IpsecInProxy, ProtectsAfterOtherFunctionsOfTheDevice) {
  const std::string functions = "block: {ports: [40475, 57760]}, " + kOut + ", block: {}";
  chain("cpu", "processor: cpu", functions);
  chain("proxied", "processor: gpu, proxy: sock", functions);
  for (const std::string name : {"cpu", "proxied"}) peer_of(name);
  ASSERT_EQ(script("proxy; for c in cpu proxied cpu-in proxied-in; do tenant run -q $c.yaml || exit 1; done"), 0)
      << read("err");
  expect_same_at_the_peer();
  EXPECT_GT(json("proxied.json")["packets"]["dropped"], 0);
  EXPECT_EQ(add("proxied.pcap"), esp_in("cpu.pcap").size());
  EXPECT_TRUE(are_consecutive(esp_in("proxied.pcap"))) << "what is dropped before takes no number";
}
#endif

TEST_F(IpsecInProxy, KeepsNumbersInOrderWhenTheProxyDies) {
  chain("run", "proxy: sock, duration: 2s", kOut, "generator: {rate: 20kpps}");
  ASSERT_EQ(script("proxy; penstock run -q run.yaml & RUN=$!; sleep 1; kill -9 $PROXY; wait $RUN"), 0) << read("err");
  const auto report = json("run.json");
  EXPECT_GT(report["gpu"]["segments"], 0);
  EXPECT_GT(report["gpu"]["failures"], 0) << read("err");
  EXPECT_EQ(report["packets"]["dropped"], 0);
  EXPECT_EQ(report["packets"]["in"], report["packets"]["forwarded"]);
  EXPECT_GT(add("run.pcap"), 20000U);
  EXPECT_TRUE(are_consecutive(esp_in("run.pcap")));
}

TEST_F(IpsecInProxy, UsesNoNumberTwiceOverRunsThatAreKilled) {
  chain("run", "proxy: sock, workers: 2", kOut, "generator: {rate: 50kpps}");
  std::size_t with_packets = 0;
  for (int round = 0; round < 4; ++round) {
    static_cast<void>(script("proxy; rm -f run.pcap; '" + program() + "' run -q run.yaml & sleep 0." +
                             std::to_string(6 + round) + "; kill -9 $!"));
    with_packets += add("run.pcap") > 0 ? 1 : 0;
  }
  EXPECT_GE(with_packets, 2U);
}

TEST_F(IpsecInProxy, ContinuesAfterAReload) {
  chain("run", "proxy: sock, workers: 2, duration: 3s", kOut, "generator: {rate: 20kpps}");
  const std::string newer = state_of(1002, "\taead rfc4106(gcm(aes)) 0x1b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n");
  write("more.txt", kGcm + kCbc + newer);
  ASSERT_EQ(script("proxy; penstock run -q run.yaml & RUN=$!; sleep 1\ncp more.txt state.txt\n"
                   "penstock ctl --socket run.control reload && sleep 0.5 && penstock ctl --socket run.control "
                   "rollback; wait $RUN"),
            0)
      << read("err") << read("out");
  const auto report = json("run.json");
  EXPECT_EQ(report["gpu"]["failures"], 0) << report.dump(2);
  EXPECT_EQ(report["packets"]["dropped"], 0);
  EXPECT_EQ(report["packets"]["in"], report["packets"]["forwarded"]);
  EXPECT_GT(add("run.pcap"), 30000U);
}

TEST_F(IpsecInProxy, EndsAnSaAtItsHardLimitAndGoesOnWithItsSuccessor) {
  const std::string none = "\tlifetime config:\n\t  limit: soft (INF)(bytes), hard (INF)(bytes)\n";
  const auto limited = [&](const std::string& packets, const std::string& added) {
    return none + "\t  limit: soft (INF)(packets), hard " + packets +
           "(packets)\n\t  expire add: soft 0(sec), hard 0(sec)\n\t  expire use: soft 0(sec), hard 0(sec)\n"
           "\tlifetime current:\n\t  0(bytes), 0(packets)\n\t  add " +
           added + " use -\n";
  };
  const std::string ends = state_of(1000, "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n",
                                    limited("1000", "2001-01-01 01:00:00"));
  std::string successor = state_of(1002, "\taead rfc4106(gcm(aes)) 0x1b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n",
                                   limited("3000", "2001-01-01 00:00:00"));
  successor.replace(successor.find("reqid 1002"), 10, "reqid 1000");
  write("state.txt", ends + successor);
  write("policy.txt", "src 0.0.0.0/0 dst 0.0.0.0/0\n\tdir out priority 2\n" + kTemplate + "1000 mode tunnel\n");
  chain("run", "proxy: sock", kOut, "generator: {packets: 5000}");
  ASSERT_EQ(script("proxy; penstock run -q run.yaml"), 0) << read("err");
  const auto report = json("run.json");
  EXPECT_GT(report["gpu"]["segments"], 0);
  EXPECT_EQ(report["packets"]["forwarded"], 4000);
  EXPECT_EQ(report["packets"]["dropped"], 1000);
  const std::vector<Esp> all = esp_in("run.pcap");
  EXPECT_EQ(std::ranges::count(all, std::string("\x00\x00\x10\x00", 4), &Esp::sa), 1000);
  EXPECT_THAT(read("err"), HasSubstr("has reached its hard limit: packets"));
}

/// Three processes: the chain, which does not know the keys, `ipsec`, and the proxy.
class IpsecOfAnotherProcess : public IpsecInProxy {
 protected:
  void SetUp() override {
    IpsecInProxy::SetUp();
    write("ipsec.yaml", "chain: [" + kOut + "]\n");
  }
  /// `serve` serves it with its tables in the proxy, in the background, until it listens.
  [[nodiscard]] int script_with_function(const std::string& commands) const {
    return script(
        "serve() { rm -f ipsec.sock; timeout 60 '" + program() +
        "' function serve ipsec.sock ipsec.yaml --proxy sock & SERVED=$!; while [ ! -S ipsec.sock ] && kill -0 "
        "$SERVED; do sleep 0.01; done; }\n"
        "trap 'kill $SERVED $PROXY 2>/dev/null; wait' EXIT\n" +
        commands);
  }
  const std::string kElsewhere = "ipsec: {process: ipsec.sock, patience: 5s}";
};

TEST_F(IpsecOfAnotherProcess, GivesThePeerWhatTheCpuGives) {
  chain("cpu", "processor: cpu", kOut);
  chain("proxied", "processor: gpu, proxy: sock", kElsewhere);
  for (const std::string name : {"cpu", "proxied"}) peer_of(name);
  ASSERT_EQ(script_with_function("penstock run -q cpu.yaml || exit 1; proxy; serve\n"
                                 "for c in proxied cpu-in proxied-in; do penstock run -q $c.yaml || exit 1; done"),
            0)
      << read("err");
  expect_same_at_the_peer();
  const auto function = json("proxied.json")["functions"][0];
  EXPECT_EQ(function["details"]["process"]["lost_packets"], 0) << function.dump(2);
  const std::size_t of_cpu = add("cpu.pcap");
  EXPECT_GT(of_cpu, 50U);
  EXPECT_EQ(add("proxied.pcap"), of_cpu);
}

TEST_F(IpsecOfAnotherProcess, UsesNoNumberTwiceIfItOrTheProxyIsKilled) {
  chain("run", "proxy: sock, duration: 4s", kElsewhere, "generator: {rate: 20kpps}");
  ASSERT_EQ(script_with_function("proxy; serve; penstock run -q run.yaml & RUN=$!; sleep 1\n"
                                 "pkill -9 -P $SERVED; sleep 0.2; serve; sleep 1\n"
                                 "kill -9 $PROXY; sleep 0.2; rm -f sock; proxy; wait $RUN"),
            0)
      << read("err");
  const auto report = json("run.json");
  EXPECT_GT(report["gpu"]["segments"], 0);
  EXPECT_EQ(report["functions"][0]["details"]["process"]["losses"], 1) << read("err");
  EXPECT_EQ(report["packets"]["in"],
            report["packets"]["forwarded"].get<int>() + report["packets"]["dropped"].get<int>());
  EXPECT_GT(add("run.pcap"), 20000U);
}

}  // namespace
}  // namespace penstock
