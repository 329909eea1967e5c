// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/own_stacks.h"

#include <chrono>
#include <span>

#include "function/burst.h"
#include "stack/tcp_session.h"

namespace penstock::run {

namespace {

/// Passes over the bytes of streams, so that their memory is free again.
class Reader final : public stack::PacketSink {
 public:
  void packet(stack::TrackedPacket& packet) noexcept override {
    if (packet.stream_ready) packet.flow->tcp->inspect(packet.direction, packet.stream_end, [](const auto&) {});
  }
};

}  // namespace

OwnStacks::OwnStacks(const Chain& chain, const plan::DevicePlan& plan, WorkerCounters& counters)
    : chain_(chain), plan_(plan), counters_(counters) {
  if (!plan.own_stacks) return;
  for (const ring::SegmentShape& segment : plan.segments) {
    const function::NfTraits& traits = chain.functions[segment.stages.front().function].function->traits();
    const bool tracks = traits.stack == stack::StackNeed::flow || traits.stack == stack::StackNeed::tcp_stream ||
                        traits.connections.has_value();
    functions_.push_back({tracks ? nullptr : std::make_unique<stack::Tracker>(stack::TrackerOptions{}), {}});
  }
}

void OwnStacks::make_buffers(Flight& flight) const {
  if (!plan_.own_stacks) return;
  const std::size_t packets = chain_.settings.batch_packets;
  const std::size_t bytes =
      FrameScratch::bytes_for(chain_.settings.batch_bytes, packets, plan::growth_of(chain_.traits()));
  const auto shared = static_cast<bool>(chain_.settings.remote);
  for (const ring::SegmentShape& segment : plan_.segments) {
    // Without room between frames, so that not more bytes cross than elsewhere.
    flight.own_buffers.push_back(segment.frames_up ? FrameScratch(bytes, packets, {}, shared) : FrameScratch());
  }
}

void OwnStacks::take_in(Flight& flight) noexcept {
  const Batch::Clock::time_point start = Batch::Clock::now();
  const std::size_t segment = flight.current().segment;
  if (flight.shape().frames_up) flight.copy_frames(flight.own_buffers[segment]);
  Function& function = functions_[segment];
  if (function.tracker != nullptr) {
    Reader reader;
    function::for_each_burst(
        *flight.batch, [&](std::size_t i) { return flight.view(i); },
        [&](std::span<PacketView> burst) {
          for (std::size_t i = 0; i < burst.size(); ++i) {
            if (i % stack::Tracker::kMostPrefetched == 0) function.tracker->prefetch(burst.subspan(i), reader);
            function.tracker->track(burst[i], function.numbers.of(*burst[i].packet), reader);
          }
        });
  }
  const std::chrono::nanoseconds spent = Batch::Clock::now() - start;
  counters_.stack_time_ns.add(static_cast<std::uint64_t>(spent.count()));
}

void OwnStacks::end() noexcept {
  Reader reader;
  for (Function& function : functions_) {
    if (function.tracker != nullptr) function.tracker->finish(reader);
  }
}

}  // namespace penstock::run
