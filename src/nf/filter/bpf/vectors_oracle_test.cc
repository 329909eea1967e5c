// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Public test vectors of FreeBSD and libpcap, from the corpus of test data, if it is there.

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/testing/rounds.h"
#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/libpcap_instructions.h"
#include "nf/filter/bpf/packets_for_test.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::filter {
namespace {

using nlohmann::json;

std::string corpus_path(const std::string& name) {
  const char* corpus = std::getenv("PENSTOCK_CORPUS");
  return (corpus != nullptr ? std::string(corpus) : PENSTOCK_SOURCE_DIR "/../shared/data") + "/bpf/" + name;
}

/// The tests of a file; empty if the corpus is absent.
json vectors(const std::string& name) {
  std::ifstream file(corpus_path(name));
  if (!file) return {};
  return json::parse(file).at("tests");
}

std::vector<Instruction> instructions_of(const json& rows) {
  std::vector<Instruction> instructions;
  for (const auto& row : rows)
    instructions.push_back({row[0].get<std::uint16_t>(), row[1].get<std::uint8_t>(), row[2].get<std::uint8_t>(),
                            static_cast<std::uint32_t>(row[3].get<std::int64_t>())});
  return instructions;
}

std::vector<std::uint8_t> bytes_of_hex(const std::string& hex, std::size_t most) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size() && bytes.size() < most; i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

struct PcapClose {
  void operator()(pcap_t* pcap) const noexcept { pcap_close(pcap); }
};
using Pcap = std::unique_ptr<pcap_t, PcapClose>;

Packets packets_of_capture(const std::string& path) {
  char reason[PCAP_ERRBUF_SIZE];
  const Pcap pcap(pcap_open_offline(path.c_str(), reason));
  Packets packets;
  if (!pcap) {
    ADD_FAILURE() << reason;
    return packets;
  }
  pcap_pkthdr* header = nullptr;
  const u_char* data = nullptr;
  while (pcap_next_ex(pcap.get(), &header, &data) == 1) packets.add({data, header->caplen}, header->len);
  return packets;
}

/// Checks all engines, libpcap included.
void expect_returns(const Program& program, const Packets& packets, const std::vector<std::uint32_t>& expected,
                    const std::string& name) {
  for (const auto& matcher : all_matchers({program}))
    EXPECT_EQ(returns_of(*matcher, 0, packets.views()), expected) << matcher->name() << ": " << name;
}

TEST(BpfVectors, AgreeWithFreeBsd) {
  const json tests = vectors("freebsd_bpf_filter.json");
  if (tests.empty()) GTEST_SKIP() << "no corpus";
  for (const json& test : tests) {
    const auto name = test.at("name").get<std::string>();
    const auto program = Program::verify(instructions_of(test.at("insns")), {name, 0, 0});
    const bool refused = test.at("expect_reject").get<bool>() || !test.at("libpcap_bpf_validate").get<bool>();
    ASSERT_EQ(!program, refused) << name;
    if (refused) continue;
    Packets packets;
    packets.add(bytes_of_hex(test.at("data_hex"), test.at("buflen")), test.at("wirelen").get<std::uint32_t>());
    expect_returns(*program, packets, {test.at("expect").get<std::uint32_t>()}, name);
  }
}

TEST(BpfVectors, AgreeWithLibpcapOnCaptures) {
  const json tests = vectors("libpcap_apply.json");
  if (tests.empty()) GTEST_SKIP() << "no corpus";
  for (const json& test : tests) {
    const auto name = test.at("name").get<std::string>();
    const Packets packets = packets_of_capture(corpus_path("filter_pcaps/" + test.at("savefile").get<std::string>()));
    std::vector<std::uint32_t> expected;
    for (const auto& value : test.at("results")) expected.push_back(value.get<std::uint32_t>());
    for (const char* kind : {"opt", "unopt"}) {
      if (!test.contains(kind) || test.at(kind).empty()) continue;
      const auto program = Program::verify(instructions_of(test.at(kind)), {name, 0, 0});
      ASSERT_TRUE(program) << to_string(program.error());
      expect_returns(*program, packets, expected, name + " " + kind);
    }
  }
}

/// Whether all that the instructions load is known without a kernel.
bool makes_sense_without_a_kernel(const std::vector<Instruction>& instructions) {
  for (const Instruction& at : instructions)
    if ((at.code & 0xe7) == 0x20 && (at.k == 0xfffff004 || at.k == 0xfffff008)) return false;
  return true;
}

TEST(BpfVectors, AcceptLibpcapsPrograms) {
  const json tests = vectors("libpcap_accept.json");
  if (tests.empty()) GTEST_SKIP() << "no corpus";
  std::mt19937 random(20261);
  const Packets packets = random_packets(random, 40);
  std::size_t accepted = 0;
  for (const json& test : tests)
    for (const char* kind : {"opt", "unopt"}) {
      if (!test.contains(kind) || test.at(kind).empty()) continue;
      const auto name = test.at("name").get<std::string>() + " " + kind;
      const auto instructions = instructions_of(test.at(kind));
      const auto program = Program::verify(instructions, {name, 0, 0});
      ASSERT_EQ(program.has_value(), makes_sense_without_a_kernel(instructions)) << name;
      if (!program) continue;
      ++accepted;
      const auto matchers = all_matchers({*program});
      for (const auto& matcher : matchers)
        EXPECT_EQ(returns_of(*matcher, 0, packets.views()), returns_of(*matchers[0], 0, packets.views()))
            << matcher->name() << ": " << name;
    }
  EXPECT_GT(accepted, 1500u);
}

TEST(BpfVectors, ListingsAreLibpcaps) {
  const json tests = vectors("libpcap_accept.json");
  if (tests.empty()) GTEST_SKIP() << "no corpus";
  for (const json& test : tests) {
    if (!test.contains("opt") || test.at("opt").empty()) continue;
    const auto instructions = instructions_of(test.at("opt"));
    const auto theirs = to_libpcap(instructions);
    for (std::size_t i = 0; i < instructions.size(); ++i)
      EXPECT_EQ(listing_line(instructions[i], i), bpf_image(&theirs[i], static_cast<int>(i)));
  }
}

/// DLT_ by its name in the vectors.
std::optional<int> link_type_of(const std::string& name) {
  const int dlt = pcap_datalink_name_to_val(name.c_str());
  return dlt < 0 ? std::nullopt : std::optional(dlt);
}

/// Names of hosts are looked up in the network.
bool has_host_name(const std::string& expression) {
  return expression.find(".test") != std::string::npos || expression.find(".TEST") != std::string::npos;
}

/// Libpcap compiles `inbound` and `ifindex` for live captures only; it does not know that ours are not.
bool is_known_to_the_kernel_only(const std::string& error) {
  return error.find("is known only to the kernel") != std::string::npos;
}

TEST(BpfVectors, AcceptWhatLibpcapCompiles) {
  const json tests = vectors("libpcap_accept.json");
  if (tests.empty()) GTEST_SKIP() << "no corpus";
  std::mt19937 random(20261);
  const Packets packets = random_packets(random, 40);
  std::size_t compiled = 0;
  for (const json& test : tests) {
    const auto link_type = link_type_of(test.at("DLT"));
    if (!link_type) continue;
    CompileOptions options;
    options.link_type = *link_type;
    if (test.contains("snaplen")) options.snap_length = test.at("snaplen").get<std::uint32_t>();
    for (const std::string expression : test.at("exprs")) {
      if (has_host_name(expression)) continue;
      const auto program = compile_expression(expression, options, {});
      if (!program) {
        // The vectors are of a newer libpcap than the one that is linked, whose language has less.
        const std::string error = to_string(program.error());
        EXPECT_TRUE(error.find("cannot compile the filter expression: ") != std::string::npos ||
                    is_known_to_the_kernel_only(error))
            << error;
        continue;
      }
      ++compiled;
      const auto matchers = all_matchers({*program});
      for (const auto& matcher : matchers)
        EXPECT_EQ(returns_of(*matcher, 0, packets.views()), returns_of(*matchers[0], 0, packets.views()))
            << matcher->name() << ": " << expression;
    }
  }
  EXPECT_GT(compiled, 1000u);
}

TEST(BpfVectors, RefuseTheExpressionsThatLibpcapRefuses) {
  const json tests = vectors("libpcap_reject.json");
  if (tests.empty()) GTEST_SKIP() << "no corpus";
  std::size_t refused = 0;
  std::size_t accepted = 0;
  std::size_t i = 0;
  for (const json& test : tests) {
    if (!test.contains("expr") || i++ % (8 * testing::stride()) != 0) continue;
    const auto link_type = link_type_of(test.at("DLT"));
    if (!link_type || test.contains("skip_reason")) continue;
    CompileOptions options;
    options.link_type = *link_type;
    ++(compile_expression(test.at("expr"), options, {}) ? accepted : refused);
  }
  EXPECT_GT(refused, 20 * accepted);
}

}  // namespace
}  // namespace penstock::filter
