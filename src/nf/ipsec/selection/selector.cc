// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/selection/selector.h"

namespace penstock::ipsec {

std::string to_string(const IpAddress& address) {
  return std::visit([](const auto& of_family) { return penstock::to_string(of_family); }, address);
}

std::string to_string(const IpPrefix& prefix) {
  return std::visit([](const auto& of_family) { return penstock::to_string(of_family); }, prefix);
}

std::string to_string(const Selector& selector) {
  std::string text = "src " + to_string(selector.source) + " dst " + to_string(selector.destination);
  if (selector.protocol != 0) text += " proto " + std::to_string(selector.protocol);
  if (selector.source_port) text += " sport " + std::to_string(*selector.source_port);
  if (selector.destination_port) text += " dport " + std::to_string(*selector.destination_port);
  if (!selector.device.empty()) text += " dev " + selector.device;
  return text;
}

}  // namespace penstock::ipsec
