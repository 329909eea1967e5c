// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a device stage does with one packet: runs all filters, writes the bitmap of those that match as the packet's
// finding, and decides. For host and device.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/host_device.h"
#include "nf/filter/bpf/interpreter_core.h"
#include "nf/filter/decide_core.h"
#include "nf/filter/filter_list.h"
#include "packet/packet.h"

namespace penstock::filter {

/// Borrows everything.
struct FilterView {
  const Instruction* instructions = nullptr;  // all programs, one after the other
  const std::uint32_t* starts = nullptr;      // kLinkTypes * count: where the program of a link type and filter starts
  const Action* actions = nullptr;            // by filter
  std::uint32_t count = 0;                    // of filters
  Action otherwise;
  bool headers_only = false;
  bool takes[kLinkTypes] = {};  // by link type: whether all filters have a program
};

/// The tables of a FilterView.
struct FilterTables {
  std::vector<Instruction> instructions;
  std::vector<std::uint32_t> starts;
  std::vector<Action> actions;

  explicit FilterTables(const FilterList& list);
  /// `list`: that of the constructor.
  [[nodiscard]] FilterView view(const FilterList& list) const noexcept;
};

/// The verdict of a packet, from the bitmap of the filters that match.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict decide(const FilterView& view, const std::uint32_t* words,
                                                         Verdict so_far) noexcept {
  const std::uint32_t first = first_filter(words, (view.count + 31) / 32);
  return verdict_of(first == kNoFilter ? view.otherwise : view.actions[first], so_far);
}

/// Runs the programs one after the other. `words` has room for (view.count + 31) / 32.
[[nodiscard]] PENSTOCK_HOST_DEVICE inline Verdict interpret_all(const FilterView& view, PacketView packet,
                                                                std::uint32_t* words) noexcept {
  const auto type = static_cast<std::size_t>(packet.packet->link_type);
  if (type >= kLinkTypes || !view.takes[type]) return Verdict::drop(DropReason::link_type);
  const PacketBytes bytes = bytes_of(packet, view.headers_only);
  const std::uint32_t* starts = view.starts + type * view.count;
  for (std::uint32_t w = 0; w * 32 < view.count; ++w) {
    const std::uint32_t last = view.count - w * 32 < 32 ? view.count - w * 32 : 32;
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < last; ++i) {
      bits |= (interpret(view.instructions + starts[w * 32 + i], bytes) != 0 ? 1U : 0U) << i;
    }
    words[w] = bits;
  }
  return decide(view, words, packet.packet->verdict);
}

}  // namespace penstock::filter
