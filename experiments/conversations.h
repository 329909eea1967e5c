// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// TCP conversations as a capture, to measure functions that follow connections.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace penstock::experiments {

struct ConversationPlan {
  std::size_t connections = 10'000;
  std::size_t responses = 16;            // packets with data from the server per connection, all of the frame size
  std::size_t frame_bytes = 1514;        // without FCS, at least 60; longer requests are cut
  std::size_t at_once = 1000;            // connections open at a time; their packets alternate
  std::vector<std::uint32_t> servers{};  // server addresses, used in turn; empty: 4,096 of 198.18.0.0/15
};

/// Returns a classic pcap file. Each connection has a handshake, a request, responses (every second one is
/// acknowledged) and FINs in both directions, with correct checksums and payloads of web-page text. The last connection
/// begins two minutes after the others, so that when the capture is replayed, functions have forgotten the earlier
/// connections and see new ones. The result is the same in every run.
[[nodiscard]] std::string conversations_capture(const ConversationPlan& plan);

/// Response bytes per packet of such a capture: what a function that follows all connections sees.
[[nodiscard]] double stream_bytes_per_packet(const ConversationPlan& plan);

}  // namespace penstock::experiments
