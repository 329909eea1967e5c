// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a chain would do with a packet that came now, function by function, without sending it
// (NetworkFunction::explain).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "function/explanation.h"
#include "packet/packet.h"
#include "run/chain.h"
#include "run/packet_path.h"

namespace penstock::run {

struct ExplainedPacket {
  struct Step {
    std::string function;  // "": a fork
    std::string arm{};     // of a fork: "in_port lan"; "": the packet takes none
    /// Empty: the function explains nothing, and is taken to forward the packet unchanged.
    std::optional<function::Explanation> explanation{};
    Decision decision{};
    std::vector<FieldChange> changes{};
  };
  std::string packet;  // "IPv4 10.0.0.1:1000 > 192.0.2.1:80 TCP"
  std::string in_port;
  std::vector<Step> steps;  // up to the function at which it ends
  /// What happens at last. The port, if any, is where it leaves; forwarded without a port, it is consumed.
  Decision outcome;
  std::string refused;  // why its port does not send it now; empty: it does
  /// Why the outcome is not certain, or unknown. Empty: it is certain.
  std::vector<std::string> open_questions;
};

/// Whether the links of ports and their MTUs are known.
enum class Ports : std::uint8_t { open, closed };

/// Thread-safe as long as no function of the chain is exchanged. `packet` has an input port, and is changed.
[[nodiscard]] ExplainedPacket explain(const Chain& chain, PacketView packet, Ports ports = Ports::open);

}  // namespace penstock::run
