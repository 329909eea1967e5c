// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor_interfaces.h"

#include <fmt/format.h>

#include <string_view>

#include "port/live/interface.h"

namespace penstock::cli {

std::vector<NetworkInterface> list_interfaces() {
  std::vector<NetworkInterface> interfaces;
  for (const std::string& name : port::interface_names()) {
    // It may have been deleted since.
    if (const auto found = port::find_interface(name)) interfaces.push_back({name, port::driver_of(name), found->up});
  }
  return interfaces;
}

void examine_interfaces(const std::vector<NetworkInterface>& interfaces, std::vector<Finding>& findings) {
  using State = Finding::State;
  for (const NetworkInterface& interface : interfaces) {
    const std::string_view state = interface.up ? "up" : "down";
    if (interface.driver.empty()) {
      findings.push_back(make_finding(kLiveArea, interface.name, State::note, fmt::format("{}, no driver", state)));
    } else if (!interface.up) {
      findings.push_back(make_finding(kLiveArea, interface.name, State::missing,
                                      fmt::format("{}, driver {}", state, interface.driver), "it carries no packets",
                                      fmt::format("sudo ip link set {} up", interface.name)));
    } else {
      findings.push_back(
          make_finding(kLiveArea, interface.name, State::ok, fmt::format("{}, driver {}", state, interface.driver)));
    }
  }
  if (interfaces.empty())
    findings.push_back(make_finding(kLiveArea, "interfaces", State::missing, "none", "live traffic is not possible"));
}

}  // namespace penstock::cli
