// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as messages of the kernel, one after the other, and the tables that follow from them. All changes,
// applied one after the other, give a router the same tables as all routes at once.

#include <linux/netlink.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/testing/fuzz_check.h"
#include "control/kernel/kernel_neighbours.h"
#include "control/kernel/kernel_routes.h"

using namespace penstock;
using penstock::testing::check;

namespace {

using Text = std::map<std::string, std::string>;

void add_to(Text& text, const router::RouterChange& change) {
  const auto add = [&](const auto& routes) {
    for (const auto& route : routes) {
      std::string& target = text[to_string(route.prefix)];
      target = std::to_string(static_cast<int>(change.routes.next_hops.kind(route.value)));
      for (const router::NextHop& hop : change.routes.next_hops.hops(route.value))
        target += to_string(hop.gateway) + ' ' + std::to_string(hop.device) + ' ' + std::to_string(hop.weight) + ' ';
    }
  };
  for (const Ipv4Prefix& prefix : change.erase4) check(text.erase(to_string(prefix)) == 1);
  for (const Ipv6Prefix& prefix : change.erase6) check(text.erase(to_string(prefix)) == 1);
  add(change.routes.v4);
  add(change.routes.v6);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 50;
  std::vector<std::uint32_t> aligned(size / 4 + 1);
  if (size > 0) std::memcpy(aligned.data(), data, size);
  control::KernelRoutes routes(kMost);
  routes.follow_tables({255, 254, 253});
  routes.set_ports([](const std::string& name) { return static_cast<PortIndex>(name.size() % 2 == 0 ? 0 : kNoPort); });
  control::KernelNeighbours neighbours(kMost, [&](std::uint32_t interface) { return routes.port_of(interface); });
  Text from_changes;
  std::span<const std::uint8_t> left(reinterpret_cast<const std::uint8_t*>(aligned.data()), size);
  bool dumping = false;
  for (auto bytes = control::take_message(left); !bytes.empty(); bytes = control::take_message(left)) {
    // Stands for the beginning and the end of a dump.
    if (reinterpret_cast<const nlmsghdr*>(bytes.data())->nlmsg_type == NLMSG_DONE) {
      dumping ? routes.end_dump() : routes.begin_dump();
      dumping ? neighbours.end_dump() : neighbours.begin_dump();
      dumping = !dumping;
    }
    static_cast<void>(control::read_generation(bytes));
    const auto message = control::read_message(bytes);
    std::visit(
        [&](const auto& one) {
          using Message = std::decay_t<decltype(one)>;
          if constexpr (std::is_same_v<Message, control::NeighbourMessage>) {
            neighbours.apply(one);
          } else if constexpr (!std::is_same_v<Message, control::Ignored> &&
                               !std::is_same_v<Message, control::Malformed>) {
            routes.apply(one);
          }
        },
        message);
    if (dumping) continue;
    router::RouterChange change;
    routes.take_changes(change);
    neighbours.take_changes(change);
    add_to(from_changes, change);
    check(routes.size() <= kMost && neighbours.size() <= kMost);
  }
  if (dumping) return 0;
  router::RouterChange all;
  routes.add_all(all);
  Text text;
  add_to(text, all);
  check(text == from_changes);
  return 0;
}
