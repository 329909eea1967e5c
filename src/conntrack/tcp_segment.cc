// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/tcp_segment.h"

#include <algorithm>
#include <cstddef>

#include "base/byte_order.h"

namespace penstock::conntrack {
namespace {

TcpKind kind_of(std::uint8_t flags) noexcept {
  if ((flags & TcpHeader::kRst) != 0) return TcpKind::rst;
  if ((flags & TcpHeader::kSyn) != 0) return (flags & TcpHeader::kAck) != 0 ? TcpKind::syn_ack : TcpKind::syn;
  if ((flags & TcpHeader::kFin) != 0) return TcpKind::fin;
  return (flags & TcpHeader::kAck) != 0 ? TcpKind::ack : TcpKind::none;
}

}  // namespace

TcpSegment read_segment(const TcpHeader& header, std::uint32_t length) noexcept {
  TcpSegment segment;
  segment.sequence = header.sequence.value();
  segment.ack = header.acknowledgment.value();
  segment.window = header.window.value();
  segment.flags = header.flags;
  segment.kind = kind_of(header.flags);
  segment.end = segment.sequence + length - header.header_length();
  if (segment.has(TcpHeader::kSyn)) ++segment.end;
  if (segment.has(TcpHeader::kFin)) ++segment.end;
  segment.options = {reinterpret_cast<const std::uint8_t*>(&header + 1), header.header_length() - sizeof header};
  return segment;
}

bool are_tcp_flags_valid(std::uint8_t flags) noexcept {
  constexpr std::uint8_t kFin = TcpHeader::kFin, kSyn = TcpHeader::kSyn, kRst = TcpHeader::kRst, kAck = TcpHeader::kAck,
                         kUrg = TcpHeader::kUrg;
  switch (flags & (kFin | kSyn | kRst | kAck | kUrg)) {
    case kSyn:
    case kSyn | kUrg:
    case kSyn | kAck:
    case kRst:
    case kRst | kAck:
    case kFin | kAck:
    case kFin | kAck | kUrg:
    case kAck:
    case kAck | kUrg: return true;
    default: return false;
  }
}

void read_syn_options(Bytes options, TcpSide& side) noexcept {
  constexpr std::uint8_t kWindowScale = 3, kSackPermitted = 4, kMostScale = 14;  // RFC 7323 §2.3, RFC 2018
  if (options.empty()) return;
  side.scale = 0;
  side.flags &= TcpSide::kLiberal;
  for_each_option(options, [&](std::uint8_t kind, Bytes value) {
    if (kind == kSackPermitted && value.empty()) {
      side.flags |= TcpSide::kSack;
    } else if (kind == kWindowScale && value.size() == 1) {
      side.scale = std::min(value[0], kMostScale);
      side.flags |= TcpSide::kWindowScale;
    }
    return true;
  });
}

std::uint32_t highest_sack(Bytes options, std::uint32_t ack) noexcept {
  constexpr std::uint8_t kSack = 5;
  constexpr std::size_t kBlock = 8, kBlockEnd = 4;
  for_each_option(options, [&](std::uint8_t kind, Bytes value) {
    if (kind != kSack || value.empty() || value.size() % kBlock != 0) return true;
    for (std::size_t block = 0; block < value.size(); block += kBlock) {
      const std::uint32_t end = reinterpret_cast<const Be32*>(value.data() + block + kBlockEnd)->value();
      if (after(end, ack)) ack = end;
    }
    return false;  // the first such option counts
  });
  return ack;
}

}  // namespace penstock::conntrack
