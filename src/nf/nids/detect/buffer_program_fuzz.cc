// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs arbitrary options on arbitrary buffers: the run must end, read nothing outside the buffer, and match only if a
// search of every position also matches.
//
// Input: the first byte selects the kind of test. If its lowest bit is set, the rest up to the first newline is a
// regular expression, which runs on the remaining bytes. Otherwise its second bit selects the kind of buffer, and
// RandomInspection draws from the rest: options, then a buffer.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "nf/nids/detect/buffer_program.h"
#include "nf/nids/detect/naive_inspection_for_test.h"
#include "nf/nids/detect/random_inspection_for_test.h"

using namespace penstock::nids;

namespace {

using Input = std::span<const std::uint8_t>;

struct Draw {
  Input* input;
  std::uint64_t operator()() {
    if (input->empty()) return 0;
    const std::uint8_t byte = input->front();
    *input = input->subspan(1);
    return byte;
  }
};

/// In memory of exactly its size, so that reads past its end are detected.
std::unique_ptr<std::uint8_t[]> copy_of(Input bytes) {
  auto copy = std::make_unique<std::uint8_t[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return copy;
}

InspectionScratch& scratch() {
  static InspectionScratch scratch;
  return scratch;
}

void run_expression(Input input, bool followed) {
  const auto end = std::find(input.begin(), input.end(), '\n');
  const Input buffer = end == input.end() ? Input() : Input(end + 1, input.end());
  std::vector<BufferMatch> options{pcre(std::string(input.begin(), end))};
  if (followed) options.emplace_back(content("a").within(3));
  const auto program = BufferProgram::compile(options);
  if (!program) return;
  const auto copy = copy_of(buffer);
  scratch().begin_frame();
  scratch().begin_rule();
  static_cast<void>(program->matches({copy.get(), buffer.size()}, scratch()));
}

void run_options(Input input, Buffer kind) {
  RandomInspection<Draw> random(Draw{&input});
  const std::vector<BufferMatch> options = random.options(false);
  const std::vector<std::uint8_t> buffer = random.buffer(32);
  const auto program = BufferProgram::compile(BufferMatches{kind, options}, {});
  if (!program) std::abort();
  const auto copy = copy_of(buffer);
  const Input bytes(copy.get(), buffer.size());
  scratch().begin_frame();
  scratch().begin_rule();
  if (!program->matches(bytes, scratch()) || NaiveInspection(kind, options, bytes).matches()) return;
  for (const BufferMatch& match : options) std::fprintf(stderr, "%s; ", text_of(match).c_str());
  std::fprintf(stderr, "on %s\n", quoted(buffer).c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Input rest(data + 1, size - 1);
  if ((data[0] & 1) != 0) {
    run_expression(rest, (data[0] & 2) != 0);
  } else {
    run_options(rest, (data[0] & 2) != 0 ? Buffer::tcp_header : Buffer::payload);
  }
  return 0;
}
