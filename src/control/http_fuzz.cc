// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Arbitrary bytes as the method and the host of a request, "METHOD\nHOST", and as an address to listen at. What is
// served has a host that the system takes for an IP address, or localhost; an address that is accepted reads back as
// itself.

#include <arpa/inet.h>
#include <strings.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/testing/fuzz_check.h"
#include "control/http_request.h"

using namespace penstock;
using penstock::testing::check;

namespace {

/// By the system's functions, unlike the code under test, which splits at colons.
bool is_ip_or_localhost(std::string host) {
  unsigned char address[16];
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end != std::string::npos && ::inet_pton(AF_INET6, host.substr(1, end - 1).c_str(), address) == 1;
  }
  host = host.substr(0, host.find(':'));
  return ::strcasecmp(host.c_str(), "localhost") == 0 || ::inet_pton(AF_INET, host.c_str(), address) == 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto listen = parse_listen_address(text)) {
    check(parse_listen_address(to_string(*listen)) == *listen);
    check(listen->port != 0);
  }
  const std::size_t end = text.find('\n');
  if (text.find('\0') != std::string::npos) return 0;  // the library gives none on
  control::HttpRequest request{std::string_view(text).substr(0, end), std::nullopt};
  if (end != std::string::npos) request.host = std::string_view(text).substr(end + 1);
  const ListenAddress loopback{Ipv4Address{0x7f000001}, 9474};
  const ListenAddress elsewhere{Ipv6Address{}, 9474};
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  check((control::judge(request, elsewhere) == control::HttpVerdict::serve) == is_get);
  if (control::judge(request, loopback) == control::HttpVerdict::serve)
    check(is_get && (!request.host || is_ip_or_localhost(std::string(*request.host))));
  return 0;
}
