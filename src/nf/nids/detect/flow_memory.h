// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The state of a worker's flows. Each flow with state has a head, and small records (a set flowbit, a flowint, a
// threshold's count, a tag). All are cells of one array, which is allocated once. When it is full, the least recently
// used flow loses its state. A flow finds its head by its slot (Flow::slots), and a record by a hash table, since rules
// may keep any number of records per flow. Its few tags form a list.

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
  /// Sets the slot of flows that this function owns. Call it before any flow has state.
  void use_slot(unsigned slot) noexcept { slot_ = slot; }

  [[nodiscard]] bool bit(const stack::Flow& flow, std::uint32_t bit) const noexcept;
  void set_bit(stack::Flow& flow, std::uint32_t bit) noexcept;
  void unset_bit(stack::Flow& flow, std::uint32_t bit) noexcept;

  [[nodiscard]] std::optional<std::uint32_t> number(const stack::Flow& flow, std::uint32_t name) const noexcept;
  void set_number(stack::Flow& flow, std::uint32_t name, std::uint32_t value) noexcept;

  /// Returns Counted::nothing if there is no room.
  [[nodiscard]] Counted count(stack::Flow& flow, std::uint32_t rule, const Threshold& threshold,
                              std::uint64_t now_us) noexcept;

  void tag(stack::Flow& flow, std::uint32_t rule, const Tag& tag, std::uint64_t now_s) noexcept;
  [[nodiscard]] bool has_tags() const noexcept { return tags_ != 0; }
  /// Counts one more packet of the flow. True if one of its tags wants it logged.
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
    std::uint32_t newer, older;  // list of heads, by last use
    std::uint32_t tags;          // first tag
    StateStore::FlowFate fate;
  };
  struct Cell {
    std::uint32_t next;  // of a head: its first record; of a record: the flow's next record, or a tag's next tag; else
                         // the next free cell
    std::uint32_t what;  // of a record: kind and index; of a head: which flowbits may be set, modulo 32
    union {
      Head head;
      std::uint32_t number;
      ThresholdCount threshold;
      TagEntry tag;
    };
  };
  /// Links of a record other than a tag.
  struct Link {
    std::uint32_t chain;  // next in its bucket
    std::uint32_t head;
    std::uint32_t previous;  // the flow's previous record; the head if it is the first
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
  /// Null if there is no room.
  [[nodiscard]] Cell* used_head(stack::Flow& flow) noexcept;
  [[nodiscard]] Cell* add(stack::Flow& flow, std::uint32_t what) noexcept;
  [[nodiscard]] Cell* take(const Cell* keep) noexcept;
  void give(Cell& cell) noexcept;
  void remove(Cell& record) noexcept;
  /// `link`: the link that points to the tag.
  void remove_tag(std::uint32_t& link) noexcept;
  void unlink_use(Cell& head) noexcept;
  void link_use(Cell& head) noexcept;

  std::unique_ptr<Cell[], Free> cells_;  // indices start at 1; 0 is null
  std::unique_ptr<Link[], Free> links_;  // one for each cell
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
