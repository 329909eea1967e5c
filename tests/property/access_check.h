// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares a stage's behaviour with its declared access. Two runs from the same state get the same packets, except that
// in the second run everything that the stage does not read is random. Both must have the same results, and must not
// change what the stage does not write. A stage that writes a field of only some packets must also read it, because the
// old value remains in the others. Stages that read every field that the layout depends on get the layout.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "function/burst.h"
#include "packet/batch.h"
#include "packet/field_range.h"
#include "packet/field_text.h"
#include "property/random_packets.h"

namespace penstock::property {

inline void scramble(Packet& packet, FieldSet fields, RandomPackets& random) {
  PacketDescriptor& p = packet.descriptor;
  for (unsigned f = 0; f < kByteFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (!fields.has(field)) continue;
    const FieldRange range = field_range(field, p.layout, p.link_type, p.length);
    for (std::uint32_t i = 0; i < range.length; ++i) {
      packet.bytes[range.offset + i] = static_cast<std::uint8_t>(random.word());
    }
  }
  if (fields.has(Field::frame_shape)) p.length = static_cast<std::uint32_t>(random.below(p.length + 1));
  if (fields.has(Field::wire_length)) p.wire_length = p.length + random.word() % 1000;
  if (fields.has(Field::timestamp)) p.timestamp_ns = random.word();
  if (fields.has(Field::in_port)) p.in_port = static_cast<PortIndex>(random.below(3));
  if (fields.has(Field::mark)) p.mark = random.word();
  if (fields.has(Field::flow_hash)) p.flow_hash = random.word();
  if (fields.has(Field::verdict)) {
    p.verdict = Verdict::forward(random.one_in(2) ? kNoPort : static_cast<PortIndex>(random.below(3)));
  }
}

/// Removes from the layout what parsing found in fields that are not read.
inline void withhold_layout(Packet& packet, FieldSet reads) {
  PacketLayout& layout = packet.descriptor.layout;
  if (!(kParsedFields - reads).empty()) {
    layout = {};
    layout.end = packet.descriptor.length;
  } else if (!(kTunnelFields - reads).empty()) {
    layout.tunnel = Tunnel::none;
    layout.inner_offset = 0;
  }
}

/// Whether both packets have the same value in `field`, each by its own layout.
inline bool same(Field field, const Packet& a, const Packet& b) {
  const PacketDescriptor& p = a.descriptor;
  const PacketDescriptor& q = b.descriptor;
  switch (field) {
    case Field::frame_shape: return p.length == q.length && p.offset == q.offset;
    case Field::wire_length: return p.wire_length == q.wire_length;
    case Field::timestamp: return p.timestamp_ns == q.timestamp_ns;
    case Field::in_port: return p.in_port == q.in_port;
    case Field::verdict: return p.verdict == q.verdict;
    case Field::mark: return p.mark == q.mark;
    case Field::flow_hash: return p.flow_hash == q.flow_hash;
    default: break;
  }
  const auto bytes_of = [field](const Packet& packet) {
    const PacketDescriptor& d = packet.descriptor;
    const FieldRange range = field_range(field, d.layout, d.link_type, static_cast<std::uint32_t>(packet.bytes.size()));
    return std::span(packet.bytes).subspan(range.offset, range.length);
  };
  return std::ranges::equal(bytes_of(a), bytes_of(b));
}

inline std::string described(Packet& packet) {
  std::string hex;
  for (const std::uint8_t byte : packet.bytes) hex += fmt::format("{:02x}", byte);
  return fmt::format("{} (link type {}, in port {}, {} of {} bytes: {})", format_packet(packet.view()),
                     static_cast<int>(packet.descriptor.link_type), packet.descriptor.in_port, packet.descriptor.length,
                     packet.descriptor.wire_length, hex);
}

/// A stage under test, with its initial state.
class StageRun {
 public:
  virtual ~StageRun() = default;
  /// The most by which it may make frames longer.
  [[nodiscard]] virtual FrameRoom room() const { return {}; }
  /// Bytes of findings for each packet, for a finish stage.
  [[nodiscard]] virtual std::size_t findings_bytes() const { return 0; }
  virtual void begin_batch(const Batch& batch) { static_cast<void>(batch); }
  /// Processes a burst. `first`: index of its first packet in the run. `findings`: one for each packet.
  virtual void process(std::span<PacketView> packets, std::span<std::byte* const> findings, std::size_t first) = 0;
  /// Whether it has moved the packet to a larger frame, of the memory that it was given for these.
  [[nodiscard]] virtual bool has_replaced(PacketView packet) const { return static_cast<void>(packet), false; }
  virtual void end_batch() {}
  /// Results other than packets at the end of the run: log lines, counts, emitted packets.
  [[nodiscard]] virtual std::string end() { return {}; }
};
using MakeRun = std::function<std::unique_ptr<StageRun>()>;

/// The results of a run: the packets afterwards, and everything else.
struct Outcome {
  std::vector<Packet> packets;
  std::vector<std::vector<std::byte>> findings;
  std::string output;
  std::string fault;  // a violation of the rules for all stages; empty: none
};

namespace access_detail {

/// The packets of a run, batch by batch, in memory with a fixed value outside the room of the frames.
class Runner {
 public:
  Runner(StageRun& run, bool changes_shape)
      : run_(run),
        changes_shape_(changes_shape),
        room_(run.room()),
        memory_(kMargin + kBatchBytes + kMargin, kFiller) {}

  Outcome operator()(const std::vector<Packet>& packets) {
    outcome_.packets = packets;
    outcome_.findings.assign(packets.size(), std::vector<std::byte>(run_.findings_bytes()));
    for (std::size_t first = 0; first < packets.size() && outcome_.fault.empty(); first += kBatchPackets) {
      batch(std::span(packets).subspan(first, std::min(kBatchPackets, packets.size() - first)), first);
    }
    outcome_.output = run_.end();
    return std::move(outcome_);
  }

 private:
  static constexpr std::size_t kBatchPackets = 512;
  static constexpr std::size_t kBatchBytes = kBatchPackets * 4096;
  static constexpr std::size_t kMargin = 64;
  static constexpr std::uint8_t kFiller = 0xa5;

  void batch(std::span<const Packet> packets, std::size_t first) {
    Batch batch({memory_.data() + kMargin, kBatchBytes}, descriptors_, room_);
    for (const Packet& packet : packets) {
      ASSERT_TRUE(batch.append(packet.bytes, {}));
      PacketDescriptor& descriptor = batch.packets().back();
      const std::uint32_t offset = descriptor.offset;
      descriptor = packet.descriptor;
      descriptor.offset = offset;
    }
    run_.begin_batch(batch);
    for (std::size_t at = 0; at < packets.size(); at += function::kBurst) {
      const std::size_t count = std::min(function::kBurst, packets.size() - at);
      std::vector<PacketView> views;
      std::vector<std::byte*> findings;
      std::vector<std::uint32_t> offsets;
      for (std::size_t i = at; i < at + count; ++i) {
        views.push_back(batch.view(i));
        findings.push_back(outcome_.findings[first + i].data());
        offsets.push_back(batch.packets()[i].offset);
      }
      run_.process(views, findings, first + at);
      for (std::size_t i = 0; i < count; ++i) {
        if (views[i].packet != &batch.packets()[at + i]) outcome_.fault = "replaced a descriptor";
        take(views[i], packets[at + i], offsets[i], outcome_.packets[first + at + i]);
      }
    }
    run_.end_batch();
    if (!std::ranges::all_of(memory_, [](std::uint8_t byte) { return byte == kFiller; })) {
      outcome_.fault = "wrote outside the room of the frames";
      std::ranges::fill(memory_, kFiller);
    }
  }

  /// Stores the packet as the stage left it. Its offset is relative to where the frame began.
  void take(const PacketView& view, const Packet& original, std::uint32_t offset, Packet& into) {
    const std::size_t begin = kMargin + offset - room_.head;
    const std::size_t end = kMargin + offset + original.bytes.size() + room_.tail;
    const auto at = static_cast<std::size_t>(view.frame - memory_.data());
    into.descriptor = *view.packet;
    into.descriptor.offset -= offset;
    // A stage that does not read lengths may have got a shorter one.
    const std::size_t length = changes_shape_ ? view.length() : original.bytes.size();
    if (run_.has_replaced(view)) {
      into.descriptor.offset = 0;
      into.bytes.assign(view.frame, view.frame + length);
    } else if (view.packet->offset + kMargin != at || at < begin || at + length > end) {
      outcome_.fault = "moved a frame out of its room";
    } else {
      into.bytes.assign(view.frame, view.frame + length);
      into.bytes.reserve(length + 1);  // so that it is never a null pointer
    }
    std::fill_n(memory_.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, kFiller);
  }

  StageRun& run_;
  const bool changes_shape_;
  const FrameRoom room_;
  std::vector<std::uint8_t> memory_;
  std::vector<PacketDescriptor> descriptors_ = std::vector<PacketDescriptor>(kBatchPackets);
  Outcome outcome_;
};

/// The first line in which the texts differ.
inline std::string difference(const std::string& a, const std::string& b) {
  const std::size_t at = static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  const std::size_t line = a.rfind('\n', at == 0 ? 0 : at - 1) + 1;
  return fmt::format("\n  {}\n  {}", a.substr(line, a.find('\n', at) - line), b.substr(line, b.find('\n', at) - line));
}

/// Returns how one packet of the two runs violates the access, or nothing.
inline std::optional<std::string> violation_in(Access access, const Packet& before, const Packet& other_before,
                                               Packet& after, Packet& other_after) {
  Packet original = before;
  Packet other = other_before;
  if (access.writes.has(Field::frame_shape)) {
    // The layout is parsed again after the stage.
    if (after.descriptor.verdict.alive()) parse(after.view());
    if (other_after.descriptor.verdict.alive()) parse(other_after.view());
  } else if (!(after.descriptor.layout == before.descriptor.layout) ||
             !(other_after.descriptor.layout == other_before.descriptor.layout)) {
    return "changed the layout of " + described(original);
  } else {
    // The fields are where they were, whatever layout the stage got.
    other_after.descriptor.layout = original.descriptor.layout;
  }
  other.descriptor.layout = original.descriptor.layout;
  for (unsigned f = 0; f < kFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (access.writes.has(field)) {
      if (same(field, after, other_after)) continue;
      return fmt::format("{} comes out as {} or as {}, by fields that it does not read: {}\nand {}", name(field),
                         format_field(field, after.view()), format_field(field, other_after.view()),
                         described(original), described(other));
    }
    // Dropped packets do not continue: only the verdict counts.
    const bool dropped = access.writes.has(Field::frame_shape) && !after.descriptor.verdict.alive();
    if (dropped && f < kByteFieldCount) continue;
    if (!same(field, after, original) || !same(field, other_after, other)) {
      return fmt::format("{} changes, and is not among what it writes: {}", name(field), described(original));
    }
  }
  return std::nullopt;
}

}  // namespace access_detail

/// The results of the stage for `packets`.
inline Outcome outcome_of(const MakeRun& make, Access access, const std::vector<Packet>& packets) {
  const std::unique_ptr<StageRun> run = make();
  return access_detail::Runner(*run, access.writes.has(Field::frame_shape))(packets);
}

/// Returns how the stage violates its access, or nothing. `packets` are processed in place.
inline std::optional<std::string> violation(const MakeRun& make, Access access, std::vector<Packet>& packets,
                                            RandomPackets& random) {
  std::vector<Packet> others = packets;
  for (Packet& packet : others) {
    scramble(packet, FieldSet::all() - access.reads, random);
    withhold_layout(packet, access.reads);
  }
  Outcome outcome = outcome_of(make, access, packets);
  Outcome other = outcome_of(make, access, others);
  for (const Outcome* each : {&outcome, &other}) {
    if (!each->fault.empty()) return each->fault;
  }
  for (std::size_t i = 0; i < packets.size(); ++i) {
    auto found = access_detail::violation_in(access, packets[i], others[i], outcome.packets[i], other.packets[i]);
    if (found) return found;
    if (outcome.findings[i] != other.findings[i]) {
      return fmt::format("finds something else, by fields that it does not read: {}\nand {}", described(packets[i]),
                         described(others[i]));
    }
  }
  if (outcome.output != other.output) {
    return "tells something else, by fields that it does not read:" +
           access_detail::difference(outcome.output, other.output);
  }
  packets = std::move(outcome.packets);
  return std::nullopt;
}

}  // namespace penstock::property
