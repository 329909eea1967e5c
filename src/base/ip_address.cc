// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "base/ip_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/byte_order.h"
#include "base/decimal.h"

namespace penstock {

namespace {

// inet_pton needs a null-terminated string, which a string_view may not be.
template <std::size_t kCapacity>
bool parse_with_pton(int family, std::string_view text, void* out) {
  std::array<char, kCapacity> buffer{};
  if (text.empty() || text.size() >= buffer.size()) return false;
  std::memcpy(buffer.data(), text.data(), text.size());
  return inet_pton(family, buffer.data(), out) == 1;
}

template <typename Prefix, typename Parse>
std::optional<Prefix> parse_prefix(std::string_view text, unsigned width, Parse parse_address) {
  const auto slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return std::nullopt;
  Prefix prefix{*address, static_cast<std::uint8_t>(width)};
  if (slash == std::string_view::npos) return prefix;
  const auto length = parse_decimal(text.substr(slash + 1), static_cast<std::uint8_t>(width));
  if (!length) return std::nullopt;
  prefix.length = *length;
  return prefix;
}

}  // namespace

std::optional<Ipv4Address> parse_ipv4(std::string_view text) {
  Be32 wire{};
  if (!parse_with_pton<INET_ADDRSTRLEN>(AF_INET, text, &wire)) return std::nullopt;
  return Ipv4Address{wire.value()};
}

std::optional<Ipv6Address> parse_ipv6(std::string_view text) {
  struct {
    Be64 high, low;
  } wire{};
  if (!parse_with_pton<INET6_ADDRSTRLEN>(AF_INET6, text, &wire)) return std::nullopt;
  return Ipv6Address{wire.high.value(), wire.low.value()};
}

std::optional<Ipv4Prefix> parse_ipv4_prefix(std::string_view text) {
  const auto prefix = parse_prefix<Ipv4Prefix>(text, 32, parse_ipv4);
  if (!prefix || (prefix->address.bits & ~ipv4_mask(prefix->length)) != 0) return std::nullopt;
  return prefix;
}

std::optional<Ipv6Prefix> parse_ipv6_prefix(std::string_view text) {
  const auto prefix = parse_prefix<Ipv6Prefix>(text, 128, parse_ipv6);
  if (!prefix) return std::nullopt;
  const Ipv6Address mask = ipv6_mask(prefix->length);
  if ((prefix->address.high & ~mask.high) != 0 || (prefix->address.low & ~mask.low) != 0) return std::nullopt;
  return prefix;
}

std::string to_string(Ipv4Address address) {
  return fmt::format("{}.{}.{}.{}", address.bits >> 24, address.bits >> 16 & 255, address.bits >> 8 & 255,
                     address.bits & 255);
}

std::string to_string(Ipv6Address address) {
  struct {
    Be64 high, low;
  } wire{};
  wire.high.set(address.high);
  wire.low.set(address.low);
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  inet_ntop(AF_INET6, &wire, buffer.data(), buffer.size());
  return buffer.data();
}

std::string to_string(const Ipv4Prefix& prefix) {
  return fmt::format("{}/{}", to_string(prefix.address), prefix.length);
}
std::string to_string(const Ipv6Prefix& prefix) {
  return fmt::format("{}/{}", to_string(prefix.address), prefix.length);
}

}  // namespace penstock
