// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests of recipes: the lies of somebody who wants a kernel to leave its tables, and packets for a kernel's core on
// the host. All memory is as large as it says to the byte, so that the address sanitizer sees every access beside it.

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "function/stage_recipe.h"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/random_frames.h"

namespace penstock::testing {

/// Choices of a fuzzer, as RandomFrames makes them: all 0 once there is no input left.
class FuzzChoices {
 public:
  explicit FuzzChoices(std::span<const std::uint8_t> input) : input_(input) {}
  std::uint32_t below(std::size_t n) {
    std::uint32_t number = 0;
    for (std::size_t most = n - 1; most > 0; most >>= 8) number = number << 8 | next();
    return static_cast<std::uint32_t>(number % n);
  }
  [[nodiscard]] bool more() const { return !input_.empty(); }

 private:
  std::uint32_t next() {
    if (input_.empty()) return 0;
    const std::uint8_t byte = input_.front();
    input_ = input_.subspan(1);
    return byte;
  }
  std::span<const std::uint8_t> input_;
};

namespace lies {

using Bytes = std::vector<std::byte>;

/// Somewhere in `count` elements, often near an end.
template <typename Choices>
std::size_t position(std::size_t count, Choices& choose) {
  switch (choose.below(4)) {
    case 0: return choose.below(std::min<std::size_t>(count, 8));
    case 1: return count - 1 - choose.below(std::min<std::size_t>(count, 8));
    default: return choose.below(count);
  }
}

/// Replaces a number by one that could be a size, a limit, or just beside the old one.
template <typename Number, typename Choices>
void change_number(Bytes& bytes, Choices& choose) {
  if (bytes.size() < sizeof(Number)) return;
  const std::size_t at = position(bytes.size() / sizeof(Number), choose) * sizeof(Number);
  Number number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  switch (choose.below(8)) {
    case 0: number = 0; break;
    case 1: number = static_cast<Number>(~Number{0}); break;
    case 2: number = static_cast<Number>(number + 1); break;
    case 3: number = static_cast<Number>(number - 1); break;
    case 4: number = static_cast<Number>(number ^ Number{1} << choose.below(8 * sizeof(Number))); break;
    case 5: number = static_cast<Number>(bytes.size() / (std::size_t{1} << choose.below(7)) - choose.below(2)); break;
    case 6: number = static_cast<Number>(choose.below(300)); break;
    default:
      std::memcpy(&number, bytes.data() + position(bytes.size() / sizeof(Number), choose) * sizeof(Number),
                  sizeof(number));
      break;
  }
  std::memcpy(bytes.data() + at, &number, sizeof(number));
}

template <typename Choices>
void change(Bytes& bytes, Choices& choose) {
  switch (choose.below(12)) {
    case 0: {
      const std::size_t length = bytes.empty() ? 0 : position(bytes.size(), choose) / 8 * 8;
      bytes = Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      return;
    }
    case 1: {
      Bytes longer(bytes.size() + std::size_t{1 + choose.below(64)} * (choose.below(4) == 0 ? 1 : 16));
      std::ranges::copy(bytes, longer.begin());
      bytes = Bytes(longer.begin(), longer.end());
      return;
    }
    case 2:
    case 3: return change_number<std::uint8_t>(bytes, choose);
    case 4:
    case 5: return change_number<std::uint16_t>(bytes, choose);
    case 6: return change_number<std::uint64_t>(bytes, choose);
    default: return change_number<std::uint32_t>(bytes, choose);
  }
}

}  // namespace lies

/// The recipe with a few changes: numbers, lengths, and tables that are missing or at each other's place.
template <typename Choices>
function::StageRecipe lie_about(function::StageRecipe recipe, Choices& choose) {
  for (std::uint32_t n = 1 + choose.below(3); n > 0; --n) {
    const std::uint32_t part = choose.below(recipe.tables.size() + 1);
    if (part == recipe.tables.size()) {
      lies::change(recipe.arguments, choose);
      continue;
    }
    function::TableBytes& table = recipe.tables[part];
    switch (choose.below(40)) {
      case 0: table = nullptr; continue;
      case 1: std::swap(table, recipe.tables[choose.below(recipe.tables.size())]); continue;
      case 2: recipe.tables.erase(recipe.tables.begin() + part); return recipe;
      case 3: recipe.tables.push_back(table); continue;
      default: break;
    }
    if (table == nullptr) continue;
    lies::Bytes changed = *table;
    lies::change(changed, choose);
    table = std::make_shared<const lies::Bytes>(std::move(changed));
  }
  return recipe;
}

/// A packet of its own, parsed, with room around its frame as a lane would give it.
class LonePacket {
 public:
  explicit LonePacket(const Frame& frame, FrameRoom room = {})
      : bytes_(room.head + frame.bytes.size() + room.tail), start_(room.head) {
    std::ranges::copy(frame.bytes, bytes_.begin() + static_cast<std::ptrdiff_t>(start_));
    descriptor_.length = static_cast<std::uint32_t>(frame.bytes.size());
    descriptor_.wire_length = frame.wire_length;
    descriptor_.link_type = frame.link_type;
    parse(view());
    descriptor_.flow_hash = flow_hash(view());
  }
  [[nodiscard]] PacketView view() { return {bytes_.data() + start_, &descriptor_}; }
  [[nodiscard]] PacketDescriptor& descriptor() { return descriptor_; }

 private:
  Bytes bytes_;
  std::size_t start_;
  PacketDescriptor descriptor_;
};

/// An array at the alignment of its type, as on a device, and of its exact length. Owns a copy.
template <typename T>
class ExactArray {
 public:
  explicit ExactArray(std::span<const T> values) : size_(values.size()) {
    if (size_ == 0) return;
    memory_.reset(static_cast<std::byte*>(::operator new (values.size_bytes(), std::align_val_t{alignof(T)})));
    std::memcpy(memory_.get(), reinterpret_cast<const std::byte*>(values.data()), values.size_bytes());
  }
  [[nodiscard]] const T* data() const { return reinterpret_cast<const T*>(memory_.get()); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{alignof(T)}); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_;
};

}  // namespace penstock::testing
