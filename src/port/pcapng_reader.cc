// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/pcapng_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/nanoseconds.h"
#include "base/units.h"
#include "port/link_types.h"
#include "port/pcapng_blocks.h"

namespace penstock::port {

namespace {

using namespace pcapng;

constexpr std::size_t kSectionHead = 24;

/// Nanoseconds since 1970, clamped to the representable range.
std::uint64_t nanoseconds_of(std::uint64_t ticks, std::uint64_t per_second, std::int64_t offset_seconds) noexcept {
  __extension__ using Wide = __int128;
  const std::uint64_t rest = ticks % per_second;
  const std::uint64_t fraction = kNsPerSecond % per_second == 0
                                     ? rest * (kNsPerSecond / per_second)
                                     : static_cast<std::uint64_t>(static_cast<Wide>(rest) * kNsPerSecond / per_second);
  const Wide time = (static_cast<Wide>(ticks / per_second) + offset_seconds) * kNsPerSecond + fraction;
  if (time < 0) return 0;
  return static_cast<std::uint64_t>(std::min<Wide>(time, std::numeric_limits<std::uint64_t>::max()));
}

}  // namespace

bool PcapngReader::recognises(std::span<const std::uint8_t> first) noexcept {
  constexpr std::array<std::uint8_t, 4> kMagic{0x0a, 0x0d, 0x0d, 0x0a};
  return first.size() >= kMagic.size() && std::equal(kMagic.begin(), kMagic.end(), first.begin());
}

std::uint16_t PcapngReader::u16(const std::uint8_t* at) const noexcept {
  return static_cast<std::uint16_t>(big_endian_ ? at[0] << 8 | at[1] : at[1] << 8 | at[0]);
}
std::uint32_t PcapngReader::u32(const std::uint8_t* at) const noexcept {
  const std::uint32_t first = u16(at);
  const std::uint32_t second = u16(at + 2);
  return big_endian_ ? first << 16 | second : second << 16 | first;
}
std::uint64_t PcapngReader::u64(const std::uint8_t* at) const noexcept {
  const std::uint64_t first = u32(at);
  const std::uint64_t second = u32(at + 4);
  return big_endian_ ? first << 32 | second : second << 32 | first;
}

PcapngReader::Block PcapngReader::broken(std::string why) noexcept {
  reason_ = std::move(why);
  return Block::broken;
}

PcapngReader::Block PcapngReader::cut() noexcept {
  const std::string& deeper = source_->source().reason();
  return broken(deeper.empty() ? "the file is truncated: it ends inside a block" : deeper);
}

Result<void> PcapngReader::begin(const std::string& path, bool read_ahead) {
  Block block = read_block();
  while (block == Block::other && (read_ahead || interfaces_.empty())) block = read_block();
  if (interfaces_.empty()) {
    if (block != Block::broken) reason_ = "no interface description block";
    return failure({{path, 0, 0}, "not a readable capture", reason_, "pcap or pcapng"});
  }
  if (std::ranges::none_of(interfaces_, [](const Interface& i) { return i.type.has_value(); })) {
    return failure(
        {{path, 0, 0}, "link type not supported", describe_dlt(interfaces_.front().number), supported_dlts()});
  }
  ahead_ = block;
  return {};
}

CaptureFormat::Status PcapngReader::next(CapturedFrame& frame) noexcept {
  Block block = Block::other;
  if (ahead_) block = *std::exchange(ahead_, std::nullopt);
  while (block == Block::other) block = read_block();
  if (block == Block::packet) {
    frame = frame_;
    return Status::packet;
  }
  return block == Block::end ? Status::end : Status::broken;
}

PcapngReader::Block PcapngReader::read_block() noexcept {
  source_->consume(std::exchange(taken_, 0));
  const auto head = source_->peek(kHead);
  if (head.empty() && source_->source().reason().empty()) return Block::end;
  if (head.size() < kHead) return cut();
  const std::uint32_t type = u32(head.data());
  if (type == kSection) return read_section();
  const std::uint32_t length = u32(head.data() + 4);
  if (length < kHead + kTail || length % 4 != 0) {
    return broken(fmt::format("a block of {} bytes; expected a multiple of 4, at least 12", length));
  }
  const bool is_packet = type == kObsoletePacket || type == kSimplePacket || type == kEnhancedPacket;
  if (is_packet || type == kInterface) {
    if (length > BufferedSource::kMostPeeked) {
      return broken(fmt::format("{} of {}; expected at most {}", is_packet ? "a packet block" : "an interface block",
                                format_size(length), format_size(BufferedSource::kMostPeeked)));
    }
    const auto block = source_->peek(length);
    if (block.size() < length) return cut();
    if (u32(&block[length - kTail]) != length) return broken("a block whose two lengths differ");
    taken_ = length;
    const auto body = block.subspan(kHead, length - kHead - kTail);
    return is_packet ? read_packet(type, body) : read_interface(body);
  }
  source_->consume(kHead);
  if (!source_->skip(length - kHead - kTail)) return cut();
  const auto tail = source_->peek(kTail);
  if (tail.size() < kTail) return cut();
  taken_ = kTail;
  return u32(tail.data()) == length ? Block::other : broken("a block whose two lengths differ");
}

PcapngReader::Block PcapngReader::read_section() noexcept {
  const auto head = source_->peek(kSectionHead);
  if (head.size() < kSectionHead) return cut();
  big_endian_ = head[8] == 0x1a;
  const std::uint32_t length = u32(&head[4]);
  if (u32(&head[8]) != kByteOrderMagic || length < kSectionHead + kTail || length % 4 != 0) {
    return broken("not a pcapng section header");
  }
  const unsigned major = u16(&head[12]);
  const unsigned minor = u16(&head[14]);
  if (major != 1 || (minor != 0 && minor != 2)) return broken(fmt::format("pcapng version {}.{}", major, minor));
  interfaces_.clear();
  source_->consume(kSectionHead);
  if (!source_->skip(length - kSectionHead - kTail)) return cut();
  const auto tail = source_->peek(kTail);
  if (tail.size() < kTail) return cut();
  taken_ = kTail;
  return u32(tail.data()) == length ? Block::other : broken("a block whose two lengths differ");
}

/// | link type | reserved | snapshot length | options |
PcapngReader::Block PcapngReader::read_interface(std::span<const std::uint8_t> body) noexcept {
  if (body.size() < 8) return broken("an interface block that is too short");
  if (interfaces_.size() == kMostInterfaces) {
    return broken(fmt::format("more than {} interfaces in a section", format_count(kMostInterfaces)));
  }
  Interface interface;
  interface.number = u16(body.data());
  interface.type = link_type_in_file(interface.number);
  interface.snap_length = u32(&body[4]);
  if (!read_options(body.subspan(8), interface)) return Block::broken;
  interfaces_.push_back(interface);
  return Block::other;
}

/// Options: | code | length | value, padded to 4 bytes |; code and length have 16 bits.
bool PcapngReader::read_options(std::span<const std::uint8_t> options, Interface& interface) noexcept {
  const auto wrong = [&](const char* why) {
    reason_ = why;
    return false;
  };
  while (options.size() >= 4) {
    const std::uint16_t code = u16(options.data());
    const std::size_t length = u16(&options[2]);
    if (code == kEndOfOptions) return true;
    options = options.subspan(4);
    if (padded(length) > options.size()) return wrong("an interface option that is longer than its block");
    if (code == kTimeResolution) {
      const auto ticks = length == 1 ? ticks_of(options[0]) : std::nullopt;
      if (!ticks) return wrong("an interface with a wrong time resolution");
      interface.ticks_per_second = *ticks;
    } else if (code == kTimeOffset) {
      if (length != 8) return wrong("an interface with a wrong time offset");
      interface.offset_seconds = static_cast<std::int64_t>(u64(options.data()));
    }
    options = options.subspan(padded(length));
  }
  return options.empty() ? true : wrong("an interface option that is longer than its block");
}

/// Enhanced:  | interface | time, high | time, low | captured length | length | frame, padded | options |
/// Obsolete:  like Enhanced, but the interface has only the first 16 bits.
/// Simple:    | length | frame, cut to the snapshot length, padded |; from interface 0, without a time
PcapngReader::Block PcapngReader::read_packet(std::uint32_t type, std::span<const std::uint8_t> body) noexcept {
  const bool simple = type == kSimplePacket;
  const std::size_t head = simple ? 4 : 20;
  if (body.size() < head) return broken("a packet block that is too short");
  const std::uint32_t index = simple ? 0 : type == kObsoletePacket ? u16(body.data()) : u32(body.data());
  if (index >= interfaces_.size())
    return broken(fmt::format("a packet of interface {}, which has no description block", index));
  const Interface& interface = interfaces_[index];
  const std::uint32_t wire_length = u32(&body[head - 4]);
  std::uint32_t length = simple ? wire_length : u32(&body[12]);
  if (simple && interface.snap_length != 0) length = std::min(length, interface.snap_length);
  if (length > kMostFrameBytes) {
    return broken(fmt::format("a packet of {} bytes; expected at most {}", length, kMostFrameBytes));
  }
  if (length > body.size() - head) return broken("a packet that is longer than its block");
  ++packets_;
  if (!interface.type) {
    if (left_out_++ == 0) left_out_number_ = interface.number;
    return Block::other;
  }
  const std::uint64_t ticks = simple ? 0 : std::uint64_t{u32(&body[4])} << 32 | u32(&body[8]);
  frame_.bytes = body.subspan(head, length);
  frame_.timestamp_ns = nanoseconds_of(ticks, interface.ticks_per_second, interface.offset_seconds);
  frame_.wire_length = std::max(wire_length, length);
  frame_.link_type = *interface.type;
  frame_.number = packets_;
  return Block::packet;
}

Errors PcapngReader::left_out(const std::string& path) const {
  if (left_out_ == 0) return {};
  return {{{path, 0, 0},
           fmt::format("{} left out: the interface's link type is not supported", format_count(left_out_, "packet")),
           describe_dlt(left_out_number_),
           supported_dlts()}};
}

}  // namespace penstock::port
