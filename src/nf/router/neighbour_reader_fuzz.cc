// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "nf/router/neighbour_reader.h"

using namespace penstock;

/// Every neighbour that is read can be found in a table.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  router::Devices devices;
  const auto read = router::parse_neighbours({reinterpret_cast<const char*>(data), size}, "fuzz", devices);
  if (!read) return 0;
  router::NeighbourTable table;
  for (const router::Neighbour& neighbour : read->value) table.assign(neighbour);
  for (const router::Neighbour& neighbour : read->value) {
    if (table.view().find(neighbour.address, neighbour.device) == nullptr) std::abort();
  }
  return 0;
}
