// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a worker's flows have: a head for each that has something, and small records of its own (a flowbit that is set,
// a flowint, a threshold's count, a tag), all cells of one array that is taken once. When it is full, the flow that was
// longest unused loses what it has. A flow finds its head by its slot (Flow::slots), and a record by a hash table:
// rules may keep any number of records of a flow. Its few tags are a list.

#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "nf/nids/detect/state_store.h"
#include "nf/nids/detect/tag_entry.h"
#include "nf/nids/detect/threshold_count.h"
#include "stack/flow.h"

namespace penstock::nids {

class FlowMemory {
 public:
  explicit FlowMemory(std::size_t most_bytes);
  /// Which slot of flows is this function's. Before any flow has anything.
  void use_slot(unsigned slot) noexcept { slot_ = slot; }

  [[nodiscard]] bool bit(const stack::Flow& flow, std::uint32_t bit) const noexcept;
  void set_bit(stack::Flow& flow, std::uint32_t bit) noexcept;
  void unset_bit(stack::Flow& flow, std::uint32_t bit) noexcept;

  [[nodiscard]] std::optional<std::uint32_t> number(const stack::Flow& flow, std::uint32_t name) const noexcept;
  void set_number(stack::Flow& flow, std::uint32_t name, std::uint32_t value) noexcept;

  /// Counts nothing where there is no room.
  [[nodiscard]] Counted count(stack::Flow& flow, std::uint32_t rule, const Threshold& threshold,
                              std::uint64_t now_us) noexcept;

  void tag(stack::Flow& flow, std::uint32_t rule, const Tag& tag, std::uint64_t now_s) noexcept;
  [[nodiscard]] bool has_tags() const noexcept { return tags_ != 0; }
  /// One more packet of the flow: whether one of its tags has it logged.
  [[nodiscard]] bool tagged(stack::Flow& flow, std::uint64_t now_s, std::uint32_t bytes) noexcept;

  [[nodiscard]] StateStore::FlowFate fate(const stack::Flow& flow) noexcept;
  void set_fate(stack::Flow& flow, StateStore::FlowFate fate) noexcept;

  void end(stack::Flow& flow) noexcept;

  [[nodiscard]] StateStore::Counters counters() const noexcept { return counters_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  enum class Kind : std::uint8_t { bit, number, threshold, tag };
  struct Head {
    stack::Flow* flow;
    std::uint32_t newer, older;  // heads, by their last use
    std::uint32_t tags;          // the first
    StateStore::FlowFate fate;
  };
  struct Cell {
    std::uint32_t
        next;  // of a head: its first record. Of a record: the flow's next, a tag's next tag. Else the next free
    std::uint32_t what;  // of a record: kind and index. Of a head: which flowbits may be set, modulo 32
    union {
      Head head;
      std::uint32_t number;
      ThresholdCount threshold;
      TagEntry tag;
    };
  };
  /// What a record that is no tag has besides.
  struct Link {
    std::uint32_t chain;  // the next of its bucket
    std::uint32_t head;
    std::uint32_t previous;  // of the flow's records; the head, where it is the first
  };
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  [[nodiscard]] static std::uint32_t what(Kind kind, std::uint32_t index) noexcept {
    return static_cast<std::uint32_t>(kind) << 30 | index;
  }
  [[nodiscard]] Cell* head_of(const stack::Flow& flow) const noexcept {
    const std::uint64_t head = flow.slots[slot_];
    return head == 0 ? nullptr : &cells_[head];
  }
  [[nodiscard]] std::uint32_t index_of(const Cell& cell) const noexcept {
    return static_cast<std::uint32_t>(&cell - cells_.get());
  }
  [[nodiscard]] std::uint32_t& bucket_of(std::uint32_t head, std::uint32_t what) const noexcept {
    const std::uint64_t mixed = (std::uint64_t{head} << 32 | what) * 0x9e37'79b9'7f4a'7c15U;
    return buckets_[mixed >> bucket_shift_];
  }
  [[nodiscard]] Cell* find(const Cell& head, std::uint32_t what) const noexcept;
  /// Null where there is no room.
  [[nodiscard]] Cell* used_head(stack::Flow& flow) noexcept;
  [[nodiscard]] Cell* add(stack::Flow& flow, std::uint32_t what) noexcept;
  [[nodiscard]] Cell* take(const Cell* keep) noexcept;
  void give(Cell& cell) noexcept;
  void remove(Cell& record) noexcept;
  /// `link`: what points to it.
  void remove_tag(std::uint32_t& link) noexcept;
  void unlink_use(Cell& head) noexcept;
  void link_use(Cell& head) noexcept;

  std::unique_ptr<Cell[], Free> cells_;  // from 1: 0 is none
  std::unique_ptr<Link[], Free> links_;  // of each
  std::unique_ptr<std::uint32_t[], Free> buckets_;
  unsigned bucket_shift_;
  std::uint32_t capacity_;
  unsigned slot_ = 0;
  std::uint32_t handed_out_ = 0, free_ = 0;
  std::uint32_t newest_ = 0, oldest_ = 0;
  std::uint64_t tags_ = 0;
  StateStore::Counters counters_;
};

}  // namespace penstock::nids
