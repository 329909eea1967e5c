// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A virtio header, one byte for how many bytes were inserted before its offsets, and a frame. Segments have the bounds
// that their users rely on, hold all of the payload, and have lengths that agree with their own headers.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "port/live/offload.h"

using namespace penstock::port;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

void split(std::span<const std::uint8_t> frame, const VirtioHeader& header, std::size_t shift) {
  const auto segmenter = Segmenter::of(frame, header, shift);
  if (!segmenter) return;
  check(segmenter->count() > 0);
  // All but the last segment have equally long payloads; a frame has the headers once.
  const std::size_t last = segmenter->count() - 1;
  const std::size_t headers = segmenter->length(0) - (last > 0 ? header.gso_size : 0);
  std::size_t payload = 0;
  std::vector<std::uint8_t> joined;
  for (std::size_t i = 0; i <= last; ++i) {
    const std::size_t length = segmenter->length(i);
    check(length <= (std::size_t{128} << 10) && length <= frame.size());
    if (last > 0) check(i < last ? length == segmenter->length(0) : length > headers && length <= segmenter->length(0));
    const auto segment = std::make_unique_for_overwrite<std::uint8_t[]>(length);
    segmenter->write(i, segment.get());
    if (last == 0) continue;
    joined.insert(joined.end(), segment.get() + headers, segment.get() + length);
    payload += length - headers;
  }
  if (last > 0) check(payload < frame.size() && std::ranges::equal(joined, frame.last(payload)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  VirtioHeader header;
  if (size < sizeof header + 1) return 0;
  std::memcpy(&header, data, sizeof header);
  const std::size_t shift = data[sizeof header] % 2 * 4;
  const std::size_t length = size - sizeof header - 1;
  // Memory of exactly this size, so that a sanitizer notices reading and writing past its end.
  const auto frame = std::make_unique<std::uint8_t[]>(length);
  std::copy_n(data + sizeof header + 1, length, frame.get());
  split({frame.get(), length}, header, shift);
  const std::vector<std::uint8_t> before(frame.get(), frame.get() + length);
  if (!complete_checksum({frame.get(), length}, header, shift))
    check(std::ranges::equal(before, std::span(frame.get(), length)));
  return 0;
}
