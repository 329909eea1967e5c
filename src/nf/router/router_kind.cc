// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of `router`, and how it is built from them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text_file.h"
#include "base/units.h"
#include "function/interface_names.h"
#include "nf/router/neighbour_reader.h"
#include "nf/router/route_reader.h"
#include "nf/router/router.h"

namespace penstock::router {

namespace {

constexpr auto kParameters = std::to_array<Parameter>({
    {"routes", ParameterType::paths, "", "kernel",
     "output of `ip route` and `ip -6 route`, or the kernel's as they are", true},
    {"table", ParameterType::text, "main", "",
     "with `routes: kernel`, the table: main, a number, or the name of a VRF as `vrf NAME`", false},
    {"neighbours", ParameterType::paths, "", "kernel",
     "output of `ip neigh`, or the kernel's as they are; with it, destination MACs are rewritten", false},
    {"interfaces", ParameterType::pairs, "", "",
     "ports for the interfaces in those files, or none: {eth0: wan, veth*: none}", false},
    {"macs", ParameterType::pairs, "", "",
     "source MAC addresses of packets, by the port that they leave on: {wan: 02:00:00:00:00:01}; of packets to the "
     "host, "
     "the destination's",
     false},
    {"addresses", ParameterType::pairs, "", "",
     "the router's own addresses, by port, from which it sends ICMP errors: {lan: 192.0.2.1 2001:db8::1}", false},
    {"host", ParameterType::text, "", "",
     "the port at whose other end this host is, usually a tap: packets for its addresses (routes of type local) leave "
     "there instead of being dropped",
     false},
    {"ipv4", ParameterType::choice, "dir24", "dir24|trie1|trie4",
     "IPv4 table: DIR-24-8, or a trie with a stride of 1 or 4 bits", false},
    {"verify_checksum", ParameterType::flag, "true", "", "drop packets with a wrong IPv4 header checksum", false},
    {"drop_martians", ParameterType::flag, "true", "",
     "drop packets whose source or destination address must not be forwarded", false},
    {"most_routes", ParameterType::integer, "2000000", "1..100000000",
     "maximum number of routes in all files or from the kernel, used or not, and maximum number of neighbours", false},
    {"strict", ParameterType::flag, "false", "", "treat unsupported constructs in the files as errors", false},
});

struct Pair {
  std::string_view key;
  std::string_view value;
};
Pair split_pair(std::string_view text) {
  const auto equals = text.find('=');
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Devices read_devices(const Parameters& parameters, std::span<const std::string> ports, Errors& errors) {
  Devices devices(ports);
  if (!parameters.has("interfaces")) return devices;
  const std::vector<std::string>& given = parameters.texts("interfaces");
  append(errors,
         function::check_interface_keys(given, [&](std::size_t i) { return parameters.place("interfaces", i); }));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Pair pair = split_pair(given[i]);
    if (devices.add_alias(pair.key, pair.value)) continue;
    const bool is_port = pair.value == Devices::kNone || std::ranges::find(ports, pair.value) != ports.end();
    errors.push_back({parameters.place("interfaces", i),
                      is_port ? fmt::format("{} is already the name of another port", in_quotes(pair.key))
                              : fmt::format("interface {} is mapped to an unknown port", in_quotes(pair.key)),
                      in_quotes(pair.value), is_port ? "" : devices.list() + ", none"});
  }
  return devices;
}

std::vector<EgressPort> read_macs(const Parameters& parameters, std::span<const std::string> ports, Devices& devices,
                                  Errors& errors) {
  std::vector<EgressPort> egress(ports.size());
  if (!parameters.has("macs")) return egress;
  const std::vector<std::string>& given = parameters.texts("macs");
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Pair pair = split_pair(given[i]);
    const auto port = devices.find(pair.key);
    const auto mac = parse_mac(pair.value);
    if (!port || *port == kNoPort) {
      errors.push_back(
          {parameters.place("macs", i), "MAC address for an unknown port", in_quotes(pair.key), devices.list()});
    } else if (!mac || is_group_address(*mac)) {
      errors.push_back({parameters.place("macs", i), fmt::format("wrong MAC address of port {}", pair.key),
                        in_quotes(pair.value), "a unicast address such as 02:00:00:00:00:01"});
    } else {
      egress[*port] = {*mac, true};
    }
  }
  return egress;
}

/// Reads `host`.
PortIndex read_host(const Parameters& parameters, const function::NfContext& context, Errors& errors) {
  if (!parameters.has("host")) return kNoPort;
  const std::string& name = parameters.text("host");
  const auto port = std::ranges::find(context.ports, name);
  if (port == context.ports.end()) {
    errors.push_back({parameters.place("host"), "unknown port", in_quotes(name), "a port of the chain"});
    return kNoPort;
  }
  return static_cast<PortIndex>(port - context.ports.begin());
}

/// Reads `table`: "main", "100", "vrf blue".
Result<FromKernel> read_from_kernel(const Parameters& parameters) {
  constexpr std::size_t kLongestName = 15;  // of an interface
  FromKernel from;
  from.routes = parameters.is_word("routes");
  from.neighbours = parameters.has("neighbours") && parameters.is_word("neighbours");
  from.most_routes = parameters.integer("most_routes");
  const std::string& table = parameters.text("table");
  const auto number = parse_integer(table);
  const std::string_view name = std::string_view(table).substr(std::min<std::size_t>(4, table.size()));
  if (number && *number > 0 && *number <= 0xffff'ffff) {
    from.table = static_cast<std::uint32_t>(*number);
  } else if (table.starts_with("vrf ") && !name.empty() && name.size() <= kLongestName) {
    from.vrf = name;
  } else if (table != "main") {
    return failure(Error{parameters.place("table"), "no routing table", in_quotes(table),
                         "main, a number in 1..4294967295, or `vrf NAME`"});
  }
  if (!from.routes && table != "main") {
    return failure(Error{parameters.place("table"), "a table of the kernel, but the routes come from files",
                         in_quotes(table), "`routes: kernel`"});
  }
  return from;
}

/// Warns about routes through ports that do not write, and about devices that occur in no file.
Errors without_effect(const Parameters& parameters, const RouterConfig& config, const function::NfContext& context) {
  Errors warnings;
  std::vector<std::size_t> routes_by_port(context.ports_write.size());
  const auto count = [&](const auto& routes) {
    for (const auto& route : routes) {
      for (const NextHop& hop : config.routes.next_hops.hops(route.value)) {
        if (hop.device < routes_by_port.size()) ++routes_by_port[hop.device];
      }
    }
  };
  count(config.routes.v4);
  count(config.routes.v6);
  for (std::size_t port = 0; port < routes_by_port.size(); ++port) {
    if (context.ports_write[port] || routes_by_port[port] == 0) continue;
    warnings.push_back(
        {parameters.place("routes"),
         fmt::format("routes through port {}, which does not write: their packets are dropped (no_such_exit)",
                     context.ports[port]),
         format_count(routes_by_port[port], "route"), "a port that writes"});
  }
  // Which interfaces the kernel has may change.
  if (config.from_kernel.any()) return warnings;
  append(warnings, function::unused_interfaces(parameters, config.devices.names_used(), "route or neighbour"));
  return warnings;
}

/// Warns about frames that leave by network interfaces with MAC addresses by which they reach nobody, or look like
/// another host's.
Errors mac_cautions(const Parameters& parameters, const RouterConfig& config, const function::NfContext& context) {
  std::vector<std::string_view> live, without_mac, hosts;
  for (std::size_t port = 0; port < context.ports_live.size(); ++port) {
    if (!context.ports_live[port] || !context.ports_write[port]) continue;
    const bool is_host = port == config.rules.host;
    if (!is_host) live.emplace_back(context.ports[port]);
    if (!config.ports[port].rewrite_source) (is_host ? hosts : without_mac).emplace_back(context.ports[port]);
  }
  Errors cautions;
  if (!hosts.empty()) {
    cautions.push_back({parameters.place("host"),
                        "`host` without a MAC address: packets for the host keep the destination MAC address with "
                        "which they came, and it does not take them",
                        fmt::format("{}", fmt::join(hosts, ", ")),
                        "the MAC address of the host's end in `macs`, or `neighbours: kernel`"});
  }
  if (!config.neighbours && !live.empty()) {
    cautions.push_back({parameters.place("routes"),
                        "router without `neighbours`: frames keep the destination MAC address with which they came, "
                        "and no host takes them",
                        fmt::format("{}", fmt::join(live, ", ")), "`neighbours: kernel`, or the output of `ip neigh`"});
  }
  if (config.neighbours && !without_mac.empty()) {
    cautions.push_back({parameters.place("routes"),
                        "router without `macs`: frames keep the source MAC address of the host that has sent them",
                        fmt::format("{}", fmt::join(without_mac, ", ")),
                        "the MAC addresses of these ports' interfaces, or `neighbours: kernel`"});
  }
  return cautions;
}

/// Whether ICMP errors reach a host that sends packets. Warns about addresses of ports where none does.
bool can_answer(const std::vector<function::PortAddresses>& addresses, const Parameters& parameters,
                function::NfContext& context) {
  bool any = false;
  for (std::size_t port = 0; port < addresses.size(); ++port) {
    if (!addresses[port].any()) continue;
    const bool writes = port >= context.ports_write.size() || context.ports_write[port];
    any |= writes;
    if (writes) continue;
    context.without_effect.push_back({parameters.place("addresses"),
                                      fmt::format("an address of port {}, which does not write", context.ports[port]),
                                      "", "a port that writes"});
  }
  return any;
}

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters& parameters, function::NfContext& context) {
  Errors errors;
  RouterConfig config;
  config.engine = *parse_fib4_engine(parameters.text("ipv4"));
  config.rules = {parameters.flag("verify_checksum"), parameters.flag("drop_martians")};
  if (auto addresses = function::read_port_addresses(parameters, "addresses", context)) {
    config.rules.answers = parameters.has("addresses") && can_answer(*addresses, parameters, context);
    config.addresses = std::move(*addresses);
  } else {
    append(errors, std::move(addresses).error());
  }
  config.rules.host = read_host(parameters, context, errors);
  config.devices = read_devices(parameters, context.ports, errors);
  config.ports = read_macs(parameters, context.ports, config.devices, errors);

  Errors unsupported;
  const std::size_t most = parameters.integer("most_routes");
  if (auto from = read_from_kernel(parameters)) {
    config.from_kernel = std::move(*from);
  } else {
    append(errors, std::move(from).error());
  }
  if (parameters.is_word("routes")) {
    // They come when the run begins.
  } else if (auto routes = read_routes(parameters.texts("routes"), config.devices, most)) {
    config.routes = std::move(routes->value);
    // Most likely the tool that should have printed them has failed. What was left out is reported below.
    if (config.routes.v4.empty() && config.routes.v6.empty() && routes->unsupported.empty()) {
      std::vector<std::string> names;
      for (const std::string& file : parameters.texts("routes")) names.push_back(input_name(file));
      errors.push_back({parameters.place("routes"), fmt::format("no routes in {}", fmt::join(names, ", ")), "",
                        "output of `ip route` or `ip -6 route`, with at least one route"});
    }
    append(unsupported, std::move(routes->unsupported));
  } else {
    append(errors, std::move(routes).error());
  }
  if (parameters.has("neighbours") && parameters.is_word("neighbours")) {
    config.neighbours.emplace();
    for (EgressPort& port : config.ports) {
      config.own_macs.push_back(port.rewrite_source);
      port.rewrite_source = true;
    }
  } else if (parameters.has("neighbours")) {
    if (auto neighbours = read_neighbours(parameters.texts("neighbours"), config.devices, most)) {
      config.neighbours = std::move(neighbours->value);
      if (config.neighbours->empty()) {
        context.cautions.push_back({parameters.place("neighbours"),
                                    "no neighbours: packets that are routed are dropped (no_neighbour)", "",
                                    "output of `ip neigh`, with at least one neighbour"});
      }
      append(unsupported, std::move(neighbours->unsupported));
    } else {
      append(errors, std::move(neighbours).error());
    }
  }
  append(parameters.flag("strict") ? errors : context.unsupported, std::move(unsupported));
  if (!errors.empty()) return failure(std::move(errors));
  append(context.without_effect, without_effect(parameters, config, context));
  append(context.cautions, mac_cautions(parameters, config, context));
  return Router::build(std::move(config)).map([](std::unique_ptr<Router> router) {
    return std::unique_ptr<function::NetworkFunction>(std::move(router));
  });
}

}  // namespace

const function::NfKind& router_kind() {
  static constexpr function::NfKind kKind{"router", "forwards by longest prefix match", kParameters, &make};
  return kKind;
}

}  // namespace penstock::router
