// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/ipset_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error_list.h"
#include "base/ip_address.h"
#include "base/nanoseconds.h"
#include "base/text_file.h"
#include "base/units.h"
#include "classify/interval_set.h"
#include "nf/firewall/iptables_rule.h"
#include "nf/firewall/rule_text.h"
#include "packet/ip.h"
#include "packet/mac_address.h"

namespace penstock::firewall {

namespace {

using classify::Interval;
using classify::number;
using Part = Ipset::Part;

struct KnownType {
  std::string_view name;
  std::vector<Part> parts;
};
const std::vector<KnownType>& known_types() {
  static const std::vector<KnownType> kTypes{
      {"hash:ip", {Part::address}},
      {"hash:net", {Part::address}},
      {"bitmap:ip", {Part::address}},
      {"bitmap:port", {Part::port}},
      {"hash:mac", {Part::mac}},
      {"hash:ip,port", {Part::address, Part::port}},
      {"hash:net,port", {Part::address, Part::port}},
      {"hash:net,net", {Part::address, Part::address}},
      {"hash:ip,port,ip", {Part::address, Part::port, Part::address}},
      {"hash:ip,port,net", {Part::address, Part::port, Part::address}},
      {"hash:net,port,net", {Part::address, Part::port, Part::address}},
      {"list:set", {}},
  };
  return kTypes;
}

class IpsetReader {
 public:
  IpsetReader(const std::string& file, std::size_t most) : file_(file), most_(most) {}

  Result<Ipsets> read(std::string_view text) {
    LineReader lines(text);
    std::size_t count = 0;
    for (Line line; lines.next(line);) {
      const std::string_view content = trimmed(line.text);
      if (content.empty() || content.front() == '#') continue;
      line_ = line.number;
      if (++count > most_) {
        mistakes_.add({{file_, line_, 0}, "too many lines", "", fmt::format("at most {}", format_count(most_))});
        break;
      }
      if (!split_iptables(content, words_)) {
        mistake(content, "unclosed quote", "\" at its end");
        continue;
      }
      if (words_.size() < 3 || (words_[0].text != "create" && words_[0].text != "add")) {
        mistake(content, "not a line of ipset save", "create NAME TYPE …, or add NAME ELEMENT …");
      } else if (words_[0].text == "create") {
        read_create();
      } else {
        read_add();
      }
    }
    if (!mistakes_.empty()) return failure(std::move(mistakes_).take({file_, 0, 0}));
    return std::move(sets_);
  }

 private:
  void mistake(std::string_view found, std::string message, std::string expected) {
    mistakes_.add({{file_, line_, 0}, std::move(message), in_quotes(found), std::move(expected)});
  }

  std::optional<std::uint64_t> number_at(std::size_t i, std::uint64_t most) {
    const auto value = i < words_.size() ? parse_integer(words_[i].text) : std::nullopt;
    if (value && *value <= most) return value;
    mistake(i < words_.size() ? words_[i].text : words_.back().text, "wrong number", fmt::format("up to {}", most));
    return std::nullopt;
  }

  void read_create() {
    const std::string& name = words_[1].text;
    const auto [place, added] = sets_.try_emplace(name);
    if (!added) return mistake(name, "set created twice", "once");
    Ipset& set = place->second;
    set.type = words_[2].text;
    const auto known = std::ranges::find(known_types(), set.type, &KnownType::name);
    if (known == known_types().end()) {
      set.unsupported = fmt::format("sets of type {} are not supported", set.type);
      return;
    }
    set.parts = known->parts;
    set.any_protocol = set.type == "bitmap:port";
    const bool has_addresses = std::ranges::find(set.parts, Part::address) != set.parts.end();
    if (!has_addresses) set.family = NetworkLayer::none;
    for (std::size_t i = 3; i < words_.size(); ++i) {
      const std::string& option = words_[i].text;
      if (option == "family") {
        const std::string family = i + 1 < words_.size() ? words_[++i].text : "";
        if (family != "inet" && family != "inet6") return mistake(family, "unknown family", "inet or inet6");
        if (has_addresses) set.family = family == "inet" ? NetworkLayer::ipv4 : NetworkLayer::ipv6;
      } else if (option == "timeout") {
        const auto seconds = number_at(++i, 0xffffffff);
        if (!seconds) return;
        set.has_timeouts = true;
        set.timeout_ns = *seconds * kNsPerSecond;
      } else if (option == "maxelem" || option == "size") {
        const auto most = number_at(++i, 0xffffffff);
        if (!most) return;
        set.size = static_cast<std::uint32_t>(*most);
      } else if (option == "hashsize" || option == "bucketsize" || option == "initval" || option == "range" ||
                 option == "markmask") {
        ++i;
      } else if (option != "counters" && option != "comment" && option != "skbinfo") {
        set.unsupported = fmt::format("sets with the option {} are not supported", option);
        return;
      }
    }
  }

  void read_add() {
    const auto found = sets_.find(words_[1].text);
    if (found == sets_.end()) return mistake(words_[1].text, "element of an unknown set", "a line create before it");
    Ipset& set = found->second;
    if (!set.unsupported.empty()) return;
    if (set.type == "list:set") {
      set.members.push_back(words_[2].text);
      return;
    }
    Ipset::Element element;
    element.timeout_ns = set.timeout_ns;
    for (std::size_t i = 3; i < words_.size(); ++i) {
      const std::string& option = words_[i].text;
      if (option == "timeout") {
        const auto seconds = number_at(++i, 0xffffffff);
        if (!seconds) return;
        element.timeout_ns = *seconds * kNsPerSecond;
      } else if (option == "packets" || option == "bytes" || option == "comment" || option == "skbmark" ||
                 option == "skbprio" || option == "skbqueue") {
        ++i;
      } else {
        set.unsupported = fmt::format("elements with {} are not supported", option);
        return;
      }
    }
    const std::vector<std::string_view> texts = split(words_[2].text, ',');
    if (texts.size() != set.parts.size())
      return mistake(words_[2].text, "wrong element", fmt::format("an element of type {}", set.type));
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto values = read_part(set, set.parts[i], texts[i], element);
      if (!values) {
        if (set.unsupported.empty())
          mistake(words_[2].text, "wrong element", fmt::format("an element of type {}", set.type));
        return;
      }
      element.values.push_back(*values);
      set.has_ranges |= values->low != values->high;
    }
    set.elements.push_back(std::move(element));
  }

  static std::optional<Interval> read_part(Ipset& set, Part part, std::string_view text, Ipset::Element& element) {
    if (part == Part::mac) {
      const auto mac = parse_mac(text);
      if (!mac) return std::nullopt;
      return Interval{number(to_number(*mac)), number(to_number(*mac))};
    }
    if (part == Part::port) return read_port(set, text, element);
    if (const auto range = parse_address_range(text); range && range->family == set.family) return interval_of(*range);
    const auto range = parse_address(text);
    if (!range || range->family != set.family) return std::nullopt;
    return interval_of(*range);
  }

  static Interval interval_of(const AddressRange& range) { return {range.low, range.high}; }

  /// "tcp:80", "udp:1000-2000", "80"
  static std::optional<Interval> read_port(Ipset& set, std::string_view text, Ipset::Element& element) {
    const std::size_t colon = text.find(':');
    if (colon != std::string_view::npos) {
      const auto protocol = parse_protocol(text.substr(0, colon));
      if (!protocol) return std::nullopt;
      if (!begins_with_ports(*protocol)) {
        set.unsupported = fmt::format("elements of protocol {} are not supported", text.substr(0, colon));
        return std::nullopt;
      }
      element.protocol = *protocol;
      text.remove_prefix(colon + 1);
    } else if (!set.any_protocol) {
      element.protocol = ip_protocol::kTcp;
    }
    const std::size_t dash = text.find('-');
    const auto low = parse_integer(text.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : parse_integer(text.substr(dash + 1));
    if (!low || !high || *low > *high || *high > 0xffff) return std::nullopt;
    return Interval{number(*low), number(*high)};
  }

  const std::string& file_;
  const std::size_t most_;
  Ipsets sets_;
  ErrorList mistakes_;
  std::uint32_t line_ = 0;
  std::vector<IptablesWord> words_;
};

}  // namespace

Result<Ipsets> read_ipsets(std::string_view text, const std::string& file, std::size_t most) {
  return IpsetReader(file, most).read(text);
}

}  // namespace penstock::firewall
