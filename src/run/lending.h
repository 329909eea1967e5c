// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps a worker's batches from when they are closed until all of their packets have left everywhere, which may be
// after the chain is done with them: send queues may go on reading frames. Then their lent frames go back to the queues
// that lent them. Batches are closed, done and gone in the same order.
//
//     open ─ close ─▶ in the chain ─ done ─▶ leaving ─ next_gone ─▶ memory is free, lent frames are back

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "packet/batch.h"
#include "port/port.h"

namespace penstock::run {

class Lending {
 public:
  /// For at most `most_batches` at the same time. Borrows the queues.
  Lending(std::vector<port::RxQueue*> sources, std::vector<port::TxQueue*> exits, std::size_t most_batches)
      : sources_(std::move(sources)),
        exits_(std::move(exits)),
        batches_(most_batches + 1),
        lent_(batches_.size() * sources_.size()),
        accepted_(batches_.size() * exits_.size()) {}

  /// Source `source` has lent `frames` more frames, to the open batch.
  void lend(std::size_t source, std::size_t frames) noexcept { open_lent()[source] += frames; }
  /// The open batch is closed, and another one is open.
  void close() noexcept {
    open_ = after(open_);
    for (std::uint64_t& frames : open_lent()) frames = 0;
  }
  /// The chain is done with the oldest closed batch: its packets have been sent, or have ended.
  void done(Batch& batch) noexcept {
    batches_[in_chain_] = &batch;
    for (std::size_t e = 0; e < exits_.size(); ++e)
      accepted_[in_chain_ * exits_.size() + e] = exits_[e]->departures().accepted;
    in_chain_ = after(in_chain_);
  }
  /// The oldest batch, if all of its packets have left; null: none has. The sources have taken back their frames.
  [[nodiscard]] Batch* next_gone() noexcept {
    if (leaving_ == in_chain_) return nullptr;
    for (std::size_t e = 0; e < exits_.size(); ++e) {
      if (exits_[e]->departures().left < accepted_[leaving_ * exits_.size() + e]) return nullptr;
    }
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      if (const std::uint64_t frames = lent_[leaving_ * sources_.size() + s]; frames > 0)
        sources_[s]->take_back(static_cast<std::size_t>(frames));
    }
    Batch* const gone = batches_[leaving_];
    leaving_ = after(leaving_);
    return gone;
  }
  /// Whether packets have been sent that have not left.
  [[nodiscard]] bool any_leaving() const noexcept { return leaving_ != in_chain_; }
  /// Whether all packets have left that were sent, also those that belong to no batch.
  [[nodiscard]] bool all_left() const noexcept {
    return std::ranges::all_of(exits_, [](port::TxQueue* exit) {
      const port::Departures departures = exit->departures();
      return departures.left == departures.accepted;
    });
  }

 private:
  [[nodiscard]] std::size_t after(std::size_t batch) const noexcept {
    return batch + 1 == batches_.size() ? 0 : batch + 1;
  }
  [[nodiscard]] std::span<std::uint64_t> open_lent() noexcept {
    return std::span(lent_).subspan(open_ * sources_.size(), sources_.size());
  }

  std::vector<port::RxQueue*> sources_;
  std::vector<port::TxQueue*> exits_;
  // A ring buffer of batches: leaving_ … in_chain_ … open_.
  std::vector<Batch*> batches_;
  std::vector<std::uint64_t> lent_;      // by batch and source
  std::vector<std::uint64_t> accepted_;  // by batch and exit, when the chain was done with the batch
  std::size_t open_ = 0;
  std::size_t in_chain_ = 0;
  std::size_t leaving_ = 0;
};

}  // namespace penstock::run
