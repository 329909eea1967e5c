// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/flow_memory.h"

#include <algorithm>
#include <new>
#include <type_traits>

namespace penstock::nids {
namespace {

constexpr std::uint32_t bloom(std::uint32_t bit) noexcept { return std::uint32_t{1} << bit % 32; }

}  // namespace

FlowMemory::FlowMemory(std::size_t most_bytes) {
  static_assert(std::is_trivially_copyable_v<Cell> && sizeof(Cell) == 32);
  capacity_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(most_bytes / sizeof(Cell), 4, std::size_t{1} << 30));
  // Zeroed by the system, page by page as they are used.
  cells_.reset(static_cast<Cell*>(std::calloc(capacity_ + std::size_t{1}, sizeof(Cell))));
  if (!cells_) throw std::bad_alloc();
}

FlowMemory::Cell* FlowMemory::find(const Cell& head, std::uint32_t what) const noexcept {
  for (std::uint32_t i = head.next; i != 0; i = cells_[i].next) {
    if (cells_[i].what == what) return &cells_[i];
  }
  return nullptr;
}

FlowMemory::Cell* FlowMemory::used_head(stack::Flow& flow) noexcept {
  if (Cell* head = head_of(flow)) {
    if (index_of(*head) != newest_) {
      unlink_use(*head);
      link_use(*head);
    }
    return head;
  }
  Cell* head = take(nullptr);
  if (head == nullptr) return nullptr;
  *head = {
      .next = 0, .what = 0, .head = {.flow = &flow, .newer = 0, .older = 0, .fate = StateStore::FlowFate::inspected}};
  link_use(*head);
  flow.function_state = head;
  ++counters_.flows;
  return head;
}

FlowMemory::Cell* FlowMemory::add(stack::Flow& flow, std::uint32_t what) noexcept {
  Cell* head = used_head(flow);
  if (head == nullptr) return nullptr;
  Cell* record = take(head);
  if (record == nullptr) return nullptr;
  record->next = head->next;
  record->what = what;
  head->next = index_of(*record);
  return record;
}

FlowMemory::Cell* FlowMemory::take(const Cell* keep) noexcept {
  if (free_ == 0 && handed_out_ == capacity_) {
    if (oldest_ == 0 || &cells_[oldest_] == keep) return nullptr;
    ++counters_.flows_evicted;
    end(*cells_[oldest_].head.flow);
  }
  if (free_ == 0) return &cells_[++handed_out_];
  Cell& cell = cells_[free_];
  free_ = cell.next;
  return &cell;
}

void FlowMemory::give(Cell& cell) noexcept {
  cell.next = free_;
  free_ = index_of(cell);
}

void FlowMemory::remove(std::uint32_t& link) noexcept {
  Cell& removed = cells_[link];
  link = removed.next;
  give(removed);
}

void FlowMemory::unlink_use(Cell& head) noexcept {
  (head.head.newer != 0 ? cells_[head.head.newer].head.older : newest_) = head.head.older;
  (head.head.older != 0 ? cells_[head.head.older].head.newer : oldest_) = head.head.newer;
}

void FlowMemory::link_use(Cell& head) noexcept {
  head.head.newer = 0;
  head.head.older = newest_;
  (newest_ != 0 ? cells_[newest_].head.newer : oldest_) = index_of(head);
  newest_ = index_of(head);
}

void FlowMemory::end(stack::Flow& flow) noexcept {
  Cell* head = head_of(flow);
  if (head == nullptr) return;
  while (head->next != 0) {
    if (cells_[head->next].what >> 30 == static_cast<std::uint32_t>(Kind::tag)) --tags_;
    remove(head->next);
  }
  unlink_use(*head);
  give(*head);
  flow.function_state = nullptr;
  --counters_.flows;
}

bool FlowMemory::bit(const stack::Flow& flow, std::uint32_t bit) const noexcept {
  const Cell* head = head_of(flow);
  return head != nullptr && (head->what & bloom(bit)) != 0 && find(*head, what(Kind::bit, bit)) != nullptr;
}

void FlowMemory::set_bit(stack::Flow& flow, std::uint32_t bit) noexcept {
  if (this->bit(flow, bit)) return;
  if (add(flow, what(Kind::bit, bit)) != nullptr) head_of(flow)->what |= bloom(bit);
}

void FlowMemory::unset_bit(stack::Flow& flow, std::uint32_t bit) noexcept {
  if (!this->bit(flow, bit)) return;
  std::uint32_t* link = &head_of(flow)->next;
  while (cells_[*link].what != what(Kind::bit, bit)) link = &cells_[*link].next;
  remove(*link);
}

std::optional<std::uint32_t> FlowMemory::number(const stack::Flow& flow, std::uint32_t name) const noexcept {
  const Cell* head = head_of(flow);
  if (head == nullptr) return std::nullopt;
  const Cell* record = find(*head, what(Kind::number, name));
  if (record == nullptr) return std::nullopt;
  return record->number;
}

void FlowMemory::set_number(stack::Flow& flow, std::uint32_t name, std::uint32_t value) noexcept {
  Cell* head = head_of(flow);
  Cell* record = head != nullptr ? find(*head, what(Kind::number, name)) : nullptr;
  if (record == nullptr) record = add(flow, what(Kind::number, name));
  if (record != nullptr) record->number = value;
}

Counted FlowMemory::count(stack::Flow& flow, std::uint32_t rule, const Threshold& threshold,
                          std::uint64_t now_us) noexcept {
  const Cell* head = used_head(flow);
  if (head == nullptr) return Counted::nothing;
  if (Cell* record = find(*head, what(Kind::threshold, rule))) return count_next(threshold, record->threshold, now_us);
  Cell* record = add(flow, what(Kind::threshold, rule));
  if (record == nullptr) return Counted::nothing;
  return count_first(threshold, record->threshold, now_us);
}

void FlowMemory::tag(stack::Flow& flow, std::uint32_t rule, const Tag& tag, std::uint64_t now_s) noexcept {
  const Cell* head = used_head(flow);
  if (head == nullptr) return;
  unsigned tags = 0;
  for (std::uint32_t i = head->next; i != 0; i = cells_[i].next) {
    if (cells_[i].what >> 30 != static_cast<std::uint32_t>(Kind::tag)) continue;
    ++tags;
    if (cells_[i].what != what(Kind::tag, rule)) continue;
    cells_[i].tag.renew(now_s);
    return;
  }
  if (tags >= kMostTags) return;
  Cell* record = add(flow, what(Kind::tag, rule));
  if (record == nullptr) return;
  record->tag = TagEntry::of(tag, now_s);
  ++tags_;
}

bool FlowMemory::tagged(stack::Flow& flow, std::uint64_t now_s, std::uint32_t bytes) noexcept {
  Cell* head = head_of(flow);
  if (head == nullptr) return false;
  bool logged = false;
  for (std::uint32_t* link = &head->next; *link != 0;) {
    Cell& record = cells_[*link];
    if (record.what >> 30 == static_cast<std::uint32_t>(Kind::tag)) {
      const TagEntry::Says says = record.tag.packet(now_s, bytes);
      if (says == TagEntry::Says::ended) {
        remove(*link);
        --tags_;
        continue;
      }
      logged = logged || says == TagEntry::Says::log;
    }
    link = &record.next;
  }
  return logged;
}

StateStore::FlowFate FlowMemory::fate(const stack::Flow& flow) noexcept {
  Cell* head = head_of(flow);
  if (head == nullptr) return StateStore::FlowFate::inspected;
  // A flow that is dropped is looked at no more: being asked for is all the use that its memory has.
  if (head->head.fate != StateStore::FlowFate::inspected && index_of(*head) != newest_) {
    unlink_use(*head);
    link_use(*head);
  }
  return head->head.fate;
}

void FlowMemory::set_fate(stack::Flow& flow, StateStore::FlowFate fate) noexcept {
  Cell* head = used_head(flow);
  if (head != nullptr && head->head.fate == StateStore::FlowFate::inspected) head->head.fate = fate;
}

}  // namespace penstock::nids
