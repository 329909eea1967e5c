// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For each fragment: find its datagram, check whether it must be refused, and store it within the memory limits. If it
// completes the datagram, build all datagrams that may result.

#include "stack/ip_reassembly.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "packet/checksum.h"
#include "packet/flow_hash.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "stack/fragment_memory.h"
#include "stack/fragment_tiling.h"

namespace penstock::stack {

namespace {

constexpr std::uint32_t kNone = FragmentMemory::kNone;
constexpr std::size_t kMostData = 0xffff;                   // of a datagram, without its header
constexpr std::uint32_t kMostFragments = 8192;              // per datagram: one per 8-byte unit
constexpr std::uint32_t kMostStored = 4 * (kMostData + 1);  // bytes of fragments per datagram, including overlaps

/// Whether the later of two fragments that both contain a byte determines its value.
bool later_wins(OverlapPolicy policy, const FragmentRecord& earlier, const FragmentRecord& later) noexcept {
  switch (policy) {
    case OverlapPolicy::first:
    case OverlapPolicy::linux_host: return false;
    case OverlapPolicy::last: return true;
    case OverlapPolicy::bsd: return later.begin < earlier.begin;
    case OverlapPolicy::bsd_right: return later.begin >= earlier.begin;
    case OverlapPolicy::windows: return later.begin < earlier.begin && later.end > earlier.end;
    case OverlapPolicy::solaris: return later.begin < earlier.begin && later.end >= earlier.end;
  }
  return false;
}

/// The ECN codepoint (RFC 3168) of a fragment's IP header as a bit; 0 if the header has fewer than two bytes.
std::uint8_t ecn_bit(Bytes header) noexcept {
  if (header.size() < 2) return 0;
  return static_cast<std::uint8_t>(1U << ((header[0] >> 4 == 4 ? header[1] : header[1] >> 4) & 3));
}

/// RFC 3168 §5.3: the datagram is marked CE if any fragment is, provided that all fragments are ECN-capable.
bool is_congested(std::uint8_t ecn) noexcept {
  constexpr unsigned kNotCapable = 0, kExperienced = 3;
  return (ecn >> kExperienced & 1) != 0 && (ecn >> kNotCapable & 1) == 0;
}

}  // namespace

struct IpReassembly::Parts {
  Parts(const TrackerOptions& chosen, TrackerCounters& told) : options(chosen), counters(told), memory(chosen, told) {
    order.reserve(kMostFragments);
    owners.reserve(kMostData + 1);
    pieces.reserve(FragmentTilings::kMostPieces);
    piece_fragments.reserve(FragmentTilings::kMostPieces);
  }

  struct Chosen {
    std::uint32_t fragment;
    FragmentRecord record;
  };
  /// What the fragment completed.
  enum class Completed : std::uint8_t { nothing, by_policy, tilings };

  // ---- overlapping fragments

  /// Whether the data overlaps stored data with different content.
  [[nodiscard]] bool contradicts(const Datagram& datagram, std::uint32_t begin, Bytes data) const noexcept {
    bool differs = false;
    const auto end = begin + static_cast<std::uint32_t>(data.size());
    memory.for_each(datagram, [&](std::uint32_t fragment, const FragmentRecord& record) {
      if (record.begin >= end || record.end <= begin) return true;
      memory.read_data(fragment, record, [&](std::size_t position, Bytes bytes) {
        const std::size_t from = std::max<std::size_t>(position, begin);
        const std::size_t to = std::min<std::size_t>(position + bytes.size(), end);
        if (from < to && std::memcmp(bytes.data() + (from - position), data.data() + (from - begin), to - from) != 0) {
          differs = true;
        }
      });
      return !differs;
    });
    return differs;
  }
  [[nodiscard]] bool has_same(const Datagram& datagram, const FragmentRecord& as, Bytes data) const noexcept {
    bool found = false;
    memory.for_each(datagram, [&](std::uint32_t fragment, const FragmentRecord& record) {
      if (record.begin != as.begin || record.end != as.end || record.more != as.more) return true;
      found = true;
      memory.read_data(fragment, record, [&](std::size_t position, Bytes bytes) {
        if (std::memcmp(bytes.data(), data.data() + (position - as.begin), bytes.size()) != 0) found = false;
      });
      return !found;
    });
    return found;
  }

  enum class LinuxSays : std::uint8_t { keep, duplicate, overlap };
  /// As inet_frag_queue_insert in Linux: fragments that were appended one after the other form a run.
  [[nodiscard]] LinuxSays linux_says(const Datagram& datagram, std::uint32_t begin, std::uint32_t end) const noexcept {
    LinuxSays says = LinuxSays::keep;
    std::uint32_t run_begin = 0, run_end = 0, tail_end = 0;
    const auto look_at_run = [&] {
      if (run_end <= begin || run_begin >= end || says == LinuxSays::duplicate) return;
      says = begin >= run_begin && end <= run_end ? LinuxSays::duplicate : LinuxSays::overlap;
    };
    memory.for_each(datagram, [&](std::uint32_t, const FragmentRecord& record) {
      const bool appended = record.begin == run_end && run_end == tail_end && run_end > run_begin;
      if (!appended) {
        look_at_run();
        run_begin = record.begin;
      }
      run_end = record.end;
      tail_end = std::max(tail_end, record.end);
      return true;
    });
    look_at_run();
    return says;
  }

  // ---- building a complete datagram

  /// Selects the fragments of the datagram by the policy and stores them in `order`. Fragments after the first one
  /// without MF are left out, since no host uses them. Returns the length of the data.
  std::uint32_t choose_by_policy(const Datagram& datagram) noexcept {
    std::uint32_t last_begin = kNone, length = 0;
    memory.for_each(datagram, [&](std::uint32_t, const FragmentRecord& record) {
      if (!record.more) last_begin = std::min(last_begin, record.begin);
      return true;
    });
    order.clear();
    memory.for_each(datagram, [&](std::uint32_t fragment, const FragmentRecord& record) {
      if (record.begin <= last_begin) {
        order.push_back({fragment, record});
        length = std::max(length, record.end);
      }
      return true;
    });
    return length;
  }

  /// Copies the data of the fragments in `order` to `out`. Returns the index in `order` of the fragment whose header
  /// becomes that of the datagram.
  std::size_t put_together(bool overlapped, std::uint8_t* out, std::uint32_t length) noexcept {
    std::size_t first = 0;
    if (!overlapped) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        if (order[i].record.begin == 0) first = i;
        memory.read_data(order[i].fragment, order[i].record, [&](std::size_t position, Bytes bytes) {
          std::memcpy(out + position, bytes.data(), bytes.size());
        });
      }
      return first;
    }
    constexpr std::uint16_t kNobody = 0xffff;
    static_assert(kMostFragments < kNobody);
    owners.assign(length, kNobody);
    for (std::size_t i = 0; i < order.size(); ++i) {
      memory.read_data(order[i].fragment, order[i].record, [&](std::size_t position, Bytes bytes) {
        for (const std::uint8_t byte : bytes) {
          std::uint16_t& owner = owners[position];
          if (owner == kNobody || later_wins(options.fragment_policy, order[owner].record, order[i].record)) {
            owner = static_cast<std::uint16_t>(i);
            out[position] = byte;
          }
          ++position;
        }
      });
    }
    return owners[0];
  }

  /// Writes the datagram in `order`, header and data, to `room`. Empty if it would exceed the maximum size.
  Bytes assemble(const Datagram& datagram, bool overlapped, std::uint32_t length,
                 std::span<std::uint8_t> room) noexcept {
    const bool ipv4 = datagram.key.ip_version == 4;
    // The header is that of the fragment that provides the first byte, and headers may differ in length. So write the
    // data to the end of the buffer first.
    std::uint8_t* const data = room.data() + room.size() - length;
    const std::size_t first = put_together(overlapped, data, length);
    const FragmentRecord& record = order[first].record;
    const std::size_t header_bytes = record.header_bytes;
    if ((ipv4 ? header_bytes : header_bytes - sizeof(Ipv6Header)) + length > kMostData) return {};
    std::uint8_t* const header = data - header_bytes;
    memory.read(order[first].fragment, record, [&](std::size_t position, Bytes bytes) {
      if (position >= header_bytes) return;
      std::memcpy(header + position, bytes.data(), std::min(bytes.size(), header_bytes - position));
    });
    const Bytes whole{header, header_bytes + length};
    if (ipv4) {
      auto& ip = *reinterpret_cast<Ipv4Header*>(header);
      // Updated, not recomputed, so that a wrong checksum stays wrong.
      std::uint16_t checksum = ip.checksum.value();
      checksum = checksum_update(checksum, ip.total_length.value(), static_cast<std::uint16_t>(whole.size()));
      if (is_congested(datagram.ecn)) {
        checksum = checksum_update(checksum, ip.tos, static_cast<std::uint16_t>(ip.tos | 3));
        ip.tos |= 3;
      }
      ip.checksum.set(checksum_update(checksum, ip.fragment.value(), 0));
      ip.total_length.set(static_cast<std::uint16_t>(whole.size()));
      ip.fragment.set(0);
    } else {
      header[record.next_header_at] = record.next_header;
      if (is_congested(datagram.ecn)) header[1] |= 3 << 4;
      reinterpret_cast<Ipv6Header*>(header)->payload_length.set(
          static_cast<std::uint16_t>(whole.size() - sizeof(Ipv6Header)));
    }
    return whole;
  }

  // ---- building every possible datagram

  /// Finds the tilings that contain the fragment. False if there were too many fragments or ways to find them all.
  bool find_tilings(const Datagram& datagram, std::uint32_t through) noexcept {
    completed = Completed::tilings;
    before = after = 0;
    tried = given = 0;
    given_bytes = 0;
    most_given = kMostInTurn;
    covering = false;
    pieces.clear();
    piece_fragments.clear();
    std::size_t place = 0;
    memory.for_each(datagram, [&](std::uint32_t fragment, const FragmentRecord& record) {
      if (pieces.size() == FragmentTilings::kMostPieces) return false;
      if (fragment == through) place = pieces.size();
      pieces.push_back({.begin = record.begin, .end = record.end, .sum = record.sum, .last = !record.more});
      piece_fragments.push_back(fragment);
      return true;
    });
    through_sum = pieces[place].sum;
    if (datagram.fragments > FragmentTilings::kMostPieces) {
      ++counters.contested_fragments_given_up;
      completed = Completed::nothing;
      return false;
    }
    if (tilings.find(pieces, place)) return true;
    give_up();
    return false;
  }

  /// There are more tilings than are tried in turn. After those, continue with a diverse sample.
  void give_up() noexcept {
    if (covering) return;
    ++counters.contested_fragments_given_up;
    covering = true;
    tilings.cover(pieces);
  }

  /// Limit on the datagrams per fragment from tilings tried in turn.
  static constexpr unsigned kMostInTurn = 8;
  static_assert(kMostInTurn + FragmentTilings::kMostCovering <= kMostDatagrams);
  /// Limit on their total bytes, to bound the work that one small fragment can cause.
  static constexpr std::size_t kMostGiven = kMostInTurn * kMostBytes;
  /// Limit on the pairs of ways tried per fragment. A UDP datagram that hosts truncate counts as kTriedByCuts pairs,
  /// because the checksums of its pieces must be summed up.
  static constexpr unsigned kMostTried = 1U << 14;
  static constexpr unsigned kTriedByCuts = 64;

  /// Stores the next tiling in `order`. Returns the length of its data; 0 if there are no more.
  std::uint32_t next_tiling(const Datagram& datagram) noexcept {
    if (given_bytes > kMostGiven) return 0;
    std::uint32_t length = next_in_turn(datagram);
    if (length == 0 && covering) length = next_covering(datagram);
    given_bytes += length;
    return length;
  }

  std::uint32_t next_in_turn(const Datagram& datagram) noexcept {
    for (; before < tilings.before(); ++before, after = 0) {
      const FirstFragment first = first_fragment(datagram, piece_fragments[tilings.front(before)]);
      while (after < tilings.after()) {
        if (tried == kMostTried) {
          give_up();
          before = tilings.before();
          return 0;
        }
        ++tried;
        const std::size_t one = after++;
        const std::uint32_t length = tilings.length(one);
        const std::uint64_t sum = tilings.sum(before, one) + through_sum;
        if (first.udp_length > length) continue;
        if (first.covers(length) && !checksum_is_right(datagram, first, sum, length)) continue;
        take_pieces(tilings.tiling(before, one));
        if (!first.covers(length)) {
          tried = std::min(kMostTried, tried + kTriedByCuts);
          if (!part_is_right(datagram, first, length)) continue;
        }
        if (given == most_given) {
          if (most_given == kMostInTurn) give_up();
          before = tilings.before();
          return 0;
        }
        note_given();
        return length;
      }
    }
    return 0;
  }

  std::uint32_t next_covering(const Datagram& datagram) noexcept {
    for (;;) {
      const std::span<const std::uint16_t> tiling = tilings.next_covering(pieces);
      if (tiling.empty()) return 0;
      take_pieces(tiling);
      const std::uint32_t length = order.back().record.end;
      const FirstFragment first = first_fragment(datagram, order.front().fragment);
      if (first.udp_length > length || !part_is_right(datagram, first, length)) continue;
      if (note_given()) return length;
    }
  }

  void take_pieces(std::span<const std::uint16_t> tiling) noexcept {
    order.clear();
    for (const std::uint16_t piece : tiling) {
      order.push_back({piece_fragments[piece], memory.record(piece_fragments[piece])});
    }
  }

  /// False if the datagram in `order` was returned before.
  bool note_given() noexcept {
    std::uint64_t hash = 0;
    for (const Chosen& chosen : order) hash = mix64(hash + chosen.fragment + 1);
    const auto end = given_hashes.begin() + given;
    if (std::find(given_hashes.begin(), end, hash) != end) return false;
    given_hashes[given++] = hash;
    return true;
  }

  /// Determines how the transport checksum of a datagram is computed.
  struct FirstFragment {
    std::uint8_t protocol = 0;     // transport protocol whose checksum is verified; 0: none
    std::uint32_t udp_length = 0;  // bytes covered; 0: all data (RFC 2675 §4)
    [[nodiscard]] bool covers(std::uint32_t length) const noexcept { return udp_length == 0 || udp_length == length; }
  };
  [[nodiscard]] FirstFragment first_fragment(const Datagram& datagram, std::uint32_t fragment) const noexcept {
    if (!options.verify_checksums) return {};
    const bool ipv4 = datagram.key.ip_version == 4;
    const FragmentRecord& record = memory.record(fragment);
    if (!ipv4 && record.header_bytes > sizeof(Ipv6Header)) return {};  // a routing header may change the destination
    const std::uint8_t protocol = ipv4 ? datagram.key.protocol : record.next_header;
    if (protocol == ip_protocol::kUdp) {
      UdpHeader udp{};
      memory.read_data(fragment, record, [&](std::size_t position, Bytes bytes) {
        if (position >= sizeof(udp)) return;
        std::memcpy(reinterpret_cast<std::uint8_t*>(&udp) + position, bytes.data(),
                    std::min(bytes.size(), sizeof(udp) - position));
      });
      if (udp.checksum.value() == 0) return {};
      const std::uint32_t length = udp.length.value();
      if (length < sizeof(udp) && (ipv4 || length != 0)) return {protocol, kNone};  // invalid: hosts discard it
      return {protocol, length};
    }
    const bool has_checksum =
        protocol == ip_protocol::kTcp || protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmpv6;
    return {has_checksum ? protocol : std::uint8_t{0}};
  }

  /// Checksum of the first `length` bytes of the datagram in `order`.
  [[nodiscard]] std::uint64_t sum_of_first(std::uint32_t length) const noexcept {
    std::uint64_t sum = 0;
    for (const Chosen& chosen : order) {
      if (chosen.record.begin >= length) break;
      if (chosen.record.end <= length) {
        sum += chosen.record.sum;
        continue;
      }
      memory.read_data(chosen.fragment, chosen.record, [&](std::size_t position, Bytes bytes) {
        for (std::size_t i = 0; i < bytes.size() && position + i < length; ++i) {
          sum += static_cast<std::uint64_t>(bytes[i]) << ((position + i) % 2 == 0 ? 8 : 0);
        }
      });
    }
    return sum;
  }

  /// Verifies the checksum of the datagram in `order` over the bytes that it covers. Hosts cut off data after the UDP
  /// length.
  [[nodiscard]] bool part_is_right(const Datagram& datagram, const FirstFragment& first,
                                   std::uint32_t length) const noexcept {
    const std::uint32_t part = first.udp_length == 0 ? length : first.udp_length;
    return checksum_is_right(datagram, first, sum_of_first(part), part);
  }

  /// Whether the transport checksum is correct for data with this sum and length.
  [[nodiscard]] static bool checksum_is_right(const Datagram& datagram, const FirstFragment& first, std::uint64_t sum,
                                              std::uint32_t length) noexcept {
    if (first.protocol == 0) return true;
    if (first.protocol != ip_protocol::kIcmp) {
      for (const std::uint64_t word : datagram.key.addresses) {
        for (unsigned shift = 0; shift < 64; shift += 16) sum += static_cast<std::uint16_t>(word >> shift);
      }
      sum += first.protocol + length;
    }
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
  }

  const TrackerOptions options;
  TrackerCounters& counters;
  FragmentMemory memory;
  FragmentTilings tilings;

  // Iteration over the datagrams that the last fragment completed.
  Completed completed = Completed::nothing;
  std::uint32_t index = kNone;  // of its datagram
  std::size_t before = 0, after = 0;
  unsigned given = 0, most_given = kMostInTurn, tried = 0;
  std::size_t given_bytes = 0;
  std::array<std::uint64_t, kMostDatagrams> given_hashes{};
  bool covering = false;
  std::uint32_t through_sum = 0;

  // Scratch.
  std::vector<Chosen> order;
  std::vector<std::uint16_t> owners;  // index in `order`, per byte
  std::vector<FragmentPiece> pieces;
  std::vector<std::uint32_t> piece_fragments;
};

IpReassembly::IpReassembly(const TrackerOptions& options, TrackerCounters& counters)
    : parts_(std::make_unique<Parts>(options, counters)) {}
IpReassembly::~IpReassembly() = default;

void IpReassembly::add(const IpFragment& fragment, DecodedPacket& packet) noexcept {
  Parts& p = *parts_;
  p.completed = Parts::Completed::nothing;
  p.index = kNone;
  const TrackerOptions& options = p.options;
  const bool ipv4 = packet.ip_version == 4;
  const auto note = [&](DecodeEvent for_ipv4, DecodeEvent for_ipv6) {
    packet.events.set(ipv4 ? for_ipv4.index : for_ipv6.index);
  };
  ++p.counters.fragments;
  Bytes data = fragment.data;
  if (fragment.offset + data.size() + (ipv4 ? sizeof(Ipv4Header) : 0) > kMostData) {
    note(decode_event("ipv4.frag_pkt_too_large"), decode_event("ipv6.frag_pkt_too_large"));
    ++p.counters.fragments_dropped;
    return;
  }
  // All fragments but the last must end on a unit boundary: Linux truncates them.
  const bool as_linux = options.fragment_policy == OverlapPolicy::linux_host;
  if (as_linux && fragment.more) data = data.first(data.size() / 8 * 8);
  if (data.empty()) {
    ++p.counters.fragments_dropped;
    return;
  }
  const auto end = fragment.offset + static_cast<std::uint32_t>(data.size());

  const std::uint64_t now_ns = packet.timestamp_ns;
  const DatagramKey key = datagram_key(fragment.id, packet);
  std::uint32_t index = p.memory.find(key);
  if (index != kNone && p.memory.timed_out(p.memory[index], now_ns)) {
    p.memory.time_out(index);
    index = kNone;
  }
  if (index != kNone && p.memory[index].list == FragmentMemory::kRefused) {
    packet.refused = Refusal::fragment;
    ++p.counters.fragments_dropped;
    return;
  }
  const auto no_room = [&] {
    ++p.counters.fragments_dropped;
    ++p.counters.fragment_memory_refused;
    if (options.refuse_when_full) packet.refused = Refusal::fragment_memory;
  };
  if (index == kNone) {
    index = p.memory.make(key, now_ns);
    if (index == kNone) return no_room();
  }
  Datagram& datagram = p.memory[index];
  datagram.last_ns = now_ns;
  p.memory.move_to(index, datagram.done ? FragmentMemory::kDone : FragmentMemory::kWaiting);

  FragmentRecord record{.next = kNone,
                        .begin = fragment.offset,
                        .end = end,
                        .sum = checksum_add(data.data(), static_cast<std::uint32_t>(data.size())),
                        .header_bytes = 0,
                        .next_header_at = static_cast<std::uint32_t>(fragment.next_header_at),
                        .next_header = fragment.next_header,
                        .more = fragment.more};
  const bool may_overlap = datagram.done || p.memory.may_overlap(datagram, record.begin, record.end);
  const bool ends_elsewhere =
      datagram.last_end != kNone && (record.more ? end > datagram.last_end : end != datagram.last_end);
  const bool ends_before = !record.more && end < datagram.end;
  if (!datagram.done &&
      (ends_elsewhere || ends_before || (may_overlap && p.contradicts(datagram, record.begin, data)))) {
    ++p.counters.contested_fragments;
    // Inline, different data must not replace data that has passed while the receiver still waits for the rest.
    if (options.inline_streams) {
      packet.refused = Refusal::changed_bytes;
      ++p.counters.fragments_dropped;
      note(decode_event("ipv4.frag_overlap"), decode_event("ipv6.frag_overlap"));
      return;
    }
    datagram.contested = true;
  }
  const bool is_kept = !(options.every_version && may_overlap && p.has_same(datagram, record, data));
  if (as_linux && !options.every_version && may_overlap) {
    const Parts::LinuxSays says = p.linux_says(datagram, record.begin, record.end);
    if (says != Parts::LinuxSays::keep) {
      note(decode_event("ipv4.frag_overlap"), decode_event("ipv6.frag_overlap"));
      p.counters.fragments_dropped += says == Parts::LinuxSays::overlap ? datagram.fragments + 1 : 1;
      if (says == Parts::LinuxSays::overlap) p.memory.remove(index);
      return;
    }
  }

  const Bytes header = fragment.offset == 0 ? fragment.header : Bytes{};
  record.header_bytes = static_cast<std::uint32_t>(header.size());
  const std::size_t bytes = header.size() + data.size();
  const auto is_too_much = [&] {
    return datagram.fragments == kMostFragments || datagram.stored + bytes > kMostStored;
  };
  // For datagrams that were reassembled before or have overlaps, keep the newest fragments.
  while (is_kept && options.every_version && !options.inline_streams && (datagram.done || datagram.overlapped) &&
         is_too_much()) {
    p.memory.drop_oldest_fragment(datagram);
    ++p.counters.contested_fragments_given_up;
  }
  const std::uint32_t blocks = (is_kept ? FragmentMemory::blocks_for(bytes) : 0) +
                               p.memory.coverage_blocks_for(datagram, record.begin, record.end);
  if ((is_kept && is_too_much()) || !p.memory.make_room(blocks, index, now_ns)) {
    note(decode_event("ipv4.frag_ignored"), decode_event("ipv6.frag_ignored"));
    if (datagram.fragments == 0) p.memory.remove(index);
    return no_room();
  }
  const std::uint32_t stored = is_kept ? p.memory.store(datagram, record, header, data) : datagram.first;
  if (p.memory.mark_seen(datagram, record.begin, record.end, record.more)) {
    note(decode_event("ipv4.frag_overlap"), decode_event("ipv6.frag_overlap"));
  }
  if (is_kept) datagram.only_again = false;
  if (is_kept && !datagram.done) datagram.ecn |= ecn_bit(fragment.header);

  const bool is_complete = FragmentMemory::complete(datagram);
  p.index = index;
  // Inline, refuse a fragment if not all versions of its datagram can be inspected.
  const auto find_tilings = [&] {
    if (!p.find_tilings(datagram, stored) && options.inline_streams) packet.refused = Refusal::fragment;
  };
  if (!datagram.done) {
    // Under most policies a host builds one datagram from contradicting fragments, and Linux builds none. But some of
    // the fragments may not have reached the host, so every combination is possible.
    if (options.every_version && datagram.contested && as_linux) {
      if (is_complete || is_kept) find_tilings();
    } else if (is_complete) {
      p.completed = Parts::Completed::by_policy;
    }
    return;
  }
  // After the first datagram: those with the new fragment, or the same one again once it was retransmitted completely.
  if (is_kept) {
    find_tilings();
  } else if (is_complete && datagram.only_again) {
    find_tilings();
    p.most_given = 1;
  }
  if (is_complete) {
    p.memory.forget_seen(datagram);
    datagram.only_again = true;
  }
}

Bytes IpReassembly::next(DecodedPacket& packet, std::span<std::uint8_t> room) noexcept {
  Parts& p = *parts_;
  if (p.completed == Parts::Completed::nothing) return {};
  Datagram& datagram = p.memory[p.index];
  if (room.empty()) {
    ++p.counters.fragment_memory_refused;
    if (p.options.refuse_when_full) packet.refused = Refusal::fragment_memory;
    p.completed = Parts::Completed::nothing;
    return {};
  }
  const bool by_policy = p.completed == Parts::Completed::by_policy;
  const std::uint32_t length = by_policy ? p.choose_by_policy(datagram) : p.next_tiling(datagram);
  const Bytes whole = length == 0 ? Bytes{} : p.assemble(datagram, by_policy && datagram.overlapped, length, room);
  if (by_policy || whole.empty()) p.completed = Parts::Completed::nothing;
  if (!whole.empty()) ++p.counters.reassembled;
  if (by_policy && (whole.empty() || !p.options.every_version)) {
    if (whole.empty()) p.counters.fragments_dropped += datagram.fragments;
    p.memory.remove(p.index);
  } else if (!datagram.done && !whole.empty()) {
    datagram.done = true;
    datagram.only_again = true;
    p.memory.forget_seen(datagram);
    p.memory.move_to(p.index, FragmentMemory::kDone);
  }
  return whole;
}

void IpReassembly::refuse(std::uint32_t id, const DecodedPacket& packet) noexcept {
  Parts& p = *parts_;
  const DatagramKey key = datagram_key(id, packet);
  std::uint32_t index = p.memory.find(key);
  if (index == kNone) index = p.memory.make(key, packet.timestamp_ns);
  if (index == kNone) return;
  p.memory.refuse(index);
  p.memory[index].last_ns = packet.timestamp_ns;
}

void IpReassembly::expire(std::uint64_t now_ns) noexcept { parts_->memory.expire(now_ns); }

std::size_t IpReassembly::datagrams() const noexcept { return parts_->memory.waiting(); }

std::size_t IpReassembly::memory_bytes() const noexcept {
  const Parts& p = *parts_;
  return p.memory.bytes() + p.order.capacity() * sizeof(Parts::Chosen) + p.owners.capacity() * sizeof(std::uint16_t) +
         p.pieces.capacity() * sizeof(FragmentPiece) + p.piece_fragments.capacity() * sizeof(std::uint32_t);
}

}  // namespace penstock::stack
