// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the literals that begin in a flow's state and end in the payload after it. For host and device.
//
//   ┄┄ stream before ┄┄┄┄┄┐ payload
//              [ state ≤ 7 │ first ≤ 7 ]┄┄┄┄┄┄┄┄      14 bytes, searched at once: no more can matter
//                          └ seam

#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "nf/nids/match/aho_corasick_core.h"
#include "nf/nids/match/flow_state.h"
#include "nf/nids/match/hashed_filter_core.h"
#include "nf/nids/match/packet_literals.h"
#include "nf/nids/match/text_core.h"

namespace penstock::nids {

/// The bytes around a seam, in registers.
class SeamText {
 public:
  /// Neither the payload nor the state may be empty.
  PENSTOCK_HOST_DEVICE SeamText(FlowState state, const std::uint8_t* payload, const std::uint8_t* end) noexcept
      : seam_(state.count()) {
    const auto left = static_cast<std::uint64_t>(end - payload);
    const auto taken = left < FlowState::kMost ? static_cast<std::uint32_t>(left) : FlowState::kMost;
    const std::uint64_t following = load_up_to_8(payload, payload + taken);
    low_ = state.bytes() | following << 8 * seam_;
    high_ = following >> (64 - 8 * seam_);
    size_ = seam_ + taken;
  }
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t seam() const noexcept { return seam_; }
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint32_t size() const noexcept { return size_; }
  /// Eight bytes from `at` on, `at` < 16; zeros past the end.
  [[nodiscard]] PENSTOCK_HOST_DEVICE std::uint64_t from(std::uint32_t at) const noexcept {
    if (at == 0) return low_;
    return at < 8 ? low_ >> 8 * at | high_ << (64 - 8 * at) : high_ >> 8 * (at - 8);
  }
  /// Whether a literal of `length` bytes at `start` crosses the seam.
  [[nodiscard]] PENSTOCK_HOST_DEVICE bool crosses(std::uint32_t start, std::uint32_t length) const noexcept {
    return start < seam_ && start + length > seam_ && start + length <= size_;
  }

 private:
  std::uint64_t low_ = 0, high_ = 0;
  std::uint32_t seam_ = 0, size_ = 0;
};

namespace detail {

template <bool kPairs, typename Found>
PENSTOCK_HOST_DEVICE inline void search_seam(const HashedFilterView& view, const SeamText& text,
                                             Found&& found) noexcept {
  BlockWords words = {};
  for (std::uint32_t i = 0; i < kBlockWords; ++i) {
    const auto word = static_cast<std::uint32_t>(text.from(4 * i));
    words[i] = view.folds ? folded(word) : word;
  }
  std::uint32_t candidates = block_candidates<kPairs>(
      view.bits, words, block_windows<kPairs>(view.bits, words) & candidates_within(0, text.size()),
      [](bool, std::uint32_t) { return false; });
  while (candidates != 0) {
    const std::uint32_t bit = leading_zeros(candidates);
    candidates &= ~(0x8000'0000U >> bit);
    const bool quad = bit < kBlockBytes;
    const std::uint32_t at = bit % kBlockBytes;
    auto window = static_cast<std::uint32_t>(text.from(at));
    if (view.folds) window = folded(window);
    const auto is_there = [&](const FilterEntry& entry) {
      if (entry.at > at || !text.crosses(at - entry.at, entry.length)) return false;
      std::uint64_t bytes = text.from(at - entry.at);
      if (entry.nocase != 0) bytes = folded(bytes);
      return ((bytes ^ entry.bytes) & low_bytes(entry.length)) == 0;
    };
    look_up_window(view, quad, quad ? window : window & 0xffff, is_there, found);
  }
}

}  // namespace detail

/// Calls `found(literal)` for each literal of at most kCutLiteralBytes bytes that crosses the seam.
template <typename Found>
PENSTOCK_HOST_DEVICE inline void search_seam(const HashedFilterView& view, const SeamText& text,
                                             Found&& found) noexcept {
  if (view.pairs) {
    detail::search_seam<true>(view, text, found);
  } else {
    detail::search_seam<false>(view, text, found);
  }
}

/// The same; also for some literals that lie entirely in the payload.
template <typename Entry, typename Found>
PENSTOCK_HOST_DEVICE inline void search_seam(const AhoCorasickView<Entry>& view, const SeamText& text,
                                             Found&& found) noexcept {
  std::uint8_t bytes[2 * FlowState::kMost];
  std::uint32_t state = 0;
  for (std::uint32_t i = 0; i < text.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(text.from(i));
    state = ac_step(view.class_of, view.next, view.classes, state, bytes[i]);
    if (i >= text.seam() && state >= view.first_accepting) ac_report(view, state, bytes + i + 1, found);
  }
}

/// Call it after the scan of a packet. Adds to its finding the literals that begin in the state and end in the payload
/// [begin, end). A state that is none, as another process may send it, is left out.
template <typename Engine>
PENSTOCK_HOST_DEVICE inline void scan_seam(const Engine& engine, FlowState state, const std::uint8_t* begin,
                                           const std::uint8_t* end, PacketLiterals& finding) noexcept {
  constexpr std::uint16_t kOfPayload = PacketLiterals::kScanned | PacketLiterals::kPayload;
  if ((finding.flags & kOfPayload) != kOfPayload || !state.is_sound() || state.count() == 0 || begin >= end) {
    return;
  }
  finding.flags |= PacketLiterals::kWithState;
  search_seam(engine, SeamText(state, begin, end), [&](std::uint32_t literal) { finding.add(literal); });
}

}  // namespace penstock::nids
