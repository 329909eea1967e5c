// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/port_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/host_address.h"
#include "base/text_file.h"

namespace penstock::function {

Result<std::vector<PortAddresses>> read_port_addresses(const Parameters& parameters, std::string_view name,
                                                       const NfContext& context) {
  std::vector<PortAddresses> addresses(context.ports.size());
  Errors errors;
  static const std::vector<std::string> kNone;
  const std::vector<std::string>& given = parameters.has(name) ? parameters.texts(name) : kNone;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::size_t equals = given[i].find('=');
    const std::string_view port_name = std::string_view(given[i]).substr(0, equals);
    const auto port = std::ranges::find(context.ports, port_name);
    if (port == context.ports.end()) {
      errors.push_back({parameters.place(name, i), "unknown port", in_quotes(port_name), "a port of the chain"});
      continue;
    }
    PortAddresses& of_port = addresses[static_cast<std::size_t>(port - context.ports.begin())];
    for (const std::string_view text : split(std::string_view(given[i]).substr(equals + 1), ' ')) {
      const std::size_t slash = text.find('/');
      const auto ipv4 = parse_ipv4(text.substr(0, slash));
      const auto ipv6 = parse_ipv6(text.substr(0, slash));
      std::optional<std::uint8_t> bits;
      if (slash != std::string_view::npos) {
        const auto length = parse_integer(text.substr(slash + 1));
        const unsigned most = ipv4 ? 32 : 128;
        if ((ipv4 || ipv6) && (!length || *length == 0 || *length > most)) {
          errors.push_back({parameters.place(name, i), "wrong prefix length of an address", in_quotes(text),
                            fmt::format("a length from 1 to {}", most)});
          continue;
        }
        if (length) bits = static_cast<std::uint8_t>(*length);
      }
      if ((ipv4 && !is_of_a_host(*ipv4)) || (ipv6 && !is_of_a_host(*ipv6))) {
        errors.push_back({parameters.place(name, i), "not an address of a host", in_quotes(text), ""});
      } else if (ipv4 && !of_port.ipv4) {
        of_port.ipv4 = *ipv4;
        of_port.ipv4_bits = bits;
      } else if (ipv6 && !of_port.ipv6) {
        of_port.ipv6 = *ipv6;
        of_port.ipv6_bits = bits;
      } else {
        errors.push_back(
            {parameters.place(name, i), "wrong addresses", in_quotes(text),
             "one IPv4 address, one IPv6 address, or both with a space between them, such as 203.0.113.5/24"});
      }
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return addresses;
}

}  // namespace penstock::function
