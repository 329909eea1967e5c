// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A chain in which two functions send on one SA, run after run: no nonce and no sequence number may be used twice.
//
//     … > 53 UDP  ─▶ ipsec (by a.txt) ──ESP──▶ ipsec#2 ────────────────────▶ pcap
//     … > 443 UDP ─▶ ipsec ──────────────────▶ ipsec#2 (by b.txt) ──ESP──▶ pcap

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "property/conservation_check.h"

namespace penstock::property {

class TwoSenders : public Chains {
 protected:
  TwoSenders() {
    lengths_change_ = true;
    const std::string state =
        "src 192.0.2.1 dst 192.0.2.2\n\tproto esp spi 0x00001000 reqid 1 mode tunnel\n\treplay-window 0 \n"
        "\taead rfc4106(gcm(aes)) 0x9b1de5a7c4f83620d17e4c95b8a3f60213579bdf 128\n";
    put("state-a.txt", state);
    put("state-b.txt", "# the same SA\n" + state);
    const auto policy = [](const char* port) {
      return std::string("src 0.0.0.0/0 dst 0.0.0.0/0 proto udp ") + port +
             "\n\tdir out priority 1\n\ttmpl src 192.0.2.1 dst 192.0.2.2\n\t\tproto esp reqid 1 mode tunnel\n";
    };
    put("a.txt", policy("dport 53"));
    put("b.txt", policy("dport 443"));
    port::testing::write_capture(folder_ / "in.pcap", packets_);
  }

  /// Runs the chain again. Returns how many packets each of the two functions has protected.
  std::vector<std::uint64_t> send(const std::vector<std::string>& settings) {
    report_ = run("ports: {in: {pcap: {read: in.pcap}}, out: {pcap: {write: esp.pcap}}}\n"
                  "chain: [ipsec: {state: state-a.txt, policy: a.txt}, ipsec: {state: state-b.txt, policy: b.txt}]\n",
                  settings)
                  .report;
    constexpr std::size_t kProtocolAt = 14 + 9, kNumberAt = 14 + 20 + 4, kIvAt = kNumberAt + 4;
    std::size_t protected_packets = 0;
    for (const Captured& packet : port::testing::read_captures({folder_ / "esp.pcap"}).packets) {
      const auto& bytes = packet.bytes;
      if (bytes.size() < kIvAt + 8 || bytes[12] != 0x08 || bytes[13] != 0 || bytes[kProtocolAt] != 50) continue;
      ++protected_packets;
      EXPECT_TRUE(numbers_.insert(std::string(bytes.begin() + kNumberAt, bytes.begin() + kIvAt)).second);
      EXPECT_TRUE(ivs_.insert(std::string(bytes.begin() + kIvAt, bytes.begin() + kIvAt + 8)).second);
    }
    std::vector<std::uint64_t> by_function;
    for (const Json& function : report_["functions"]) {
      by_function.push_back(function["details"]["sas"][0]["packets"]);
    }
    EXPECT_EQ(protected_packets, by_function[0] + by_function[1]);
    return by_function;
  }

  const std::vector<Captured> packets_ = tagged_packets(120, 60);
  std::set<std::string> numbers_, ivs_;
  Json report_;  // of the last run
};

}  // namespace penstock::property
