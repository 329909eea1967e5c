// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of `penstock doctor` about network interfaces: those of the caller's network namespace, which /sys may not
// show (it shows those of the namespace in which it was mounted).

#pragma once

#include <string>
#include <vector>

#include "cli/finding.h"

namespace penstock::cli {

struct NetworkInterface {
  std::string name;
  std::string driver;  // empty if it has none, such as the loopback interface
  bool up = false;
};

/// As the kernel lists them, in the order of their indices.
[[nodiscard]] std::vector<NetworkInterface> list_interfaces();

/// Pure.
void examine_interfaces(const std::vector<NetworkInterface>& interfaces, std::vector<Finding>& findings);

}  // namespace penstock::cli
