// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/interfaces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nf/firewall/rule.h"

namespace penstock::firewall {

namespace {

std::uint64_t port_bit(const std::vector<std::string>& ports, std::string_view name) {
  const auto at = std::find(ports.begin(), ports.end(), name);
  return at == ports.end() ? 0 : std::uint64_t{1} << (at - ports.begin());
}

}  // namespace

std::optional<std::uint64_t> Interfaces::ports_of(std::string_view pattern) const {
  const bool prefix = !pattern.empty() && pattern.back() == '+';
  if (prefix) pattern.remove_suffix(1);
  const auto matches = [&](std::string_view name) { return prefix ? name.starts_with(pattern) : name == pattern; };
  std::uint64_t set = 0;
  bool known = unknown_is_none;
  for (const auto& [interface, port] : aliases) {
    if (!matches(interface)) continue;
    known = true;
    set |= port_bit(ports, port);
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (!matches(ports[i])) continue;
    known = true;
    set |= std::uint64_t{1} << i;
  }
  if (!known) return std::nullopt;
  return set;
}

std::string Interfaces::port_names() const { return fmt::format("{}", fmt::join(ports, ", ")); }

Result<Interfaces> make_interfaces(std::span<const std::string> ports, std::span<const std::string> mapping,
                                   const Place& place, bool out_known) {
  Interfaces interfaces;
  interfaces.ports.assign(ports.begin(), ports.end());
  interfaces.out_known = out_known;
  Errors errors;
  if (ports.size() > kOtherPort) {
    errors.push_back({place, "too many ports for a firewall", fmt::format("{}", ports.size()),
                      fmt::format("at most {}", kOtherPort)});
    return failure(std::move(errors));
  }
  for (const std::string& item : mapping) {
    const std::size_t equals = item.find('=');
    const std::string port = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (port != Interfaces::kNone && port_bit(interfaces.ports, port) == 0) {
      errors.push_back({place, "interface mapped to an unknown port", in_quotes(item),
                        fmt::format("one of {}, or {}", interfaces.port_names(), Interfaces::kNone)});
      continue;
    }
    interfaces.aliases.emplace_back(item.substr(0, equals), port);
  }
  if (!errors.empty()) return failure(std::move(errors));
  return interfaces;
}

}  // namespace penstock::firewall
