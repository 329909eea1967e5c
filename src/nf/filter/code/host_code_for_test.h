// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Generated code, compiled for the host by GCC and loaded.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nf/filter/bpf/packet_bytes.h"
#include "nf/filter/bpf/program.h"
#include "nf/filter/code/generate.h"

namespace penstock::filter::testing {

class HostCode {
 public:
  HostCode(std::span<const Program> programs, const GenerateOptions& options);
  ~HostCode();
  HostCode(const HostCode&) = delete;
  HostCode& operator=(const HostCode&) = delete;

  [[nodiscard]] const GeneratedCode& code() const noexcept { return code_; }
  /// A row of the bitmap.
  [[nodiscard]] std::vector<std::uint32_t> match(const PacketBytes& packet, std::uint32_t available) const;
  [[nodiscard]] bool is_undecided(const PacketBytes& packet, std::uint32_t available) const;
  [[nodiscard]] std::vector<std::uint32_t> returns(const PacketBytes& packet, std::uint32_t available) const;

 private:
  using Match = void(const std::uint8_t*, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t*);
  using Undecided = int(const std::uint8_t*, std::uint32_t, std::uint32_t, std::uint32_t);

  std::size_t programs_;
  GeneratedCode code_;
  void* library_ = nullptr;
  Match* match_ = nullptr;
  Undecided* undecided_ = nullptr;
  Match* returns_ = nullptr;
};

/// A copy of a packet before memory that cannot be read, from a word on, as generated code expects.
class GuardedPacket {
 public:
  GuardedPacket();
  ~GuardedPacket();
  GuardedPacket(const GuardedPacket&) = delete;
  GuardedPacket& operator=(const GuardedPacket&) = delete;
  /// `misalignment` bytes after a multiple of 4. Only `available` bytes are followed by that memory.
  const std::uint8_t* put(std::span<const std::uint8_t> bytes, std::uint32_t misalignment, std::size_t available);

 private:
  static constexpr std::size_t kPage = 4096;
  std::uint8_t* pages_ = nullptr;
};

}  // namespace penstock::filter::testing
