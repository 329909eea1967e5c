// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as packets that come one after the other, through a small table. Each lies in memory of just its size, so
// that a byte too far is seen. The table never has more connections than it may; its counters add up, and its
// connections are found by either tuple's hash.
//
// Input: options (a byte); then for each packet a byte of what is done with it and how much later it comes, its length
// (two bytes, big-endian), and its bytes, which are an IP packet. A length of 0xffff repeats the last packet with its
// addresses and ports exchanged.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "conntrack/table.h"
#include "packet/parse_core.h"

using namespace penstock;
using namespace penstock::conntrack;

namespace {

constexpr std::uint32_t kConnections = 8;

void require(bool holds) {
  if (!holds) std::abort();
}

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
      require(are_inverse(connection.original, connection.reply) && are_inverse(connection.reply, connection.original));
      require(hash_of(connection.original, 1) == hash_of(connection.reply, 1));
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
    table.prefetch_connection(table.likely_hash(view));
    const Tracked tracked = table.track(view, now_ns);
    ++packets;
    const bool with_connection = tracked.state != State::invalid && tracked.state != State::untracked;
    require((tracked.connection != nullptr) == with_connection);
    if (with_connection) {
      tracked.connection->mark = static_cast<std::uint32_t>(packets);
      switch (what & 3) {
        case 0: table.forget(*tracked.connection); break;
        case 1: break;
        default: table.confirm(*tracked.connection);
      }
    }
    check(table);
    if ((what & 3) == 3) table.expire(now_ns);
    last = std::move(frame);
  }
  require(packets_of(table.counters()) == packets);
  return 0;
}
