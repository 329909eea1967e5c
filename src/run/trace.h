// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints the path of the first packets through the chain: what each function read, decided and changed (`run --trace
// N`). Not on the fast path: traced packets are processed one at a time, and a mutex serialises the workers' output.

#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <vector>

#include "packet/packet.h"
#include "run/chain.h"

namespace penstock::run {

class Trace {
 public:
  /// Prints the paths of the first `packets` packets to `out`, which must stay open.
  Trace(const Chain& chain, std::uint64_t packets, std::FILE* out) noexcept
      : chain_(&chain), left_(packets), out_(out) {}

  [[nodiscard]] bool wants_more() const noexcept { return left_.load(std::memory_order_relaxed) > 0; }

  /// The path of one packet. `end` prints it.
  class Way {
   public:
    void before(const function::NfTraits& function, const function::CpuStage& stage, std::string_view name,
                PacketView packet);
    void after(PacketView packet);
    /// At a fork. Null: the packet takes no arm.
    void take(const plan::Arm* arm);
    /// `reached_the_end`: the packet passed all functions; its verdict then says where it was sent.
    void end(PacketView packet, bool reached_the_end);

   private:
    friend class Trace;
    explicit Way(Trace* trace) : trace_(trace) {}
    Trace* trace_;  // null: this packet is not traced
    std::string text_;
    const function::NfTraits* function_ = nullptr;
    const function::CpuStage* stage_ = nullptr;
    std::vector<std::uint8_t> bytes_;  // the frame before the function
    PacketDescriptor descriptor_;
  };
  [[nodiscard]] Way begin(PacketView packet);

 private:
  const Chain* chain_;
  std::atomic<std::uint64_t> left_;
  std::uint64_t number_ = 0;
  std::mutex mutex_;
  std::FILE* out_;
};

}  // namespace penstock::run
