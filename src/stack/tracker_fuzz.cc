// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Segments of one connection, in any order and with any numbers: no policy and no memory bound may let the tracker read
// what is not there, offer a byte twice as new, leave one out, or forget a flow's end. Without shortcuts, the same
// comes out.
//
// Input: policy, options (a bit each), then for each packet: direction and flags, then sequence, ack (16 bits each,
// relative to the directions' first), window (8 bits), length of the data, milliseconds since the last.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "base/byte_order.h"
#include "packet/transport.h"
#include "stack/tcp_session.h"
#include "stack/tracker.h"

using namespace penstock;
using namespace penstock::stack;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

std::uint16_t be16(const std::uint8_t* bytes) { return reinterpret_cast<const Be16*>(bytes)->value(); }

class Watcher final : public PacketSink {
 public:
  explicit Watcher(bool looks_at_news) : looks_at_news_(looks_at_news) {}
  void packet(TrackedPacket& packet) noexcept override {
    note(packet.stream_events.count());
    note(packet.payload_in_stream, packet.stream_ready, packet.established, static_cast<unsigned>(packet.refused));
    if (packet.flow == nullptr) return;
    require(packet.flow->id != ended_);
    if (packet.flow->id != current_) {
      begin_ = {};
      for (std::vector<bool>& one : offered_) one.clear();
    }
    current_ = packet.flow->id;
    if (!packet.stream_ready || packet.flow->tcp == nullptr) return;
    std::uint64_t& begin = begin_[static_cast<std::size_t>(packet.direction)];
    std::vector<bool>& offered = offered_[static_cast<std::size_t>(packet.direction)];
    std::uint8_t& beginnings = beginnings_[static_cast<std::size_t>(packet.direction)];
    const std::uint8_t now = packet.flow->tcp->stream(packet.direction).beginnings;
    if (now != beginnings) {  // another session of the same flow
      begin = 0;
      offered.clear();
      beginnings = now;
    }
    bool is_first = true;
    packet.flow->tcp->inspect(packet.direction, packet.stream_end, [&](const StreamChunk& chunk) {
      require(!chunk.bytes.empty() && chunk.seen < chunk.bytes.size());
      const std::uint64_t end = chunk.offset + chunk.bytes.size();
      // Contested bytes come again, and those of a hole that was skipped may come late.
      const bool goes_on = !chunk.contested && chunk.seen_behind == 0 && end > begin;
      if (looks_at_news_ && goes_on) require(chunk.offset + chunk.seen >= begin);
      // Trailing bytes only give context to those of a hole. If they have never been new, a later chunk has them as
      // such.
      const std::uint64_t end_of_news = end - chunk.seen_behind;
      begin = std::max(begin, end_of_news);
      if (!chunk.contested) {
        if (looks_at_news_ && is_first) require(!is_offered(offered, chunk.offset + chunk.seen));
        is_first = false;
        if (offered.size() < end_of_news) offered.resize(end_of_news);
        std::fill(offered.begin() + static_cast<std::ptrdiff_t>(chunk.offset + chunk.seen),
                  offered.begin() + static_cast<std::ptrdiff_t>(end_of_news), true);
      }
      note(chunk.offset, chunk.seen, chunk.seen_behind, chunk.contested);
      for (const std::uint8_t byte : chunk.bytes) note(byte);
    });
    require_all_offered(packet.flow->tcp->stream(packet.direction), offered);
  }
  void flow_ended(Flow& flow) noexcept override {
    require(flow.id != ended_);
    ended_ = flow.id;
    ++flows_ended;
  }
  std::uint64_t flows_ended = 0;
  std::uint64_t digest = 0;  // of all that came out

 private:
  template <typename... Values>
  void note(Values... values) {
    ((digest = (digest + static_cast<std::uint64_t>(values)) * 0x9e3779b97f4a7c15U), ...);
  }

  static bool is_offered(const std::vector<bool>& offered, std::uint64_t at) {
    return at < offered.size() && offered[static_cast<std::size_t>(at)];
  }
  static void require_all_offered(const TcpStream& stream, const std::vector<bool>& offered) {
    for (std::uint64_t at = stream.buffer.begin(); at < stream.inspected;) {
      const StreamBuffer::Run run = stream.buffer.run_from(at);
      if (run.bytes.empty()) return;
      for (at = run.offset; at < std::min(run.end(), stream.inspected); ++at) require(is_offered(offered, at));
    }
  }

  std::array<std::uint64_t, 2> begin_{};
  std::array<std::vector<bool>, 2> offered_;  // by Direction and offset: was new in a chunk
  std::array<std::uint8_t, 2> beginnings_{};
  std::uint64_t current_ = 0, ended_ = 0;
  bool looks_at_news_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  TrackerOptions options;
  options.stream_policy = static_cast<OverlapPolicy>(data[0] % 7);
  options.midstream = (data[1] & 1) != 0;
  options.async_oneside = (data[1] & 2) != 0;
  options.inline_streams = (data[1] & 4) != 0;
  options.seam_bytes = (data[1] & 8) != 0 ? 16 : 0;
  options.stream_memory = (data[1] & 16) != 0 ? 8192 : 1 << 18;
  options.stream_depth = (data[1] & 32) != 0 ? 1000 : 0;
  options.chunk_bytes = (data[1] & 64) != 0 ? 100 : 2560;
  options.refuse_when_full = (data[1] & 128) != 0;
  options.flow_memory = 4096;
  options.fragment_memory = 1 << 12;
  Tracker tracker(options);
  Watcher watcher(!options.inline_streams);
  options.shortcuts = false;
  Tracker the_long_way(options);
  Watcher watcher_of_it(!options.inline_streams);
  // Both wrap.
  constexpr std::array<std::uint32_t, 2> kFirst = {0xffffff00, 0xfffff000};
  std::uint64_t now_ns = 1'000'000'000'000;
  std::vector<std::uint8_t> header, payload;
  for (std::size_t at = 2; at + 9 <= size; at += 9) {
    const std::uint8_t* const p = data + at;
    const bool from_client = (p[0] & 64) != 0;
    const bool has_timestamp = (p[0] & 128) != 0;
    header.assign(has_timestamp ? 32 : 20, 1);
    auto& tcp = *reinterpret_cast<TcpHeader*>(header.data());
    tcp.source_port.set(from_client ? 1000 : 80);
    tcp.destination_port.set(from_client ? 80 : 1000);
    tcp.sequence.set(kFirst[from_client ? 0 : 1] + be16(p + 1));
    tcp.acknowledgment.set(kFirst[from_client ? 1 : 0] + be16(p + 3));
    tcp.data_offset = static_cast<std::uint8_t>(header.size() / 4 << 4);
    tcp.flags = p[0] & 63;
    tcp.window.set(static_cast<std::uint16_t>(p[5] << 8));
    tcp.checksum.set(0);
    tcp.urgent.set(p[5]);
    if (has_timestamp) {
      header[22] = 8;
      header[23] = 10;
      header[27] = p[6];
    }
    payload.assign(static_cast<std::size_t>(p[7]) * (p[6] % 8 == 0 ? 16 : 1), p[6]);
    DecodedPacket packet;
    now_ns += static_cast<std::uint64_t>(p[8]) * p[8] * 10'000'000;
    packet.timestamp_ns = now_ns;
    packet.ip_version = 4;
    packet.has_flow = true;
    packet.protocol = 6;
    packet.source = {{0, from_client ? 1U : 2U}, tcp.source_port.value()};
    packet.destination = {{0, from_client ? 2U : 1U}, tcp.destination_port.value()};
    packet.transport = header;
    packet.payload = payload;
    DecodedPacket copy = packet;
    tracker.track(packet, watcher);
    the_long_way.track(copy, watcher_of_it);
  }
  tracker.finish(watcher);
  the_long_way.finish(watcher_of_it);
  require(watcher.digest == watcher_of_it.digest);
  require(watcher.flows_ended == tracker.counters().flows);
  require(tracker.counters().flows_ended == tracker.counters().flows);
  return 0;
}
