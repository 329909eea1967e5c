// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "nf/router/route_format.h"
#include "nf/router/route_reader.h"

using namespace penstock;

namespace {

std::string printed(const router::RouteTable& table, const router::Devices& devices) {
  std::string text;
  const auto add = [&](const auto& routes, bool ipv4) {
    for (const auto& route : routes) {
      append_route(text, to_string(route.prefix), ipv4, table.next_hops.kind(route.value),
                   table.next_hops.hops(route.value), devices);
      text += '\n';
    }
  };
  add(table.v4, true);
  add(table.v6, false);
  return text;
}

}  // namespace

/// Routes that are read without an error, printed and read again, give the same output.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  router::Devices devices;
  const auto once = router::parse_routes(text, "fuzz", devices);
  if (!once) {
    if (once.error().empty() || once.error().size() > 101) std::abort();
    return 0;
  }
  const std::string first = printed(once->value, devices);
  router::Devices more;
  const auto again = router::parse_routes(first, "printed", more);
  if (!again || !again->unsupported.empty() || printed(again->value, more) != first) std::abort();
  return 0;
}
