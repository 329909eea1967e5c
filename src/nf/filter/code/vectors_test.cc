// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Generated code, compiled for the host, against the published results of others' programs: FreeBSD's tests of
// bpf_filter() and libpcap's own. From bpf/ in the folder that PENSTOCK_CORPUS names; skipped without it.

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "nf/filter/code/host_code_for_test.h"
#include "nf/filter/code/random_programs_for_test.h"

namespace penstock::filter {
namespace {

using testing::HostCode;

std::string corpus() {
  const char* const named = std::getenv("PENSTOCK_CORPUS");
  return (named != nullptr ? std::string(named) : std::string(PENSTOCK_SOURCE_DIR "/../shared/data")) + "/bpf/";
}

/// "tests" of the file; null if there is no such file.
nlohmann::json tests_of(const std::string& name) {
  std::ifstream file(corpus() + name);
  return file ? nlohmann::json::parse(file).at("tests") : nlohmann::json();
}

Result<Program> program_of(const nlohmann::json& instructions) {
  std::vector<Instruction> all;
  for (const auto& i : instructions) {
    all.push_back({i.at(0).get<std::uint16_t>(), i.at(1).get<std::uint8_t>(), i.at(2).get<std::uint8_t>(),
                   i.at(3).get<std::uint32_t>()});
  }
  return Program::verify(std::move(all), {});
}

/// A copy that ends where its memory does, as generated code expects.
std::vector<std::uint32_t> in_words(std::span<const std::uint8_t> bytes) {
  std::vector<std::uint32_t> words((bytes.size() + 3) / 4 + 1);
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::uint8_t*>(words.data()));
  return words;
}

struct Case {
  std::vector<std::uint32_t> bytes;
  std::uint32_t length;
  std::uint32_t wire_length;
  std::uint32_t expected;
};

/// All programs at once, each on its own packets.
void expect_results(const std::vector<Program>& programs, const std::vector<std::vector<Case>>& cases,
                    const std::vector<std::string>& names) {
  for (std::size_t first = 0; first < programs.size(); first += kMostPrograms) {
    const auto part = std::span(programs).subspan(first, std::min(kMostPrograms, programs.size() - first));
    const HostCode code(part, {kUnbounded, true});
    for (std::size_t i = 0; i < part.size(); ++i) {
      for (const Case& one : cases[first + i]) {
        const PacketBytes packet{reinterpret_cast<const std::uint8_t*>(one.bytes.data()), one.length, one.wire_length};
        ASSERT_EQ(code.returns(packet, one.length)[i], one.expected) << names[first + i];
        ASSERT_EQ(code.match(packet, one.length)[i / 32] >> i % 32 & 1U, one.expected != 0 ? 1U : 0U)
            << names[first + i];
      }
    }
  }
}

TEST(GeneratedCodeByVectors, ReturnsWhatFreeBsdExpects) {
  const auto tests = tests_of("freebsd_bpf_filter.json");
  if (tests.is_null()) GTEST_SKIP() << "no vectors; PENSTOCK_CORPUS names a folder with bpf/";
  std::vector<Program> programs;
  std::vector<std::vector<Case>> cases;
  std::vector<std::string> names;
  for (const auto& test : tests) {
    auto program = program_of(test.at("insns"));
    if (!program || !test.contains("libpcap_result")) continue;
    std::vector<std::uint8_t> bytes;
    const std::string hex = test.at("data_hex");
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
    }
    programs.push_back(std::move(*program));
    names.push_back(test.at("name"));
    const auto length = std::min(test.at("buflen").get<std::uint32_t>(), static_cast<std::uint32_t>(bytes.size()));
    cases.push_back({{in_words(bytes), length, test.at("wirelen").get<std::uint32_t>(),
                      test.at("libpcap_result").get<std::uint32_t>()}});
  }
  EXPECT_GT(programs.size(), 50U);
  expect_results(programs, cases, names);
}

TEST(GeneratedCodeByVectors, ReturnsWhatLibpcapExpects) {
  const auto tests = tests_of("libpcap_apply.json");
  if (tests.is_null()) GTEST_SKIP() << "no vectors; PENSTOCK_CORPUS names a folder with bpf/";
  std::vector<Program> programs;
  std::vector<std::vector<Case>> cases;
  std::vector<std::string> names;
  for (const auto& test : tests) {
    if (!test.contains("results") || !test.contains("savefile")) continue;
    char message[PCAP_ERRBUF_SIZE];
    const std::string path = corpus() + "filter_pcaps/" + test.at("savefile").get<std::string>();
    pcap_t* const file = pcap_open_offline(path.c_str(), message);
    ASSERT_NE(file, nullptr) << message;
    std::vector<Case> packets;
    pcap_pkthdr* header = nullptr;
    const u_char* data = nullptr;
    while (pcap_next_ex(file, &header, &data) == 1 && packets.size() < test.at("results").size()) {
      packets.push_back({in_words({data, header->caplen}), header->caplen, header->len,
                         test.at("results").at(packets.size()).get<std::uint32_t>()});
    }
    pcap_close(file);
    for (const char* const kind : {"opt", "unopt"}) {
      if (!test.contains(kind) || test.at(kind).is_null()) continue;
      auto program = program_of(test.at(kind));
      if (!program) continue;
      programs.push_back(std::move(*program));
      names.push_back(test.at("name").get<std::string>() + " " + kind);
      cases.push_back(packets);
    }
  }
  EXPECT_GT(programs.size(), 300U);
  expect_results(programs, cases, names);
}

}  // namespace
}  // namespace penstock::filter
