// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "stack/traffic_view.h"

#include <algorithm>
#include <optional>

#include "stack/tcp_session.h"

namespace penstock::stack {

/// Passes everything to all functions of the view. Rewinds streams in between, so that each function sees the same
/// data.
class TrafficView::Everyone final : public PacketSink {
 public:
  Everyone(const std::vector<std::unique_ptr<Attachment>>& functions, std::uint32_t seam_bytes) noexcept
      : functions_(functions), seam_bytes_(seam_bytes) {}

  void packet(TrackedPacket& packet) noexcept override {
    TcpSession* const session = packet.stream_ready ? packet.flow->tcp : nullptr;
    std::optional<TcpSession::InspectionMark> mark;
    for (const auto& function : functions_) {
      if (function->sink_ == nullptr) continue;
      if (mark) session->rewind(packet.direction, *mark);
      if (session != nullptr && !mark) mark = session->mark(packet.direction);
      if (session != nullptr) session->set_seam(function->seam_bytes_);
      function->sink_->packet(packet);
    }
    if (session != nullptr) session->set_seam(seam_bytes_);
  }
  void prefetch(const Flow& flow) const noexcept override {
    for (const auto& function : functions_) {
      if (function->sink_ != nullptr) function->sink_->prefetch(flow);
    }
  }
  void flow_ended(Flow& flow) noexcept override {
    for (const auto& function : functions_) {
      if (function->sink_ != nullptr) function->sink_->flow_ended(flow);
      if (function->ended_ && function->slot(flow) != 0) function->ended_(flow);
    }
  }
  void raise_seam(std::uint32_t bytes) noexcept { seam_bytes_ = std::max(seam_bytes_, bytes); }

 private:
  const std::vector<std::unique_ptr<Attachment>>& functions_;
  std::uint32_t seam_bytes_;  // the most of all functions
};

namespace {

TrackerOptions with_slots(TrackerOptions options, std::size_t functions) noexcept {
  options.flow_slots = static_cast<std::uint8_t>(functions);
  return options;
}

}  // namespace

TrafficView::TrafficView(const TrackerOptions& options, std::span<const std::uint32_t> seams)
    : tracker_(with_slots(options, seams.size())),
      everyone_(std::make_unique<Everyone>(attachments_, options.seam_bytes)) {
  for (const std::uint32_t seam : seams) {
    attachments_.push_back(std::make_unique<Attachment>(*this, static_cast<unsigned>(attachments_.size()), seam));
  }
}
TrafficView::~TrafficView() = default;

PacketSink& TrafficView::sink() noexcept {
  const bool alone = attachments_.size() == 1 && attachments_.front()->sink_ != nullptr;
  return alone ? static_cast<PacketSink&>(*attachments_.front()->sink_) : *everyone_;
}

void TrafficView::begin_frame(PacketView frame, std::size_t index) noexcept {
  for (const auto& function : attachments_) {
    if (function->sink_ != nullptr) function->sink_->begin_frame(frame, index);
  }
}

void TrafficView::settle() noexcept {
  if (asked_about_ == nullptr) return;
  const bool passes = asked_about_->verdict.alive();
  asked_about_ = nullptr;
  if (passes) {
    tracker_.pass(sink());
  } else {
    tracker_.drop(sink());
  }
}

void TrafficView::finish() noexcept {
  settle();
  for (const auto& function : attachments_) {
    if (function->sink_ != nullptr) function->sink_->begin_end();
  }
  tracker_.finish(sink());
}

PacketFlow Attachment::flow_of(PacketView packet) noexcept {
  if (view_.asked_about_ != packet.packet) {
    view_.settle();
    view_.flow_ = view_.tracker_.look_up(packet, view_.numbers_.of(*packet.packet));
    view_.asked_about_ = packet.packet;
  }
  return view_.flow_;
}

void Attachment::set_seam(std::uint32_t bytes) noexcept {
  seam_bytes_ = bytes;
  view_.everyone_->raise_seam(bytes);
  view_.tracker_.raise_seam(bytes);
}

bool Attachment::tracks() const noexcept {
  for (auto later = view_.attachments_.rbegin(); later->get() != this; ++later) {
    if ((*later)->sink_ != nullptr) return false;
  }
  return true;
}

void Attachment::prefetch(std::span<const PacketView> frames) noexcept {
  view_.tracker_.prefetch(frames, view_.sink());
}

void Attachment::track(PacketView frame, std::size_t index) noexcept {
  const bool is_looked_up = view_.asked_about_ == frame.packet;
  if (is_looked_up) {
    view_.asked_about_ = nullptr;
  } else {
    view_.settle();
  }
  view_.begin_frame(frame, index);
  if (is_looked_up) {
    view_.tracker_.pass(view_.sink());
  } else {
    view_.tracker_.track(frame, view_.numbers_.of(*frame.packet), view_.sink());
  }
}

void Attachment::refuse_frame() noexcept { view_.tracker_.refuse_frame(); }

void Attachment::observe(PacketView frame) noexcept {
  if (!tracks()) return;
  view_.settle();
  view_.begin_frame(frame, FrameSink::kNone);
  view_.tracker_.observe(frame, view_.numbers_.of(*frame.packet), view_.sink());
}

void Attachment::note_number(const PacketDescriptor& frame) noexcept { static_cast<void>(view_.numbers_.of(frame)); }

void Attachment::expire(std::uint64_t now_ns) noexcept {
  view_.settle();
  view_.tracker_.expire(now_ns, view_.sink());
}

const TrackerCounters& Attachment::counters() const noexcept { return view_.tracker_.counters(); }

}  // namespace penstock::stack
