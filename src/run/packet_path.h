// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What a function has read, decided and changed of a packet, for people: traces and explanations.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "function/network_function.h"
#include "packet/field.h"
#include "packet/packet.h"
#include "run/chain.h"

namespace penstock::run {

struct FieldValue {
  std::string_view field;  // lives as long as the program, like the next one
  std::string value;
};

struct FieldChange {
  std::string_view field;
  std::string before, after;  // "": the packet does not have it
};

struct Decision {
  std::string_view verdict = "forward";  // "forward", "drop", "punt" or "consume"
  std::string reason{};                  // of a drop
  std::string port{};                    // of a forward; "": none was chosen
};

/// "nowhere" for kNoPort.
[[nodiscard]] std::string port_name(const Chain& chain, PortIndex port);

/// Only of fields that the packet has. Ports by their names.
[[nodiscard]] std::vector<FieldValue> values_of(const Chain& chain, FieldSet fields, PacketView packet);
/// Of all fields but the verdict.
[[nodiscard]] std::vector<FieldChange> changes_between(PacketView before, PacketView after);
/// The verdict of a function with these traits.
[[nodiscard]] Decision decision_of(const Chain& chain, const function::NfTraits& function, Verdict verdict);

/// " ipv4_ttl=64 ipv4_dst=192.0.2.1", or " nothing".
[[nodiscard]] std::string to_string(const std::vector<FieldValue>& values);
/// "ipv4_ttl 64 → 63, …", or "".
[[nodiscard]] std::string to_string(const std::vector<FieldChange>& changes);
/// "forward to wan", "drop: denied".
[[nodiscard]] std::string to_string(const Decision& decision);

}  // namespace penstock::run
