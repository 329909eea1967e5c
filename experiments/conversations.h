// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// TCP conversations as a capture: what functions are measured with that follow connections.

#pragma once

#include <cstddef>
#include <string>

namespace penstock::experiments {

struct ConversationPlan {
  std::size_t connections = 10'000;
  std::size_t responses = 16;      // packets with data from the server in each, all of the frame's size
  std::size_t frame_bytes = 1514;  // without check sequence; at least 66
  std::size_t at_once = 1000;      // connections open at a time, whose packets take turns
};

/// A classic pcap file's bytes. Each connection: handshake, a request, the responses, every second of which is
/// acknowledged, and FIN both ways; right checksums, and the text of web pages as payload. The same in every run.
[[nodiscard]] std::string conversations_capture(const ConversationPlan& plan);

}  // namespace penstock::experiments
