// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes the bursts of a batch through a chain some of whose functions defer (function/deferring_stage.h), such as those
// in other processes. While such a function has a burst, the worker takes others through the functions before and after
// it, and other functions that defer have others (Gaviss §3.2):
//
//     burst 3 ─▶ firewall     burst 2 ─▶ nids     burst 1 ─▶ router ─▶ out
//
// Each function gets the bursts in order, and they leave in order. Owned by one worker.

#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "function/burst.h"
#include "packet/batch.h"
#include "run/chain.h"
#include "run/cpu_twins.h"

namespace penstock::run {

class BurstPipeline {
 public:
  /// Whether bursts of the chain can be on their way at the same time: not in arms of forks, and not if functions
  /// depend on all others having decided about a burst before the next one comes. `twins` has stages.
  [[nodiscard]] static bool suits(const Chain& chain, const CpuTwins& twins);
  /// Borrows `twins`. `functions`: how many the chain has.
  BurstPipeline(CpuTwins& twins, std::size_t functions) : twins_(twins), functions_(functions), with_(functions, 0) {}

  /// Takes the packets of the batch through all functions. `parse` is called for each burst first, and `send` with the
  /// packets that have passed, in order.
  template <typename Parse, typename Send>
  void run(Batch& batch, Parse parse, Send send) noexcept {
    std::size_t packet = 0;
    for (unsigned idle_rounds = 0;;) {
      bool moved = false;
      while (count_ < bursts_.size() && fill(batch, packet)) {
        parse(bursts_[(first_ + count_ - 1) % bursts_.size()].packets());
        moved = true;
      }
      if (count_ == 0) return;
      moved |= advance_all();
      while (count_ > 0 && bursts_[first_].at == functions_) {
        if (bursts_[first_].count > 0) send(bursts_[first_].packets());
        first_ = (first_ + 1) % bursts_.size();
        --count_;
        moved = true;
      }
      idle_rounds = moved ? 0 : idle_rounds + 1;
      rest(idle_rounds);
    }
  }

 private:
  /// Small, so that a batch has enough of them for several functions.
  static constexpr std::size_t kPackets = function::kBurst / 2;
  static constexpr std::size_t kMostBursts = 8;

  struct Burst {
    std::array<PacketView, kPackets> views;
    std::size_t count = 0;
    std::size_t at = 0;  // the next function
    bool begun = false;  // that function has it
    [[nodiscard]] std::span<PacketView> packets() noexcept { return std::span(views).first(count); }
  };
  [[nodiscard]] bool fill(Batch& batch, std::size_t& packet) noexcept;
  bool advance_all() noexcept;
  bool advance(Burst& burst, std::size_t may_finish, std::size_t may_begin) noexcept;
  static void rest(unsigned idle_rounds) noexcept;

  CpuTwins& twins_;
  const std::size_t functions_;
  std::array<Burst, kMostBursts> bursts_;  // ring buffer; the oldest is at first_
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::vector<std::size_t> with_;  // by function: how many bursts it has
};

}  // namespace penstock::run
