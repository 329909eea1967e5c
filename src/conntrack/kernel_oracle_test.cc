// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares with the kernel: random conversations pass through its connection tracking and through ours. For each
// packet, state and direction must be the same, and after it what both remember of the connection. Needs root and nft;
// skipped otherwise. PENSTOCK_CONNTRACK_ROUNDS multiplies the number of conversations, PENSTOCK_CONNTRACK_SEED is their
// seed.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <random>

#include "conntrack/table.h"
#include "conntrack/testing/packets.h"
#include "conntrack/testing/tracking_kernel.h"

namespace penstock::conntrack {
namespace {

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(engine_() % n); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }
  std::uint32_t any() { return static_cast<std::uint32_t>(engine_()); }
  template <typename T, std::size_t n>
  T of(const std::array<T, n>& choices) {
    return choices[below(n)];
  }

 private:
  std::mt19937_64 engine_;
};

constexpr std::uint8_t kFin = TcpHeader::kFin, kSyn = TcpHeader::kSyn, kRst = TcpHeader::kRst, kPsh = TcpHeader::kPsh,
                       kAck = TcpHeader::kAck;

std::string hex(const Packet& packet) {
  std::string text;
  for (const std::uint8_t byte : packet) text += fmt::format("{:02x}", byte);
  return text;
}

std::string describe(const Packet& packet) {
  ParsedPacket parsed(packet);
  const PacketLayout& layout = parsed.descriptor.layout;
  if (layout.transport != ip_protocol::kTcp || !layout.has(PacketLayout::kTransportHeader)) return hex(packet);
  const TcpHeader& tcp = parsed.view().tcp();
  std::string flags;
  constexpr std::string_view kNames = "FSRPAU";
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if ((tcp.flags >> i & 1) != 0) flags += kNames[i];
  }
  return fmt::format(
      "{} > {} {} seq {} ack {} win {} len {} options {}", tcp.source_port.value(), tcp.destination_port.value(), flags,
      tcp.sequence.value(), tcp.acknowledgment.value(), tcp.window.value(), layout.end - layout.payload_offset,
      hex(Packet(packet.begin() + layout.transport_offset + 20, packet.begin() + layout.payload_offset)));
}

std::string_view name(State state) {
  constexpr std::array<std::string_view, 5> kNames{"invalid", "new", "established", "related", "untracked"};
  return kNames[static_cast<unsigned>(state)];
}
std::string describe(State state, Direction direction) {
  return fmt::format("{}{}", name(state), direction == Direction::reply ? " (reply)" : "");
}

/// Both trackers, and what has differed.
class Comparison {
 public:
  Comparison(TrackingKernel& kernel, const Options& options) : kernel_(kernel), table_(options) {
    EXPECT_TRUE(TrackingKernel::set("tcp_loose", options.tcp_loose ? "1" : "0"));
    EXPECT_TRUE(TrackingKernel::set("tcp_be_liberal", options.tcp_be_liberal ? "1" : "0"));
    EXPECT_TRUE(TrackingKernel::set("tcp_ignore_invalid_rst", options.tcp_ignore_invalid_rst ? "1" : "0"));
    kernel_.flush();
  }

  /// False once something differs.
  bool send(const Packet& packet) {
    ++sent_;
    ParsedPacket parsed(packet);
    const Tracked ours = table_.track(parsed.view(), now_ns());
    ++states_[static_cast<unsigned>(ours.state)];
    if (ours.connection != nullptr) table_.confirm(*ours.connection);
    const std::optional<TrackingKernel::Judgment> theirs = kernel_.track(packet);
    std::string problem;
    if (!theirs) {
      problem = fmt::format("the kernel drops it, we say {}", describe(ours.state, ours.direction));
    } else if (theirs->state != ours.state || theirs->direction != ours.direction) {
      problem = fmt::format("the kernel says {}, we say {}", describe(theirs->state, theirs->direction),
                            describe(ours.state, ours.direction));
    } else if (const std::optional<Transport> transport = read_transport(parsed.view())) {
      problem = compare_memory(transport->tuple);
    }
    history_.push_back(fmt::format(
        "{}  {}{} {}", describe(packet), describe(ours.state, ours.direction),
        ours.state == State::invalid ? fmt::format(" ({})", kReasonNames[static_cast<unsigned>(ours.reason)]) : "",
        memory_));
    if (history_.size() > kHistory) history_.pop_front();
    if (problem.empty()) return true;
    std::string text;
    for (const std::string& line : history_) text += "\n  " + line;
    ADD_FAILURE() << problem << text;
    return false;
  }
  void begin_conversation() { history_.clear(); }
  [[nodiscard]] std::size_t sent() const { return sent_; }
  [[nodiscard]] std::size_t seen(State state) const { return states_[static_cast<unsigned>(state)]; }
  [[nodiscard]] std::size_t seen(TcpState state) const { return tcp_states_[static_cast<unsigned>(state)]; }

 private:
  static constexpr std::size_t kHistory = 40;

  std::string compare_memory(const Tuple& tuple) {
    const Connection* ours = nullptr;
    std::uint32_t from = 0;
    do {
      from = table_.for_each(from, 1000, [&](const Connection& connection) {
        if (connection.original == tuple || connection.reply == tuple) ours = &connection;
      });
    } while (from != 0);
    const std::optional<TrackingKernel::Entry> theirs = kernel_.find(tuple);
    memory_.clear();
    if (theirs.has_value() != (ours != nullptr)) {
      return theirs ? "only the kernel keeps a connection" : "only we keep a connection";
    }
    if (ours == nullptr) return "";
    memory_ = fmt::format("state {}, assured {}, {} s", static_cast<int>(ours->tcp_state), ours->assured(),
                          table_.remaining_ns(*ours) / 1'000'000'000);
    if (tuple.protocol == ip_protocol::kTcp) {
      for (const TcpSide& side : ours->tcp.sides) {
        memory_ += fmt::format(", end {} max_end {} max_window {} max_ack {} flags {:x} scale {}", side.end,
                               side.max_end, side.max_window, side.max_ack, side.flags, side.scale);
      }
      memory_ += fmt::format(", last kind {} direction {} end {}", static_cast<int>(ours->tcp.last_kind),
                             static_cast<int>(ours->tcp.last_direction), ours->tcp.last_end);
    }
    constexpr std::uint32_t kCompared = Connection::kSeenReply | Connection::kAssured | Connection::kConfirmed;
    if ((theirs->status & kCompared) != (ours->status & kCompared)) {
      return fmt::format("the kernel's status is {}, ours {}", theirs->status & kCompared, ours->status & kCompared);
    }
    const auto remaining = static_cast<std::int64_t>(table_.remaining_ns(*ours) / 1'000'000'000);
    if (std::abs(remaining - static_cast<std::int64_t>(theirs->timeout_s)) > 1) {
      return fmt::format("the kernel's connection lives for {} s, ours for {} s", theirs->timeout_s, remaining);
    }
    if (tuple.protocol != ip_protocol::kTcp) return "";
    ++tcp_states_[static_cast<unsigned>(ours->tcp_state)];
    if (theirs->tcp_state != ours->tcp_state) {
      return fmt::format("the kernel's TCP state is {}, ours {}", static_cast<int>(theirs->tcp_state),
                         static_cast<int>(ours->tcp_state));
    }
    for (const unsigned side : {0U, 1U}) {
      const TcpSide& mine = ours->tcp.sides[side];
      if (theirs->tcp_flags[side] != mine.flags || theirs->tcp_scale[side] != mine.scale) {
        return fmt::format("side {}: the kernel has flags {:x} and scale {}, we {:x} and {}", side,
                           theirs->tcp_flags[side], theirs->tcp_scale[side], mine.flags, mine.scale);
      }
    }
    return "";
  }

  TrackingKernel& kernel_;
  Table table_;
  std::size_t sent_ = 0;
  std::array<std::size_t, 5> states_{};
  std::array<std::size_t, 10> tcp_states_{};
  std::deque<std::string> history_;
  std::string memory_;
};

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

/// The kernel, once for all tests.
class KernelOracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!kernel) kernel = TrackingKernel::start(why);
  }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  static Ends ends(Random& random, std::uint16_t number) {
    const auto port = static_cast<std::uint16_t>(1000 + number);
    if (random.one_in(2)) return {"10.1.0.1", "10.2.0.1", port, 80};
    return {"2001:db8::1", "2001:db8:1::1", port, 80};
  }

  /// Several conversations at a time, since tracking must keep them apart.
  static void compare_tcp(const Options& options, std::uint64_t first_seed, std::size_t conversations) {
    Random random(first_seed);
    Comparison comparison(*kernel, options);
    constexpr std::size_t kPackets = 120;
    for (std::uint16_t number = 0; number < conversations; ++number) {
      comparison.begin_conversation();
      TcpConversation conversation(random, ends(random, number));
      for (std::size_t i = 0; i < kPackets; ++i) {
        if (!comparison.send(conversation.next())) {
          FAIL() << "seed " << first_seed << ", conversation " << number << ", packet " << i;
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

  static inline std::unique_ptr<TrackingKernel> kernel;
  static inline std::string why;
  static inline const std::uint64_t rounds = from_environment("PENSTOCK_CONNTRACK_ROUNDS", 1);
  static inline const std::uint64_t seed = from_environment("PENSTOCK_CONNTRACK_SEED", 20261);
};

TEST_F(KernelOracle, TracksTcpAlike) { compare_tcp({}, seed, 100 * rounds); }

TEST_F(KernelOracle, TracksTcpAlikeWithoutPickingUpConnections) {
  compare_tcp({.tcp_loose = false}, seed + 1, 40 * rounds);
}

TEST_F(KernelOracle, TracksTcpAlikeWhenLiberal) { compare_tcp({.tcp_be_liberal = true}, seed + 2, 40 * rounds); }

TEST_F(KernelOracle, TracksTcpAlikeWhenItIgnoresInvalidResets) {
  compare_tcp({.tcp_ignore_invalid_rst = true}, seed + 3, 40 * rounds);
}

}  // namespace
}  // namespace penstock::conntrack
