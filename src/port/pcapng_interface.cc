// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/pcapng_interface.h"

#include "port/pcapng_blocks.h"

namespace penstock::port {

namespace {

struct Options {
  std::optional<std::uint8_t> resolution;
  std::optional<std::int64_t> offset_seconds;
};

/// Options: | code | length | value, padded to 4 bytes |; code and length have 16 bits.
std::optional<Options> read_options(std::span<const std::uint8_t> bytes) noexcept {
  Options options;
  while (!bytes.empty()) {
    if (bytes.size() < 4) return std::nullopt;
    const auto code = load<std::uint16_t>(bytes.data());
    const auto length = load<std::uint16_t>(bytes.data() + 2);
    if (code == pcapng::kEndOfOptions) return length == 0 ? std::optional(options) : std::nullopt;
    bytes = bytes.subspan(4);
    if (pcapng::padded(length) > bytes.size()) return std::nullopt;
    if (code == pcapng::kTimeResolution) {
      if (length != 1 || options.resolution) return std::nullopt;
      options.resolution = bytes[0];
    } else if (code == pcapng::kTimeOffset) {
      if (length != 8 || options.offset_seconds) return std::nullopt;
      options.offset_seconds = load<std::int64_t>(bytes.data());
    }
    bytes = bytes.subspan(pcapng::padded(length));
  }
  return options;
}

}  // namespace

std::optional<PcapngClock> PcapngClock::make(std::uint8_t resolution, std::int64_t offset_seconds) noexcept {
  constexpr std::uint64_t kMicroseconds = 1'000'000;
  const auto ticks = pcapng::ticks_of(resolution);
  if (!ticks) return std::nullopt;
  PcapngClock clock;
  clock.ticks_per_second_ = *ticks;
  clock.offset_seconds_ = static_cast<std::uint64_t>(offset_seconds);
  if ((resolution & 0x80) != 0) {
    // Beyond this, the product of a fraction and a million may not fit in 64 bits.
    constexpr std::uint64_t kMost = std::uint64_t{1} << 44;
    if (*ticks > kMost) return std::nullopt;
    clock.multiplier_ = kMicroseconds;
    clock.divisor_ = *ticks;
  } else if (*ticks < kMicroseconds) {
    clock.multiplier_ = kMicroseconds / *ticks;
  } else {
    clock.divisor_ = *ticks / kMicroseconds;
  }
  clock.second_ = static_cast<std::int32_t>(clock.offset_seconds_);
  return clock;
}

/// | type | length | link type | reserved | snapshot length | options | length |
std::optional<PcapngInterface> PcapngInterface::read(std::span<const std::uint8_t> block) noexcept {
  constexpr std::size_t kLinkTypeAt = 8, kSnapLengthAt = 12, kOptionsAt = 16;
  if (block.size() < kOptionsAt + pcapng::kTail) return std::nullopt;
  const auto options = read_options(block.first(block.size() - pcapng::kTail).subspan(kOptionsAt));
  if (!options) return std::nullopt;
  constexpr std::uint8_t kMicroseconds = 6;  // the format's default
  const auto clock =
      PcapngClock::make(options->resolution.value_or(kMicroseconds), options->offset_seconds.value_or(0));
  if (!clock) return std::nullopt;
  return PcapngInterface{load<std::uint16_t>(block.data() + kLinkTypeAt),
                         load<std::uint32_t>(block.data() + kSnapLengthAt), *clock};
}

}  // namespace penstock::port
