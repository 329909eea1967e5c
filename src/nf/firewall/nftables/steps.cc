// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/nftables/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text_file.h"
#include "base/units.h"
#include "packet/ip.h"
#include "packet/mac_address.h"

namespace penstock::firewall::nftables {

namespace {

using classify::Interval;
using classify::IntervalSet;
using classify::number;
using classify::Operand;
using classify::Value;

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
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
  if (has_offset && *offset != 0) return unsupported("numgen with an offset is not supported");
  Operand operand = masked(mode == "random" ? Value::random : Value::turn);
  operand.modulus = modulus->get<std::uint32_t>();
  return key_of(operand, operand.modulus - 1);
}

std::optional<StepKey> payload_key(std::string_view of, std::string_view field) {
  StepKey key;
  if (of == "ether" && (field == "saddr" || field == "daddr")) {
    key = key_of(masked(field == "saddr" ? Value::ether_source : Value::ether_destination), 0xffff'ffff'ffffU);
    key.is_link_address = true;
    return key;
  }
  if (of != "ip" && of != "ip6") return std::nullopt;
  if ((of == "ip" && field == "ttl") || (of == "ip6" && field == "hoplimit")) {
    key = key_of(masked(Value::hop_limit), 0xff);
  } else if (field == "dscp") {
    key = key_of(masked(Value::traffic_class, 0xfc), 0x3f);
    key.shift = 2;
    key.is_dscp = true;
  } else if (field == "ecn") {
    key = key_of(masked(Value::traffic_class, 3), 3);
    key.is_ecn = true;
  } else if (of == "ip" && field == "length") {
    key = key_of(masked(Value::length), 0xffff);
  } else {
    return std::nullopt;
  }
  key.implied.push_back({Field::family, only(of == "ip" ? kIpv4 : kIpv6)});
  return key;
}

std::optional<StepKey> meta_key(std::string_view name) {
  if (name == "mark") return key_of(masked(Value::mark), kMarks);
  if (name == "length") return key_of(masked(Value::length), kMarks);
  if (name != "pkttype") return std::nullopt;
  StepKey key = key_of(masked(Value::ether_destination), 0xffff'ffff'ffffU);
  key.is_packet_kind = true;
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
  if (value.is_string()) {
    const std::string& text = value.get_ref<const std::string&>();
    const auto named = [&](std::span<const Symbol> symbols) -> std::optional<std::uint64_t> {
      const auto found = std::ranges::find(symbols, text, &Symbol::first);
      if (found == symbols.end()) return std::nullopt;
      return found->second;
    };
    if (const auto mac = key.is_link_address ? parse_mac(text) : std::nullopt) read = to_number(*mac);
    if (key.is_dscp) read = named(kDscp);
    if (key.is_ecn) read = named(kEcn);
    if (!read && !key.is_link_address) read = parse_integer(text);
  }
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
      if (auto added = add_values(key, element, to); !added) return within(".set", std::move(added.error()));
    }
    return {};
  }
  if (is_object && value.contains("range") && value["range"].is_array() && value["range"].size() == 2) {
    const auto low = read_one(key, value["range"][0]);
    const auto high = read_one(key, value["range"][1]);
    if (!low) return tl::unexpected(low.error());
    if (!high) return tl::unexpected(high.error());
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

/// By the link-layer destination, as the kernel does for what a host gets.
Checked<classify::Test> read_packet_kind(const StepKey& key, const std::string& op, const Json& right) {
  if (!right.is_string() || op != "==") return unsupported("pkttype is supported with == and one value only");
  constexpr std::uint64_t kBroadcast = 0xffff'ffff'ffffU, kGroup = std::uint64_t{1} << 40;
  classify::Test test{key.operand, {}};
  if (right == "broadcast") {
    test.values = {{number(kBroadcast), number(kBroadcast)}};
  } else if (right == "host" || right == "unicast") {
    test.operand.mask = number(kGroup);
    test.values = {{number(0), number(0)}};
  } else if (right == "multicast") {
    // Group addresses but one. Those of IP and of protocols between bridges are below it.
    std::vector<Interval> groups;
    for (std::uint64_t first = 1; first < 256; first += 2)
      groups.push_back({number(first << 40), number((first << 40 | 0xff'ffff'ffffU) - (first == 255 ? 1 : 0))});
    test.values = classify::united(std::move(groups));
  } else {
    return unsupported("a kind of packet that is not supported", quoted(right), "host, broadcast or multicast");
  }
  return test;
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
    return unsupported("this value of a mark is not supported", quoted(value));
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
    return unsupported("this value of a mark is not supported", quoted(value));
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
  if (kind == "ct" && value.is_object() && value.size() == 1 && text_of(value, "key") == "mark")
    return key_of(masked(Value::connection_mark), kMarks);
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
  if (kind != "&" || !value.is_array() || value.size() != 2 || !value[1].is_number_unsigned()) return std::nullopt;
  auto key = read_step_key(value[0]);
  if (!key || !*key) return key;
  const Value operand = (*key)->operand.value;
  if (operand != Value::mark && operand != Value::connection_mark)
    return unsupported("a mask of this key is not supported", quoted(expression));
  (*key)->operand.mask.low &= value[1].get<std::uint64_t>();
  return key;
}

Checked<classify::Test> read_test(const StepKey& key, const std::string& op, const Json& right) {
  if (right.is_string() && right.get_ref<const std::string&>().starts_with('@'))
    return unsupported("a named set for this key is not supported", quoted(right), "its elements in the rule");
  if (key.is_packet_kind) return read_packet_kind(key, op, right);
  std::vector<Interval> values;
  if (auto added = add_values(key, right, values); !added) return tl::unexpected(std::move(added.error()));
  classify::Test test{key.operand, classify::united(std::move(values))};
  const Interval domain{number(0), number((key.last << key.shift) | ((std::uint64_t{1} << key.shift) - 1))};
  if (op == "==" || (op == "in" && right.is_object())) return test;
  if (op == "!=") {
    test.values = classify::complement(test.values, domain);
    return test;
  }
  const bool is_point = !right.is_structured();
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
    return unsupported("this segment size is not supported", quoted(*value), "a number, or rt mtu");
  }
  const bool is_payload = kind == "payload";
  return unsupported(fmt::format("{} {} set is not supported", is_payload ? text_of(of, "protocol") : kind,
                                 text_of(of, is_payload ? "field" : "key")));
}

Checked<std::uint64_t> read_seconds_ns(const Json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMostSeconds)
    return mistake("wrong timeout", quoted(value), "a number of seconds");
  return value.get<std::uint64_t>() * kNsPerSecond;
}

}  // namespace penstock::firewall::nftables
