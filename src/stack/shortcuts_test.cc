// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Frames and segments that are as expected take a shorter way (TrackerOptions::shortcuts). It must give what the long
// way gives: both run side by side over random frames and conversations, most of whose packets are plain, some not.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/testing/rounds.h"
#include "packet/checksum.h"
#include "packet/testing/packet_builder.h"
#include "stack/decoder.h"
#include "stack/flow_table.h"
#include "stack/testing/tcp_talk.h"

namespace penstock::stack {
namespace {

using namespace testing;
using penstock::testing::PacketBuilder;
using penstock::testing::rounds;
using Frame = penstock::testing::Bytes;

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

// ---- Frames

auto fields_of(const DecodedPacket& p) {
  const auto bytes = [](Bytes span) { return std::pair(span.data(), span.size()); };
  return std::tuple(p.timestamp_ns, p.number, bytes(p.frame), p.link_type, p.ip_version, p.protocol, p.source,
                    p.destination, bytes(p.ip), bytes(p.ip_payload), bytes(p.transport), bytes(p.payload), p.vlan_ids,
                    p.vlan_count, p.tunnel_depth, p.fragment, p.reassembled, p.truncated, p.has_flow, p.carries_packet,
                    p.wrong_ip_checksum, p.invalid, p.undecodable, p.refused, p.events.to_string());
}

auto fields_of(const TrackerCounters& c) {
  return std::tuple(c.flows, c.flows_ended, c.flow_memory_refused, c.flows_evicted, c.tcp_sessions, c.stream_bytes,
                    c.stream_gaps, c.stream_memory_refused, c.stream_depth_reached, c.stream_invalid,
                    c.contested_segments, c.contested_given_up, c.tcp_segments, c.tcp_idle_timeouts,
                    c.handshake_timeouts, c.tcp_unknown_connection);
}

/*  Ethernet │ IPv4 or IPv6 │ TCP, with timestamps or other options or none │ payload │ padding  */
Frame plain_frame(Random& random) {
  PacketBuilder builder = PacketBuilder().eth();
  if (random() % 8 == 0) builder = builder.vlan(5);
  if (random() % 2 == 0) {
    builder = builder.ipv4("10.0.0.1", "10.0.0.2");
  } else {
    builder = builder.ipv6("2001:db8::1", "2001:db8::2");
  }
  const std::uint8_t flags = random() % 2 == 0 ? kAck : kAck | kPsh;
  const bool has_options = random() % 2 == 0;
  const std::size_t payload = random() % 40;
  Frame frame = builder.tcp(1000, 80, flags)
                    .raw(has_options ? timestamps(7, 8) : Frame{})
                    .payload(std::string(payload, 'x'))
                    .bytes();
  const std::size_t transport = frame.size() - 20 - (has_options ? 12 : 0) - payload;
  if (has_options) frame[transport + 12] = 32 / 4 << 4;
  if (random() % 4 == 0) frame.resize(frame.size() + random() % 20);
  return frame;
}

TEST(Shortcuts, DecodeFramesAsTheLongWayDoes) {
  Random random(1);
  std::array<TrackerCounters, 2> counters;
  TrackerOptions quick, slow;
  quick.verify_checksums = slow.verify_checksums = true;
  slow.shortcuts = false;
  Decoder one(quick, counters[0]), other(slow, counters[1]);
  std::size_t plain = 0;
  for (std::uint64_t number = 1; number <= rounds(200'000); ++number) {
    Frame frame = plain_frame(random);
    const bool changed = random() % 3 != 0;
    if (changed) {
      for (unsigned n = 1 + random() % 2; n > 0; --n) {
        frame[random() % std::min<std::size_t>(frame.size(), 80)] = static_cast<std::uint8_t>(random());
      }
      if (random() % 4 == 0) frame.resize(random() % (frame.size() + 1));
      // Most changes of an IPv4 header would be found by its checksum alone.
      if (random() % 2 == 0 && frame.size() >= 34) {
        frame[24] = frame[25] = 0;
        const std::uint16_t sum = checksum(frame.data() + 14, 20);
        frame[24] = static_cast<std::uint8_t>(sum >> 8);
        frame[25] = static_cast<std::uint8_t>(sum);
      }
    }
    PacketDescriptor descriptor;
    descriptor.timestamp_ns = number * 1000;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    if (random() % 16 == 0) descriptor.link_type = static_cast<LinkType>(random() % 8);
    const PacketView view{frame.data(), &descriptor};
    std::vector<decltype(fields_of(DecodedPacket{}))> of_one, of_other;
    one.decode(view, number, [&](DecodedPacket& packet) noexcept { of_one.push_back(fields_of(packet)); });
    other.decode(view, number, [&](DecodedPacket& packet) noexcept { of_other.push_back(fields_of(packet)); });
    ASSERT_EQ(of_one, of_other) << "frame " << number;
    plain += of_one.size() == 1 && std::get<18>(of_one[0]) ? 1 : 0;
  }
  EXPECT_EQ(counters[0].packets, counters[1].packets);
  EXPECT_EQ(counters[0].not_ip, counters[1].not_ip);
  EXPECT_EQ(counters[0].undecodable, counters[1].undecodable);
  EXPECT_EQ(counters[0].ipv4_invalid_checksums, counters[1].ipv4_invalid_checksums);
  EXPECT_GT(plain, rounds(200'000) / 4);
}

/// A frame as it comes, and what the decoder says of its first packet.
TEST(Shortcuts, HashPlainFramesAsTheFlowTableDoesWithoutDecodingThem) {
  Random random(3);
  TrackerCounters counters;
  Decoder decoder(TrackerOptions{}, counters);
  for (std::uint64_t number = 1; number <= rounds(10'000); ++number) {
    Frame frame = plain_frame(random);
    PacketDescriptor descriptor;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(frame.size());
    const PacketView view{frame.data(), &descriptor};
    decoder.decode(view, number, [&](DecodedPacket& packet) noexcept {
      EXPECT_EQ(likely_hash_of(view, 77), flow_lookup_of(packet, 77)->hash) << "frame " << number;
    });
  }
}

TEST(Shortcuts, PrefetchChangesNothingWhateverTheFramesAre) {
  Random random(4);
  Tracker with({}), without({});
  struct : PacketSink {
    void packet(TrackedPacket&) noexcept override {}
  } sink;
  std::uint64_t number = 0;
  for (std::size_t round = 0; round < rounds(1'000); ++round) {
    std::vector<Frame> frames(random() % 50);
    std::vector<PacketDescriptor> descriptors(frames.size());
    std::vector<PacketView> views;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      Frame frame = plain_frame(random);
      if (random() % 2 == 0) frame[random() % frame.size()] = static_cast<std::uint8_t>(random());
      if (random() % 4 == 0) frame.resize(random() % (frame.size() + 1));
      frames[i] = Frame(frame.begin(), frame.end());  // no byte more than it has: sanitizers see what is read beyond
      descriptors[i].timestamp_ns = ++number * 1'000'000;
      descriptors[i].length = descriptors[i].wire_length = static_cast<std::uint32_t>(frame.size());
      views.push_back({frames[i].data(), &descriptors[i]});
    }
    with.prefetch(views);
    for (const PacketView& view : views) with.track(view, number, sink);
    for (const PacketView& view : views) without.track(view, number, sink);
  }
  with.finish(sink);
  without.finish(sink);
  EXPECT_EQ(fields_of(with.counters()), fields_of(without.counters()));
  EXPECT_GT(with.counters().flows, 0U);
}

// ---- Segments

auto fields_of(const Seen& seen) {
  return std::tuple(seen.events, seen.has_flow, seen.in_stream, seen.ready, seen.established, seen.end, seen.refused,
                    seen.direction, seen.flow_id, seen.state);
}

/// Two hosts that talk as hosts do, and what is done to them: one packet in some is late, comes twice, is lost, or has
/// a field that is off.
class Conversation {
 public:
  Conversation(Random& random, unsigned faults) : random_(random), faults_(faults) {
    has_timestamps_ = random() % 2 == 0;
    scale_ = static_cast<std::uint8_t>(random() % 3);
    next_ = {random() % 4 == 0 ? 0xffffff00U : 100U, random() % 4 == 0 ? 0xfffffff0U : 9000U};
  }

  struct Sent {
    bool from_client;
    TcpPacket packet;
    std::string data;
  };
  std::vector<Sent> packets() {
    send(true, kSyn, 0);
    send(false, kSyn | kAck, 0);
    send(true, kAck, 0);
    const unsigned count = 5 + random_() % 60;
    for (unsigned i = 0; i < count; ++i) {
      const bool from_client = random_() % 3 == 0;
      const bool has_data = random_() % 3 != 0;
      send(from_client, random_() % 4 == 0 ? kAck | kPsh : kAck, has_data ? 1 + random_() % 40 * (random_() % 8) : 0);
    }
    if (random_() % 2 == 0) {
      send(random_() % 2 == 0, random_() % 8 == 0 ? kRst | kAck : kFin | kAck, random_() % 2 * 5);
      send(true, kFin | kAck, 0);
      send(false, kAck, 0);
    }
    return std::move(sent_);
  }

 private:
  bool chance() { return random_() % 1000 < faults_; }
  std::uint32_t near(std::uint32_t number) { return number + static_cast<std::uint32_t>(random_() % 61) - 30; }

  void send(bool from_client, std::uint8_t flags, std::size_t length) {
    const std::size_t from = from_client ? 0 : 1;
    ++clock_;
    Sent sent{from_client, {.flags = flags, .sequence = next_[from], .window = 60000}, {}};
    for (std::size_t i = 0; i < length; ++i) sent.data += static_cast<char>('a' + (next_[from] + i) % 26);
    TcpPacket& packet = sent.packet;
    if ((flags & kAck) != 0) packet.ack = random_() % 4 == 0 ? acked_[from] : next_[1 - from];
    acked_[from] = packet.ack;
    if ((flags & kSyn) != 0 && scale_ != 0) packet.options = window_scale(scale_);
    if (has_timestamps_ && (flags & kSyn) == 0) packet.options = timestamps(clock_);
    if (has_timestamps_ && (flags & kSyn) != 0) {
      const auto more = timestamps(clock_);
      packet.options.insert(packet.options.end(), more.begin(), more.end());
    }
    next_[from] += static_cast<std::uint32_t>(length) + ((flags & (kSyn | kFin)) != 0 ? 1 : 0);
    if (chance()) return;  // lost
    if (chance()) packet.sequence = near(packet.sequence);
    if (chance()) packet.ack = near(packet.ack);
    if (chance()) packet.flags ^= static_cast<std::uint8_t>(1U << random_() % 8);
    if (chance()) packet.window = static_cast<std::uint16_t>(random_() % 3 * 100);
    if (chance()) packet.urgent = static_cast<std::uint16_t>(random_() % 50);
    if (chance()) packet.options = timestamps(near(clock_));
    if (chance()) packet.options = timestamps(0);
    if (chance()) packet.options.clear();
    if (chance() && !sent.data.empty()) sent.data[random_() % sent.data.size()] = '#';
    if (chance() && !sent_.empty()) sent_.insert(sent_.end() - 1, sent);  // overtakes the one before
    sent_.push_back(sent);
    if (chance()) sent_.push_back(sent_[random_() % sent_.size()]);
    if (chance()) {  // a keep-alive
      sent.data.clear();
      --sent.packet.sequence;
      sent_.push_back(sent);
    }
  }

  Random& random_;
  unsigned faults_;  // in 1000
  bool has_timestamps_;
  std::uint8_t scale_;
  std::uint32_t clock_ = 1000;
  std::array<std::uint32_t, 2> next_, acked_{};
  std::vector<Sent> sent_;
};

TrackerOptions random_options(Random& random) {
  TrackerOptions options;
  options.stream_policy = static_cast<OverlapPolicy>(random() % 7);
  options.inline_streams = random() % 2 == 0;
  options.midstream = random() % 4 == 0;
  options.async_oneside = random() % 8 == 0;
  options.refuse_when_full = random() % 4 == 0;
  options.every_version = random() % 8 != 0;
  options.pass_over_encrypted = random() % 4 != 0;
  options.stream_depth = random() % 4 == 0 ? 500 : 1 << 20;
  options.chunk_bytes = random() % 2 == 0 ? 100 : 2560;
  options.seam_bytes = random() % 2 == 0 ? 16 : 0;
  options.stream_memory = random() % 4 == 0 ? 8192 : 1 << 18;
  options.flow_memory = 1 << 14;
  options.fragment_memory = 1 << 12;
  return options;
}

TEST(Shortcuts, TrackSegmentsAsTheLongWayDoes) {
  Random random(2);
  std::uint64_t streamed = 0;
  for (std::size_t round = 0; round < rounds(20'000); ++round) {
    TrackerOptions options = random_options(random);
    Talk one(options);
    options.shortcuts = false;
    Talk other(options);
    const unsigned faults = std::array{0U, 5U, 50U}[random() % 3];
    for (Conversation::Sent& sent : Conversation(random, faults).packets()) {
      sent.packet.data = sent.data;
      for (Talk* const talk : {&one, &other}) talk->send(sent.packet, sent.from_client);
    }
    for (Talk* const talk : {&one, &other}) talk->finish();
    ASSERT_EQ(one.seen.size(), other.seen.size()) << "round " << round;
    for (std::size_t i = 0; i < one.seen.size(); ++i) {
      ASSERT_EQ(fields_of(one.seen[i]), fields_of(other.seen[i])) << "packet " << i << " of round " << round;
    }
    ASSERT_EQ(one.chunks, other.chunks) << "round " << round;
    ASSERT_EQ(one.contested, other.contested) << "round " << round;
    ASSERT_EQ(one.ended, other.ended) << "round " << round;
    ASSERT_EQ(fields_of(one.tracker.counters()), fields_of(other.tracker.counters())) << "round " << round;
    streamed += one.tracker.counters().stream_bytes;
  }
  EXPECT_GT(streamed, rounds(20'000) * 100);
}

}  // namespace
}  // namespace penstock::stack
