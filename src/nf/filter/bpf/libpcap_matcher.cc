// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/bpf/libpcap_matcher.h"

#include <pcap/pcap.h>

#include <set>

#include "nf/filter/bpf/libpcap_instructions.h"
#include "nf/filter/bpf/opcodes.h"

namespace penstock::filter {

namespace {

/// libpcap does not clear the scratch memory. The words that the program loads are cleared by instructions in front of
/// it, where A is 0.
std::vector<bpf_insn> with_cleared_scratch(const Program& program) {
  std::set<std::uint32_t> loaded;
  for (const Instruction& at : program.instructions())
    if (at.code == kLoadScratch || at.code == kLoadXScratch) loaded.insert(at.k);
  std::vector<bpf_insn> instructions;
  instructions.reserve(loaded.size() + program.instructions().size());
  for (const std::uint32_t k : loaded) instructions.push_back({kStore, 0, 0, k});
  const auto own = to_libpcap(program.instructions());
  instructions.insert(instructions.end(), own.begin(), own.end());
  return instructions;
}

class LibpcapMatcher final : public Matcher {
 public:
  explicit LibpcapMatcher(const std::vector<Program>& programs) {
    for (const Program& program : programs) programs_.push_back(with_cleared_scratch(program));
  }

  void run(std::size_t program, std::span<const PacketBytes> packets, std::uint32_t* returns) const noexcept override {
    const bpf_insn* instructions = programs_[program].data();
    for (const PacketBytes& packet : packets)
      *returns++ = bpf_filter(instructions, packet.data, packet.wire_length, packet.length);
  }
  [[nodiscard]] std::size_t programs() const noexcept override { return programs_.size(); }
  [[nodiscard]] std::string_view name() const noexcept override { return "libpcap"; }

 private:
  std::vector<std::vector<bpf_insn>> programs_;
};

}  // namespace

std::unique_ptr<Matcher> make_libpcap_matcher(const std::vector<Program>& programs) {
  return std::make_unique<LibpcapMatcher>(programs);
}

}  // namespace penstock::filter
