// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The scan rate of one core: texts of `bytes` bytes, cut from 16 MiB of traffic, for a number of literals.
//
//   scan/hyperscan, scan/aho_corasick, scan/hashed_filter    whole literals
//
// Axes: literals, bytes per text. Text and literals come from match_bench_workload.h.

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <span>

#include "nf/nids/match/match_bench_workload.h"
#include "nf/nids/match/pattern_matcher.h"

namespace penstock::nids {
namespace {

constexpr std::size_t kTextBytes = std::size_t{16} << 20;

const testing::Bytes& text() {
  static const testing::Bytes bytes = testing::bench_text(kTextBytes);
  return bytes;
}

void scan(benchmark::State& state, MatcherKind kind) {
  const auto literals = testing::bench_literals(static_cast<std::size_t>(state.range(0)));
  const auto bytes = static_cast<std::size_t>(state.range(1));
  const auto matcher = make_pattern_matcher(kind, literals);
  if (!matcher) return state.SkipWithError(to_string(matcher.error()).c_str());
  const auto scratch = (*matcher)->make_scratch();
  LiteralSet found(literals.size());
  std::size_t at = 0;
  std::uint64_t hits = 0;
  for (auto _ : state) {
    (*matcher)->scan(std::span(text()).subspan(at, bytes), scratch.get(), found);
    hits += found.list().size();
    found.clear();
    at = at + 2 * bytes > kTextBytes ? 0 : at + bytes;
  }
  const auto rounds = static_cast<double>(state.iterations());
  state.SetLabel((*matcher)->description());
  state.counters["bits_per_second"] =
      benchmark::Counter(8 * rounds * static_cast<double>(bytes), benchmark::Counter::kIsRate);
  state.counters["found_per_text"] = static_cast<double>(hits) / rounds;
}

void add(const char* name, MatcherKind kind, std::initializer_list<int> literals) {
  auto* const bench = benchmark::RegisterBenchmark(name, scan, kind)->ArgNames({"literals", "bytes"});
  for (const int count : literals) {
    for (const int bytes : {64, 512, 1460}) bench->Args({count, bytes});
  }
}

}  // namespace
}  // namespace penstock::nids

int main(int argc, char** argv) {
  using namespace penstock::nids;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  add("scan/hyperscan", MatcherKind::hyperscan, {147, 2'000, 20'000});
  add("scan/aho_corasick", MatcherKind::aho_corasick, {147, 2'000});
  add("scan/hashed_filter", MatcherKind::hashed_filter, {147, 2'000, 20'000});
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
