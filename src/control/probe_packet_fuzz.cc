// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as the text of a packet: FLAGS;TUPLE. What is accepted is a frame that parses as a complete packet.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "control/probe_packet.h"
#include "packet/parse_core.h"

using namespace penstock;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t semicolon = text.find(';');
  control::ProbeText probe;
  if (semicolon != std::string_view::npos) probe.flags = text.substr(0, semicolon);
  probe.tuple = semicolon == std::string_view::npos ? text : text.substr(semicolon + 1);
  probe.length = size * 7;
  for (int round = 0; round < 2; ++round) {
    const auto frame = control::make_probe(probe);
    probe.length.reset();
    if (!frame) {
      if (frame.error().empty() || frame.error().front().message.empty()) std::abort();
      continue;
    }
    const auto length = static_cast<std::uint32_t>(frame->size());
    const PacketLayout layout = parse(frame->data(), length, length, LinkType::ethernet);
    if (!layout.is_ip() || !layout.has(PacketLayout::kNetworkHeader)) std::abort();
  }
  return 0;
}
