// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as packets that come one after the other, through a small table. Each lies in memory of just its size, so
// that a byte too far is seen. The table never has more connections than it may; its counters add up, and its
// connections are found by either tuple. Translated packets have the tuple that they should, keep correct checksums
// correct, and become what they were when they are translated back.
//
// Input: options (a byte); then for each packet a byte of what is done with it and how much later it comes, its length
// (two bytes, big-endian), and its bytes, which are an IP packet. A length of 0xffff repeats the last packet with its
// addresses and ports exchanged, one of 0xfffe is an ICMP error about the last packet. The four high bits of the
// options choose how connections are translated, if at all.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/testing/fuzz_check.h"
#include "conntrack/nat.h"
#include "conntrack/table.h"
#include "conntrack/testing/packets.h"
#include "packet/checksum.h"
#include "packet/parse_core.h"

using namespace penstock;
using namespace penstock::conntrack;

namespace {

constexpr std::uint32_t kConnections = 8;

void require(bool holds) { testing::check(holds); }

std::uint64_t packets_of(const Counters& counters) {
  std::uint64_t packets = counters.found + counters.begun + counters.related + counters.untracked;
  for (const std::uint64_t invalid : counters.invalid) packets += invalid;
  return packets;
}

void check(Table& table) {
  std::uint32_t alive = 0, steps = 0;
  for (std::uint32_t from = 0; from != 0 || steps == 0; ++steps) {
    from = table.for_each(from, 3, [&](const Connection& connection) {
      ++alive;
      require(connection.confirmed());
      require(connection.original.ip_version == 4 || connection.original.ip_version == 6);
      const bool inverse = are_inverse(connection.original, connection.reply);
      require(inverse == are_inverse(connection.reply, connection.original));
      require(inverse || connection.translated());
      if (inverse) require(hash_of(connection.original, 1) == hash_of(connection.reply, 1));
      require(table.look_up(connection.original).connection == &connection);
      require(table.look_up(connection.reply).connection == &connection);
      require(table.remaining_ns(connection) <= std::uint64_t{432'000} * 1'000'000'000);
    });
    require(steps <= kConnections);
  }
  require(alive <= table.counters().connections);
  require(table.counters().connections <= kConnections && table.counters().most_connections <= kConnections);
}

/// The packet that answers `packet`, more or less.
std::vector<std::uint8_t> answer_to(std::vector<std::uint8_t> packet) {
  const bool v6 = !packet.empty() && packet[0] >> 4 == 6;
  const std::size_t addresses = v6 ? 8 : 12, size = v6 ? 16 : 4, ports = addresses + 2 * size;
  if (packet.size() < ports + 4) return packet;
  const auto begin = packet.begin();
  std::swap_ranges(begin + static_cast<std::ptrdiff_t>(addresses),
                   begin + static_cast<std::ptrdiff_t>(addresses + size),
                   begin + static_cast<std::ptrdiff_t>(addresses + size));
  std::swap_ranges(begin + static_cast<std::ptrdiff_t>(ports), begin + static_cast<std::ptrdiff_t>(ports + 2),
                   begin + static_cast<std::ptrdiff_t>(ports + 2));
  return packet;
}

/// From a router to the packet's sender, with correct checksums of its own.
std::vector<std::uint8_t> error_about(std::vector<std::uint8_t> packet, bool briefly) {
  ParsedPacket parsed(packet);
  Tuple addresses;
  if (!parsed.descriptor.layout.has(PacketLayout::kNetworkHeader)) return packet;
  read_addresses(parsed.view(), addresses);
  const bool v6 = addresses.ip_version == 6;
  const std::string sender =
      v6 ? to_string(addresses.source) : to_string(Ipv4Address{static_cast<std::uint32_t>(addresses.source.low)});
  if (briefly) packet.resize(std::min(packet.size(), parsed.descriptor.layout.transport_offset + std::size_t{8}));
  return icmp_packet({v6 ? "2001:db8::9" : "192.0.2.9", sender}, v6 ? 1 : 3, 0, 0, packet);
}

/// A few addresses and ports, so that there are clashes.
NatRange range_of(std::uint32_t choice, const Tuple& tuple) {
  NatRange range;
  const bool own = (choice & 1) != 0;  // addresses that packets have, too
  range.first_address = own ? tuple.destination : Ipv6Address{0, tuple.ip_version == 4 ? 0x0a010001U : 1U};
  range.last_address = range.first_address;
  if ((choice & 2) != 0) range.last_address.low |= 3;
  range.first_port = 1;
  range.last_port = static_cast<std::uint16_t>(1 + (choice >> 2 & 3));
  constexpr std::array<std::uint8_t, 8> kFlags{
      0,
      NatRange::kAddresses,
      NatRange::kAddresses,
      NatRange::kAddresses | NatRange::kPorts,
      NatRange::kAddresses | NatRange::kPorts | NatRange::kFullyRandom,
      NatRange::kAddresses | NatRange::kPersistent | NatRange::kRandom,
      NatRange::kPorts,
      NatRange::kAddresses | NatRange::kNetmap,
  };
  range.flags = kFlags[choice >> 4 & 7];
  return range;
}

/// Whether only zeros of one's complement differ: 0xffff before, 0 now.
bool is_same(const std::vector<std::uint8_t>& before, const std::vector<std::uint8_t>& now) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] == now[i]) continue;
    if (i + 1 == before.size() || before[i] != 0xff || before[i + 1] != 0xff || now[i] != 0 || now[i + 1] != 0) {
      return false;
    }
    ++i;
  }
  return before.size() == now.size();
}

bool is_header_right(const std::uint8_t* ip, std::size_t size) {
  if (size < sizeof(Ipv4Header) || ip[0] >> 4 != 4) return true;
  const auto& header = *reinterpret_cast<const Ipv4Header*>(ip);
  return header.header_length() <= size && checksum(ip, header.header_length()) == 0;
}

/// Linux does not translate identifiers of ICMPv6's node information, which has none.
bool has_node_information(const Tuple& tuple) {
  return tuple.protocol == ip_protocol::kIcmpv6 &&
         (tuple.destination_port >> 8 == 139 || tuple.destination_port >> 8 == 140);
}

/// Translates a packet that has a connection. False if it must be dropped.
bool translate(PacketView packet, const Tracked& tracked, std::vector<std::uint8_t>& frame) {
  const std::vector<std::uint8_t> before = frame;
  Transport transport;
  const bool later = packet.layout().has(PacketLayout::kLaterFragment);
  if (later) {
    read_addresses(packet, transport.tuple);
  } else {
    require(read_transport(packet, transport));
  }
  const bool was_right = later || !find_error(packet, transport, true);
  const bool header_was_right = is_header_right(frame.data(), frame.size());
  const Rewrite to = rewrite_for(tracked, Rewrite::kBoth);
  const Tuple &now = tracked.connection->tuple(tracked.direction),
              &other = tracked.connection->tuple(opposite(tracked.direction));
  if (!rewrite(packet, to)) {
    require(frame == before);
    return false;
  }
  require(to.needed() || frame == before);
  const PacketLayout layout = packet.layout();
  parse(packet);
  require(packet.layout() == layout);
  if (header_was_right) require(is_header_right(frame.data(), frame.size()));
  if (later) return true;
  Transport after;
  require(read_transport(packet, after));
  if (was_right) require(!find_error(packet, after, true));
  if (has_node_information(now)) return true;
  if (tracked.state == State::related) {
    if (after.tuple.protocol == ip_protocol::kIcmpv6 && after.bytes[0] == 137) return true;
    require(read_quoted(after.bytes.subspan(sizeof(IcmpHeader)), after.tuple.ip_version) == other);
    return true;
  }
  require(after.tuple == *inverse_of(other));
  const Rewrite back{transport.tuple.source,
                     transport.tuple.destination,
                     transport.tuple.source_port,
                     is_icmp(transport.tuple) ? transport.tuple.source_port : transport.tuple.destination_port,
                     to.sides,
                     false};
  std::vector<std::uint8_t> forward = frame;
  require(rewrite(packet, back) && is_same(before, frame));
  std::copy(forward.begin(), forward.end(), frame.begin());
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Options options;
  options.most_connections = kConnections;
  options.most_fragments = 8;
  options.checksum = (data[0] & 1) != 0;
  options.tcp_loose = (data[0] & 2) != 0;
  options.tcp_be_liberal = (data[0] & 4) != 0;
  options.tcp_ignore_invalid_rst = (data[0] & 8) != 0;
  options.seed = 1;
  const std::uint32_t choices = data[0] >> 4;
  const bool nat = choices != 0;
  Table table(options);
  std::uint64_t now_ns = 1'000'000'000'000, packets = 0;
  std::vector<std::uint8_t> last;
  for (std::size_t at = 1; at + 3 <= size;) {
    const std::uint8_t what = data[at];
    const std::size_t claimed = std::size_t{data[at + 1]} << 8 | data[at + 2];
    at += 3;
    std::vector<std::uint8_t> frame;
    if (claimed == 0xffff) {
      frame = answer_to(last);
    } else if (claimed == 0xfffe) {
      frame = error_about(last, (what & 0x10) != 0);
    } else {
      const std::size_t length = std::min(claimed, size - at);
      frame.assign(data + at, data + at + length);
      at += length;
    }
    frame.shrink_to_fit();
    // Later, or earlier: by up to two hours.
    const std::uint64_t step = std::uint64_t{1} << (what >> 3 & 31);
    now_ns = (what & 4) != 0 ? now_ns - std::min(now_ns, step << 12) : now_ns + (step << 11);
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    descriptor.link_type = LinkType::raw_ip;
    const PacketView view{frame.data(), &descriptor};
    parse(view);
    const std::uint32_t hash = table.likely_hash(view);
    table.prefetch_bucket(hash);
    table.prefetch_connection(hash);
    const Tracked tracked = table.track(view, now_ns);
    ++packets;
    const std::uint32_t choice = choices * 11 + what;
    const bool with_connection = tracked.state != State::invalid && tracked.state != State::untracked;
    require((tracked.connection != nullptr) == with_connection);
    if (with_connection) {
      tracked.connection->mark = static_cast<std::uint32_t>(packets);
      bool passes = true;
      if (nat && tracked.state == State::new_connection) {
        const Tuple original = tracked.connection->original;
        passes = table.translate(*tracked.connection, NatKind::destination, range_of(choice * 37, original)) &&
                 table.translate(*tracked.connection, NatKind::source, range_of(choice * 59 >> 3, original));
      }
      const std::vector<std::uint8_t> as_it_came = frame;
      passes = passes && translate(view, tracked, frame);
      switch (passes ? what & 3 : 0) {
        case 0: table.forget(*tracked.connection); break;
        case 1: break;
        default: require(table.confirm(*tracked.connection));
      }
      // The answer is one to what has left; or the packet comes again.
      if ((what & 8) != 0) std::copy(as_it_came.begin(), as_it_came.end(), frame.begin());
    }
    check(table);
    if ((what & 3) == 3) table.expire(now_ns);
    last = std::move(frame);
  }
  require(packets_of(table.counters()) == packets);
  return 0;
}
