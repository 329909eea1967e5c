// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <ctime>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/nanoseconds.h"
#include "base/text_file.h"
#include "base/units.h"
#include "conntrack/connection.h"
#include "nf/firewall/nftables/text.h"
#include "nf/firewall/rule_text.h"
#include "packet/ip.h"
#include "packet/mac_address.h"

namespace penstock::firewall::nftables {

namespace {

using classify::Interval;
using classify::IntervalSet;
using classify::number;
using classify::Operand;
using classify::Value;

constexpr std::uint64_t kMostSeconds = 10ULL * 365 * 24 * 3600;

using Symbol = std::pair<std::string_view, std::uint64_t>;
// `nft describe ip dscp`
constexpr auto kDscp = std::to_array<Symbol>({{"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},  {"cs4", 32},
                                              {"cs5", 40},  {"cs6", 48},  {"cs7", 56},  {"df", 0},    {"be", 0},
                                              {"lephb", 1}, {"af11", 10}, {"af12", 12}, {"af13", 14}, {"af21", 18},
                                              {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30},
                                              {"af41", 34}, {"af42", 36}, {"af43", 38}, {"va", 44},   {"ef", 46}});
constexpr auto kEcn = std::to_array<Symbol>({{"not-ect", 0}, {"ect1", 1}, {"ect0", 2}, {"ce", 3}});

std::string quoted(const Json& value) { return in_quotes(json_text(value)); }

Operand masked(Value value, std::uint64_t mask = ~std::uint64_t{0}) { return {value, {0, mask}}; }

StepKey key_of(Operand operand, std::uint64_t last) {
  StepKey key;
  key.operand = operand;
  key.last = last;
  return key;
}

constexpr std::uint64_t kMarks = 0xffffffff;

/// {"mode": "random", "mod": 4, "offset": 0}
Checked<std::optional<StepKey>> read_generator(const Json& value) {
  const std::string_view mode = text_of(value, "mode");
  const auto modulus = value.is_object() ? value.find("mod") : value.end();
  const auto offset = value.is_object() ? value.find("offset") : value.end();
  const bool has_offset = value.is_object() && offset != value.end();
  if (!value.is_object() || modulus == value.end() || !modulus->is_number_unsigned() ||
      modulus->get<std::uint64_t>() == 0 || modulus->get<std::uint64_t>() > kMarks ||
      (mode != "random" && mode != "inc")) {
    return mistake("wrong numgen", quoted(value), "\"mode\" random or inc, and \"mod\"");
  }
  Operand operand = masked(mode == "random" ? Value::random : Value::turn);
  operand.modulus = modulus->get<std::uint32_t>();
  StepKey key = key_of(operand, operand.modulus - 1);
  if (has_offset && (!offset->is_number_unsigned() || offset->get<std::uint64_t>() > kMarks - key.last))
    return mistake("wrong offset of a numgen", quoted(value), "a number");
  if (has_offset) key.offset = offset->get<std::uint64_t>();
  return key;
}

/// {"mod": 2, "seed": 7, "offset": 1, "expr": {"payload": …}}; `symmetric`: symhash, without "seed" and "expr".
Checked<std::optional<StepKey>> read_hash(const Json& value, bool symmetric) {
  const auto member = [&](const char* name, std::uint64_t otherwise) -> std::optional<std::uint64_t> {
    if (!value.is_object() || !value.contains(name)) return otherwise;
    if (!value[name].is_number_unsigned() || value[name].get<std::uint64_t>() > kMarks) return std::nullopt;
    return value[name].get<std::uint64_t>();
  };
  const auto modulus = member("mod", 0), seed = member("seed", 0), offset = member("offset", 0);
  if (!modulus || *modulus == 0 || !seed || !offset || *offset + *modulus - 1 > kMarks ||
      (!symmetric && !value.contains("expr"))) {
    return mistake("wrong hash", quoted(value), "\"mod\", and \"expr\" of a jhash");
  }
  Operand operand = masked(Value::hash);
  operand.modulus = static_cast<std::uint32_t>(*modulus);
  StepKey key = key_of(operand, *modulus - 1);
  key.offset = *offset;
  classify::HashObject& hash = key.hash.emplace();
  hash.seed = static_cast<std::uint32_t>(*seed);
  hash.symmetric = symmetric;
  if (symmetric) return key;
  auto keys = read_keys(value["expr"]);
  if (!keys) return within(".expr", std::move(keys.error()));
  if (keys->size() > classify::kMostElementValues) return unsupported("a hash of so many values is not supported");
  for (Key& one : *keys) {
    auto of = operand_of(one);
    if (!of) return within(".expr", std::move(of.error()));
    std::uint8_t bytes = 0;
    switch (one.type) {
      case Type::ipv4_addr: bytes = 4; break;
      case Type::ipv6_addr: bytes = 16; break;
      case Type::inet_service: bytes = 2; break;
      default: return unsupported("a hash of values of this kind is not supported");
    }
    hash.of.push_back(*of);
    hash.bytes.push_back(bytes);
    for (Condition& condition : one.implied) key.implied.push_back(std::move(condition));
  }
  return key;
}

/// {"key": "ip daddr", "dir": "original"}; {"key": "expiration"}
Checked<std::optional<StepKey>> connection_key(const Json& value) {
  const std::string_view name = text_of(value, "key");
  const std::string_view direction = value.is_object() && value.contains("dir") ? text_of(value, "dir") : "";
  if (name == "mark" && direction.empty()) {
    StepKey key = key_of(masked(Value::connection_mark), kMarks);
    key.set_type = "mark";
    return key;
  }
  if (name == "expiration" && direction.empty()) {
    StepKey key = key_of(masked(Value::expiration_ms), kMarks);
    key.scale = 1000;
    return key;
  }
  if (name == "bytes" || name == "packets" || name == "avgpkt")
    return unsupported(fmt::format("ct {} is not supported: packets of connections are not counted", name));
  // nft 1.0.6 does not print its direction, which does not matter.
  if (name == "protocol") {
    StepKey key;
    key.operand = masked(Value::connection_protocol);
    key.type = Type::inet_proto;
    return key;
  }
  const bool reply = direction == "reply";
  if (direction != "original" && !reply) return std::nullopt;
  const auto of = [&](Value original, Value replied) { return masked(reply ? replied : original); };
  const bool v4 = name.starts_with("ip "), v6 = name.starts_with("ip6 ");
  if ((v4 || v6) && (name.ends_with(" saddr") || name.ends_with(" daddr"))) {
    StepKey key;
    key.operand = name.ends_with(" saddr") ? of(Value::original_source, Value::reply_source)
                                           : of(Value::original_destination, Value::reply_destination);
    key.operand.mask = {~std::uint64_t{0}, ~std::uint64_t{0}};
    key.type = v4 ? Type::ipv4_addr : Type::ipv6_addr;
    key.implied.push_back({Field::family, only(v4 ? kIpv4 : kIpv6)});
    return key;
  }
  if (name == "proto-src") return key_of(of(Value::original_source_port, Value::reply_source_port), 0xffff);
  if (name == "proto-dst") return key_of(of(Value::original_destination_port, Value::reply_destination_port), 0xffff);
  return std::nullopt;
}

/// {"name": "hbh"}: whether there is one.
Checked<std::optional<StepKey>> header_key(std::string_view name) {
  using Header = classify::ExtensionHeader;
  const std::uint64_t bit = name == "hbh"    ? Header::kHopByHop
                            : name == "rt"   ? Header::kRouting
                            : name == "frag" ? Header::kFragment
                            : name == "dst"  ? Header::kDestinationOptions
                                             : 0;
  if (bit == 0) return std::nullopt;
  StepKey key = key_of(masked(Value::extension_headers, bit), bit);
  key.is_header = true;
  key.implied.push_back({Field::family, only(kIpv6)});
  return key;
}

/// {"&": [{"payload": {"protocol": "ip6", "field": "daddr"}}, "::ffff"]}
std::optional<StepKey> masked_address(const Json& payload, const Json& mask) {
  const std::string_view of = text_of(payload, "protocol"), field = text_of(payload, "field");
  const bool v4 = of == "ip", source = field == "saddr";
  if ((!v4 && of != "ip6") || (!source && field != "daddr") || !mask.is_string()) return std::nullopt;
  const std::string& text = mask.get_ref<const std::string&>();
  const auto mask4 = v4 ? parse_ipv4(text) : std::nullopt;
  const auto mask6 = v4 ? std::nullopt : parse_ipv6(text);
  if (!mask4 && !mask6) return std::nullopt;
  StepKey key;
  key.operand = {source ? Value::source : Value::destination};
  key.operand.mask = mask4 ? number(mask4->bits) : *mask6;
  key.type = v4 ? Type::ipv4_addr : Type::ipv6_addr;
  key.implied.push_back({Field::family, only(v4 ? kIpv4 : kIpv6)});
  return key;
}

/// How far this process's time zone is before UTC now, in seconds: nft writes hours in its own.
std::int64_t zone_offset() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  return localtime_r(&now, &local) == nullptr ? 0 : local.tm_gmtoff;
}

/// "20:00" as seconds of UTC's day.
std::optional<std::uint64_t> hour_of(const std::string& text) {
  const auto second = parse_time_of_day(text);
  if (!second) return std::nullopt;
  constexpr std::int64_t kDay = 86'400;
  return static_cast<std::uint64_t>(((static_cast<std::int64_t>(*second) - zone_offset()) % kDay + kDay) % kDay);
}

constexpr auto kWeekdays = std::to_array<Symbol>(
    {{"Sunday", 0}, {"Monday", 1}, {"Tuesday", 2}, {"Wednesday", 3}, {"Thursday", 4}, {"Friday", 5}, {"Saturday", 6}});
// With the values of Linux's enum ip_conntrack_status.
constexpr auto kStatus = std::to_array<Symbol>(
    {{"expected", 1}, {"seen-reply", 2}, {"assured", 4}, {"confirmed", 8}, {"snat", 16}, {"dnat", 32}});

using classify::PacketType;
constexpr auto kPacketTypes = std::to_array<Symbol>({{"host", PacketType::kHost},
                                                     {"unicast", PacketType::kHost},
                                                     {"broadcast", PacketType::kBroadcast},
                                                     {"multicast", PacketType::kMulticast},
                                                     {"other", PacketType::kOtherHost}});

std::optional<StepKey> payload_key(std::string_view of, std::string_view field) {
  StepKey key;
  if (of == "ether" && (field == "saddr" || field == "daddr")) {
    key = key_of(masked(field == "saddr" ? Value::ether_source : Value::ether_destination), 0xffff'ffff'ffffU);
    key.is_link_address = true;
    key.set_type = "ether_addr";
    return key;
  }
  if (of != "ip" && of != "ip6") return std::nullopt;
  if ((of == "ip" && field == "ttl") || (of == "ip6" && field == "hoplimit")) {
    key = key_of(masked(Value::hop_limit), 0xff);
  } else if (field == "dscp") {
    key = key_of(masked(Value::traffic_class, 0xfc), 0x3f);
    key.shift = 2;
    key.is_dscp = true;
    key.set_type = "dscp";
  } else if (field == "ecn") {
    key = key_of(masked(Value::traffic_class, 3), 3);
    key.is_ecn = true;
  } else if (of == "ip" && field == "length") {
    key = key_of(masked(Value::length), 0xffff);
  } else if (of == "ip" && field == "frag-off") {
    key = key_of(masked(Value::fragment_field), 0xffff);
  } else if (of == "ip6" && field == "flowlabel") {
    key = key_of(masked(Value::flow_label), 0xfffff);
  } else {
    return std::nullopt;
  }
  key.implied.push_back({Field::family, only(of == "ip" ? kIpv4 : kIpv6)});
  return key;
}

std::optional<StepKey> meta_key(std::string_view name) {
  if (name == "mark") {
    StepKey key = key_of(masked(Value::mark), kMarks);
    key.set_type = "mark";
    return key;
  }
  if (name == "hour") {
    StepKey key = key_of(masked(Value::second_of_day), 86'399);
    key.is_hour = true;
    return key;
  }
  if (name == "day") {
    StepKey key = key_of(masked(Value::weekday), 6);
    key.is_weekday = true;
    return key;
  }
  if (name == "length") return key_of(masked(Value::length), kMarks);
  if (name != "pkttype") return std::nullopt;
  StepKey key = key_of(masked(Value::packet_type), 0xff);
  key.names = kPacketTypes;
  return key;
}

std::optional<std::uint64_t> unsigned_of(const Json& object, const char* member) {
  const auto found = object.is_object() ? object.find(member) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

/// Before it is shifted.
Checked<std::uint64_t> read_one(const StepKey& key, const Json& value) {
  std::optional<std::uint64_t> read;
  if (value.is_number_unsigned()) read = value.get<std::uint64_t>();
  if (key.is_header) read = value.is_boolean() ? std::optional(value.get<bool>() ? key.last : 0) : std::nullopt;
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    const auto named = [&](Symbols symbols) -> std::optional<std::uint64_t> {
      const auto found = std::ranges::find(symbols, text, &Symbol::first);
      if (found == symbols.end()) return std::nullopt;
      return found->second;
    };
    if (const auto mac = key.is_link_address ? parse_mac(text) : std::nullopt) read = to_number(*mac);
    if (key.is_dscp) read = named(kDscp);
    if (key.is_ecn) read = named(kEcn);
    if (key.is_weekday) read = named(kWeekdays);
    if (!key.names.empty()) read = named(key.names);
    if (key.is_hour) read = hour_of(text);
    if (!read && !key.is_link_address) read = parse_integer(text);
  }
  if (read && *read <= kMarks) *read *= key.scale;
  if (read && key.offset != 0) read = *read < key.offset ? std::nullopt : std::optional(*read - key.offset);
  if (!read || *read > key.last) {
    return mistake("wrong value", quoted(value),
                   key.is_link_address ? "a MAC address" : fmt::format("a number up to {}", key.last));
  }
  return *read;
}

Checked<void> add_values(const StepKey& key, const Json& value, std::vector<Interval>& to) {
  const auto add = [&](std::uint64_t low, std::uint64_t high) {
    to.push_back({number(low << key.shift), number((high << key.shift) | ((std::uint64_t{1} << key.shift) - 1))});
  };
  const bool is_object = value.is_object() && value.size() == 1;
  if (is_object && value.contains("set") && value["set"].is_array()) {
    for (const Json& element : value["set"]) {
      // With a comment or a counter.
      const bool is_wrapped = element.is_object() && element.size() == 1 && element.contains("elem") &&
                              element["elem"].is_object() && element["elem"].contains("val");
      if (auto added = add_values(key, is_wrapped ? element["elem"]["val"] : element, to); !added)
        return within(".set", std::move(added.error()));
    }
    return {};
  }
  if (is_object && value.contains("range") && value["range"].is_array() && value["range"].size() == 2) {
    const auto low = read_one(key, value["range"][0]);
    const auto high = read_one(key, value["range"][1]);
    if (!low) return tl::unexpected(low.error());
    if (!high) return tl::unexpected(high.error());
    if (*low > *high && key.is_hour)
      return unsupported("hours over midnight of UTC are not supported", in_words(value), "two ranges");
    if (*low > *high) return mistake("wrong range", quoted(value), "the smaller value first");
    add(*low, *high);
    return {};
  }
  if (is_object && value.contains("prefix") && value["prefix"].is_object()) {
    const Json& prefix = value["prefix"];
    const auto first = prefix.contains("addr") ? read_one(key, prefix["addr"])
                                               : Checked<std::uint64_t>(mistake("wrong prefix", "", ""));
    const auto length = unsigned_of(prefix, "len");
    const auto width = static_cast<std::uint64_t>(std::bit_width(key.last));
    if (!first || !length || *length > width)
      return mistake("wrong prefix", quoted(value), fmt::format("a value and a length up to {}", width));
    const std::uint64_t host = (std::uint64_t{1} << (width - *length)) - 1;
    add(*first & ~host, *first | host);
    return {};
  }
  const auto one = read_one(key, value);
  if (!one) return tl::unexpected(one.error());
  add(*one, *one);
  return {};
}

/// Bytes in a unit: "kbytes" of nft are 1,024 bytes.
std::optional<std::uint64_t> unit_of(std::string_view name) {
  if (name == "bytes") return 1;
  if (name == "kbytes") return 1 << 10;
  if (name == "mbytes") return 1 << 20;
  return std::nullopt;
}

bool is_set(const Json& object, const char* member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

/// A mark as (source & mask) ^ flip.
Checked<classify::SetMark> read_mark_value(const Json& value) {
  using Source = classify::SetMark::Source;
  classify::SetMark mark;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() <= kMarks) {
    mark.flip = value.get<std::uint32_t>();
    return mark;
  }
  if (!value.is_object() || value.size() != 1)
    return unsupported("this value of a mark is not supported", in_words(value));
  const std::string& kind = value.begin().key();
  const Json& inner = value.begin().value();
  if ((kind == "meta" || kind == "ct") && text_of(inner, "key") == "mark") {
    mark.source = kind == "meta" ? Source::packet : Source::connection;
    mark.mask = 0xffffffff;
    return mark;
  }
  const bool is_operation = kind == "&" || kind == "|" || kind == "^";
  if (!is_operation || !inner.is_array() || inner.size() != 2 || !inner[1].is_number_unsigned() ||
      inner[1].get<std::uint64_t>() > kMarks) {
    return unsupported("this value of a mark is not supported", in_words(value));
  }
  auto read = read_mark_value(inner[0]);
  if (!read) return read;
  const auto operand = inner[1].get<std::uint32_t>();
  if (kind == "&") {
    read->mask &= operand;
    read->flip &= operand;
  } else if (kind == "|") {
    read->mask &= ~operand;
    read->flip |= operand;
  } else {
    read->flip ^= operand;
  }
  return read;
}

/// {"name": "maxseg", "field": "size"}
bool is_segment_size(const Json& option) {
  return text_of(option, "name") == "maxseg" && text_of(option, "field") == "size";
}

Condition of_tcp() { return {Field::protocol, only(ip_protocol::kTcp)}; }

}  // namespace

Checked<std::optional<StepKey>> read_step_key(const Json& expression) {
  if (!expression.is_object() || expression.size() != 1) return std::nullopt;
  const std::string& kind = expression.begin().key();
  const Json& value = expression.begin().value();
  if (kind == "numgen") return read_generator(value);
  if (kind == "payload") return payload_key(text_of(value, "protocol"), text_of(value, "field"));
  if (kind == "meta") return meta_key(text_of(value, "key"));
  if (kind == "jhash" || kind == "symhash") return read_hash(value, kind == "symhash");
  if (kind == "ct") return connection_key(value);
  if (kind == "exthdr" && value.is_object() && value.size() == 1) return header_key(text_of(value, "name"));
  if (kind == "exthdr" && text_of(value, "name") == "rt" && text_of(value, "field") == "type") {
    StepKey key = key_of(masked(Value::routing_type), 0xff);
    key.implied.push_back({Field::family, only(kIpv6)});
    return key;
  }
  if (kind == "tcp option" && is_segment_size(value)) {
    StepKey key = key_of(masked(Value::segment_size), 0xffff);
    key.implied.push_back(of_tcp());
    return key;
  }
  // {"&": [{"meta": {"key": "mark"}}, 255]}
  if (kind != "&" || !value.is_array() || value.size() != 2 || !value[0].is_object()) return std::nullopt;
  if (value[0].contains("payload")) {
    if (auto key = masked_address(value[0]["payload"], value[1])) return key;
  }
  // Engines know later fragments.
  const bool is_offset = value[1] == 0x1fff;
  if (!value[1].is_number_unsigned() || (value[0].contains("payload") && is_offset)) return std::nullopt;
  auto key = read_step_key(value[0]);
  if (!key || !*key) return key;
  const Value operand = (*key)->operand.value;
  if (operand != Value::mark && operand != Value::connection_mark && operand != Value::fragment_field)
    return unsupported("a mask of this key is not supported", in_words(expression));
  (*key)->operand.mask.low &= value[1].get<std::uint64_t>();
  return key;
}

Checked<std::optional<classify::Test>> read_connection_test(const Json& left, const std::string& op,
                                                            const Json& right) {
  const auto ct = left.is_object() ? left.find("ct") : left.end();
  if (!left.is_object() || left.size() != 1 || ct == left.end() || !ct->is_object() || ct->size() != 1)
    return std::nullopt;
  const std::string_view name = text_of(*ct, "key");
  constexpr std::uint64_t kExpected = conntrack::Connection::kExpected;
  if (name == "helper") {
    // That of the connection which this one belongs to; only FTP's can be there.
    if ((op != "==" && op != "!=") || !right.is_string() || right.get_ref<const std::string&>().starts_with("ftp-"))
      return unsupported("this use of ct helper is not supported", in_words(right), "== or != and one name");
    classify::Test test{masked(Value::connection_status, kExpected), {}};
    if ((right == "ftp") == (op == "==")) test.values = {{number(kExpected), number(kExpected)}};
    return test;
  }
  if (name != "status") return std::nullopt;
  std::uint64_t bits = 0;
  const auto add = [&](const Json& one) {
    const auto known = std::ranges::find_if(kStatus, [&](const Symbol& symbol) { return one == symbol.first; });
    bits |= known == kStatus.end() ? 0 : known->second;
    return known != kStatus.end();
  };
  const Json& list = right.is_object() && right.size() == 1 && right.contains("|") ? right["|"] : right;
  const bool is_known = list.is_array() ? std::ranges::all_of(list, add) : add(list);
  constexpr std::uint64_t kTranslated = 16 | 32;
  if (!is_known || (bits & ~kTranslated) == 0 || (op != "in" && op != "!")) return std::nullopt;
  classify::Test test{masked(Value::connection_status, bits), {{number(0), number(0)}}};
  if (op == "in") test.values = {{number(1), number(bits)}};
  return test;
}

namespace {

/// `values` of a key of the engines.
Checked<void> add_typed_values(Type type, const Json& value, std::vector<Interval>& to) {
  if (value.is_object() && value.size() == 1 && value.contains("set") && value["set"].is_array()) {
    for (const Json& element : value["set"]) {
      if (auto added = add_typed_values(type, element, to); !added) return within(".set", std::move(added.error()));
    }
    return {};
  }
  std::set<std::string, std::less<>> unused;
  const classify::Interfaces none;
  Names names{none, unused, unused};
  auto values = read_value(type, value, names);
  if (!values) return tl::unexpected(std::move(values.error()));
  to.insert(to.end(), values->begin(), values->end());
  return {};
}

}  // namespace

Checked<classify::Test> read_test(const StepKey& key, const std::string& op, const Json& right) {
  if (right.is_string() && right.get_ref<const std::string&>().starts_with('@'))
    return unsupported("a named set for this key is not supported", in_words(right), "its elements in the rule");
  std::vector<Interval> values;
  auto added = key.type ? add_typed_values(*key.type, right, values) : add_values(key, right, values);
  if (!added) return tl::unexpected(std::move(added.error()));
  classify::Test test{key.operand, classify::united(std::move(values))};
  const Interval domain =
      key.type ? domain_of(*key.type)
               : Interval{number(0), number((key.last << key.shift) | ((std::uint64_t{1} << key.shift) - 1))};
  if (op == "==" || (op == "in" && right.is_object())) return test;
  if (op == "!=") {
    test.values = classify::complement(test.values, domain);
    return test;
  }
  const bool is_point = !right.is_structured() && !key.is_header && test.values.size() == 1;
  if (!is_point) return unsupported("an operator that is not supported here", in_quotes(op));
  const Interval value = test.values.front();
  if (is_point && op == "<")
    test.values = value.low == domain.low ? IntervalSet{} : IntervalSet{{domain.low, classify::predecessor(value.low)}};
  else if (is_point && op == "<=")
    test.values = {{domain.low, value.high}};
  else if (is_point && op == ">")
    test.values =
        value.high == domain.high ? IntervalSet{} : IntervalSet{{classify::successor(value.high), domain.high}};
  else if (is_point && op == ">=")
    test.values = {{value.low, domain.high}};
  else
    return unsupported("an operator that is not supported here", in_quotes(op));
  return test;
}

Checked<classify::Operand> operand_of(const Key& key) {
  switch (key.field) {
    case Field::source4:
    case Field::source6: return Operand{Value::source};
    case Field::destination4:
    case Field::destination6: return Operand{Value::destination};
    case Field::source_port: return Operand{Value::source_port};
    case Field::destination_port: return Operand{Value::destination_port};
    case Field::protocol: return Operand{Value::protocol};
    case Field::in_port: return Operand{Value::in_port};
    case Field::out_port: return Operand{Value::out_port};
    default: return unsupported("a set that changes with values of this kind is not supported");
  }
}

Checked<classify::Rate> read_rate(const Json& limit) {
  const auto amount = unsigned_of(limit, "rate");
  const std::string_view per = text_of(limit, "per");
  constexpr auto kUnits =
      std::to_array<Symbol>({{"second", 1}, {"minute", 60}, {"hour", 3600}, {"day", 86400}, {"week", 604800}});
  const auto unit = std::ranges::find(kUnits, per, &Symbol::first);
  if (!amount || *amount == 0 || unit == kUnits.end()) {
    return mistake("wrong limit", quoted(limit), "\"rate\" and \"per\" second, minute, hour, day or week");
  }
  classify::Rate rate;
  rate.amount = *amount;
  rate.per_ns = unit->second * kNsPerSecond;
  rate.over = is_set(limit, "inv");
  const std::string_view rate_unit = limit.contains("rate_unit") ? text_of(limit, "rate_unit") : "packets";
  rate.bytes = rate_unit != "packets";
  rate.burst = unsigned_of(limit, "burst").value_or(rate.bytes ? 0 : 5);
  if (rate.bytes) {
    const auto bytes = unit_of(rate_unit);
    const auto burst = unit_of(limit.contains("burst_unit") ? text_of(limit, "burst_unit") : "bytes");
    if (!bytes || !burst) return mistake("unknown unit of a limit", quoted(limit), "packets, bytes, kbytes or mbytes");
    rate.amount *= *bytes;
    rate.burst *= *burst;
  } else if (rate.burst == 0) {
    rate.burst = 5;
  }
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  if (*amount > kMost || rate.amount > kMost || rate.burst > kMost) {
    return mistake("a limit that is too high", quoted(limit), "at most 2^48");
  }
  return rate;
}

Checked<classify::Quota> read_quota(const Json& value) {
  classify::Quota quota;
  const bool is_object = value.is_object() && value.contains("bytes");
  const auto bytes = unsigned_of(value, is_object ? "bytes" : "val");
  const auto used = unsigned_of(value, "used");
  const auto unit =
      unit_of(!is_object && value.is_object() && value.contains("val_unit") ? text_of(value, "val_unit") : "bytes");
  const auto used_unit =
      unit_of(value.is_object() && value.contains("used_unit") ? text_of(value, "used_unit") : "bytes");
  constexpr std::uint64_t kMost = std::uint64_t{1} << 43;  // in a unit
  if (!bytes || !unit || !used_unit || *bytes > kMost || used.value_or(0) > kMost)
    return mistake("wrong quota", quoted(value), "a number of bytes, kbytes or mbytes");
  quota.bytes = *bytes * *unit;
  quota.used = used.value_or(0) * *used_unit;
  quota.over = is_set(value, "inv");
  return quota;
}

Checked<classify::ConnectionCount> read_count(const Json& value) {
  const auto most = unsigned_of(value, "val");
  if (!most || *most > 0xffffffff) return mistake("wrong ct count", quoted(value), "\"val\": a number");
  return classify::ConnectionCount{static_cast<std::uint32_t>(*most), is_set(value, "inv")};
}

Checked<Mangle> read_mangle(const Json& mangle) {
  const auto key = mangle.is_object() ? mangle.find("key") : mangle.end();
  const auto value = mangle.is_object() ? mangle.find("value") : mangle.end();
  if (!mangle.is_object() || key == mangle.end() || value == mangle.end() || !key->is_object() || key->size() != 1)
    return mistake("wrong mangle", quoted(mangle), "an object of \"key\" and \"value\"");
  const std::string& kind = key->begin().key();
  const Json& of = key->begin().value();
  if ((kind == "meta" || kind == "ct") && text_of(of, "key") == "mark") {
    auto mark = read_mark_value(*value);
    if (!mark) return within(".value", std::move(mark.error()));
    mark->of_connection = kind == "ct";
    return Mangle{*mark};
  }
  if (kind == "tcp option" && is_segment_size(of)) {
    Mangle clamp{classify::ClampSegmentSize{}, {of_tcp()}};
    if (value->is_number_unsigned() && value->get<std::uint64_t>() <= 0xffff && *value != 0) {
      std::get<classify::ClampSegmentSize>(clamp.step).most = value->get<std::uint16_t>();
      return clamp;
    }
    if (value->is_object() && value->contains("rt") && text_of((*value)["rt"], "key") == "mtu") return clamp;
    return unsupported("this segment size is not supported", in_words(*value), "a number, or rt mtu");
  }
  const bool is_payload = kind == "payload";
  const auto field = is_payload ? payload_key(text_of(of, "protocol"), text_of(of, "field")) : std::nullopt;
  if (field && (field->operand.value == Value::traffic_class || field->operand.value == Value::hop_limit)) {
    const bool of_class = field->operand.value == Value::traffic_class;
    if (value->is_structured())
      return unsupported("this value of a field is not supported", in_words(*value), "a value");
    const auto one = read_one(*field, *value);
    if (!one) return within(".value", tl::unexpected(one.error()).value());
    using Set = classify::SetField;
    Set set{of_class ? Set::Field::traffic_class : Set::Field::hop_limit, Set::Way::set,
            static_cast<std::uint8_t>(*one << field->shift), 0};
    if (of_class) set.keep = static_cast<std::uint8_t>(~field->operand.mask.low);
    return Mangle{set, field->implied};
  }
  return unsupported(fmt::format("{} {} set is not supported", is_payload ? text_of(of, "protocol") : kind,
                                 text_of(of, is_payload ? "field" : "key")));
}

Checked<std::uint64_t> read_seconds_ns(const Json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMostSeconds)
    return mistake("wrong timeout", quoted(value), "a number of seconds");
  return value.get<std::uint64_t>() * kNsPerSecond;
}

}  // namespace penstock::firewall::nftables
