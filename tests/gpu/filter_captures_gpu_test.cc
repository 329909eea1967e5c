// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the engines of `penstock filter` on a GPU with libpcap's interpreter: several hundred expressions at once
// over captures of all link types.

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/filter_engines.h"
#include "cli/filter_programs.h"
#include "interop/filter_expressions.h"
#include "nf/filter/bpf/program.h"
#include "port/raw_capture_reader.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

void add_captures(const fs::path& folder, std::vector<fs::path>& captures) {
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none)) {
    const std::string kind = entry.path().extension();
    if (entry.is_regular_file() && (kind == ".pcap" || kind == ".pcapng")) captures.push_back(entry.path());
  }
}

/// In the sources or the bundle, and in the corpus.
std::vector<fs::path> captures() {
  std::vector<fs::path> captures;
  for (const char* root : {PENSTOCK_SOURCE_DIR, "."}) {
    add_captures(fs::path(root) / "examples", captures);
    add_captures(fs::path(root) / "tests/golden", captures);
    if (!captures.empty()) break;
  }
  if (const char* corpus = std::getenv("PENSTOCK_CORPUS")) {
    for (const char* part : {"captures/tcpdump", "captures/malformed", "bpf/filter_pcaps"}) {
      add_captures(fs::path(corpus) / part, captures);
    }
  }
  std::ranges::sort(captures);
  return captures;
}

/// All expressions for Ethernet. For other link types, which differ in where headers are, every eighth: to compile all
/// of them takes ten seconds or more for each link type.
std::vector<filter::Program> programs_for(pcap* capture, const std::vector<std::string>& expressions) {
  const int link_type = ::pcap_datalink(capture);
  const std::size_t step = link_type == DLT_EN10MB ? 1 : 8;
  std::vector<filter::Program> programs;
  for (std::size_t i = static_cast<std::size_t>(link_type) % step; i < expressions.size(); i += step) {
    auto instructions = cli::compile_for(capture, expressions[i], true, {});
    if (!instructions) continue;  // makes no sense for this link type
    auto program = filter::Program::verify(std::move(*instructions), {});
    if (program) programs.push_back(std::move(*program));
  }
  return programs;
}

/// The engines for a set of programs. Making them takes seconds, so captures of one link type share them.
struct Engines {
  explicit Engines(const std::vector<filter::Program>& programs) {
    for (const char* name : {"libpcap", "gpu", "gpu-generated"}) {
      auto made = cli::make_filter_engine(name, programs);
      EXPECT_TRUE(made) << to_string(made.error());
      if (made) all.push_back(std::move(*made));
    }
  }
  std::vector<std::unique_ptr<cli::FilterEngine>> all;  // libpcap's first
};

/// Equal for equal programs.
std::string key_of(const std::vector<filter::Program>& programs) {
  std::string key;
  for (const filter::Program& program : programs) {
    const auto bytes = std::as_bytes(program.instructions());
    key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return key;
}

TEST(FilterEnginesOnGpu, MatchWhatLibpcapMatchesInCaptures) {
  const std::vector<std::string> expressions = filter_expressions();
  std::map<std::string, Engines> engines;
  std::size_t packets_compared = 0, matches = 0;
  for (const fs::path& capture : captures()) {
    port::ReadControl control;
    auto reader = port::RawCaptureReader::open(capture.string(), control);
    if (!reader) continue;
    const std::vector<filter::Program> programs = programs_for((*reader)->capture(), expressions);
    if (programs.empty()) continue;
    const Engines& set = engines.try_emplace(key_of(programs), programs).first->second;
    ASSERT_EQ(set.all.size(), 3U);
    for (auto records = (*reader)->next(); !records.empty(); records = (*reader)->next()) {
      std::vector<filter::PacketBytes> packets;
      for (const port::RawRecord& record : records) packets.push_back({record.data, record.length, record.wire_length});
      std::vector<cli::MatchBits> bits(set.all.size());
      for (std::size_t i = 0; i < bits.size(); ++i) {
        bits[i].reset(programs.size(), packets.size());
        set.all[i]->match(packets, bits[i]);
      }
      for (std::size_t program = 0; program < programs.size(); ++program) {
        for (const std::uint64_t word : bits[0].row(program)) matches += static_cast<std::size_t>(std::popcount(word));
        for (std::size_t i = 1; i < bits.size(); ++i) {
          ASSERT_TRUE(std::ranges::equal(bits[i].row(program), bits[0].row(program)))
              << capture << ", " << set.all[i]->name() << ", program " << program;
        }
      }
      packets_compared += packets.size();
    }
  }
  EXPECT_GT(packets_compared, 1000U);
  EXPECT_GT(matches, packets_compared) << "most expressions match nothing";
}

}  // namespace
}  // namespace penstock
