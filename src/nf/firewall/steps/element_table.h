// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A set whose elements come and go while packets pass, as sets of nftables with the flag `dynamic`. All workers use the
// same one: it is divided into parts with a lock each. Memory is reserved for as many elements as the set may have, and
// is only used as they come.

#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include "classify/step.h"
#include "conntrack/connections.h"
#include "nf/firewall/steps/connection_list.h"

namespace penstock::firewall {

/// nft_limit's token bucket.
struct TokenBucket {
  std::uint64_t tokens_ns = 0;
  std::uint64_t last_ns = 0;

  /// A full one.
  [[nodiscard]] static TokenBucket full(const classify::Rate& rate, std::uint64_t now_ns) noexcept;
  /// Whether the rate's condition holds for a packet of so many bytes, which takes its tokens.
  [[nodiscard]] bool take(const classify::Rate& rate, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
};

class ElementTable {
 public:
  using Key = std::array<classify::Number, classify::kMostElementValues>;

  struct Element {
    Key key;
    std::uint64_t expires_ns = 0;  // 0: never
    // What belongs to the element, by the step that made it.
    TokenBucket bucket;
    std::uint64_t bytes = 0;
    ConnectionList* connections = nullptr;  // owned
    bool used = false;
    bool is_new = false;  // until `with` has used it for the first time
  };

  /// Elements beyond this cannot be asked for.
  static constexpr std::uint32_t kMostElements = 1U << 22;

  /// `size` is at most kMostElements. Throws std::bad_alloc.
  explicit ElementTable(std::uint32_t size);
  ElementTable(const ElementTable&) = delete;
  ElementTable& operator=(const ElementTable&) = delete;
  ~ElementTable();

  [[nodiscard]] bool contains(const Key& key, std::uint64_t now_ns) noexcept;
  /// Calls `use(element)` for the element, which is added if there is none. False, without a call, if there is no room.
  /// `expires_ns` counts for a new element, and for a known one if `refresh`. Elements whose time is over make room,
  /// and those that count `connections`, which may be null, of which none is left.
  template <typename Use>
  [[nodiscard]] bool with(const Key& key, std::uint64_t now_ns, std::uint64_t expires_ns, bool refresh,
                          conntrack::Connections* connections, Use&& use) {
    Part& part = part_of(key);
    const std::lock_guard lock(part.mutex);
    Element* const element = enter(part, key, now_ns, expires_ns, refresh, connections);
    if (element == nullptr) return false;
    use(*element);
    element->is_new = false;
    part.has_connections |= element->connections != nullptr;
    return true;
  }
  void remove(const Key& key) noexcept;
  void clear() noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kParts = 16;
  static constexpr std::uint64_t kSweepEveryNs = 100'000'000;

  struct Free {
    void operator()(Element* elements) const noexcept { std::free(elements); }
  };
  struct Part {
    std::mutex mutex;
    std::unique_ptr<Element[], Free> elements;  // zeros at first
    std::size_t mask = 0;
    std::size_t count = 0;
    bool has_connections = false;  // an element may own some
    std::uint64_t swept_ns = 0;
  };

  [[nodiscard]] static Element* zeros(std::size_t count) noexcept;
  static void delete_connections(Part& part) noexcept;
  [[nodiscard]] std::uint64_t hash_of(const Key& key) const noexcept;
  [[nodiscard]] Part& part_of(const Key& key) noexcept { return parts_[hash_of(key) >> 60]; }
  [[nodiscard]] std::size_t home_of(const Part& part, const Key& key) const noexcept {
    return hash_of(key) & part.mask;
  }
  [[nodiscard]] Element* find(Part& part, const Key& key) const noexcept;
  [[nodiscard]] Element* enter(Part& part, const Key& key, std::uint64_t now_ns, std::uint64_t expires_ns, bool refresh,
                               conntrack::Connections* connections) noexcept;
  void erase(Part& part, Element& element) noexcept;
  void sweep(Part& part, std::uint64_t now_ns, conntrack::Connections* connections) noexcept;

  const std::uint32_t size_;
  const std::uint64_t seed_;
  std::atomic<std::size_t> count_{0};
  std::array<Part, kParts> parts_;
};

}  // namespace penstock::firewall
