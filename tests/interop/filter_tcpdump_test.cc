// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock filter` writes what tcpdump writes: for several hundred expressions, over all captures of the project and,
// where it is, of the corpus; with each engine on the CPU. All expressions run on one capture for each link type, with
// all of its packets, and each capture is filtered by a few.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pcap/pcap.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/filter_engines.h"
#include "cli/filter_pass.h"
#include "cli/filter_programs.h"
#include "interop/filter_expressions.h"
#include "nf/filter/bpf/matcher.h"
#include "nf/filter/bpf/program.h"
#include "port/raw_capture_reader.h"

namespace penstock {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  bool done = false;  // exit status 0
  std::optional<std::string> written;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::optional<std::string> content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class FilterInterop : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("tcpdump --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "tcpdump is not installed";
    std::string name = (fs::temp_directory_path() / "penstock-filter-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    if (filter::has_engine(filter::Engine::jit)) engines_.emplace_back("jit");
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  [[nodiscard]] Outcome by_tcpdump(const fs::path& capture, const std::string& expression) const {
    std::ofstream(folder_ / "expression") << expression << "\n";
    // As root, tcpdump becomes another user, who cannot write to the folder: so the shell opens the file.
    const std::string out = (folder_ / "theirs").string();
    const int status = std::system(fmt::format("tcpdump -r '{}' -w - -F '{}' >'{}' 2>/dev/null", capture.string(),
                                               (folder_ / "expression").string(), out)
                                       .c_str());
    Outcome outcome{WIFEXITED(status) && WEXITSTATUS(status) == 0, content(out)};
    if (outcome.written->empty()) outcome.written.reset();
    return outcome;
  }

  /// Writes the file `out`.
  [[nodiscard]] Outcome by_us(const fs::path& capture, const std::string& expression, const std::string& engine) const {
    const fs::path out = folder_ / "ours";
    fs::remove(out);
    const bool done = filter(capture, expression, engine, out);
    return {done, content(out)};
  }

  void expect_same(const fs::path& capture, const std::string& expression) {
    const Outcome expected = by_tcpdump(capture, expression);
    for (const std::string& engine : engines_) {
      const Outcome outcome = by_us(capture, expression, engine);
      EXPECT_TRUE(outcome == expected) << capture << ": '" << expression << "' with " << engine << ": done "
                                       << outcome.done << ", tcpdump " << expected.done << "; "
                                       << outcome.written.value_or("").size() << " bytes, tcpdump "
                                       << expected.written.value_or("").size();
    }
    ++compared_;
    written_ += expected.written ? expected.written->size() : 0;
  }

  fs::path folder_;
  std::vector<std::string> engines_{"interpreter", "libpcap"};
  std::size_t compared_ = 0, written_ = 0;

 private:
  static bool filter(const fs::path& capture, const std::string& expression, const std::string& engine_name,
                     const fs::path& out) {
    port::ReadControl control;
    auto reader = port::RawCaptureReader::open(capture.string(), control);
    if (!reader) return false;
    auto instructions = cli::compile_for((*reader)->capture(), expression, true, {});
    if (!instructions) return false;
    auto program = filter::Program::verify(std::move(*instructions), {});
    if (!program) return false;
    std::vector<filter::Program> programs;
    programs.push_back(std::move(*program));
    auto engine = cli::make_filter_engine(engine_name, std::move(programs));
    const auto header = (*reader)->file_header();
    if (!engine || !header) return false;
    auto output = cli::FilterOutput::open(out.string(), -1);
    if (!output) return false;
    output->begin(*header);
    cli::FilterPass pass(**reader, **engine, 1);
    pass.write(0, std::move(*output));
    return pass.run(std::atomic<bool>{false}).empty();
  }
};

std::vector<fs::path> captures_below(const fs::path& folder) {
  std::vector<fs::path> captures;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none)) {
    const std::string kind = entry.path().extension();
    if (entry.is_regular_file() && (kind == ".pcap" || kind == ".pcapng")) captures.push_back(entry.path());
  }
  std::sort(captures.begin(), captures.end());
  return captures;
}

std::vector<fs::path> captures() {
  std::vector<fs::path> all;
  const char* const corpus = std::getenv("PENSTOCK_CORPUS");
  const fs::path data = corpus != nullptr ? corpus : PENSTOCK_SOURCE_DIR "/../shared/data";
  for (const fs::path& folder :
       {fs::path(PENSTOCK_SOURCE_DIR "/examples"), fs::path(PENSTOCK_SOURCE_DIR "/tests/golden"),
        data / "captures/tcpdump", data / "captures/malformed", data / "bpf/filter_pcaps"}) {
    const auto more = captures_below(folder);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// Joins the packets of all captures of a link type, and returns the files.
std::vector<fs::path> join_by_link_type(const std::vector<fs::path>& captures, const fs::path& folder) {
  struct Joined {
    pcap_t* pcap;
    pcap_dumper_t* dumper;
    fs::path path;
  };
  std::map<int, Joined> joined;
  for (const fs::path& path : captures) {
    char reason[PCAP_ERRBUF_SIZE];
    pcap_t* const pcap = pcap_open_offline(path.c_str(), reason);
    if (pcap == nullptr) continue;
    const int type = pcap_datalink(pcap);
    if (joined.count(type) == 0) {
      Joined one{pcap_open_dead(type, 262144), nullptr, folder / fmt::format("link_{}.pcap", type)};
      one.dumper = pcap_dump_open(one.pcap, one.path.c_str());
      joined.emplace(type, one);
    }
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    pcap_dumper_t* const dumper = joined.at(type).dumper;
    for (int i = 0; i < 300 && dumper != nullptr && pcap_next_ex(pcap, &header, &bytes) == 1; ++i) {
      pcap_dump(reinterpret_cast<u_char*>(dumper), header, bytes);
    }
    pcap_close(pcap);
  }
  std::vector<fs::path> paths;
  for (const auto& [type, one] : joined) {
    if (one.dumper != nullptr) pcap_dump_close(one.dumper);
    if (one.dumper != nullptr) paths.push_back(one.path);
    pcap_close(one.pcap);
  }
  return paths;
}

#ifdef PENSTOCK_SANITIZED
constexpr std::size_t kEvery = 20;
#else
constexpr std::size_t kEvery = 1;
#endif

TEST_F(FilterInterop, WritesWhatTcpdumpWritesForEachLinkType) {
  const auto expressions = filter_expressions();
  EXPECT_GE(expressions.size(), 300U);
  std::size_t turn = 0;
  for (const fs::path& capture : join_by_link_type(captures(), folder_)) {
    // All for Ethernet; of the others, each gets another part.
    const std::size_t step = kEvery * (capture.filename() == "link_1.pcap" ? 1 : 12);
    for (std::size_t i = turn++ % step; i < expressions.size(); i += step) expect_same(capture, expressions[i]);
  }
  EXPECT_GT(compared_, 300 / kEvery);
  EXPECT_GT(written_, 1'000'000 / kEvery);
}

TEST_F(FilterInterop, WritesWhatTcpdumpWritesOfEachCapture) {
  const auto expressions = filter_expressions();
  std::size_t turn = 0;
  for (const fs::path& capture : captures()) {
    if (turn++ % kEvery != 0) continue;
    expect_same(capture, "");
    expect_same(capture, expressions[turn * 7 % expressions.size()]);
  }
  EXPECT_GT(compared_, 60 / kEvery);
}

}  // namespace
}  // namespace penstock
