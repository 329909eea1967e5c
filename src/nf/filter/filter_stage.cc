// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/filter_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "nf/filter/decide_core.h"

namespace penstock::filter {

namespace {

/// Counts a packet by its bitmap. Returns the filter that decides, or kNoFilter.
std::uint32_t count(const std::uint32_t* words, std::uint32_t word_count, std::uint64_t bytes, std::size_t filters,
                    StageCounters& counters) noexcept {
  for (std::uint32_t w = 0; w < word_count; ++w) {
    for (std::uint32_t left = words[w]; left != 0; left &= left - 1) {
      counters[w * 32 + static_cast<std::uint32_t>(std::countr_zero(left))].add_match(bytes);
    }
  }
  const std::uint32_t first = first_filter(words, word_count);
  if (first == kNoFilter) {
    counters[filters].add_match(bytes);
  } else {
    counters[first].add_decision(bytes);
  }
  return first;
}

}  // namespace

void FilterStage::process(std::span<PacketView> packets) noexcept {
  while (!packets.empty()) {
    // A group has one link type. Almost always, all packets have the same.
    const LinkType type = packets.front().packet->link_type;
    const std::size_t most = std::min(packets.size(), kGroup);
    std::size_t n = 1;
    while (n < most && packets[n].packet->link_type == type) ++n;
    if (const Matcher* matcher = matchers_[static_cast<std::size_t>(type)].get()) {
      process_group(packets.first(n), *matcher);
    } else {
      for (const PacketView packet : packets.first(n)) packet.packet->verdict = Verdict::drop(DropReason::link_type);
    }
    packets = packets.subspan(n);
  }
}

void FilterStage::process_group(std::span<PacketView> packets, const Matcher& matcher) noexcept {
  std::array<PacketBytes, kGroup> bytes;
  std::array<std::uint32_t, kGroup> returns;
  for (std::size_t i = 0; i < packets.size(); ++i) bytes[i] = bytes_of(packets[i], list_.headers_only);

  const std::uint32_t words = list_.words();
  std::fill_n(bits_.begin(), packets.size() * words, 0U);
  for (std::size_t f = 0; f < list_.filters.size(); ++f) {
    matcher.run(f, {bytes.data(), packets.size()}, returns.data());
    for (std::size_t i = 0; i < packets.size(); ++i) {
      bits_[i * words + f / 32] |= (returns[i] != 0 ? 1U : 0U) << (f % 32);
    }
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const std::uint32_t first = count(&bits_[i * words], words, packets[i].length(), list_.filters.size(), counters_);
    const Action action = first == kNoFilter ? list_.otherwise : list_.filters[first].action;
    packets[i].packet->verdict = verdict_of(action, packets[i].packet->verdict);
  }
}

std::string FilterStage::explain(PacketView packet) const {
  const Matcher* matcher = matchers_[static_cast<std::size_t>(packet.packet->link_type)].get();
  if (matcher == nullptr) return "no program for the link type of this frame";
  const PacketBytes bytes = bytes_of(packet, list_.headers_only);
  std::string also;
  const NamedFilter* first = nullptr;
  for (std::size_t f = 0; f < list_.filters.size(); ++f) {
    std::uint32_t returned = 0;
    matcher->run(f, {&bytes, 1}, &returned);
    if (returned == 0) continue;
    if (first == nullptr) {
      first = &list_.filters[f];
    } else {
      also += (also.empty() ? "; also matches " : ", ") + list_.filters[f].name;
    }
  }
  if (first == nullptr) {
    return fmt::format("no filter matches: {}", list_.otherwise.kind == Action::Kind::drop ? "drop" : "forward");
  }
  return fmt::format("filter {} ({}): {}{}", first->name, first->text, first->action_text, also);
}

void FilterFinishStage::finish(std::span<const PacketView> packets,
                               std::span<const std::byte* const> findings) noexcept {
  const std::uint32_t words = list_.words();
  std::array<std::uint32_t, kMostFilters / 32> bits;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    // Frames without a program have been dropped uncounted, as on the CPU.
    if (matchers_[static_cast<std::size_t>(packets[i].packet->link_type)] == nullptr) continue;
    std::memcpy(bits.data(), findings[i], words * sizeof(std::uint32_t));
    static_cast<void>(count(bits.data(), words, packets[i].length(), list_.filters.size(), counters_));
  }
}

}  // namespace penstock::filter
