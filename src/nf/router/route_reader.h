// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the output of `ip route` and `ip -6 route`, IPv4 and IPv6 mixed. A route is one line, or a line followed by
// `nexthop` lines:
//
//     [TYPE] PREFIX [via [inet6] GATEWAY] [dev DEVICE] [ATTRIBUTE …]
//             nexthop [via [inet6] GATEWAY] dev DEVICE [weight N] …
//
// Also reads the one-line form of `ip -o`, the details of `ip -d`, and the JSON of `ip -j` (ip_json.h). Empty lines and
// lines that begin with # are skipped.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/error_list.h"
#include "base/text_file.h"
#include "nf/router/devices.h"
#include "nf/router/route_table.h"
#include "nf/router/route_words.h"

namespace penstock::router {

/// Reads files one after the other as if they were a single one.
class RouteReader {
 public:
  explicit RouteReader(Devices& devices, std::size_t most_routes = kMostRoutes)
      : devices_(&devices), most_routes_(most_routes) {}

  /// `file` is the text's name in messages. The text is not used after the call.
  void read(std::string_view text, const std::string& file);
  /// The errors of all files; or the routes, and what was left out.
  [[nodiscard]] Result<Read<RouteTable>> finish() &&;

 private:
  enum class Family : std::uint8_t { unknown, ipv4, ipv6 };

  struct Draft {  // a next hop while it is read
    NextHop hop;
    Family gateway_family = Family::unknown;
    bool inet6 = false;  // "via inet6": an IPv6 gateway of an IPv4 route
    bool has_device = false;
    bool has_weight = false;
    bool loopback = false;   // through `lo`, which is not a port
    bool elsewhere = false;  // through a device that the user maps to no port
    bool dead = false;
    std::uint32_t line = 0;
    Word gateway;
    std::uint32_t end_column = 0;  // at the end of its line
  };

  struct Route {
    std::uint32_t line = 0;
    RouteKind kind = RouteKind::unicast;
    Family family = Family::unknown;  // unknown at first for "default"
    Family hint = Family::unknown;    // what the attributes of a "default" without gateway imply
    Ipv4Prefix v4;
    Ipv6Prefix v6;
    RoutePreference preference;
    bool has_metric = false;
    bool joins = true;
    bool multipath = false;  // has `nexthop` words
    bool left_out = false;   // an error or an unsupported construct was reported
    std::vector<Draft> hops;
  };

  // In the order in which they process a route.
  void read_json(std::string_view text);
  void read_words();
  void open_route();
  void read_prefix(const Word& word);
  void read_attributes(std::size_t at);
  void read_attribute(RouteWord word, std::size_t& at);
  void read_gateway(std::size_t& at);
  void read_device(const Word& word);
  void read_table(const Word& word);
  void read_preference(const Word& word);
  void close_route();
  [[nodiscard]] bool check_hops();
  void add_route();

  [[nodiscard]] bool next_value(std::size_t& at, std::string_view expected);
  [[nodiscard]] std::uint64_t number(const Word& word, std::string_view what, std::uint64_t least, std::uint64_t most);
  void add_hop();
  [[nodiscard]] Draft& hop();  // the last one; if a route has only one, it is added when first needed

  void error(std::uint32_t line, std::uint32_t column, std::string_view message, std::string found,
             std::string_view expected);
  void error(const Word& word, std::string_view message, std::string_view expected);
  void unsupported(const Word& word, std::string_view message);

  Devices* devices_;
  std::size_t most_routes_;
  std::size_t routes_read_ = 0;
  RouteSelection routes_;
  ErrorList errors_;
  ErrorList unsupported_{ErrorList::kMostLeftOut};
  std::string file_;
  Line line_;
  std::vector<Word> words_;
  Route route_;
  bool open_ = false;  // route_ may be followed by nexthop lines
  std::vector<NextHop> hops_;
};

/// Reads whole files; "-" is the standard input.
[[nodiscard]] Result<Read<RouteTable>> read_routes(std::span<const std::string> paths, Devices& devices,
                                                   std::size_t most_routes = kMostRoutes);
/// Reads a text.
[[nodiscard]] Result<Read<RouteTable>> parse_routes(std::string_view text, const std::string& file, Devices& devices,
                                                    std::size_t most_routes = kMostRoutes);

}  // namespace penstock::router
