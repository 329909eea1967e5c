// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <random>

#include "experiments/transfer/return_schemes.h"

namespace penstock::experiments {

std::vector<bool> dropped_packets(std::size_t count, unsigned percent, std::string_view spread) {
  std::vector<bool> dropped(count);
  const std::size_t drop = count * percent / 100;
  if (spread == "uniform") {
    for (std::size_t i = 0; i < count; ++i) dropped[i] = (i + 1) * drop / count != i * drop / count;
    return dropped;
  }
  for (std::size_t i = 0; i < drop; ++i) dropped[i] = true;
  if (spread == "cluster") return dropped;
  std::mt19937_64 random(5);
  for (std::size_t i = count; i > 1; --i) {
    const std::size_t j = random() % i;
    const bool other = dropped[j];
    dropped[j] = dropped[i - 1];
    dropped[i - 1] = other;
  }
  return dropped;
}

}  // namespace penstock::experiments
