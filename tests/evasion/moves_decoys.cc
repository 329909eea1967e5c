// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Decoys at the position of a segment, before or after it. For one reason each, the host does not accept them.

#include <algorithm>
#include <array>

#include "evasion/draft.h"

namespace penstock::evasion {

namespace {

using For = Move::For;

template <typename Spoil>
void add_decoy(Draft& draft, std::string_view name, Spoil&& spoil) {
  const auto position = draft.signature_step();
  if (!position) return;
  Random& random = draft.random;
  const Packet target = draft.script.steps[*position].packet;
  Packet decoy = draft.decoy_of(target);
  if (random.percent(25)) {
    const std::int64_t begin = target.at + random.between(-8, 8);
    decoy = draft.decoy(begin, random.between(1, 40));
  }
  spoil(decoy, random);
  std::size_t at = *position;
  if (random.percent(20)) at = std::max(draft.established(), at - std::min<std::size_t>(at, random.below(6)));
  if (random.percent(10)) at = *position + 1;
  draft.insert(at, decoy, name);
}

void decoy_checksum(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.wrong_checksum = true; });
}

void decoy_ip_checksum(Draft& draft, std::string_view name) {
  if (draft.script.v6) return;
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.wrong_ip_checksum = true; });
}

void decoy_dies(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.dies = true; });
}

void decoy_old_timestamp(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    constexpr std::array<std::int64_t, 6> kOld = {-2, -10, -1000, -1'000'000, -0x7fffffffLL, -0x7ffffff0LL};
    packet.timestamp_shift = random.pick(std::span<const std::int64_t>(kOld)) - 5000;
  });
}

void decoy_timestamp_zero(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random&) { packet.timestamp_zero = true; });
}

void decoy_wrong_ack(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    constexpr std::array<std::int64_t, 9> kShifts = {1,  2,       1000,       65536,      0x7fffffff,
                                                     -2, -70'000, -1'000'000, -0x7fffffff};
    packet.ack_shift = random.pick(std::span<const std::int64_t>(kShifts)) + random.between(-1, 1);
  });
}

void decoy_without_ack(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    constexpr std::array<std::uint8_t, 5> kFlags = {0, tcp::kPsh, tcp::kUrg, tcp::kFin,
                                                    tcp::kPsh | tcp::kUrg | tcp::kEce};
    packet.flags = random.pick(std::span<const std::uint8_t>(kFlags));
    if (random.percent(50)) packet.acknowledges = Acknowledges::zero;
  });
}

void decoy_syn(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    packet.flags |= tcp::kSyn;
    if (random.percent(40)) packet.flags = tcp::kSyn;
    if (random.percent(40)) packet.at -= 1;
    packet.handshake_options = random.percent(30);
  });
}

void decoy_rst(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    packet.flags = random.percent(60) ? tcp::kRst | tcp::kAck : tcp::kRst;
    if (random.percent(60)) packet.payload.clear();
    constexpr std::array<std::int64_t, 10> kShifts = {-1, 1, 2, 100, -100, 1000, 60'000, 70'000, -70'000, 1 << 20};
    switch (random.below(5)) {
      case 0: packet.dies = true; break;
      case 1: packet.wrong_checksum = true; break;
      case 2: packet.timestamp_shift = -100'000; [[fallthrough]];
      default: packet.at += random.pick(std::span<const std::int64_t>(kShifts)); break;
    }
  });
}

void decoy_md5(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    if (random.percent(70)) {
      packet.options = {19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    } else {
      packet.options = {29, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};  // TCP-AO
    }
  });
}

void decoy_data_offset(Draft& draft, std::string_view name) {
  add_decoy(draft, name, [](Packet& packet, Random& random) {
    packet.data_offset = static_cast<std::uint8_t>(random.percent(60) ? random.below(5) : 15);
    if (*packet.data_offset == 15 && packet.payload.size() > 30) packet.payload.resize(30);
  });
}

void decoy_ip_length(Draft& draft, std::string_view name) {
  add_decoy(draft, name,
            [](Packet& packet, Random& random) { packet.ip_length_shift = static_cast<int>(random.between(-30, 40)); });
}

constexpr Move kMoves[] = {
    {"decoy_checksum", 4, For::tcp, &decoy_checksum},
    {"decoy_ip_checksum", 2, For::tcp, &decoy_ip_checksum},
    {"decoy_dies", 4, For::tcp, &decoy_dies},
    {"decoy_old_timestamp", 4, For::tcp, &decoy_old_timestamp},
    {"decoy_timestamp_zero", 2, For::tcp, &decoy_timestamp_zero},
    {"decoy_wrong_ack", 4, For::tcp, &decoy_wrong_ack},
    {"decoy_without_ack", 3, For::tcp, &decoy_without_ack},
    {"decoy_syn", 3, For::tcp, &decoy_syn},
    {"decoy_rst", 5, For::tcp, &decoy_rst},
    {"decoy_md5", 2, For::tcp, &decoy_md5},
    {"decoy_data_offset", 2, For::tcp, &decoy_data_offset},
    {"decoy_ip_length", 2, For::tcp, &decoy_ip_length},
};

}  // namespace

std::span<const Move> decoy_moves() { return kMoves; }

}  // namespace penstock::evasion
