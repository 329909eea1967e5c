// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attacks below TCP and UDP: fragments, IP options and extension headers; also decoys of datagrams.

#include <algorithm>
#include <array>

#include "evasion/draft.h"

namespace penstock::evasion {

namespace {

using For = Move::For;

std::vector<Fragment> fragments_of(const Packet& packet, Random& random) {
  // The TCP options are not known yet, so this is the minimum length.
  const auto size = static_cast<std::uint32_t>((packet.protocol == 6 ? 20 : 8) + packet.payload.size());
  const std::int64_t most = random.percent(30) ? 3 : size / 8;
  const auto unit = static_cast<std::uint32_t>(8 * random.between(1, most));
  std::vector<Fragment> fragments;
  std::uint32_t begin = 0;
  for (; begin + unit < size; begin += unit) fragments.push_back({.begin = begin, .end = begin + unit, .more = true});
  fragments.push_back({.begin = begin, .end = Fragment::kToEnd, .more = false});
  return fragments;
}

/// Fragments the step's packet; returns its fragments.
std::vector<Fragment>* fragmented(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return nullptr;
  Packet& packet = draft.change(*position, name);
  if (packet.fragments.empty()) {
    packet.dont_fragment = false;
    packet.fragments = fragments_of(packet, draft.random);
  }
  return &packet.fragments;
}

void fragments(Draft& draft, std::string_view name) {
  std::vector<Fragment>* const all = fragmented(draft, name);
  if (all == nullptr) return;
  if (!draft.random.percent(60)) return;
  for (std::size_t i = all->size() - 1; i > 0; --i) std::swap((*all)[i], (*all)[draft.random.below(i + 1)]);
}

void fragment_again(Draft& draft, std::string_view name) {
  std::vector<Fragment>* const all = fragmented(draft, name);
  if (all == nullptr || all->size() > 200) return;
  const std::size_t which = draft.random.below(all->size());
  Fragment again = (*all)[which];
  again.decoy = draft.random.percent(60);
  const std::size_t at = which + 1 + draft.random.below(all->size() - which);
  all->insert(all->begin() + static_cast<std::ptrdiff_t>(at), again);
}

void fragment_decoy(Draft& draft, std::string_view name) {
  std::vector<Fragment>* const all = fragmented(draft, name);
  if (all == nullptr || all->size() > 200) return;
  const std::size_t which = draft.random.below(all->size());
  Fragment decoy = (*all)[which];
  decoy.decoy = true;
  decoy.spoiled_header = draft.random.percent(20);
  switch (draft.random.below(draft.script.v6 ? 2 : 3)) {
    case 0: decoy.dies = true; break;
    case 1: decoy.id_shift = draft.random.percent(50) ? 1 : draft.random.word(); break;
    default: decoy.wrong_checksum = true; break;
  }
  if (draft.random.percent(30)) decoy.more = !decoy.more;
  all->insert(all->begin() + static_cast<std::ptrdiff_t>(draft.random.below(which + 1)), decoy);
}

/// Overlapping fragments: a host discards what it had of the datagram, and accepts what arrives afterwards.
void fragment_overlap(Draft& draft, std::string_view name) {
  std::vector<Fragment>* const all = fragmented(draft, name);
  if (all == nullptr || all->size() > 200) return;
  Random& random = draft.random;
  const std::vector<Fragment> fresh = *all;
  const std::uint64_t count = 1 + random.below(2);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t which = random.below(all->size());
    Fragment over = (*all)[which];
    over.decoy = random.percent(70);
    switch (random.below(4)) {
      case 0:
        if (over.end != Fragment::kToEnd) over.end += 8;
        break;
      case 1: over.begin = over.begin >= 8 ? over.begin - 8 : 0; break;
      case 2:
        if (over.end - over.begin > 8) over.begin += 8;
        break;
      default: over.begin = 0; break;
    }
    all->insert(all->begin() + static_cast<std::ptrdiff_t>(random.below(all->size() + 1)), over);
  }
  // Then the whole datagram again, once or in part.
  if (random.percent(70)) {
    all->insert(all->end(),
                fresh.begin() + static_cast<std::ptrdiff_t>(random.percent(70) ? 0 : random.below(fresh.size())),
                fresh.end());
  }
}

/// Some fragments with decoys; then so many fragments of other datagrams that the host discards them; then all again.
void fragment_distance(Draft& draft, std::string_view name) {
  std::vector<Fragment>* const all = fragmented(draft, name);
  if (all == nullptr || all->size() > 60 || all->size() < 2) return;
  const std::vector<Fragment> fresh = *all;
  std::vector<Fragment> now;
  const std::size_t early = 1 + draft.random.below(fresh.size() - 1);
  for (std::size_t i = 0; i < early; ++i) {
    Fragment decoy = fresh[i];
    decoy.decoy = true;
    now.push_back(decoy);
  }
  const std::uint64_t others = draft.random.between(50, 80);
  for (std::uint64_t i = 0; i < others; ++i) {
    now.push_back(
        {.begin = 8, .end = 16, .more = true, .id_shift = static_cast<std::uint32_t>(1000 + i), .decoy = true});
  }
  now.insert(now.end(), fresh.begin(), fresh.end());
  *all = std::move(now);
}

/// Fragments any packet, such as a SYN or a decoy.
void fragment_any(Draft& draft, std::string_view) {
  const std::size_t position = draft.random.below(draft.script.steps.size());
  Step& step = draft.script.steps[position];
  if (step.kind != Step::Kind::packet || !step.packet.fragments.empty()) return;
  step.packet.fragments = fragments_of(step.packet, draft.random);
}

/// The host's reassembly of a datagram times out; then the whole datagram is sent again.
void fragment_timeout(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Packet packet = draft.script.steps[*position].packet;
  std::vector<Fragment> fresh = fragments_of(packet, draft.random);
  if (fresh.size() < 2) return;
  // A packet has one id, so the later one has the id of the earlier one.
  packet.fragments = fresh;
  packet.fragments.resize(1 + draft.random.below(fresh.size() - 1));
  for (Fragment& fragment : packet.fragments) fragment.decoy = true;
  for (Fragment& fragment : packet.fragments) fragment.id_shift = 7777;
  for (Fragment& fragment : fresh) fragment.id_shift = 7776;
  draft.insert(*position, packet, name);
  draft.insert(*position + 1, Step::Kind::host_waits, 31, name);
  draft.change(*position + 2, name).fragments = fresh;
}

/// A fragment of a kind that hosts reject, or accept only in part.
void fragment_odd(Draft& draft, std::string_view name) {
  std::vector<Fragment>* const all = fragmented(draft, name);
  if (all == nullptr || all->size() > 200) return;
  Random& random = draft.random;
  const std::vector<Fragment> fresh = *all;
  const std::size_t which = random.below(all->size());
  Fragment& one = (*all)[which];
  switch (random.below(5)) {
    case 0:  // without data
      all->insert(all->begin() + static_cast<std::ptrdiff_t>(which),
                  {.begin = one.begin, .end = one.begin, .more = random.percent(70)});
      break;
    case 1:  // ends within a unit of 8 bytes although more fragments follow
      if (one.end != Fragment::kToEnd) one.end += static_cast<std::uint32_t>(random.between(1, 7));
      break;
    case 2: one.tos = static_cast<std::uint8_t>(1 + random.below(3)); break;  // contradictory ECN marks
    case 3: one.dont_fragment = true; break;
    default:  // its end contradicts the others'
      one.more = false;
      break;
  }
  if (random.percent(40)) {  // with decoys, and then all fragments again
    for (Fragment& fragment : *all) fragment.decoy = true;
  }
  if (random.percent(60)) all->insert(all->end(), fresh.begin(), fresh.end());
}

/// IPv6 extension headers (RFC 8200) with a padding option each.
Bytes destination_options(std::size_t count, std::uint8_t next) {
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    bytes.insert(bytes.end(), {i + 1 < count ? std::uint8_t{60} : next, 0, 1, 4, 0, 0, 0, 0});
  }
  return bytes;
}

/// A segment with IP options because of which the host drops it.
void decoy_ip_options(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Random& random = draft.random;
  Packet packet = draft.script.steps[*position].packet;
  if (packet.protocol == 6) packet = draft.decoy_of(packet);
  if (draft.script.v6) {
    const std::uint8_t next = packet.protocol;
    const std::array<Bytes, 4> headers = {
        Bytes{next, 0, 0x5e, 4, 1, 2, 3, 4},                                               // unknown: discard
        Bytes{next, 0, 0xde, 4, 1, 2, 3, 4},                                               // … and report it
        Bytes{next, 2, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8},  // routing header of type 0
        Bytes{next, 0, 1, 9, 0, 0, 0, 0}};                                                 // longer than its header
    const std::size_t which = random.below(headers.size());
    packet.ip_options = headers[which];
    packet.first_extension = which == 2 ? 43 : 60;
  } else {
    const std::array<Bytes, 5> options = {Bytes{131, 7, 4, 10, 1, 1, 1, 0}, Bytes{137, 7, 4, 10, 1, 1, 1, 0},
                                          Bytes{7, 2, 0, 0}, Bytes{7, 39, 4, 0}, Bytes{68, 5, 3, 0}};
    packet.ip_options = random.pick(std::span<const Bytes>(options));
  }
  draft.insert(*position, packet, name);
}

void many_extensions(Draft& draft, std::string_view name) {
  if (!draft.script.v6) return;
  const auto position = draft.signature_step();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  packet.ip_options = destination_options(1 + draft.random.below(40), packet.protocol);
  packet.first_extension = 60;
}

void ip_options(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  Random& random = draft.random;
  if (draft.script.v6) {
    // Next header, length, options: PadN, and an unknown option that is skipped.
    const std::uint8_t next = packet.protocol;
    struct Header {
      std::uint8_t kind;
      Bytes bytes;
    };
    const std::array<Header, 4> headers = {
        Header{60, {next, 0, 1, 4, 0, 0, 0, 0}}, Header{0, {next, 0, 1, 4, 0, 0, 0, 0}},
        Header{60, {next, 0, 0x1e, 4, 1, 2, 3, 4}}, Header{60, {60, 0, 1, 4, 0, 0, 0, 0, next, 0, 1, 4, 0, 0, 0, 0}}};
    const Header& header = random.pick(std::span<const Header>(headers));
    packet.ip_options = header.bytes;
    packet.first_extension = header.kind;
    return;
  }
  const std::array<Bytes, 5> options = {Bytes{1, 1, 1, 1}, Bytes{7, 7, 4, 0, 0, 0, 0, 0}, Bytes{148, 4, 0, 0},
                                        Bytes{0, 0, 0, 0}, Bytes{0x5e, 4, 1, 2}};
  packet.ip_options = random.pick(std::span<const Bytes>(options));
}

/// Bytes after the IP packet that do not belong to it.
void trailer(Draft& draft, std::string_view name) {
  const auto position = draft.signature_step();
  if (!position) return;
  draft.change(*position, name).trailer = Bytes(static_cast<std::size_t>(draft.random.between(1, 40)), '#');
}

// ---- UDP

void udp_decoy(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  Packet decoy = draft.script.steps[*position].packet;
  std::fill(decoy.payload.begin(), decoy.payload.end(), std::uint8_t{'#'});
  switch (draft.random.below(3)) {
    case 0: decoy.dies = true; break;
    case 1: decoy.wrong_checksum = true; break;
    default: break;
  }
  draft.insert(*position, decoy, name);
}

void udp_length(Draft& draft, std::string_view name) {
  const auto position = draft.any_genuine();
  if (!position) return;
  Packet& packet = draft.change(*position, name);
  if (!packet.udp_length &&
      draft.random.percent(70)) {  // shorter than the IP payload, whose rest does not belong to the datagram
    packet.udp_length = static_cast<std::uint16_t>(8 + packet.payload.size());
    packet.payload.insert(packet.payload.end(), static_cast<std::size_t>(draft.random.between(1, 30)), '#');
  } else if (draft.script.v6) {
    packet.udp_length = 0;
  }
}

void udp_without_checksum(Draft& draft, std::string_view name) {
  if (draft.script.v6) return;
  const auto position = draft.any_genuine();
  if (position) draft.change(*position, name).no_checksum = true;
}

constexpr Move kMoves[] = {
    {"fragments", 6, For::both, &fragments},
    {"fragment_again", 4, For::both, &fragment_again},
    {"fragment_decoy", 4, For::both, &fragment_decoy},
    {"fragment_overlap", 4, For::both, &fragment_overlap},
    {"fragment_distance", 1, For::both, &fragment_distance},
    {"fragment_any", 3, For::both, &fragment_any},
    {"fragment_timeout", 0, For::both, &fragment_timeout},
    {"fragment_odd", 4, For::both, &fragment_odd},
    {"ip_options", 3, For::both, &ip_options},
    {"decoy_ip_options", 2, For::tcp, &decoy_ip_options},
    {"many_extensions", 1, For::both, &many_extensions},
    {"trailer", 2, For::both, &trailer},
    {"udp_decoy", 3, For::udp, &udp_decoy},
    {"udp_length", 2, For::udp, &udp_length},
    {"udp_without_checksum", 2, For::udp, &udp_without_checksum},
};

}  // namespace

std::span<const Move> ip_moves() { return kMoves; }

}  // namespace penstock::evasion
