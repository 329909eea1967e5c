// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The cost of one evaluation, by kind of option and buffer length. Buffers are text; what is searched for is at their
// end or absent. Bytes are those of the buffer.

#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "nf/nids/detect/buffer_program.h"
#include "nf/nids/detect/content_search.h"
#include "nf/nids/detect/matches_for_test.h"

namespace penstock::nids {
namespace {

constexpr std::string_view kText =
    "GET /images/site/index.html?session=4711&user=guest HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: Mozilla/5.0 "
    "(X11; Linux x86_64)\r\nAccept: text/html,application/xhtml+xml\r\nAccept-Language: en-US,en;q=0.5\r\n"
    "Connection: keep-alive\r\nCookie: id=0123456789abcdef; theme=dark\r\n";

std::vector<std::uint8_t> text(std::size_t size, std::string_view end) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(kText[i % kText.size()]);
  if (end.size() <= size) std::memcpy(bytes.data() + size - end.size(), end.data(), end.size());
  return bytes;
}

void search(benchmark::State& state, bool nocase) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const auto bytes = text(size, "cmd.exe");
  const auto needle = bytes_of(nocase ? "CMD.exe" : "cmd.exe");
  const ContentSearch search(needle, nocase);
  for (auto _ : state) benchmark::DoNotOptimize(search.find(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
void BM_Search(benchmark::State& state) { search(state, false); }
void BM_SearchNocase(benchmark::State& state) { search(state, true); }

/// The C library's search, for comparison.
void BM_Memmem(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const auto bytes = text(size, "cmd.exe");
  for (auto _ : state) benchmark::DoNotOptimize(memmem(bytes.data(), size, "cmd.exe", 7));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void run(benchmark::State& state, const std::vector<BufferMatch>& matches, std::string_view end) {
  const auto bytes = text(static_cast<std::size_t>(state.range(0)), end);
  const auto program = BufferProgram::compile(matches);
  if (!program) return state.SkipWithError(to_string(program.error()).c_str());
  InspectionScratch scratch;
  for (auto _ : state) {
    scratch.begin_frame();
    scratch.begin_rule();
    benchmark::DoNotOptimize(program->matches(bytes, scratch));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void BM_OneContent(benchmark::State& state) { run(state, {content("cmd.exe").nocase()}, "cmd.exe"); }
void BM_ContentAtTheStart(benchmark::State& state) { run(state, {content("POST").starts_with()}, ""); }
void BM_ThreeContents(benchmark::State& state) {
  run(state, {content("GET "), content("/cmd.exe?").nocase().distance(0), content("|").distance(0).within(20)},
      "/cmd.exe?c=|");
}
/// No "e" has a "zq" near enough.
void BM_ContentThatIsTriedAgain(benchmark::State& state) { run(state, {content("e"), content("zq").within(4)}, ""); }
void BM_Pcre(benchmark::State& state) {
  run(state, {content("Cookie"), pcre("id=[0-9a-f]{16}; theme=light").relative()}, "");
}
void BM_ByteTest(benchmark::State& state) {
  run(state, {content("cmd.exe"), byte_test(2, ByteTest::Operator::greater, 4096, 1).relative()}, "cmd.exe.....");
}

BENCHMARK(BM_Search)->RangeMultiplier(4)->Range(16, 16384);
BENCHMARK(BM_SearchNocase)->RangeMultiplier(4)->Range(16, 16384);
BENCHMARK(BM_Memmem)->RangeMultiplier(4)->Range(16, 16384);
BENCHMARK(BM_OneContent)->Arg(64)->Arg(1460);
BENCHMARK(BM_ContentAtTheStart)->Arg(1460);
BENCHMARK(BM_ThreeContents)->Arg(1460);
BENCHMARK(BM_ContentThatIsTriedAgain)->Arg(1460);
BENCHMARK(BM_Pcre)->Arg(1460)->Arg(16384);
BENCHMARK(BM_ByteTest)->Arg(1460);

}  // namespace
}  // namespace penstock::nids

BENCHMARK_MAIN();
