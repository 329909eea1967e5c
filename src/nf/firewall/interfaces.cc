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

/// "eth0", or with `prefix` all names that begin with the stem.
struct Pattern {
  std::string_view stem;
  bool prefix;

  [[nodiscard]] bool covers(std::string_view name) const { return prefix ? name.starts_with(stem) : name == stem; }
  /// Whether a name can meet both.
  [[nodiscard]] bool meets(const Pattern& other) const {
    return covers(other.stem) || other.covers(stem) || (prefix && other.prefix && stem.starts_with(other.stem));
  }
};

Pattern pattern_of(std::string_view text, std::string_view wildcards) {
  const bool prefix = !text.empty() && wildcards.find(text.back()) != std::string_view::npos;
  return {text.substr(0, text.size() - (prefix ? 1 : 0)), prefix};
}

Pattern rule_pattern(std::string_view text) { return pattern_of(text, "+"); }
Pattern key_pattern(std::string_view text) { return pattern_of(text, "+*"); }

}  // namespace

std::optional<std::uint64_t> Interfaces::ports_of(std::string_view pattern) const {
  const Pattern wanted = rule_pattern(pattern);
  std::uint64_t set = 0;
  bool known = false;
  const auto add = [&](std::uint64_t bits) {
    known = true;
    set |= bits;
  };
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (wanted.covers(ports[i])) add(std::uint64_t{1} << i);
  }
  const std::pair<std::string, std::string>* closest = nullptr;  // of the keys with a wildcard
  for (const auto& alias : aliases) {
    const Pattern key = key_pattern(alias.first);
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

Errors unused_interfaces(const Parameters& parameters, const Interfaces& interfaces, const std::set<std::string>& names,
                         std::string_view what) {
  Errors warnings;
  for (std::size_t i = 0; i < interfaces.aliases.size(); ++i) {
    const std::string& key = interfaces.aliases[i].first;
    const Pattern pattern = key_pattern(key);
    if (std::ranges::any_of(names, [&](const std::string& name) { return rule_pattern(name).meets(pattern); }))
      continue;
    const std::vector<std::string_view> known(names.begin(), names.end());
    warnings.push_back({parameters.place("interfaces", i), fmt::format("interfaces: no {} names this interface", what),
                        in_quotes(key), known.empty() ? "" : expected_name(key, known)});
  }
  return warnings;
}

}  // namespace penstock::firewall
