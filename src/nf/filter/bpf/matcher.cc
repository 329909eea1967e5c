// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/matcher.h"

#include <algorithm>

#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/bpf/jit.h"
#include "nf/filter/bpf/libpcap_matcher.h"

namespace penstock::filter {

namespace {

class Interpreter final : public Matcher {
 public:
  explicit Interpreter(std::vector<Program> programs) : programs_(std::move(programs)) {
    for (const Program& program : programs_)
      loads_scratch_.push_back(std::ranges::any_of(program.instructions(), [](const Instruction& at) {
        return at.code == kLoadScratch || at.code == kLoadXScratch;
      }));
  }

  void run(std::size_t program, std::span<const PacketBytes> packets, std::uint32_t* returns) const noexcept override {
    const Instruction* instructions = programs_[program].instructions().data();
    std::uint32_t scratch[kScratchWords];
    for (const PacketBytes& packet : packets) {
      if (loads_scratch_[program]) std::ranges::fill(scratch, 0u);
      *returns++ = interpret(instructions, packet, scratch);
    }
  }
  [[nodiscard]] std::size_t programs() const noexcept override { return programs_.size(); }
  [[nodiscard]] std::string_view name() const noexcept override { return "interpreter"; }

 private:
  std::vector<Program> programs_;
  std::vector<bool> loads_scratch_;
};

}  // namespace

Engine engine_of(std::string_view name) {
  if (name == "libpcap") return Engine::libpcap;
  return name == "jit" ? Engine::jit : Engine::interpreter;
}

std::string_view name(Engine engine) noexcept {
  switch (engine) {
    case Engine::interpreter: return "interpreter";
    case Engine::libpcap: return "libpcap";
    case Engine::jit: return "jit";
  }
  return "";
}

bool has_engine(Engine engine) noexcept { return engine != Engine::jit || has_jit(); }

Result<std::unique_ptr<Matcher>> make_matcher(Engine engine, std::vector<Program> programs) {
  switch (engine) {
    case Engine::interpreter: return std::make_unique<Interpreter>(std::move(programs));
    case Engine::libpcap: return make_libpcap_matcher(programs);
    case Engine::jit: return make_jit_matcher(programs);
  }
  return failure(Error{{}, "no such engine for BPF programs", {}, "interpreter, libpcap or jit"});
}

}  // namespace penstock::filter
