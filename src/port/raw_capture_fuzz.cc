// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary bytes as a capture, from a file and from a pipe. The packets and the error must be those that libpcap
// reads.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "port/testing/raw_reading.h"

using namespace penstock::port::testing;

namespace {

void compare(const RawReading& theirs, const RawReading& ours) {
  if (!(theirs == ours)) {
    std::fprintf(stderr, "libpcap: %d, %zu bytes, '%s'; ours: %d, %zu bytes, '%s'\n", theirs.opened,
                 theirs.packets.size(), theirs.reason.c_str(), ours.opened, ours.packets.size(), ours.reason.c_str());
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A compressed capture: libpcap cannot read it.
  if (size < 4 || (data[0] == 0x1f && data[1] == 0x8b) || std::memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0) return 0;
  const RawReading theirs = read_by_libpcap({data, size});
  compare(theirs, read_by_us(std::span(data, size)));

  constexpr std::size_t kPipe = 60'000;  // a pipe takes this much without a reader
  int ends[2];
  if (size > kPipe || ::pipe(ends) != 0) return 0;
  if (::write(ends[1], data, size) != static_cast<ssize_t>(size)) std::abort();
  ::close(ends[1]);
  compare(theirs, read_by_us("/proc/self/fd/" + std::to_string(ends[0])));
  ::close(ends[0]);
  return 0;
}
