// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/rules/variables.h"

#include <algorithm>
#include <type_traits>

#include "base/units.h"
#include "nf/nids/rules/ranges.h"
#include "nf/nids/rules/rule_costs.h"

namespace penstock::nids {

namespace {

// Nested lists, and variables that refer to variables.
constexpr int kMostDepth = 32;

template <typename Range>
void join(std::vector<Range>& to, const std::vector<Range>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void join(AddressSet& to, const AddressSet& more) {
  join(to.v4, more.v4);
  join(to.v6, more.v6);
}
void join(PortSet& to, const PortSet& more) { join(to.ranges, more.ranges); }

void normalise(AddressSet& set) {
  ranges::normalise(set.v4);
  ranges::normalise(set.v6);
}
void normalise(PortSet& set) { ranges::normalise(set.ranges); }

void keep_what_is_not_in(AddressSet& set, const AddressSet& without) {
  set.v4 = ranges::intersection(set.v4, ranges::complement(without.v4));
  set.v6 = ranges::intersection(set.v6, ranges::complement(without.v6));
}
void keep_what_is_not_in(PortSet& set, const PortSet& without) {
  set.ranges = ranges::intersection(set.ranges, ranges::complement(without.ranges));
}

bool is_empty(const AddressSet& set) noexcept { return set.v4.empty() && set.v6.empty(); }
bool is_empty(const PortSet& set) noexcept { return set.ranges.empty(); }

template <typename Set>
constexpr const char* kExpected =
    std::is_same_v<Set, PortSet> ? "any, a port, a range (80:90, 80:, :90), a list in brackets or a $variable"
                                 : "any, an address, a network, a range (a-b), a list in brackets or a $variable";

/// The prefix length of a netmask; empty if it is not contiguous.
std::optional<unsigned> mask_length(Ipv4Address mask) noexcept {
  for (unsigned length = 0; length <= 32; ++length) {
    if (mask.bits == ipv4_mask(length)) return length;
  }
  return std::nullopt;
}

std::optional<AddressSet::Range<Ipv4Address>> network(Ipv4Address address, std::string_view length_text) {
  std::optional<std::uint64_t> length = parse_integer(length_text);
  if (!length) {
    const auto mask = parse_ipv4(length_text);
    if (!mask) return std::nullopt;
    length = mask_length(*mask);
  }
  if (!length || *length > 32) return std::nullopt;
  const std::uint32_t mask = ipv4_mask(static_cast<unsigned>(*length));
  return AddressSet::Range<Ipv4Address>{{address.bits & mask}, {address.bits | ~mask}};
}

std::optional<AddressSet::Range<Ipv6Address>> network(const Ipv6Address& address, std::string_view length_text) {
  const auto length = parse_integer(length_text);
  if (!length || *length > 128) return std::nullopt;
  const Ipv6Address mask = ipv6_mask(static_cast<unsigned>(*length));
  return AddressSet::Range<Ipv6Address>{{address.high & mask.high, address.low & mask.low},
                                        {address.high | ~mask.high, address.low | ~mask.low}};
}

/// "a", "a/length", "a-b"; host bits are ignored.
template <typename Address, typename Parse>
std::optional<AddressSet::Range<Address>> address_range(std::string_view text, Parse parse) {
  if (const std::size_t slash = text.find('/'); slash != text.npos) {
    const auto address = parse(trimmed(text.substr(0, slash)));
    if (!address) return std::nullopt;
    return network(*address, trimmed(text.substr(slash + 1)));
  }
  const std::size_t dash = text.find('-');
  const auto first = parse(trimmed(text.substr(0, dash)));
  const auto last = dash == text.npos ? first : parse(trimmed(text.substr(dash + 1)));
  if (!first || !last || *last < *first) return std::nullopt;
  return AddressSet::Range<Address>{*first, *last};
}

bool read_one(std::string_view text, AddressSet& set) {
  if (text.find(':') == text.npos) {
    const auto range = address_range<Ipv4Address>(text, parse_ipv4);
    if (range) set.v4 = {*range};
    return range.has_value();
  }
  const auto range = address_range<Ipv6Address>(text, parse_ipv6);
  if (range) set.v6 = {*range};
  return range.has_value();
}

bool read_one(std::string_view text, PortSet& set) {
  const std::size_t colon = text.find(':');
  const auto port = [](std::string_view number, std::uint16_t none) -> std::optional<std::uint16_t> {
    number = trimmed(number);
    if (number.empty()) return none;
    const auto value = parse_integer(number);
    if (!value || *value > 0xffff) return std::nullopt;
    return static_cast<std::uint16_t>(*value);
  };
  if (text.empty() || text == ":") return false;
  const auto first = port(text.substr(0, colon), 0);
  const auto last = colon == text.npos ? first : port(text.substr(colon + 1), 0xffff);
  if (!first || !last || *last < *first) return false;
  set.ranges = {{*first, *last}};
  return true;
}

/// A comma outside all brackets: a list without brackets of its own.
bool has_several(std::string_view text) noexcept {
  int brackets = 0;
  return std::any_of(text.begin(), text.end(), [&](char c) {
    brackets += (c == '[') - (c == ']');
    return c == ',' && brackets == 0;
  });
}

}  // namespace

/// One element: a variable or bracketed list, with the negations before it applied.
template <typename Set>
std::optional<Set> VariableResolver::read(std::string_view text, int depth, Complaint& why) {
  text = trimmed(text);
  const std::string_view whole = text;
  if (depth > kMostDepth) {
    why = {whole, "lists or variables nested too deeply", "", "at most " + std::to_string(kMostDepth)};
    return std::nullopt;
  }
  const bool is_list = has_several(text);
  bool negated = false;
  while (!is_list && text.starts_with('!')) {
    negated = !negated;
    text = trimmed(text.substr(1));
  }
  Set set;
  if (is_list) {
    auto list = read_list<Set>(text, depth + 1, why);
    if (!list) return std::nullopt;
    set = std::move(*list);
  } else if (text.starts_with('$')) {
    const std::string_view name = text.substr(1);
    auto& kept = [this]() -> Kept<Set>& {
      if constexpr (std::is_same_v<Set, PortSet>) {
        return port_variables_;
      } else {
        return address_variables_;
      }
    }();
    if (const auto known = kept.find(name); known != kept.end()) {
      set = known->second;
    } else {
      const auto variable = variables_.find(name);
      if (variable == variables_.end()) {
        std::vector<std::string_view> names;
        for (const auto& [other, value] : variables_) names.push_back(other);
        why = {whole, with_suggestion("unknown variable", name, names), in_quotes(text),
               "one of the configuration's variables", "unknown variable"};
        return std::nullopt;
      }
      if (std::find(open_.begin(), open_.end(), name) != open_.end()) {
        why = {whole, "variable refers to itself", in_quotes(text), ""};
        return std::nullopt;
      }
      open_.push_back(name);
      auto value = read<Set>(variable->second, depth + 1, why);
      open_.pop_back();
      if (!value) {
        // The error is inside the variable, which the rule's text does not show.
        why.at = whole;
        why.message = "variable " + std::string(text) + ": " + why.message;
        ++why.variables;
        return std::nullopt;
      }
      set = *value;
      kept.emplace(name, std::move(*value));
    }
  } else if (text.starts_with('[')) {
    if (!text.ends_with(']')) {
      why = {whole, "unbalanced brackets", in_quotes(whole), "]"};
      return std::nullopt;
    }
    auto list = read_list<Set>(text.substr(1, text.size() - 2), depth + 1, why);
    if (!list) return std::nullopt;
    set = std::move(*list);
  } else if (equals_ignoring_case(text, "any")) {
    set = Set::any();
  } else if (!read_one(text, set)) {
    why = {whole, std::is_same_v<Set, PortSet> ? "not a port" : "not an address", in_quotes(whole), kExpected<Set>};
    return std::nullopt;
  }
  if constexpr (!std::is_same_v<Set, PortSet>) set.negates |= text != whole;
  if (negated) {
    Set rest = Set::any();
    if constexpr (!std::is_same_v<Set, PortSet>) rest.negates = true;
    keep_what_is_not_in(rest, set);
    set = std::move(rest);
  }
  if (is_empty(set)) {
    why = {whole, std::is_same_v<Set, PortSet> ? "the list contains no port" : "the list contains no address",
           in_quotes(whole), whole == "!$HOME_NET" ? "a value for EXTERNAL_NET too, because HOME_NET is any" : ""};
    return std::nullopt;
  }
  return set;
}

/// The union of the list's elements, without the negated ones. If all are negated: everything else.
template <typename Set>
std::optional<Set> VariableResolver::read_list(std::string_view text, int depth, Complaint& why) {
  Set named;
  Set without;
  bool any_named = false;
  bool negates = false;
  std::size_t start = 0;
  int brackets = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size()) {
      if (text[at] == '[') ++brackets;
      if (text[at] == ']') --brackets;
      if (text[at] != ',' || brackets > 0) continue;
    }
    std::string_view element = trimmed(text.substr(start, at - start));
    start = at + 1;
    bool negated = false;
    if (element.starts_with('!')) {
      negated = true;
      element = trimmed(element.substr(1));
    }
    auto set = read<Set>(element, depth, why);
    if (!set) return std::nullopt;
    list_bytes_ += bytes_of(*set);
    if (list_bytes_ > kMostListBytes) {
      why = {element, "lists too long, including their variables",
             "more than " + format_size(kMostListBytes) + " in all", "shorter lists", "lists too long"};
      return std::nullopt;
    }
    join(negated ? without : named, *set);
    any_named |= !negated;
    if constexpr (!std::is_same_v<Set, PortSet>) negates |= negated || set->negates;
  }
  if (!any_named) named = Set::any();
  normalise(named);
  normalise(without);
  keep_what_is_not_in(named, without);
  if constexpr (!std::is_same_v<Set, PortSet>) named.negates = negates;
  return named;
}

template <typename Set>
const Set* VariableResolver::kept_or_read(Kept<Set>& kept, std::string_view text, Complaint& why) {
  if (const auto known = kept.find(text); known != kept.end()) return &known->second;
  auto set = read<Set>(text, 0, why);
  if (!set) return nullptr;
  if (kept.size() >= kMostKept) kept.clear();
  return &kept.emplace(text, std::move(*set)).first->second;
}

const VariableResolver::Addresses* VariableResolver::addresses(std::string_view text, Complaint& why) {
  return kept_or_read(addresses_, text, why);
}

const PortSet* VariableResolver::ports(std::string_view text, Complaint& why) {
  return kept_or_read(ports_, text, why);
}

Variables default_variables() {
  return {
      // Suricata's
      {"HOME_NET", "[192.168.0.0/16,10.0.0.0/8,172.16.0.0/12]"},
      {"EXTERNAL_NET", "!$HOME_NET"},
      {"HTTP_SERVERS", "$HOME_NET"},
      {"SMTP_SERVERS", "$HOME_NET"},
      {"SQL_SERVERS", "$HOME_NET"},
      {"DNS_SERVERS", "$HOME_NET"},
      {"TELNET_SERVERS", "$HOME_NET"},
      {"AIM_SERVERS", "$EXTERNAL_NET"},
      {"DC_SERVERS", "$HOME_NET"},
      {"DNP3_SERVER", "$HOME_NET"},
      {"DNP3_CLIENT", "$HOME_NET"},
      {"MODBUS_CLIENT", "$HOME_NET"},
      {"MODBUS_SERVER", "$HOME_NET"},
      {"ENIP_CLIENT", "$HOME_NET"},
      {"ENIP_SERVER", "$HOME_NET"},
      {"HTTP_PORTS", "80"},
      {"SHELLCODE_PORTS", "!80"},
      {"ORACLE_PORTS", "1521"},
      {"SSH_PORTS", "22"},
      {"DNP3_PORTS", "20000"},
      {"MODBUS_PORTS", "502"},
      {"FILE_DATA_PORTS", "[$HTTP_PORTS,110,143]"},
      {"FTP_PORTS", "21"},
      {"GENEVE_PORTS", "6081"},
      {"VXLAN_PORTS", "4789"},
      {"TEREDO_PORTS", "3544"},
      {"SIP_PORTS", "[5060,5061]"},
      // Snort's
      {"SSH_SERVERS", "$HOME_NET"},
      {"FTP_SERVERS", "$HOME_NET"},
      {"SIP_SERVERS", "$HOME_NET"},
      {"SNMP_SERVERS", "$HOME_NET"},
      {"GTP_PORTS", "[2123,2152,3386]"},
      {"MAIL_PORTS", "[110,143]"},
  };
}

}  // namespace penstock::nids
