// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/router/route_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/units.h"
#include "nf/router/ip_json.h"
#include "nf/router/read_files.h"
#include "nf/router/route_entry.h"

namespace penstock::router {

namespace {

std::optional<RouteKind> route_kind(std::string_view name) noexcept {
  const auto found = std::ranges::find(kRouteKindNames, name);
  const auto kind = static_cast<RouteKind>(found - kRouteKindNames.begin());
  if (found == kRouteKindNames.end() || kind == RouteKind::elsewhere) return std::nullopt;
  return kind;
}

/// Blackhole, unreachable, prohibit and throw routes have no device; one that is given is ignored.
constexpr bool leads_to_a_device(RouteKind kind) noexcept { return kind < RouteKind::blackhole; }

/// The prefix that the user may have meant, if only host bits are wrong.
std::string without_host_bits(std::string_view text) {
  const auto slash = text.find('/');
  const auto length = slash == std::string_view::npos ? std::nullopt : parse_integer(text.substr(slash + 1));
  if (!length) return {};
  if (const auto v4 = parse_ipv4(text.substr(0, slash)); v4 && *length <= 32) {
    const auto bits = static_cast<std::uint8_t>(*length);
    return to_string(Ipv4Prefix{{v4->bits & ipv4_mask(bits)}, bits});
  }
  if (const auto v6 = parse_ipv6(text.substr(0, slash)); v6 && *length <= 128) {
    const auto bits = static_cast<std::uint8_t>(*length);
    const Ipv6Address mask = ipv6_mask(bits);
    return to_string(Ipv6Prefix{{v6->high & mask.high, v6->low & mask.low}, bits});
  }
  return {};
}

}  // namespace

void RouteReader::read(std::string_view text, const std::string& file) {
  file_ = file;
  if (is_ip_json(text)) {
    read_json(text);
  } else {
    for (LineReader lines(text); routes_read_ <= most_routes_ && lines.next(line_);) {
      split_words(line_.text, words_);
      read_words();
    }
  }
  close_route();
}

void RouteReader::read_json(std::string_view text) {
  IpJsonEntries entries(text);
  IpJsonWords entry_words;
  IpJsonEntry entry;
  std::string why;
  while (routes_read_ <= most_routes_ && entries.next(entry)) {
    line_ = {entry.line, {}};
    if (entry_words.read_route(entry, words_, why)) {
      read_words();
      close_route();  // before its words are overwritten
    } else {
      error(entry.line, entry.column, why, in_quotes(entry.text), "a route of `ip -j route`");
    }
  }
  if (entries.wrong().empty()) return;
  error(entry.line, entry.column, entries.wrong(), in_quotes(entry.text), "output of `ip -j route`");
}

void RouteReader::read_words() {
  if (words_.empty() || words_[0].text.front() == '#') return;
  const bool nh_info = words_[0].text == "nh_info";
  if (nh_info || words_[0].text == "nexthop") {
    if (!open_) return error(words_[0], "next hop without a route", "a route on a line before it");
    // `ip -d` describes the next hop object first; what we need of it is in the following lines too.
    const auto line_end = std::ranges::find(words_, "\\", &Word::text) - words_.begin();
    return read_attributes(nh_info ? static_cast<std::size_t>(line_end) : 0);
  }
  close_route();
  if (++routes_read_ > most_routes_) {
    const std::string most = format_count(most_routes_);
    return error(line_.number, 0, "too many routes", "more than " + most,
                 "at most " + most + " (most_routes raises it)");
  }
  open_route();
}

void RouteReader::open_route() {
  std::vector<Draft> hops = std::move(route_.hops);  // reuse its memory
  hops.clear();
  route_ = {};
  route_.hops = std::move(hops);
  route_.line = line_.number;
  open_ = true;
  std::size_t at = 0;
  if (const auto kind = route_kind(words_[0].text)) {
    route_.kind = *kind;
    if (!next_value(at, "a prefix")) return;
  } else if (words_[0].text == "nat" || words_[0].text == "xresolve") {
    return unsupported(words_[0], "route type is not supported");
  }
  read_prefix(words_[at]);
  read_attributes(at + 1);
}

void RouteReader::read_prefix(const Word& word) {
  if (word.text == "default") return;
  if (word.text.find(':') == std::string_view::npos) {
    if (const auto prefix = parse_ipv4_prefix(word.text)) {
      route_.family = Family::ipv4;
      route_.v4 = *prefix;
      return;
    }
  } else if (const auto prefix = parse_ipv6_prefix(word.text)) {
    route_.family = Family::ipv6;
    route_.v6 = *prefix;
    return;
  }
  const std::string meant = without_host_bits(word.text);
  if (!meant.empty()) return error(word, "host bits set", meant);
  error(word, "not a prefix", "ADDRESS/LENGTH, an address, default or a route type");
}

void RouteReader::read_attributes(std::size_t at) {
  for (; at < words_.size() && !route_.left_out; ++at) {
    const auto word = route_word(words_[at].text);
    if (!word) return unsupported(words_[at], "unknown word in a route");
    read_attribute(*word, at);
  }
}

void RouteReader::read_attribute(RouteWord word, std::size_t& at) {
  const Word& name = words_[at];
  switch (word) {
    case RouteWord::via: return read_gateway(at);
    case RouteWord::dev:
      if (hop().has_device) return error(name, "second device", "one per next hop; `nexthop` starts another");
      if (next_value(at, "a device")) read_device(words_[at]);
      return;
    case RouteWord::nexthop:
      if (!route_.multipath && !route_.hops.empty())
        return error(name, "`nexthop` in a route that already has a next hop", "");
      if (route_.hops.size() == kMostNextHops) return error(name, "too many next hops", "at most 1024");
      route_.multipath = true;
      add_hop();
      return;
    case RouteWord::weight:
      if (std::exchange(hop().has_weight, true)) return error(name, "second weight", "one per next hop");
      if (next_value(at, "a number"))
        hop().hop.weight = static_cast<std::uint16_t>(number(words_[at], "weight", 1, 256));
      return;
    case RouteWord::metric:
      if (route_.has_metric) return error(name, "second metric", "one per route");
      if (!next_value(at, "a number")) return;
      route_.preference.metric = static_cast<std::uint32_t>(number(words_[at], "metric", 0, 0xffff'ffff));
      route_.has_metric = true;
      return;
    case RouteWord::table:
      if (next_value(at, "a table")) read_table(words_[at]);
      return;
    case RouteWord::src:
      if (!next_value(at, "an address")) return;
      route_.hint = words_[at].text.find(':') == std::string_view::npos ? Family::ipv4 : Family::ipv6;
      return;
    case RouteWord::pref:
      if (next_value(at, "high, medium or low")) read_preference(words_[at]);
      return;
    case RouteWord::proto:
      // The kernel does not share load among routers that it learnt from router advertisements.
      if (next_value(at, "a protocol") && words_[at].text == "ra") route_.joins = false;
      return;
    case RouteWord::dead: hop().dead = true; return;
    case RouteWord::value_v6: route_.hint = Family::ipv6; [[fallthrough]];
    case RouteWord::value:
      if (next_value(at, "a value") && words_[at].text == "lock") static_cast<void>(next_value(at, "a value"));
      return;
    case RouteWord::type_of_service:
      if (next_value(at, "a number") && parse_integer(words_[at].text) != 0)
        unsupported(name, "routes by type of service are not supported");
      return;
    case RouteWord::flag:
    case RouteWord::line_end: return;
    case RouteWord::unsupported: return unsupported(name, "route attribute is not supported");
  }
}

void RouteReader::read_gateway(std::size_t& at) {
  Draft& draft = hop();
  if (draft.gateway_family != Family::unknown) {
    return error(words_[at], "second gateway", "one per next hop; `nexthop` starts another");
  }
  if (!next_value(at, "an address")) return;
  if (words_[at].text == "inet6" || words_[at].text == "inet") {
    draft.inet6 = words_[at].text == "inet6";
    if (!next_value(at, "an address")) return;
  }
  draft.gateway = words_[at];
  const std::string_view text = words_[at].text;
  if (text.find(':') == std::string_view::npos) {
    if (const auto address = parse_ipv4(text); address && address->bits != 0 && !draft.inet6) {
      draft.gateway_family = Family::ipv4;
      draft.hop.gateway = mapped(*address);
      return;
    }
  } else if (const auto address = parse_ipv6(text); address && *address != Ipv6Address{}) {
    draft.gateway_family = Family::ipv6;
    draft.hop.gateway = *address;
    return;
  }
  error(words_[at], "not a gateway", draft.inet6 ? "an IPv6 address" : "an IP address");
}

void RouteReader::read_device(const Word& word) {
  Draft& draft = hop();
  draft.has_device = true;
  const auto device = devices_->find(word.text);
  if (word.text == "lo" && device.value_or(kNoPort) == kNoPort) {
    draft.loopback = true;
  } else if (device) {
    draft.hop.device = *device;
    draft.elsewhere = *device == kNoPort;
  } else if (route_.kind == RouteKind::unicast) {
    if (devices_->takes_any()) return error(word, "too many devices", "at most 65535");
    error(word, "unknown device", devices_->list() + ", or an entry in `interfaces` (a port or none)");
  }
}

void RouteReader::read_table(const Word& word) {
  if (word.text == "local" || word.text == "255") {
    route_.preference.table = RoutePreference::kLocal;
  } else if (word.text == "default" || word.text == "253") {
    route_.preference.table = RoutePreference::kDefault;
  } else if (word.text != "main" && word.text != "254") {
    unsupported(word, "only the tables local, main and default are supported");
  }
}

void RouteReader::read_preference(const Word& word) {
  route_.hint = Family::ipv6;
  if (word.text == "high") {
    route_.preference.router_preference = RoutePreference::kHigh;
  } else if (word.text == "low") {
    route_.preference.router_preference = RoutePreference::kLow;
  } else if (word.text != "medium") {
    error(word, "not a router preference", "high, medium or low");
  }
}

void RouteReader::close_route() {
  if (std::exchange(open_, false) && !route_.left_out && check_hops()) add_route();
}

/// Determines the family, and checks that the next hops are complete and match it. False if there is no route to add.
bool RouteReader::check_hops() {
  std::vector<Draft>& hops = route_.hops;
  if (route_.family == Family::unknown) {
    const auto with_gateway =
        std::ranges::find_if(hops, [](const Draft& d) { return d.gateway_family != Family::unknown; });
    const Family known = with_gateway == hops.end() ? route_.hint
                         : with_gateway->inet6      ? Family::ipv4
                                                    : with_gateway->gateway_family;
    route_.family = known == Family::ipv6 ? Family::ipv6 : Family::ipv4;
  }
  if (route_.kind != RouteKind::unicast) return true;
  if (hops.empty()) {
    error(route_.line, 0, "route without a next hop", "", "via, dev, or nexthop lines");
    return false;
  }
  for (const Draft& draft : hops) {
    if (!draft.has_device) error(draft.line, draft.end_column, "next hop without a device", "", "dev DEVICE");
    const bool foreign = route_.family == Family::ipv4 ? draft.gateway_family == Family::ipv6 && !draft.inet6
                                                       : draft.gateway_family == Family::ipv4;
    if (!foreign) continue;
    const bool v4 = route_.family == Family::ipv4;
    error(draft.line, draft.gateway.column, v4 ? "wrong gateway of an IPv4 route" : "wrong gateway of an IPv6 route",
          in_quotes(draft.gateway.text), v4 ? "an IPv4 address, or inet6 and an IPv6 address" : "an IPv6 address");
  }
  if (std::ranges::any_of(hops, &Draft::loopback)) route_.kind = RouteKind::local;
  std::erase_if(hops, [](const Draft& draft) { return draft.dead; });
  if (hops.empty()) return false;  // as in the kernel
  // Packets of this route must not use a shorter one, and the chain has no port for them.
  std::erase_if(hops, [](const Draft& draft) { return draft.elsewhere; });
  if (hops.empty()) route_.kind = RouteKind::unreachable;
  return !route_.left_out;
}

void RouteReader::add_route() {
  constexpr std::uint32_t kIpv6Metric = 1024;  // the kernel's default
  if (!route_.has_metric && route_.family == Family::ipv6) route_.preference.metric = kIpv6Metric;
  hops_.clear();
  if (route_.kind == RouteKind::unicast) {
    for (const Draft& draft : route_.hops) hops_.push_back(draft.hop);
  } else {
    hops_.emplace_back();
    if (leads_to_a_device(route_.kind) && !route_.hops.empty()) hops_[0].device = route_.hops[0].hop.device;
  }
  const std::uint32_t group = routes_.next_hops().intern(route_.kind, hops_);
  if (group > kMaxValue) {
    error(route_.line, 0, "too many different next hops", "", "at most 16777214");
  } else if (route_.family == Family::ipv4) {
    routes_.add(RouteCandidate<Ipv4Prefix>{route_.v4, route_.preference, group});
  } else {
    const bool joins =
        route_.joins && route_.kind == RouteKind::unicast && std::ranges::all_of(hops_, &NextHop::has_gateway);
    routes_.add(RouteCandidate<Ipv6Prefix>{route_.v6, route_.preference, group, joins});
  }
}

Result<Read<RouteTable>> RouteReader::finish() && {
  if (!errors_.empty()) return failure(std::move(errors_).take());
  auto table = std::move(routes_).select();
  if (!table) return failure(std::move(table).error());
  return Read<RouteTable>{std::move(*table), std::move(unsupported_).take()};
}

bool RouteReader::next_value(std::size_t& at, std::string_view expected) {
  if (at + 1 < words_.size()) {
    ++at;
    return true;
  }
  const Word& last = words_[at];
  error(line_.number, last.column + static_cast<std::uint32_t>(last.text.size()), "the line ends early",
        "nothing after " + in_quotes(last.text), expected);
  return false;
}

std::uint64_t RouteReader::number(const Word& word, std::string_view what, std::uint64_t least, std::uint64_t most) {
  const auto value = parse_integer(word.text);
  if (value && *value >= least && *value <= most) return *value;
  error(word, fmt::format("not a {}", what), fmt::format("{} to {}", least, most));
  return least;
}

void RouteReader::add_hop() {
  const Word& last = words_.back();
  Draft& draft = route_.hops.emplace_back();
  draft.line = line_.number;
  draft.end_column = last.column + static_cast<std::uint32_t>(last.text.size());
}

RouteReader::Draft& RouteReader::hop() {
  if (route_.hops.empty()) add_hop();
  return route_.hops.back();
}

void RouteReader::error(std::uint32_t line, std::uint32_t column, std::string_view message, std::string found,
                        std::string_view expected) {
  route_.left_out = true;
  errors_.add([&] {
    return Error{{file_, line, column}, std::string(message), std::move(found), std::string(expected)};
  });
}

void RouteReader::error(const Word& word, std::string_view message, std::string_view expected) {
  error(line_.number, word.column, message, in_quotes(word.text), expected);
}

void RouteReader::unsupported(const Word& word, std::string_view message) {
  route_.left_out = true;
  unsupported_.add([&] {
    return Error{{file_, line_.number, word.column},
                 std::string(message) + ": this route is left out",
                 in_quotes(word.text),
                 ""};
  });
}

Result<Read<RouteTable>> read_routes(std::span<const std::string> paths, Devices& devices, std::size_t most_routes) {
  return read_files(paths, RouteReader(devices, most_routes));
}

Result<Read<RouteTable>> parse_routes(std::string_view text, const std::string& file, Devices& devices,
                                      std::size_t most_routes) {
  RouteReader reader(devices, most_routes);
  reader.read(text, file);
  return std::move(reader).finish();
}

}  // namespace penstock::router
