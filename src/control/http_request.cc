// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/http_request.h"

#include <algorithm>

#include "base/ascii.h"

namespace penstock::control {

namespace {

/// "host", "host:80" or "[::1]:80" without the port; empty if there is no such form.
std::string_view host_alone(std::string_view host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) return host;
  const std::string_view port = host.substr(colon + 1);
  const bool is_number = std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  return is_number && port.size() <= 5 ? host.substr(0, colon) : std::string_view();
}

bool cannot_be_given_away(std::string_view host) {
  const std::string_view alone = host_alone(host);
  if (parse_ipv4(alone) || equals_ignoring_case(alone, "localhost")) return true;
  return alone.size() > 2 && alone.front() == '[' && alone.back() == ']' &&
         parse_ipv6(alone.substr(1, alone.size() - 2)).has_value();
}

}  // namespace

HttpVerdict judge(const HttpRequest& request, const ListenAddress& listen) {
  if (request.method != "GET" && request.method != "HEAD") return HttpVerdict::wrong_method;
  if (request.host && listen.is_loopback() && !cannot_be_given_away(*request.host)) return HttpVerdict::wrong_host;
  return HttpVerdict::serve;
}

}  // namespace penstock::control
