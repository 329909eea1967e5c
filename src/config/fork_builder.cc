// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/fork_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/parameter.h"

namespace penstock::config {

namespace {

/// Continues after mistakes. `use` is "in_port" or "out_port". `usable`: whether a port can be used in this way, by
/// PortIndex.
std::vector<PortIndex> find_ports(std::string_view use, const ConditionDescription::Ports& ports,
                                  std::span<const std::string> known, const std::vector<bool>& usable,
                                  std::string_view why_not, Errors& errors) {
  std::vector<PortIndex> found;
  for (const PortName& name : ports.names) {
    const auto port = std::ranges::find(known, name.text);
    if (port == known.end()) {
      const std::vector<std::string_view> names(known.begin(), known.end());
      errors.push_back({name.place, fmt::format("{}: no such port", use), name.found, expected_name(name.text, names)});
      continue;
    }
    const auto index = static_cast<std::size_t>(port - known.begin());
    if (!usable[index]) errors.push_back({name.place, fmt::format("{}: {}", use, why_not), in_quotes(name.text), ""});
    found.push_back(static_cast<PortIndex>(index));
  }
  return found;
}

plan::ArmCondition make_condition(const ConditionDescription& description, const ForkContext& context, Errors& errors) {
  plan::ArmCondition condition;
  if (description.in_port) {
    condition.in_ports = find_ports("in_port", *description.in_port, context.ports, context.ports_read,
                                    "this port does not read", errors);
  }
  if (description.out_port) {
    if (!context.out_port_known) {
      errors.push_back({description.out_port->place, "out_port: no port has been chosen yet for some packets", "",
                        "a function before the fork that chooses it for all packets, such as a router"});
    }
    condition.out_ports = find_ports("out_port", *description.out_port, context.ports, context.ports_write,
                                     "this port does not write", errors);
  }
  return condition;
}

}  // namespace

std::optional<plan::Arm> make_arm(const ArmDescription& description, const ForkContext& context, Errors& errors) {
  const std::size_t mistakes = errors.size();
  plan::Arm arm;
  for (const ConditionDescription& condition : description.when)
    arm.conditions.push_back(make_condition(condition, context, errors));
  if (!description.complete || errors.size() > mistakes) return std::nullopt;
  arm.text = describe(arm.conditions, context.ports);
  return arm;
}

std::string describe(std::span<const plan::ArmCondition> conditions, std::span<const std::string> ports) {
  if (conditions.empty()) return "otherwise";
  const auto names = [&](const std::vector<PortIndex>& indices) {
    std::string all;
    for (const PortIndex port : indices) all += (all.empty() ? "" : "|") + ports[port];
    return all;
  };
  std::string text;
  for (const plan::ArmCondition& condition : conditions) {
    const bool both = !condition.in_ports.empty() && !condition.out_ports.empty();
    text += text.empty() ? "" : " or ";
    if (!condition.in_ports.empty()) text += "in_port " + names(condition.in_ports);
    if (both) text += " and ";
    if (!condition.out_ports.empty()) text += "out_port " + names(condition.out_ports);
  }
  return text;
}

}  // namespace penstock::config
