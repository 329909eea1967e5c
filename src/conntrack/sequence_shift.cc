// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/sequence_shift.h"

#include <cstddef>

#include "base/byte_order.h"
#include "packet/checksum.h"

namespace penstock::conntrack {

void shift_sequence_numbers(PacketView packet, const SequenceShifts& shifts, Direction direction) noexcept {
  const SequenceShift& own = shifts[static_cast<unsigned>(direction)];
  const SequenceShift& others = shifts[static_cast<unsigned>(opposite(direction))];
  TcpHeader& tcp = packet.tcp();
  auto* const bytes = reinterpret_cast<std::uint8_t*>(&tcp);
  const std::uint32_t length = static_cast<std::uint32_t>(tcp.header_length());
  // Blocks may lie at odd places, so the whole header is summed. The checksum itself cancels out.
  const std::uint32_t sum_before = checksum_add(bytes, length);
  tcp.sequence.set(tcp.sequence.value() + own.of(tcp.sequence.value()));
  const auto shift_back = [&](Be32& number) { number.set(number.value() - others.of_shifted(number.value())); };
  shift_back(tcp.acknowledgment);
  for_each_option({bytes + sizeof tcp, length - sizeof tcp}, [&](std::uint8_t kind, Bytes value) {
    constexpr std::uint8_t kSack = 5;
    constexpr std::size_t kBlock = 8;
    if (kind != kSack || value.size() % kBlock != 0) return true;
    auto* const edges = bytes + (value.data() - bytes);
    for (std::size_t edge = 0; edge < value.size(); edge += kBlock / 2)
      shift_back(*reinterpret_cast<Be32*>(edges + edge));
    return true;
  });
  const std::uint16_t removed = checksum_finish(sum_before);  // its complement is what to take away
  const std::uint16_t added = static_cast<std::uint16_t>(~checksum_finish(checksum_add(bytes, length)));
  if (static_cast<std::uint16_t>(~removed) == added) return;
  tcp.checksum.set(checksum_finish(static_cast<std::uint16_t>(~tcp.checksum.value()) + std::uint32_t{removed} + added));
}

}  // namespace penstock::conntrack
