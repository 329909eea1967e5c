// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as what another process says that it hands over, with as many descriptors as the first byte says. No
// descriptor is kept, and what is accepted is written in the same way again.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/fuzz_check.h"
#include "control/hand_over.h"

using namespace penstock;
using penstock::testing::check;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // Copies of its writing end are handed over: once all are closed, the reading end says so. Numbers of descriptors
  // would say less, as a thread of the sanitizer opens a file from time to time.
  std::array<int, 2> ends{};
  check(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const port::FileDescriptor reading(ends[0]);
  {
    port::FileDescriptor writing(ends[1]);
    std::vector<port::FileDescriptor> descriptors;
    for (int i = data[0] % 8; i > 0; --i) descriptors.emplace_back(::dup(writing.get()));
    writing = port::FileDescriptor();
    const std::size_t count = descriptors.size();
    const auto answer =
        control::Json::parse(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1), nullptr,
                             /*allow_exceptions=*/false);
    const auto handed = control::read_handed(answer, std::move(descriptors));
    if (handed) {
      std::size_t taken = 0;
      for (const auto& port : *handed) taken += port.second.descriptors.size();
      check(taken == count);
      const control::Json again = control::to_json(*handed);
      for (const auto& port : again["ports"].items()) {
        check(answer["ports"][port.key()]["numbers"] == port.value()["numbers"]);
        check(answer["ports"][port.key()]["descriptors"] == port.value()["descriptors"]);
      }
    } else {
      check(!handed.error().empty());
    }
  }
  pollfd polled{reading.get(), 0, 0};
  check(::poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP) != 0);
  return 0;
}
