// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/flow_memory.h"

#include <algorithm>
#include <bit>
#include <new>
#include <type_traits>

namespace penstock::nids {
namespace {

constexpr std::uint32_t bloom(std::uint32_t bit) noexcept { return std::uint32_t{1} << bit % 32; }

template <typename T>
T* zeroed(std::size_t count) {
  // Zeroed by the system, page by page as it is used.
  auto* const memory = static_cast<T*>(std::calloc(count, sizeof(T)));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

FlowMemory::FlowMemory(std::size_t most_bytes) {
  static_assert(std::is_trivially_copyable_v<Cell> && sizeof(Cell) == 32 && sizeof(Link) == 12);
  // A power of two of buckets, at most one for each cell.
  constexpr std::size_t kBytesEach = sizeof(Cell) + sizeof(Link) + sizeof(std::uint32_t);
  capacity_ = static_cast<std::uint32_t>(std::clamp<std::size_t>(most_bytes / kBytesEach, 4, std::size_t{1} << 30));
  cells_.reset(zeroed<Cell>(capacity_ + std::size_t{1}));
  links_.reset(zeroed<Link>(capacity_ + std::size_t{1}));
  const std::uint32_t buckets = std::bit_floor(capacity_);
  buckets_.reset(zeroed<std::uint32_t>(buckets));
  bucket_shift_ = 65 - static_cast<unsigned>(std::bit_width(buckets));
}

FlowMemory::Cell* FlowMemory::find(const Cell& head, std::uint32_t what) const noexcept {
  const std::uint32_t of = index_of(head);
  for (std::uint32_t i = bucket_of(of, what); i != 0; i = links_[i].chain) {
    if (cells_[i].what == what && links_[i].head == of) return &cells_[i];
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
  *head = {.next = 0,
           .what = 0,
           .head = {.flow = &flow, .newer = 0, .older = 0, .tags = 0, .fate = StateStore::FlowFate::inspected}};
  link_use(*head);
  flow.slots[slot_] = index_of(*head);
  ++counters_.flows;
  return head;
}

FlowMemory::Cell* FlowMemory::add(stack::Flow& flow, std::uint32_t what) noexcept {
  Cell* head = used_head(flow);
  if (head == nullptr) return nullptr;
  Cell* record = take(head);
  if (record == nullptr) return nullptr;
  const std::uint32_t index = index_of(*record), of = index_of(*head);
  std::uint32_t& first = bucket_of(of, what);
  links_[index] = {.chain = first, .head = of, .previous = of};
  first = index;
  record->next = head->next;
  record->what = what;
  if (head->next != 0) links_[head->next].previous = index;
  head->next = index;
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

void FlowMemory::remove(Cell& record) noexcept {
  const std::uint32_t index = index_of(record);
  const Link& link = links_[index];
  std::uint32_t* chained = &bucket_of(link.head, record.what);
  while (*chained != index) chained = &links_[*chained].chain;
  *chained = link.chain;
  cells_[link.previous].next = record.next;
  if (record.next != 0) links_[record.next].previous = link.previous;
  give(record);
}

void FlowMemory::remove_tag(std::uint32_t& link) noexcept {
  Cell& removed = cells_[link];
  link = removed.next;
  give(removed);
  --tags_;
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
  while (head->next != 0) remove(cells_[head->next]);
  while (head->head.tags != 0) remove_tag(head->head.tags);
  unlink_use(*head);
  give(*head);
  flow.slots[slot_] = 0;
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
  remove(*find(*head_of(flow), what(Kind::bit, bit)));
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
  Cell* head = used_head(flow);
  if (head == nullptr) return;
  unsigned tags = 0;
  for (std::uint32_t i = head->head.tags; i != 0; i = cells_[i].next) {
    ++tags;
    if (cells_[i].what != what(Kind::tag, rule)) continue;
    cells_[i].tag.renew(now_s);
    return;
  }
  if (tags >= kMostTags) return;
  Cell* record = take(head);
  if (record == nullptr) return;
  record->next = head->head.tags;
  record->what = what(Kind::tag, rule);
  record->tag = TagEntry::of(tag, now_s);
  head->head.tags = index_of(*record);
  ++tags_;
}

bool FlowMemory::tagged(stack::Flow& flow, std::uint64_t now_s, std::uint32_t bytes) noexcept {
  Cell* head = head_of(flow);
  if (head == nullptr) return false;
  bool logged = false;
  for (std::uint32_t* link = &head->head.tags; *link != 0;) {
    Cell& record = cells_[*link];
    const TagEntry::Says says = record.tag.packet(now_s, bytes);
    if (says == TagEntry::Says::ended) {
      remove_tag(*link);
      continue;
    }
    logged = logged || says == TagEntry::Says::log;
    link = &record.next;
  }
  return logged;
}

StateStore::FlowFate FlowMemory::fate(const stack::Flow& flow) noexcept {
  Cell* head = head_of(flow);
  if (head == nullptr) return StateStore::FlowFate::inspected;
  // A flow that is dropped or passed is not inspected any more, so this query is the only use of its state.
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
