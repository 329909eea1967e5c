// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of the detection: rules as text, packets from builders, TCP conversations, and the alerts in order.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/nids/detect/detection.h"
#include "nf/nids/detect/inspector.h"
#include "nf/nids/rules/rule_reader.h"
#include "packet/testing/packet_builder.h"
#include "stack/tracker.h"

namespace penstock::nids::testing {

using penstock::testing::packet;
using penstock::testing::PacketBuilder;
using Frame = std::vector<std::uint8_t>;

/// An alert, by frame and rule. sid 0: a tagged packet.
struct SeenAlert {
  std::uint64_t frame = 0;
  std::uint32_t sid = 0;
  bool in_stream = false;
  bool blocked = false;
  friend auto operator<=>(const SeenAlert&, const SeenAlert&) = default;
};
inline std::ostream& operator<<(std::ostream& out, const SeenAlert& alert) {
  return out << "frame " << alert.frame << " sid " << alert.sid << (alert.in_stream ? " in the stream" : "")
             << (alert.blocked ? " blocked" : "");
}

class AlertList final : public AlertSink {
 public:
  void alert(const Alert& alert) noexcept override {
    seen.push_back(
        {alert.packet->packet.number, alert.rule == nullptr ? 0 : alert.rule->sid, alert.in_stream, alert.dropped});
  }
  [[nodiscard]] std::vector<std::uint32_t> sids() const {
    std::vector<std::uint32_t> sids;
    for (const SeenAlert& alert : seen) sids.push_back(alert.sid);
    return sids;
  }
  std::vector<SeenAlert> seen;
};

inline RuleSet rules_of(std::string_view text) {
  auto read = read_rules_text(text);
  if (!read) throw std::runtime_error(to_string(read.error()));
  for (const RuleSet::Left& left : read->left_out) throw std::runtime_error(to_string(left.why));
  return std::move(*read);
}

inline std::unique_ptr<const Detection> compiled(RuleSet rules, const DetectionOptions& options = {}) {
  auto detection = Detection::compile(std::move(rules), options);
  if (!detection) throw std::runtime_error(to_string(detection.error()));
  return std::move(*detection);
}

/// Sends frames through a tracker to a sink. Frames are one millisecond apart.
class TrackedFrames {
 public:
  explicit TrackedFrames(const stack::TrackerOptions& options = {}) : tracker_(options) {}

  void track(const Frame& frame, stack::PacketSink& sink) {
    Frame bytes = frame;
    PacketDescriptor descriptor;
    descriptor.timestamp_ns = 1'700'000'000'000'000'000 + ++number_ * 1'000'000;
    descriptor.length = descriptor.wire_length = static_cast<std::uint32_t>(bytes.size());
    tracker_.track({bytes.data(), &descriptor}, number_, sink);
  }
  void finish(stack::PacketSink& sink) { tracker_.finish(sink); }
  void raise_seam(std::uint32_t bytes) { tracker_.raise_seam(bytes); }

 private:
  stack::Tracker tracker_;
  std::uint64_t number_ = 0;
};

/// A tracker's options as `nids` sets them for these rules.
inline stack::TrackerOptions for_rules(const Detection& detection, stack::TrackerOptions tracker) {
  tracker.seam_bytes = detection.seam_bytes();
  return tracker;
}

/// Runs rules on frames, and collects the alerts.
class DetectionBed {
 public:
  explicit DetectionBed(std::string_view rules, const InspectorOptions& options = {},
                        const DetectionOptions& detection = {}, const stack::TrackerOptions& tracker = {})
      : detection_(compiled(rules_of(rules), detection)),
        inspector_(*detection_, hosts_, list_, options),
        frames_(for_rules(*detection_, tracker)) {}

  void frame(const Frame& frame, FoundLiterals found = {}) {
    inspector_.begin_frame(found);
    frames_.track(frame, inspector_);
  }
  void frames(const std::vector<Frame>& frames) {
    for (const Frame& one : frames) frame(one);
  }
  void finish() {
    inspector_.begin_frame();
    frames_.finish(inspector_);
  }

  [[nodiscard]] std::vector<std::uint32_t> sids() const { return list_.sids(); }
  [[nodiscard]] const std::vector<SeenAlert>& alerts() const { return list_.seen; }
  [[nodiscard]] Inspector& inspector() { return inspector_; }
  [[nodiscard]] const Detection& detection() const { return *detection_; }

 private:
  std::unique_ptr<const Detection> detection_;
  HostMemory hosts_{std::size_t{1} << 20};
  AlertList list_;
  Inspector inspector_;
  TrackedFrames frames_;
};

inline Frame udp(std::string_view payload, std::uint16_t source = 1000, std::uint16_t destination = 2000) {
  return packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(source, destination).payload(payload).bytes();
}

/// A TCP connection, segment by segment. The client is 10.0.0.1, the server 10.0.0.2.
class Conversation {
 public:
  explicit Conversation(std::uint16_t client_port = 40000, std::uint16_t server_port = 80)
      : ports_{client_port, server_port} {}

  std::vector<Frame> handshake() {
    std::vector<Frame> frames{segment(0, TcpHeader::kSyn, {}, next_[0]++)};
    frames.push_back(segment(1, TcpHeader::kSyn | TcpHeader::kAck, {}, next_[1]++));
    frames.push_back(segment(0, TcpHeader::kAck, {}, next_[0]));
    return frames;
  }
  /// `side` 0: the client is the sender.
  Frame data(unsigned side, std::string_view bytes) {
    Frame frame = segment(side, TcpHeader::kAck | TcpHeader::kPsh, bytes, next_[side]);
    next_[side] += static_cast<std::uint32_t>(bytes.size());
    return frame;
  }
  Frame ack(unsigned side) { return segment(side, TcpHeader::kAck, {}, next_[side]); }
  Frame reset(unsigned side) { return segment(side, TcpHeader::kRst | TcpHeader::kAck, {}, next_[side]); }
  /// Bytes at any position of the stream, which then continues where it was.
  Frame data_at(unsigned side, std::int64_t from_next, std::string_view bytes) {
    return segment(side, TcpHeader::kAck, bytes,
                   static_cast<std::uint32_t>(static_cast<std::int64_t>(next_[side]) + from_next));
  }
  void skip(unsigned side, std::uint32_t bytes) { next_[side] += bytes; }

 private:
  Frame segment(unsigned side, unsigned flags, std::string_view bytes, std::uint32_t sequence) {
    const char* const addresses[] = {"10.0.0.1", "10.0.0.2"};
    Frame frame = packet()
                      .eth()
                      .ipv4(addresses[side], addresses[1 - side])
                      .tcp(ports_[side], ports_[1 - side], static_cast<std::uint8_t>(flags))
                      .payload(bytes)
                      .bytes();
    put(frame, 14 + 20 + 4, sequence);
    put(frame, 14 + 20 + 8, (flags & TcpHeader::kAck) != 0 ? next_[1 - side] : 0);
    frame[14 + 20 + 14] = 0xff;  // a wide window
    frame[14 + 20 + 15] = 0xff;
    return penstock::testing::with_right_checksums(std::move(frame));
  }
  static void put(Frame& frame, std::size_t at, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i) frame[at + i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
  }

  std::uint16_t ports_[2];
  std::uint32_t next_[2] = {1000, 0xffff'ff00};  // the server's sequence numbers wrap
};

}  // namespace penstock::nids::testing
