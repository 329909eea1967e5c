// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// TCP conversations, compared with the kernel's tracking.

#include "conntrack/testing/kernel_comparison.h"

namespace penstock::conntrack {
namespace {

constexpr std::uint8_t kFin = TcpHeader::kFin, kSyn = TcpHeader::kSyn, kRst = TcpHeader::kRst, kPsh = TcpHeader::kPsh,
                       kAck = TcpHeader::kAck;

/// Two hosts that talk by the rules mostly.
class TcpConversation {
 public:
  TcpConversation(Random& random, const Ends& ends) : random_(random), ends_(ends) { begin(); }

  Packet next() {
    if (random_.one_in(60)) begin();
    if (random_.one_in(20)) phase_ = random_.below(8);
    return random_.one_in(oddness_) ? odd() : regular();
  }

 private:
  struct Side {
    std::uint32_t next = 0;
    std::uint16_t window = 0;
  };

  void begin() {
    phase_ = 0;
    oddness_ = random_.of(std::array<std::uint32_t, 4>{3, 8, 20, 60});
    for (Side& side : sides_) {
      side.next = random_.one_in(3) ? side.next + random_.below(100'000) : random_.any();
      side.window = random_.of(std::array<std::uint16_t, 6>{1, 10, 1000, 10'000, 65'535, 0});
    }
  }

  Packet regular() {
    switch (phase_) {
      case 0: phase_ = 1; return segment(0, kSyn, 0);
      case 1: phase_ = 2; return segment(1, kSyn | kAck, 0);
      case 2: phase_ = 3; return segment(0, kAck, 0);
      case 3:
      case 4:
        if (random_.one_in(12)) ++phase_;
        return segment(random_.below(2), random_.one_in(2) ? kAck : kAck | kPsh, length());
      case 5:
        phase_ = 6;
        closing_ = random_.below(2);
        return segment(closing_, kFin | kAck, length());
      case 6:
        if (random_.one_in(3)) phase_ = 7;
        return segment(1 - closing_, kAck, random_.one_in(2) ? 0 : length());
      case 7: phase_ = 8; return segment(1 - closing_, kFin | kAck, 0);
      default:
        if (random_.one_in(3)) begin();
        return segment(closing_, kAck, 0);
    }
  }

  Packet odd() {
    const unsigned from = random_.below(2);
    const std::uint8_t flags = random_.one_in(8)
                                   ? static_cast<std::uint8_t>(random_.any())
                                   : random_.of(std::array<std::uint8_t, 9>{kSyn, kSyn, kSyn | kAck, kAck, kAck,
                                                                            kFin | kAck, kRst, kRst, kRst | kAck});
    const Side before = sides_[from];
    sides_[from].next += offset();
    if (random_.one_in(8)) sides_[from].next = 0;
    if (random_.one_in(6)) sides_[from].window = static_cast<std::uint16_t>(random_.any());
    Packet packet = segment(from, flags, random_.one_in(2) ? 0 : length(), offset());
    if (!random_.one_in(4)) sides_[from] = before;
    return packet;
  }

  std::uint32_t offset() {
    const Side& side = sides_[random_.below(2)];
    const std::uint32_t near = random_.below(5) - 2;
    switch (random_.below(12)) {
      case 0: return near + side.window;
      case 1: return near - side.window;
      case 2: return near + (std::uint32_t{side.window} << random_.below(8));
      case 3: return near - 66'000;
      case 4: return near - 66'000 - random_.below(1000);
      case 5: return random_.one_in(2) ? random_.any() : random_.below(200'000) - 100'000;
      case 6:
      case 7: return near;
      default: return 0;
    }
  }

  std::size_t length() { return random_.of(std::array<std::size_t, 6>{1, 1, 10, 100, 500, 1400}); }

  Packet options(std::uint8_t flags, std::uint32_t ack) {
    Packet options;
    const auto add = [&](const Packet& option) { options.insert(options.end(), option.begin(), option.end()); };
    if ((flags & kSyn) != 0 || random_.one_in(30)) {
      if (random_.one_in(2)) add({2, 4, 5, 0xb4});
      if (random_.one_in(2)) add({3, 3, static_cast<std::uint8_t>(random_.below(16))});
      if (random_.one_in(2)) add({4, 2});
    } else if (random_.one_in(4)) {
      const std::uint32_t to = ack + random_.below(3000);
      Packet sack{5, 10};
      sack.resize(10);
      put_be32(sack, 2, to - 100);
      put_be32(sack, 6, to);
      add(sack);
    } else if (random_.one_in(4)) {
      add({1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2});
    }
    if (random_.one_in(30))
      add({static_cast<std::uint8_t>(random_.below(10)), static_cast<std::uint8_t>(random_.below(12))});
    if (random_.one_in(40)) add({0, 3, 3, 9});
    return options;
  }

  Packet segment(unsigned from, std::uint8_t flags, std::size_t payload, std::uint32_t ack_offset = 0) {
    Side& sender = sides_[from];
    TcpFields fields{.flags = flags, .sequence = sender.next, .window = sender.window, .payload = payload};
    if ((flags & kAck) != 0 || random_.one_in(10)) fields.ack = sides_[1 - from].next + ack_offset;
    if ((flags & kRst) != 0 && random_.one_in(6)) fields.ack = 0;
    fields.options = options(flags, fields.ack);
    sender.next += static_cast<std::uint32_t>(payload);
    if ((flags & (kSyn | kFin)) != 0) ++sender.next;
    if (random_.one_in(20)) sender.window = random_.of(std::array<std::uint16_t, 5>{0, 1, 500, 5000, 65'535});
    Packet packet = tcp_packet(from == 0 ? ends_ : ends_.reversed(), fields);
    // Lost before it comes here, or sent again.
    if (random_.one_in(10)) sender.next -= static_cast<std::uint32_t>(payload);
    return packet;
  }

  Random& random_;
  Ends ends_;
  std::array<Side, 2> sides_;
  unsigned phase_ = 0, closing_ = 0;
  std::uint32_t oddness_ = 0;  // one packet in so many
};

Ends ends(Random& random, std::uint16_t number) {
  const auto port = static_cast<std::uint16_t>(1000 + number);
  if (random.one_in(2)) return {"10.1.0.1", "10.2.0.1", port, 80};
  return {"2001:db8::1", "2001:db8:1::1", port, 80};
}

/// Several conversations at a time, since tracking must keep them apart.
void compare_tcp(TrackingKernel& kernel, const Options& options, std::uint64_t seed, std::size_t conversations) {
  Random random(seed);
  Comparison comparison(kernel, options);
  constexpr std::size_t kPackets = 120, kAtATime = 4;
  for (std::uint16_t number = 0; number < conversations;) {
    std::vector<TcpConversation> some;
    while (some.size() < kAtATime) some.emplace_back(random, ends(random, number++));
    for (std::size_t i = 0; i < kPackets * kAtATime; ++i) {
      if (!comparison.send(some[random.below(kAtATime)].next())) {
        FAIL() << "seed " << seed << ", conversations to " << number << ", packet " << i;
      }
    }
  }
  std::string states;
  for (unsigned state = 1; state < 10; ++state) {
    states += fmt::format(" {}", comparison.seen(static_cast<TcpState>(state)));
    EXPECT_GT(comparison.seen(static_cast<TcpState>(state)), 0) << "TCP state " << state;
  }
  fmt::print("{} packets: {} invalid, {} new, {} established; in TCP states:{}\n", comparison.sent(),
             comparison.seen(State::invalid), comparison.seen(State::new_connection),
             comparison.seen(State::established), states);
}

TEST_F(KernelOracle, TracksTcpAlike) { compare_tcp(*kernel, {}, seed, 100 * rounds); }

TEST_F(KernelOracle, TracksTcpAlikeWithoutPickingUpConnections) {
  compare_tcp(*kernel, {.tcp_loose = false}, seed + 1, 40 * rounds);
}

TEST_F(KernelOracle, TracksTcpAlikeWhenLiberal) {
  compare_tcp(*kernel, {.tcp_be_liberal = true}, seed + 2, 40 * rounds);
}

TEST_F(KernelOracle, TracksTcpAlikeWhenItIgnoresInvalidResets) {
  compare_tcp(*kernel, {.tcp_ignore_invalid_rst = true}, seed + 3, 40 * rounds);
}

}  // namespace
}  // namespace penstock::conntrack
