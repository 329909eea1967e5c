// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The frames of the port `generator`, complete except for what depends on the flow: addresses, ports, TCP sequence
// number and checksums are written for each packet. Sizes include the 4 bytes of the frame check sequence, as in RFC
// 2544 and other packet generators. The frames in memory do not have it, like those in captures.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace penstock::port {

inline constexpr std::uint32_t kFrameCheckBytes = 4;

enum class Payload : std::uint8_t { zero, random, http, capture };

struct FramePlan {
  bool ipv6 = false;
  bool tcp = false;
  std::optional<std::uint16_t> vlan;
  std::vector<std::uint32_t> sizes;  // on the wire, in rotation order; may contain duplicates
  Payload payload = Payload::zero;
  std::string capture;  // source of the payloads
  std::uint64_t seed = 1;
};

struct FrameTemplate {
  std::vector<std::uint8_t> bytes;  // addresses, ports, sequence number and checksums are 0
  std::uint32_t network_sum = 0;    // of the IPv4 header
  std::uint32_t transport_sum = 0;  // of pseudo header, transport header and payload
  std::uint32_t payload_bytes = 0;
};

struct FrameSet {
  std::vector<FrameTemplate> templates;
  std::vector<std::uint32_t> turns;  // indices of `templates` in rotation order, which determines sizes and payloads
  std::uint32_t tuple_at = 0;        // offset of `Flow::tuple` in all frames
  std::uint32_t network_at = 0;
  std::uint32_t transport_at = 0;
  std::uint32_t payload_at = 0;
};

/// The smallest size on the wire that has room for the headers.
[[nodiscard]] std::uint32_t smallest_size(const FramePlan& plan) noexcept;

/// Each size of the plan must be at least `smallest_size`. `stop_fd` stops the reading of a capture: see `ReadControl`.
[[nodiscard]] Result<FrameSet> make_frames(const FramePlan& plan, int stop_fd);

}  // namespace penstock::port
