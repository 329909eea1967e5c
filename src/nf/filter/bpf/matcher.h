// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engines that run BPF programs on the CPU, behind one interface. A matcher owns its programs, is immutable, and
// may be used by many workers at once.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "nf/filter/bpf/packet_bytes.h"
#include "nf/filter/bpf/program.h"

namespace penstock::filter {

class Matcher {
 public:
  virtual ~Matcher() = default;
  /// The return value of program `program` for each packet: 0 if it does not match. `returns` has room for one per
  /// packet.
  virtual void run(std::size_t program, std::span<const PacketBytes> packets,
                   std::uint32_t* returns) const noexcept = 0;
  [[nodiscard]] virtual std::size_t programs() const noexcept = 0;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
};

/// interpreter: ours (interpreter_core.h). libpcap: bpf_filter(). jit: machine code (jit.h).
enum class Engine : std::uint8_t { interpreter, libpcap, jit };

/// "interpreter", "libpcap" or "jit".
[[nodiscard]] Engine engine_of(std::string_view name);
[[nodiscard]] std::string_view name(Engine engine) noexcept;
/// Whether this build has the engine.
[[nodiscard]] bool has_engine(Engine engine) noexcept;

/// Fails if this build lacks the engine.
[[nodiscard]] Result<std::unique_ptr<Matcher>> make_matcher(Engine engine, std::vector<Program> programs);

}  // namespace penstock::filter
