// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/listen_address.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/decimal.h"

namespace penstock {

bool ListenAddress::is_loopback() const noexcept {
  if (const auto* const four = std::get_if<Ipv4Address>(&address)) return four->bits >> 24 == 127;
  return std::get<Ipv6Address>(address) == Ipv6Address{0, 1};
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto wrong = [&](std::string message, std::string expected) {
    return failure(Error{{}, std::move(message), in_quotes(text), std::move(expected)});
  };
  const char* const form = "an IP address and a port, such as 127.0.0.1:9474 or [::1]:9474";
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return wrong("not an address to listen at", form);
  const std::string_view host = text.substr(0, colon);
  ListenAddress listen;
  if (const auto four = parse_ipv4(host)) {
    listen.address = *four;
  } else if (host.starts_with('[') && host.ends_with(']') && parse_ipv6(host.substr(1, host.size() - 2))) {
    listen.address = *parse_ipv6(host.substr(1, host.size() - 2));
  } else {
    return wrong("not an address to listen at", parse_ipv6(host) ? fmt::format("brackets: [{}]:9474", host) : form);
  }
  const auto port = parse_decimal<std::uint16_t>(text.substr(colon + 1));
  if (!port) return wrong("not a port to listen at", "a port in 1..65535");
  // The system would choose one, and nobody would know which.
  if (*port == 0) return wrong("port 0 cannot be listened at", "a port in 1..65535");
  listen.port = *port;
  return listen;
}

std::string to_string(const ListenAddress& listen) {
  if (const auto* const four = std::get_if<Ipv4Address>(&listen.address))
    return fmt::format("{}:{}", to_string(*four), listen.port);
  return fmt::format("[{}]:{}", to_string(std::get<Ipv6Address>(listen.address)), listen.port);
}

}  // namespace penstock
