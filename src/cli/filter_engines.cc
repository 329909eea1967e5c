// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/filter_engines.h"

#include <utility>

#include "cli/filter_gpu_engine.h"
#include "nf/filter/bpf/matcher.h"

namespace penstock::cli {

namespace {

class CpuEngine final : public FilterEngine {
 public:
  explicit CpuEngine(std::unique_ptr<filter::Matcher> matcher) : matcher_(std::move(matcher)) {}

  void match(std::span<const filter::PacketBytes> packets, MatchBits& matches) noexcept override {
    returns_.resize(packets.size());
    for (std::size_t program = 0; program < matcher_->programs(); ++program) {
      matcher_->run(program, packets, returns_.data());
      const std::span<std::uint64_t> row = matches.row(program);
      for (std::size_t i = 0; i < packets.size(); ++i) {
        row[i / MatchBits::kWordBits] |= std::uint64_t{returns_[i] != 0} << i % MatchBits::kWordBits;
      }
    }
  }
  void run(std::size_t program, std::span<const filter::PacketBytes> packets,
           std::uint32_t* returns) noexcept override {
    matcher_->run(program, packets, returns);
  }
  std::string_view name() const noexcept override { return matcher_->name(); }

 private:
  std::unique_ptr<filter::Matcher> matcher_;
  std::vector<std::uint32_t> returns_;
};

}  // namespace

std::vector<std::string> filter_engine_names() {
  return {"auto", "interpreter", "libpcap", "jit", "gpu", "gpu-generated"};
}

Result<std::unique_ptr<FilterEngine>> make_filter_engine(std::string_view name, std::vector<filter::Program> programs,
                                                         bool returns) {
  for (const filter::DeviceEngine engine : {filter::DeviceEngine::interpreter, filter::DeviceEngine::generated}) {
    if (name == to_string(engine)) return make_gpu_filter_engine(engine, std::move(programs), returns);
  }
  if (name == "auto") {
    if (auto jit = filter::make_matcher(filter::Engine::jit, programs)) {
      return std::make_unique<CpuEngine>(std::move(*jit));
    }
  }
  // Without a JIT, "auto" names the interpreter here.
  return filter::make_matcher(filter::engine_of(name), std::move(programs)).map([](auto matcher) {
    return std::unique_ptr<FilterEngine>(std::make_unique<CpuEngine>(std::move(matcher)));
  });
}

}  // namespace penstock::cli
