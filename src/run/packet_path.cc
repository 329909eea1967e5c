// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/packet_path.h"

#include <fmt/format.h>

#include "packet/field_text.h"

namespace penstock::run {

std::string port_name(const Chain& chain, PortIndex port) {
  return port < chain.ports.size() ? chain.ports[port].name : "nowhere";
}

std::vector<FieldValue> values_of(const Chain& chain, FieldSet fields, PacketView packet) {
  const PacketDescriptor& descriptor = *packet.packet;
  std::vector<FieldValue> values;
  for (unsigned f = 0; f < kFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (!fields.has(field)) continue;
    std::string value = field == Field::in_port ? port_name(chain, descriptor.in_port)
                        : field == Field::verdict && descriptor.verdict.alive()
                            ? port_name(chain, descriptor.verdict.value)
                            : format_field(field, packet);
    if (!value.empty()) values.push_back({name(field), std::move(value)});
  }
  return values;
}

std::vector<FieldChange> changes_between(PacketView before, PacketView after) {
  std::vector<FieldChange> changes;
  for (unsigned f = 0; f < kFieldCount; ++f) {
    const auto field = static_cast<Field>(f);
    if (field == Field::verdict) continue;
    std::string was = format_field(field, before);
    std::string is = format_field(field, after);
    if (was != is) changes.push_back({name(field), std::move(was), std::move(is)});
  }
  return changes;
}

Decision decision_of(const Chain& chain, const function::NfTraits& function, Verdict verdict) {
  switch (verdict.kind) {
    case VerdictKind::forward: return {"forward", "", verdict.value == kNoPort ? "" : port_name(chain, verdict.value)};
    case VerdictKind::drop: return {"drop", std::string(function.drop_reasons[verdict.value]), ""};
    case VerdictKind::punt: return {"punt", "", ""};
    case VerdictKind::consume: break;
  }
  return {"consume", "", ""};
}

std::string to_string(const std::vector<FieldValue>& values) {
  std::string text;
  for (const FieldValue& value : values) text += fmt::format(" {}={}", value.field, value.value);
  return text.empty() ? " nothing" : text;
}

std::string to_string(const std::vector<FieldChange>& changes) {
  std::string text;
  for (const FieldChange& change : changes) {
    text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", change.field,
                        change.before.empty() ? "none" : change.before, change.after.empty() ? "none" : change.after);
  }
  return text;
}

std::string to_string(const Decision& decision) {
  if (!decision.reason.empty()) return fmt::format("{}: {}", decision.verdict, decision.reason);
  if (!decision.port.empty()) return fmt::format("{} to {}", decision.verdict, decision.port);
  return std::string(decision.verdict);
}

}  // namespace penstock::run
