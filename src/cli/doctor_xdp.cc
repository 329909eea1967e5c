// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/doctor_xdp.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/units.h"

namespace penstock::cli {

namespace {

using State = Finding::State;
using port::XdpInterface;
using port::XdpSupport;

/// Whether a release such as "6.1.0-18-amd64" is this version or a later one.
bool is_at_least(std::string_view release, unsigned major, unsigned minor) noexcept {
  std::pair<unsigned, unsigned> found{};
  const char* const end = release.data() + release.size();
  const auto after_major = std::from_chars(release.data(), end, found.first);
  if (after_major.ptr != end) std::from_chars(after_major.ptr + 1, end, found.second);
  return found >= std::pair{major, minor};
}

std::string describe_queues(const XdpInterface& interface) {
  if (!interface.queues) return "an unknown number of queues";
  const auto& [receive, send] = *interface.queues;
  if (receive == send) return format_count(receive, "queue");
  return fmt::format("{} and {}", format_count(receive, "receive queue"), format_count(send, "send queue"));
}

/// `joins`: AF_XDP sockets of this kernel take frames of several buffers.
std::string describe_buffers(const XdpSupport& support, bool joins) {
  const bool several = joins && support.several_buffers;
  const std::uint32_t zero_copy = joins ? support.zero_copy_buffers : 1;
  if (support.zero_copy && zero_copy > 1) return fmt::format("frames of up to {} buffers", zero_copy);
  if (!several) return "frames of one buffer";
  return support.zero_copy ? "frames of several buffers only without zero-copy" : "frames of several buffers";
}

Finding examine_interface(const XdpInterface& interface, bool joins) {
  const std::string where =
      fmt::format("driver {}, {}", interface.driver.empty() ? "unknown" : interface.driver, describe_queues(interface));
  const auto found = [&](State state, std::string_view what, std::string_view means) {
    return make_finding(kXdpArea, interface.name, state, fmt::format("{}; {}", what, where), means);
  };
  if (!interface.support)
    return found(State::note, "unknown: the kernel does not say (needs Linux 6.3)",
                 "the report of a run has the queues in native mode and with zero-copy");
  const XdpSupport& support = *interface.support;
  if (!support.native)
    return found(State::note, "generic mode only, no zero-copy",
                 "the kernel first makes a buffer of its own for each frame, which takes more time than native mode");
  const std::string buffers = describe_buffers(support, joins);
  if (!support.zero_copy)
    return found(State::note, fmt::format("native mode, no zero-copy, {}", buffers),
                 "the kernel copies each frame to and from the port's memory");
  return found(State::ok, fmt::format("native mode, zero-copy, {}", buffers), "");
}

}  // namespace

void examine_xdp(const std::vector<XdpInterface>& interfaces, std::string_view kernel, std::vector<Finding>& findings) {
  const bool joins = is_at_least(kernel, 6, 6);
  for (const XdpInterface& interface : interfaces) findings.push_back(examine_interface(interface, joins));
}

nlohmann::ordered_json interfaces_json(const std::vector<XdpInterface>& interfaces) {
  auto json = nlohmann::ordered_json::array();
  for (const XdpInterface& interface : interfaces) {
    nlohmann::ordered_json one{{"name", interface.name},
                               {"driver", nullptr},
                               {"receive_queues", nullptr},
                               {"send_queues", nullptr},
                               {"xdp", nullptr}};
    if (!interface.driver.empty()) one["driver"] = interface.driver;
    if (interface.queues) {
      one["receive_queues"] = interface.queues->receive;
      one["send_queues"] = interface.queues->send;
    }
    if (interface.support) {
      one["xdp"] = {{"native", interface.support->native},
                    {"zero_copy", interface.support->zero_copy},
                    {"several_buffers", interface.support->several_buffers},
                    {"zero_copy_buffers", interface.support->zero_copy_buffers}};
    }
    json.push_back(std::move(one));
  }
  return json;
}

}  // namespace penstock::cli
