// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "nf/firewall/nftables/text.h"
#include "packet/ip.h"

namespace penstock::firewall::nftables {

namespace {

constexpr std::uint16_t kAny = 0xffff;  // no protocol or family is implied

struct KnownKey {
  std::string_view of, name;  // "tcp" and "dport", "meta" and "l4proto"
  Field field;
  Type type;
  std::uint16_t protocol = kAny;
  std::uint16_t family = kAny;
};

constexpr auto kKeys = std::to_array<KnownKey>({
    {"ip", "saddr", Field::source4, Type::ipv4_addr, kAny, kIpv4},
    {"ip", "daddr", Field::destination4, Type::ipv4_addr, kAny, kIpv4},
    {"ip", "protocol", Field::protocol, Type::inet_proto, kAny, kIpv4},
    {"ip6", "saddr", Field::source6, Type::ipv6_addr, kAny, kIpv6},
    {"ip6", "daddr", Field::destination6, Type::ipv6_addr, kAny, kIpv6},
    {"tcp", "sport", Field::source_port, Type::inet_service, ip_protocol::kTcp},
    {"tcp", "dport", Field::destination_port, Type::inet_service, ip_protocol::kTcp},
    {"tcp", "flags", Field::tcp_flags, Type::tcp_flag, ip_protocol::kTcp},
    {"udp", "sport", Field::source_port, Type::inet_service, ip_protocol::kUdp},
    {"udp", "dport", Field::destination_port, Type::inet_service, ip_protocol::kUdp},
    {"udplite", "sport", Field::source_port, Type::inet_service, ip_protocol::kUdpLite},
    {"udplite", "dport", Field::destination_port, Type::inet_service, ip_protocol::kUdpLite},
    {"sctp", "sport", Field::source_port, Type::inet_service, ip_protocol::kSctp},
    {"sctp", "dport", Field::destination_port, Type::inet_service, ip_protocol::kSctp},
    {"th", "sport", Field::source_port, Type::inet_service},
    {"th", "dport", Field::destination_port, Type::inet_service},
    {"icmp", "type", Field::icmp_type, Type::icmp_type, ip_protocol::kIcmp, kIpv4},
    {"icmp", "code", Field::icmp_code, Type::icmp_code, ip_protocol::kIcmp, kIpv4},
    {"icmpv6", "type", Field::icmpv6_type, Type::icmpv6_type, ip_protocol::kIcmpv6, kIpv6},
    {"icmpv6", "code", Field::icmpv6_code, Type::icmpv6_code, ip_protocol::kIcmpv6, kIpv6},
    {"meta", "l4proto", Field::protocol, Type::inet_proto},
    {"meta", "nfproto", Field::family, Type::nf_proto},
    {"meta", "protocol", Field::family, Type::ether_type},
    {"meta", "iifname", Field::in_port, Type::ifname},
    {"meta", "oifname", Field::out_port, Type::ifname},
    {"meta", "iif", Field::in_port, Type::iface_index},
    {"meta", "oif", Field::out_port, Type::iface_index},
    {"ct", "state", Field::connection, Type::ct_state},
    {"ct", "direction", Field::connection, Type::ct_dir},
    {"ct", "status", Field::connection, Type::ct_status},
});

tl::unexpected<Problem> not_an_expression(const Json& expression) {
  return unsupported("an expression of this form is not supported", in_words(expression));
}

Checked<Key> known_key(std::string_view of, std::string_view name) {
  const auto known = std::ranges::find_if(kKeys, [&](const KnownKey& key) { return key.of == of && key.name == name; });
  if (known != kKeys.end()) {
    Key key{known->field, known->type};
    if (known->family != kAny) key.implied.push_back({Field::family, only(known->family)});
    if (known->protocol != kAny) key.implied.push_back({Field::protocol, only(known->protocol)});
    key.of_any_protocol = of == "th";
    // Without a connection, only its state exists.
    if (of == "ct" && name != "state") {
      key.implied.push_back(
          {Field::connection, of_connections([](const classify::Connection& one) { return one.exists(); })});
    }
    return key;
  }
  const std::string expression = fmt::format("{} {}", of, name);
  if (expression == "ip6 nexthdr") {
    return unsupported(
        "ip6 nexthdr is not supported: it is the first header after the IPv6 header, which may be an extension header",
        "", "meta l4proto");
  }
  return unsupported(fmt::format("{} is not supported", expression));
}

/// The masked forms: `tcp flags & (syn | ack)`, `ip frag-off & 0x1fff`.
Checked<Key> masked_key(const Json& parts) {
  if (!parts.is_array() || parts.size() != 2 || !parts[0].is_object()) return not_an_expression(parts);
  const auto payload = parts[0].find("payload");
  if (payload == parts[0].end() || !payload->is_object()) return not_an_expression(parts);
  const std::string_view of = text_of(*payload, "protocol"), name = text_of(*payload, "field");
  if (of == "ip" && name == "frag-off" && parts[1] == 0x1fff) {
    return Key{Field::later_fragment, Type::fragment_offset, {{Field::family, only(kIpv4)}}};
  }
  if (of != "tcp" || name != "flags") {
    return unsupported(fmt::format("{} {} with a mask is not supported", of, name));
  }
  std::set<std::string, std::less<>> unused;
  const classify::Interfaces none;
  Names names{none, unused, unused};
  auto mask = read_value(Type::tcp_flag, parts[1], names);
  if (!mask) return within(".&[1]", std::move(mask.error()));
  auto key = known_key(of, name);
  key->mask = static_cast<std::uint8_t>(mask->front().low.low);
  return key;
}

}  // namespace

Checked<Key> read_key(const Json& expression) {
  if (!expression.is_object() || expression.size() != 1) return not_an_expression(expression);
  const std::string& kind = expression.begin().key();
  const Json& value = expression.begin().value();
  if (kind == "&") return masked_key(value);
  if (!value.is_object()) return not_an_expression(expression);
  if (kind == "payload" && value.size() == 2 && value.contains("protocol")) {
    return known_key(text_of(value, "protocol"), text_of(value, "field"));
  }
  if (kind == "payload") return unsupported("a raw payload expression is not supported");
  if (kind == "meta" && value.size() == 1) return known_key("meta", text_of(value, "key"));
  if (kind == "ct" && value.size() == 1) return known_key("ct", text_of(value, "key"));
  if (kind == "ct") return unsupported(fmt::format("ct {} of one direction is not supported", text_of(value, "key")));
  if (kind == "exthdr" && text_of(value, "name") == "frag" && text_of(value, "field") == "frag-off") {
    Key key{Field::later_fragment, Type::fragment_offset, {{Field::family, only(kIpv6)}}};
    key.of_fragments_only = true;
    return key;
  }
  if (kind == "exthdr") {
    const std::string_view field = text_of(value, "field");
    return unsupported(field.empty() ? fmt::format("exthdr {} is not supported", text_of(value, "name"))
                                     : fmt::format("{} {} is not supported", text_of(value, "name"), field));
  }
  if (kind == "fib") return unsupported("fib is supported in a match by itself only");
  return unsupported(fmt::format("{} is not supported", kind));
}

Checked<std::vector<Key>> read_keys(const Json& expression) {
  std::vector<Key> keys;
  const bool many = expression.is_object() && expression.size() == 1 && expression.begin().key() == "concat" &&
                    expression.begin().value().is_array();
  if (!many) {
    auto key = read_key(expression);
    if (!key) return tl::unexpected(std::move(key.error()));
    keys.push_back(std::move(*key));
    return keys;
  }
  const Json& parts = expression.begin().value();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto key = read_key(parts[i]);
    if (!key) return within(fmt::format(".concat[{}]", i), std::move(key.error()));
    keys.push_back(std::move(*key));
  }
  return keys;
}

classify::IntervalSet unmasked(const Key& key, const classify::IntervalSet& values) {
  if (key.mask == 0xff) return values;
  return bytes_where([&](unsigned byte) {
    const classify::Number masked = classify::number(byte & key.mask);
    return std::ranges::any_of(values, [&](const auto& range) { return range.low <= masked && masked <= range.high; });
  });
}

}  // namespace penstock::firewall::nftables
