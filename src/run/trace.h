// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Records the paths of single packets through the chain: what each function read, decided and changed, on whichever
// processor it ran. Workers take the packets of a trace aside: on the CPU, these go through the functions one at a
// time; on a device, the lane keeps pictures of them from before and after each stage (run/flight_trace.h).

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "packet/packet.h"
#include "run/chain.h"
#include "run/packet_path.h"
#include "run/tap.h"

namespace penstock::run {

/// The path of one packet.
struct TracedPacket {
  struct Step {
    std::string function{};                                    // "": a fork
    std::string arm{};                                         // of a fork: "in_port lan"
    function::Processor processor = function::Processor::cpu;  // that decided
    std::vector<FieldValue> read{};                            // except the payload
    std::vector<FieldChange> changed{};
    Decision decision{};
    std::string why{};  // "rule 3 (line 12): …"
  };
  std::uint64_t number = 0;  // of the trace, from 1
  std::uint64_t timestamp_ns = 0;
  std::string from;  // port
  std::uint32_t length = 0;
  std::string packet;  // "IPv4 10.0.0.1:1000 > 192.0.2.1:80 TCP"
  std::vector<Step> steps;
  std::optional<Decision> outcome;  // of the chain; empty: the packet ended at the last step
};

/// As lines.
[[nodiscard]] std::string to_string(const TracedPacket& packet);

/// Chooses packets before the first function, which may have no layout yet.
using Trace = Tap<TracedPacket>;

/// Collects the path of one packet.
class TracedWay {
 public:
  /// Empty: the trace does not want this packet.
  [[nodiscard]] static std::optional<TracedWay> begin(const Chain& chain, const std::shared_ptr<Trace::Session>& trace,
                                                      PacketView packet);

  /// A function on the CPU is about to process the packet, …
  void before(const function::NfTraits& traits, const function::CpuStage& stage, std::string_view name,
              PacketView packet);
  /// … and has processed it. `is_held`: it waits (function/holding_stage.h), which the verdict does not say.
  void after(PacketView packet, bool is_held);
  /// A stage on a device got `before` and made `after` of it. `twin` has the same tables.
  void add_device_step(const function::NfTraits& traits, const function::CpuStage& twin, std::string_view name,
                       function::Processor processor, PacketView before, PacketView after);
  /// The function's finish stage has decided otherwise than its device stage, so nothing after it counts.
  void change_decision(const function::NfTraits& traits, std::string_view name, Verdict verdict);
  /// At a fork. Null: the packet takes no arm.
  void take(const plan::Arm* arm);
  /// Gives the path to the trace. `reached_the_end`: the packet passed all functions; its verdict then says where it
  /// was sent.
  void end(PacketView packet, bool reached_the_end);

 private:
  TracedWay(const Chain& chain, std::shared_ptr<Trace::Session> trace) : chain_(&chain), trace_(std::move(trace)) {}
  void add_step(const function::NfTraits& traits, const function::CpuStage& stage, std::string_view name,
                function::Processor processor, FieldSet reads, PacketView before, PacketView after);

  const Chain* chain_;
  std::shared_ptr<Trace::Session> trace_;
  TracedPacket path_;
  const function::NfTraits* traits_ = nullptr;
  const function::CpuStage* stage_ = nullptr;
  std::string_view name_;
  std::vector<std::uint8_t> bytes_;  // the frame before the function
  PacketDescriptor descriptor_;
};

}  // namespace penstock::run
