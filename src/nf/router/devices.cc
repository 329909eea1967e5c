// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/devices.h"

#include "function/interface_names.h"

namespace penstock::router {

Devices::Devices(std::span<const std::string> ports) : any_(false), names_(ports.begin(), ports.end()) {
  for (std::size_t i = 0; i < names_.size(); ++i) index_.emplace(names_[i], static_cast<PortIndex>(i));
}

bool Devices::add_alias(std::string_view name, std::string_view port) {
  const auto known = index_.find(port);
  if (known == index_.end() && port != kNone) return false;
  const PortIndex meaning = known != index_.end() ? known->second : kNoPort;
  const function::InterfacePattern pattern = function::interface_key(name);
  if (pattern.prefix) {
    prefixes_.emplace(std::string(pattern.stem), meaning);
    return true;
  }
  const auto [place, added] = index_.emplace(std::string(pattern.stem), meaning);
  return added || place->second == meaning;
}

std::optional<PortIndex> Devices::find(std::string_view name) {
  if (!any_ && !names_used_.contains(name)) names_used_.emplace(name);
  if (const auto device = known(name)) return device;
  if (!any_ || names_.size() >= kNoPort) return std::nullopt;
  const auto device = static_cast<PortIndex>(names_.size());
  names_.emplace_back(name);
  index_.emplace(std::string(name), device);
  return device;
}

std::optional<PortIndex> Devices::known(std::string_view name) const {
  const auto known = index_.find(name);
  if (known != index_.end()) return known->second;
  for (std::size_t length = name.size() + 1; length-- > 0 && !prefixes_.empty();) {
    const auto prefix = prefixes_.find(name.substr(0, length));
    if (prefix != prefixes_.end()) return prefix->second;
  }
  return std::nullopt;
}

std::string Devices::list() const {
  std::string text;
  for (const std::string& name : names_) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace penstock::router
