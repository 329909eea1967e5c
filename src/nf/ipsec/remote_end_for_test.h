// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a worker of an outbound function whose device belongs to another process.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "function/burst.h"
#include "nf/ipsec/ipsec_for_test.h"
#include "nf/ipsec/sealing_steps_for_test.h"

namespace penstock::ipsec::testing {

inline Settings remote_device(Settings settings = {}) {
  settings.device_is_remote = true;
  return settings;
}

/// A worker of an outbound function whose device carries out what the worker decides.
class RemoteEnd {
 public:
  explicit RemoteEnd(End of) : end(std::move(of)), recipe(*end.function->stage_recipe(function::Processor::gpu)) {}

  /// Packets on their way through the device.
  struct Flight {
    std::vector<std::unique_ptr<RoomyFrame>> frames;
    std::vector<PacketView> views;
    std::vector<Decision> decisions;
    std::vector<std::byte*> states;
  };
  [[nodiscard]] std::unique_ptr<Flight> begin(const std::vector<Arriving>& batch) {
    auto flight = std::make_unique<Flight>();
    for (const Arriving& one : batch) {
      flight->frames.push_back(
          std::make_unique<RoomyFrame>(one.bytes, end.function->traits().growth, one.link, one.wire_length));
      flight->views.push_back(flight->frames.back()->view);
    }
    flight->decisions.resize(batch.size());
    for (Decision& decision : flight->decisions) flight->states.push_back(reinterpret_cast<std::byte*>(&decision));
    end.stage->begin_batch();
    bursts(flight->views.size(), [&](std::size_t first, std::size_t count) {
      state_stage->fill(std::span(flight->views).subspan(first, count),
                        std::span(flight->states).subspan(first, count));
    });
    return flight;
  }
  [[nodiscard]] std::vector<Done> end_on_device(Flight& flight) {
    const SealingSpans tables = *read_outbound_recipe(recipe);
    std::vector<Done> done;
    for (std::size_t i = 0; i < flight.views.size(); ++i) {
      PacketDescriptor& packet = *flight.views[i].packet;
      const std::uint32_t before = packet.offset;
      const OutboundFinding finding = carry_out_on_host(flight.decisions[i], flight.views[i], tables);
      if (packet.verdict.kind == VerdictKind::punt) {
        packet.verdict = Verdict::forward();
        give_back(flight, i, 1);
      } else {
        const auto* const found = reinterpret_cast<const std::byte*>(&finding);
        finish->finish({&flight.views[i], 1}, {&found, 1});
        flight.views[i].frame -= before - packet.offset;
      }
      done.push_back(done_of(flight.views[i]));
    }
    return done;
  }
  [[nodiscard]] std::vector<Done> end_on_cpu(Flight& flight) {
    bursts(flight.views.size(), [&](std::size_t first, std::size_t count) { give_back(flight, first, count); });
    std::vector<Done> done;
    for (const PacketView& view : flight.views) done.push_back(done_of(view));
    return done;
  }

  End end;
  const function::StageRecipe recipe;
  std::unique_ptr<function::StateStage> state_stage = end.function->make_state_stage(*end.stage);
  std::unique_ptr<function::FinishStage> finish = end.function->make_finish_stage(*end.stage);

 private:
  template <typename Use>
  static void bursts(std::size_t packets, Use use) {
    for (std::size_t first = 0; first < packets; first += function::kBurst)
      use(first, std::min(function::kBurst, packets - first));
  }
  void give_back(Flight& flight, std::size_t first, std::size_t count) {
    const auto views = std::span(flight.views).subspan(first, count);
    const std::vector<const std::byte*> states(flight.states.begin() + static_cast<std::ptrdiff_t>(first),
                                               flight.states.begin() + static_cast<std::ptrdiff_t>(first + count));
    state_stage->hand_back(views, states);
    end.making->emissions.begin({});
    end.stage->process(views);
  }
  static Done done_of(PacketView view) {
    return {fate_of(view.packet->verdict), Bytes(view.frame, view.frame + view.length())};
  }
};

}  // namespace penstock::ipsec::testing
