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

}  // namespace penstock::ipsec
