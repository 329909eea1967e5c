// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads a number of instructions, instructions as in `struct bpf_insn`, and a packet; verifies the program and runs it.
// Whatever the verifier accepts must end, and give the same on all engines.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "nf/filter/bpf/dump.h"
#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/bpf/matcher.h"

using namespace penstock;
using namespace penstock::filter;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t count = std::min<std::size_t>(data[0], (size - 1) / sizeof(Instruction));
  std::vector<Instruction> instructions(count);
  if (count > 0) std::memcpy(instructions.data(), data + 1, count * sizeof(Instruction));
  const auto program = Program::verify(std::move(instructions), {"fuzz", 0, 0}, true, count % 2 == 0 ? 1 : 12);
  if (!program) {
    static_cast<void>(to_string(program.error()));
    return 0;
  }
  static_cast<void>(dump(program->source(), DumpForm::listing));
  const std::vector<std::uint8_t> bytes(data + 1 + count * sizeof(Instruction), data + size);
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const PacketBytes packet{bytes.data(), length, length + 7};
  const std::uint32_t expected = interpret(program->instructions().data(), packet);
  for (const Engine engine : {Engine::libpcap, Engine::jit}) {
    const auto matcher = make_matcher(engine, {*program});
    if (!matcher) continue;  // a build without JIT
    std::uint32_t found = 0;
    (*matcher)->run(0, {&packet, 1}, &found);
    if (found != expected) std::abort();
  }
  return 0;
}
