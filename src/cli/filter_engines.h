// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines of `penstock filter`: what finds out which packets of a batch match which programs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/filter/bpf/packet_bytes.h"
#include "nf/filter/bpf/program.h"

namespace penstock::cli {

/// A row of bits for each program, one for each packet: bit i % 64 of word i / 64.
class MatchBits {
 public:
  static constexpr std::size_t kWordBits = 64;

  /// Clears all bits.
  void reset(std::size_t programs, std::size_t packets) {
    words_ = (packets + kWordBits - 1) / kWordBits;
    bits_.assign(programs * words_, 0);
  }
  [[nodiscard]] std::span<std::uint64_t> row(std::size_t program) noexcept {
    return std::span(bits_).subspan(program * words_, words_);
  }
  [[nodiscard]] std::span<const std::uint64_t> row(std::size_t program) const noexcept {
    return std::span(bits_).subspan(program * words_, words_);
  }

 private:
  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;
};

/// Owns its programs.
class FilterEngine {
 public:
  virtual ~FilterEngine() = default;
  /// Evaluates all programs. `matches` has been reset to the number of programs and packets.
  virtual void match(std::span<const filter::PacketBytes> packets, MatchBits& matches) noexcept = 0;
  /// The return values of one program; `returns` has room for one per packet.
  virtual void run(std::size_t program, std::span<const filter::PacketBytes> packets,
                   std::uint32_t* returns) noexcept = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
};

/// The names for `--engine`: auto is the fastest one on the CPU that this build has; gpu interprets the programs on a
/// GPU, and gpu-generated runs code that was generated from them.
[[nodiscard]] std::vector<std::string> filter_engine_names();
/// `returns`: for `run` instead of `match`, which engines on a GPU have to know.
[[nodiscard]] Result<std::unique_ptr<FilterEngine>> make_filter_engine(std::string_view name,
                                                                       std::vector<filter::Program> programs,
                                                                       bool returns = false);

}  // namespace penstock::cli
