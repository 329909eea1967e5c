// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All real and broken captures of a corpus: every flow that begins ends, streams never go back, all memory is freed.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/testing/rounds.h"
#include "port/capture_reader.h"
#include "stack/tcp_session.h"
#include "stack/tracker.h"

namespace penstock::stack {
namespace {

std::vector<std::string> captures_of_corpus() {
  const char* given = std::getenv("PENSTOCK_CORPUS");
  const std::filesystem::path corpus = given != nullptr ? given : PENSTOCK_SOURCE_DIR "/../shared/data";
  std::vector<std::string> paths;
  for (const char* folder : {"captures", "ids", "reassembly"}) {
    if (!std::filesystem::is_directory(corpus / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus / folder)) {
      if (entry.is_regular_file() && entry.path().filename().string().find("pcap") != std::string::npos) {
        paths.push_back(entry.path().string());
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Checks these invariants for everything that the tracker reports.
class Watcher final : public PacketSink {
 public:
  struct Open {
    std::array<std::uint64_t, 2> next{};
    std::array<std::uint64_t, 2> packets{};
    bool at_once = false;
  };
  explicit Watcher(bool inline_streams) : inline_(inline_streams) {}

  void packet(TrackedPacket& packet) noexcept override {
    ++packets;
    if (packet.flow == nullptr) {
      EXPECT_TRUE(packet.stream_events.none() && !packet.payload_in_stream && !packet.stream_ready);
      return;
    }
    Open& open = flows[packet.flow->id];
    const auto direction = static_cast<std::size_t>(packet.direction);
    if (!packet.stream_end) ++open.packets[direction];
    const bool from_an_end = packet.packet.source.address == packet.flow->key.client.address ||
                             packet.packet.source.address == packet.flow->key.server.address;
    EXPECT_TRUE(from_an_end || packet.packet.protocol == 1) << "but that routers tell errors";
    if (packet.payload_in_stream) {
      EXPECT_FALSE(packet.packet.payload.empty());
    }
    if (!packet.stream_ready) return;
    ASSERT_NE(packet.flow->tcp, nullptr);
    bool any = false;
    packet.flow->tcp->inspect(packet.direction, packet.stream_end, [&](const StreamChunk& chunk) {
      any = true;
      ASSERT_GT(chunk.bytes.size(), chunk.seen);
      const std::uint64_t end = chunk.offset + chunk.bytes.size();
      // Bytes of a hole that was skipped may come late.
      if (!inline_ && !chunk.contested && chunk.seen_behind == 0 && end > open.next[direction]) {
        ASSERT_GE(chunk.offset + chunk.seen, open.next[direction]);
        open.next[direction] = end;
      }
      for (const std::uint8_t byte : chunk.bytes) sum = sum + byte;
      bytes += chunk.bytes.size() - chunk.seen;
    });
    EXPECT_TRUE(any || packet.stream_end);
    bool again = false;
    packet.flow->tcp->inspect(packet.direction, packet.stream_end, [&](const StreamChunk&) { again = true; });
    EXPECT_FALSE(again) << "what was inspected is not given again";
  }
  void flow_ended(Flow& flow) noexcept override {
    const auto found = flows.find(flow.id);
    ASSERT_NE(found, flows.end());
    EXPECT_EQ(flow.count(Direction::to_server).packets + flow.count(Direction::to_client).packets,
              found->second.packets[0] + found->second.packets[1]);
    flows.erase(found);
  }

  std::unordered_map<std::uint64_t, Open> flows;
  std::uint64_t packets = 0, bytes = 0;
  volatile unsigned sum = 0;

 private:
  bool inline_;
};

TEST(TrackerCorpus, EndsEveryFlowAndNeverGoesBackInAStream) {
  const std::vector<std::string> paths = captures_of_corpus();
  if (paths.empty()) GTEST_SKIP() << "no captures (PENSTOCK_CORPUS)";
  std::uint64_t bytes = 0;
  for (unsigned variant = 0; variant < 4; ++variant) {
    TrackerOptions options;
    options.midstream = (variant & 1) != 0;
    options.async_oneside = variant == 3;
    options.inline_streams = (variant & 2) != 0;
    options.verify_checksums = variant == 1;
    options.stream_policy = static_cast<OverlapPolicy>(variant + 2);
    options.seam_bytes = variant == 1 ? 64 : 0;
    if (variant == 3) {
      options.flow_memory = 1 << 16;
      options.stream_memory = 1 << 18;
    }
    for (std::size_t i = variant % penstock::testing::stride(); i < paths.size(); i += penstock::testing::stride()) {
      const std::string& path = paths[i];
      SCOPED_TRACE(path);
      port::ReadControl control;
      auto reader = port::CaptureReader::open(path, control);
      if (!reader) continue;  // of another link type, or broken from its first byte
      Tracker tracker(options);
      Watcher watcher(options.inline_streams);
      port::CapturedFrame frame;
      std::vector<std::uint8_t> kept;
      while (reader->next(frame) == port::CaptureReader::Status::packet) {
        kept.assign(frame.bytes.begin(), frame.bytes.end());
        kept.shrink_to_fit();
        PacketDescriptor descriptor;
        descriptor.timestamp_ns = frame.timestamp_ns;
        descriptor.length = static_cast<std::uint32_t>(kept.size());
        descriptor.wire_length = frame.wire_length;
        descriptor.link_type = frame.link_type;
        tracker.track({kept.data(), &descriptor}, frame.number, watcher);
      }
      tracker.finish(watcher);
      EXPECT_TRUE(watcher.flows.empty());
      EXPECT_EQ(tracker.counters().flows, tracker.counters().flows_ended);
      bytes += watcher.bytes;
    }
  }
  EXPECT_GT(bytes, penstock::testing::rounds(10U << 20));
}

}  // namespace
}  // namespace penstock::stack
