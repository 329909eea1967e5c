// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares with the kernel: packets pass through its connection tracking and through ours. For each packet, state and
// direction must be the same, and after it what both remember of the connection. Needs root and nft; tests are skipped
// otherwise. PENSTOCK_CONNTRACK_ROUNDS multiplies the number of conversations, PENSTOCK_CONNTRACK_SEED is their seed.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <random>

#include "base/nanoseconds.h"
#include "conntrack/table.h"
#include "conntrack/testing/packets.h"
#include "conntrack/testing/tracking_kernel.h"

namespace penstock::conntrack {

inline std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
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

inline std::string hex(const Packet& packet) {
  std::string text;
  for (const std::uint8_t byte : packet) text += fmt::format("{:02x}", byte);
  return text;
}

inline std::string describe(const Packet& packet) {
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

inline std::string_view name(State state) {
  constexpr std::array<std::string_view, 5> kNames{"invalid", "new", "established", "related", "untracked"};
  return kNames[static_cast<unsigned>(state)];
}
inline std::string describe(State state, Direction direction) {
  return fmt::format("{}{}", name(state), direction == Direction::reply ? " (reply)" : "");
}

/// Both trackers, and what has differed.
class Comparison {
 public:
  Comparison(TrackingKernel& kernel, const Options& options) : kernel_(kernel), table_(options) {
    EXPECT_TRUE(TrackingKernel::set("checksum", options.checksum ? "1" : "0"));
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
    } else if (Transport transport; read_transport(parsed.view(), transport)) {
      problem = compare_memory(transport.tuple);
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
  [[nodiscard]] std::size_t sent() const { return sent_; }
  [[nodiscard]] std::size_t seen(State state) const { return states_[static_cast<unsigned>(state)]; }
  [[nodiscard]] std::size_t seen(TcpState state) const { return tcp_states_[static_cast<unsigned>(state)]; }

 private:
  static constexpr std::size_t kHistory = 100;

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
                          table_.remaining_ns(*ours) / kNsPerSecond);
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
    const auto remaining = static_cast<std::int64_t>(table_.remaining_ns(*ours) / kNsPerSecond);
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

/// The kernel, started once for all tests.
template <typename Kernel>
class KernelTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!kernel) kernel = Kernel::start(why);
  }
  void SetUp() override {
    if (!kernel) GTEST_SKIP() << why;
  }

  static inline std::unique_ptr<Kernel> kernel;
  static inline std::string why;
  static inline const std::uint64_t rounds = from_environment("PENSTOCK_CONNTRACK_ROUNDS", 1);
  static inline const std::uint64_t seed = from_environment("PENSTOCK_CONNTRACK_SEED", 20261);
};
using KernelOracle = KernelTest<TrackingKernel>;

}  // namespace penstock::conntrack
