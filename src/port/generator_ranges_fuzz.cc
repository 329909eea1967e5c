// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary text as the generator's file of destinations, for both address families.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "port/generator_flows.h"

using namespace penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = ::memfd_create("ranges", 0);
  if (fd < 0 || ::write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
  for (const unsigned address_bytes : {4U, 16U}) {
    const auto ranges = port::read_ranges("/proc/self/fd/" + std::to_string(fd), address_bytes);
    if (!ranges) {
      if (ranges.error().empty() || ranges.error().size() > 101) std::abort();
      continue;
    }
    for (const port::AddressRange& range : *ranges) {
      if (range.length > 8 * address_bytes) std::abort();
    }
  }
  ::close(fd);
  return 0;
}
