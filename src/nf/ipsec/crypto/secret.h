// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The bytes of a key, stored in the object itself. They are wiped when the object is destroyed, overwritten or moved
// from; so is every copy. A secret cannot be printed.

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iosfwd>
#include <span>

#include "base/wipe.h"

namespace penstock::ipsec {

class Secret {
 public:
  static constexpr std::size_t kCapacity = 64;

  Secret() = default;
  /// At most kCapacity bytes. The caller must wipe its own copy.
  explicit Secret(std::span<const std::uint8_t> bytes) noexcept { assign(bytes); }
  Secret(const Secret& other) noexcept { assign(other.bytes()); }
  Secret(Secret&& other) noexcept {
    assign(other.bytes());
    other.clear();
  }
  Secret& operator=(const Secret& other) noexcept {
    if (this != &other) assign(other.bytes());
    return *this;
  }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      assign(other.bytes());
      other.clear();
    }
    return *this;
  }
  ~Secret() { clear(); }

  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept { return {bytes_, size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  void clear() noexcept {
    wipe(bytes_, sizeof bytes_);
    size_ = 0;
  }

  /// Constant time for secrets of equal length, wherever they differ.
  friend bool operator==(const Secret& a, const Secret& b) noexcept {
    if (a.size_ != b.size_) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size_; ++i) difference |= static_cast<unsigned>(a.bytes_[i] ^ b.bytes_[i]);
    return difference == 0;
  }
  friend std::ostream& operator<<(std::ostream&, const Secret&) = delete;

 private:
  void assign(std::span<const std::uint8_t> bytes) noexcept {
    assert(bytes.size() <= kCapacity);
    clear();
    size_ = static_cast<std::uint8_t>(bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_, bytes.data(), bytes.size());
  }

  std::uint8_t bytes_[kCapacity] = {};
  std::uint8_t size_ = 0;
};

}  // namespace penstock::ipsec
