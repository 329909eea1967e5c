// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/capture.h"

#include <cstring>
#include <utility>

namespace penstock::run {

void offer_dropped(Capture::Session& session, PacketView packet) {
  if (session.choose(packet)) session.give({packet.packet->verdict.value, packet});
}

CapturedBurst::CapturedBurst(std::shared_ptr<Capture::Session> session, std::span<const PacketView> packets,
                             bool copies)
    : session_(std::move(session)) {
  if (session_ == nullptr) return;
  std::size_t bytes = 0;
  for (const PacketView& packet : packets) {
    descriptors_.push_back(*packet.packet);
    frames_.push_back(packet.frame);
    bytes += packet.length();
  }
  if (!copies) return;
  bytes_.resize(bytes);
  std::uint8_t* to = bytes_.data();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (packets[i].length() > 0) std::memcpy(to, packets[i].frame, packets[i].length());
    frames_[i] = to;
    to += packets[i].length();
  }
}

void CapturedBurst::processed(std::span<const PacketView> packets) {
  if (session_ == nullptr) return;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    const Verdict verdict = packets[i].packet->verdict;
    if (verdict.kind != VerdictKind::drop) continue;
    descriptors_[i].verdict = verdict;
    offer_dropped(*session_, {frames_[i], &descriptors_[i]});
  }
}

}  // namespace penstock::run
