// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Feeds streams to a detection, cut into segments at random, off the path or inline, with payloads searched by the
// inspector or by a GPU.

#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/nids/detect/content_search.h"
#include "nf/nids/detect/testing/detection_bed.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::nids::testing {

enum class Mode : std::uint8_t { watching, inline_ };
enum class SearchedBy : std::uint8_t { us, another };

/// The literals whose first bytes are in the frame's payload, as a GPU reports them: in order, each once.
inline std::vector<std::uint32_t> literals_in(const Detection& detection, const Frame& frame) {
  constexpr std::size_t kCut = 8, kIp = 14;
  const bool is_udp = frame[kIp + 9] == ip_protocol::kUdp;
  const auto headers = static_cast<std::ptrdiff_t>(kIp + 20 + (is_udp ? sizeof(UdpHeader) : sizeof(TcpHeader)));
  const auto in_lower_case = [](auto from, auto to) {  // case of contents does not matter in these rules
    std::string text(from, to);
    for (char& c : text) c = static_cast<char>(to_lower(static_cast<std::uint8_t>(c)));
    return text;
  };
  const std::string payload = in_lower_case(frame.begin() + headers, frame.end());
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < detection.literals().size(); ++i) {
    const auto& bytes = detection.literals()[i].bytes;
    const auto length = static_cast<std::ptrdiff_t>(std::min(kCut, bytes.size()));
    const std::string text = in_lower_case(bytes.begin(), bytes.begin() + length);
    if (payload.find(text) != payload.npos) found.push_back(i);
  }
  return found;
}

/// Streams from client to server, one after the other, each cut at random, with acknowledgements at random. Inline,
/// segments are also reordered and repeated.
template <typename Bed>
class CutStreamsOf {
 public:
  /// `most_segment`: the maximum length, in streams with long segments.
  CutStreamsOf(std::string_view rules, Mode mode, SearchedBy who, std::uint32_t chunk_bytes, std::size_t most_segment)
      : mode_(mode),
        who_(who),
        most_segment_(most_segment),
        bed_(rules, {.budget = kNoBudget}, {.most_alerts = 1000}, tracker(mode, chunk_bytes)) {}

  /// The alerts of the next stream: sids, in order.
  [[nodiscard]] std::vector<std::uint32_t> alerts_of(const std::string& text, std::mt19937& random) {
    const std::size_t before = bed_.alerts().size();
    Conversation talk(++port_);
    for (const Frame& one : talk.handshake()) frame(one);
    talk.skip(0, static_cast<std::uint32_t>(text.size()));
    const std::size_t most = 1 + random() % most_segment_;
    std::vector<std::pair<std::size_t, std::size_t>> cuts;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = std::min(text.size() - at, 1 + random() % most);
      cuts.emplace_back(at, length);
      at += length;
    }
    const auto segment = [&](std::size_t from, std::size_t length) {
      frame(talk.data_at(0, static_cast<std::int64_t>(from) - static_cast<std::int64_t>(text.size()),
                         std::string_view(text).substr(from, length)));
    };
    Conversation acks(port_);
    static_cast<void>(acks.handshake());
    std::size_t acked = 0;
    const auto acknowledge = [&](std::size_t up_to) {
      acks.skip(0, static_cast<std::uint32_t>(up_to - acked));
      acked = up_to;
      frame(acks.ack(1));
    };
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const bool swaps = mode_ == Mode::inline_ && i + 1 < cuts.size() && random() % 4 == 0;
      if (swaps) segment(cuts[i + 1].first, cuts[i + 1].second);
      segment(cuts[i].first, cuts[i].second);
      if (swaps) ++i;
      const std::size_t sent = cuts[i].first + cuts[i].second;
      if (random() % 4 == 0) {  // retransmit from some position on
        const std::size_t back = std::min<std::size_t>(sent - acked, random() % 20);
        segment(sent - back, back);
      }
      if (random() % 2 == 0) acknowledge(sent);
    }
    acknowledge(text.size());
    bed_.finish();
    std::vector<std::uint32_t> sids = bed_.sids();
    sids.erase(sids.begin(), sids.begin() + static_cast<std::ptrdiff_t>(before));
    return sids;
  }

 private:
  static constexpr InspectionBudget kNoBudget{.work = std::uint64_t{1} << 60, .expressions = std::uint64_t{1} << 60};

  static stack::TrackerOptions tracker(Mode mode, std::uint32_t chunk_bytes) {
    stack::TrackerOptions options;
    options.chunk_bytes = chunk_bytes;
    options.inline_streams = mode == Mode::inline_;
    return options;
  }
  void frame(const Frame& frame) {
    if (who_ == SearchedBy::us) return bed_.frame(frame);
    const std::vector<std::uint32_t> literals = literals_in(bed_.detection(), frame);
    bed_.frame(frame, {.known = true, .literals = literals});
  }

  Mode mode_;
  SearchedBy who_;
  std::size_t most_segment_;
  Bed bed_;
  std::uint16_t port_ = 1000;
};

using CutStreams = CutStreamsOf<DetectionBed>;

}  // namespace penstock::nids::testing
