// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// TCP conversations as a capture: what functions are measured with that follow connections.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::experiments {

struct ConversationPlan {
  std::size_t connections = 10'000;
  std::size_t responses = 16;            // packets with data from the server in each, all of the frame's size
  std::size_t frame_bytes = 1514;        // without check sequence; at least 60. A request that is longer is cut
  std::size_t at_once = 1000;            // connections open at a time, whose packets take turns
  std::vector<std::uint32_t> servers{};  // their addresses, in turn; none: 4,096 of 198.18.0.0/15
};

/// A classic pcap file's bytes. Each connection: handshake, a request, the responses, every second of which is
/// acknowledged, and FIN both ways; right checksums, and the text of web pages as payload. The last connection comes
/// two minutes after the others: when the capture is played again, functions that follow connections have forgotten
/// those of the time before, and see new ones. The same in every run.
[[nodiscard]] std::string conversations_capture(const ConversationPlan& plan);

/// Bytes of responses for each packet of such a capture: what a function that follows all of its connections sees.
[[nodiscard]] double stream_bytes_per_packet(const ConversationPlan& plan);

}  // namespace penstock::experiments
