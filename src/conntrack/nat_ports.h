// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Where searches for free ports begin. Without the seed, nobody can tell the next port from those before.

#pragma once

#include <cstdint>

#include "base/keyed_hash.h"

namespace penstock::conntrack {

class RandomPorts {
 public:
  explicit RandomPorts(std::uint64_t seed) noexcept : seed_(seed) {}

  [[nodiscard]] std::uint16_t next() noexcept {
    ++count_;
    return static_cast<std::uint16_t>(mix_product(mix_product(count_ ^ seed_, seed_), count_ ^ seed_) >> 24);
  }

 private:
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
};

}  // namespace penstock::conntrack
