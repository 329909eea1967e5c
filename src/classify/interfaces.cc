// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/interfaces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "classify/rule.h"
#include "function/interface_names.h"

namespace penstock::classify {

namespace {

std::uint64_t port_bit(const std::vector<std::string>& ports, std::string_view name) {
  const auto at = std::find(ports.begin(), ports.end(), name);
  return at == ports.end() ? 0 : std::uint64_t{1} << (at - ports.begin());
}

}  // namespace

std::optional<std::uint64_t> Interfaces::ports_of(std::string_view pattern) const {
  const function::InterfacePattern wanted = function::interface_in_file(pattern);
  std::uint64_t set = 0;
  bool known = false;
  const auto add = [&](std::uint64_t bits) {
    known = true;
    set |= bits;
  };
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (wanted.covers(ports[i])) add(std::uint64_t{1} << i);
  }
  const std::pair<std::string, std::string>* closest = nullptr;  // among the keys with a wildcard
  for (const auto& alias : aliases) {
    const function::InterfacePattern key = function::interface_key(alias.first);
    if (!wanted.meets(key)) continue;
    if (wanted.prefix || !key.prefix) {
      add(port_bit(ports, alias.second));
    } else if (closest == nullptr || closest->first.size() < alias.first.size()) {
      closest = &alias;
    }
  }
  if (!known && closest != nullptr) add(port_bit(ports, closest->second));
  if (!known && !unknown_is_none) return std::nullopt;
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
  append(errors, function::check_interface_keys(mapping, [&](std::size_t) { return place; }));
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

}  // namespace penstock::classify
