// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The frames that a function drops, as they came into it. While they are captured, the frames of a function that
// changes bytes are copied before it runs; those of others are still as they came.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "packet/field.h"
#include "packet/packet.h"
#include "run/tap.h"

namespace penstock::run {

/// Borrows the frame.
struct DroppedFrame {
  std::uint16_t reason = 0;  // of the function's drop reasons
  PacketView packet;         // as it came into the function, with the verdict
};

class Capture {
 public:
  using Session = Tap<DroppedFrame>::Session;

  // Any thread may call these.

  /// `reason`: empty: any. False: another capture has not ended.
  [[nodiscard]] bool begin(std::size_t function, std::optional<std::uint16_t> reason, Tap<DroppedFrame>::Order order) {
    if (reason) {
      order.chooses = [reason = *reason, chooses = std::move(order.chooses)](PacketView packet) {
        return packet.packet->verdict.value == reason && (!chooses || chooses(packet));
      };
    }
    if (!tap_.begin(std::move(order))) return false;
    function_.store(function);
    return true;
  }
  void end() {
    function_.store(kNone);
    tap_.end();
  }

  // For workers.

  [[nodiscard]] bool wants(std::size_t function) const noexcept {
    return function_.load(std::memory_order_relaxed) == function && tap_.wants_more();
  }
  /// The function whose frames are wanted; more than any if none are.
  [[nodiscard]] std::size_t wanted() const noexcept {
    const std::size_t function = function_.load(std::memory_order_relaxed);
    return function != kNone && tap_.wants_more() ? function : kNone;
  }
  [[nodiscard]] std::shared_ptr<Session> join() { return tap_.join(); }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

 private:
  Tap<DroppedFrame> tap_;
  std::atomic<std::size_t> function_{kNone};
};

/// Whether frames differ after a stage with this access.
[[nodiscard]] inline bool changes_bytes(const Access& access) noexcept {
  constexpr FieldSet kNotOfTheFrame{Field::timestamp, Field::in_port, Field::verdict, Field::mark, Field::flow_hash};
  return !(access.writes - kNotOfTheFrame).empty();
}

/// Offers a frame that was dropped.
void offer_dropped(Capture::Session& session, PacketView packet);

/// One burst of packets on its way through a function whose drops are captured.
class CapturedBurst {
 public:
  /// Before the function. `copies`: it may change bytes of the frames.
  CapturedBurst(std::shared_ptr<Capture::Session> session, std::span<const PacketView> packets, bool copies);
  /// After it, with the same packets.
  void processed(std::span<const PacketView> packets);

 private:
  std::shared_ptr<Capture::Session> session_;
  std::vector<PacketDescriptor> descriptors_;
  std::vector<std::uint8_t*> frames_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace penstock::run
