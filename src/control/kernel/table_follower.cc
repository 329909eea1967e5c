// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/kernel/table_follower.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <libmnl/libmnl.h>
#include <linux/neighbour.h>
#include <linux/nexthop.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "base/capabilities.h"
#include "base/log.h"
#include "base/thread_placement.h"
#include "base/units.h"
#include "port/live/namespace_thread.h"
#include "run/held_packets.h"

namespace penstock::control {

using namespace std::chrono_literals;
using router::FromKernel;
using router::Router;
using router::RouterChange;

namespace {

constexpr int kBufferBytes = 64 << 20;     // of changes that wait while all tables are read; used only then
constexpr int kMostMessagesAtOnce = 4096;  // between looks at other work
constexpr auto kBetweenUpdates = 20ms;
constexpr int kGatheringMs = 2;
constexpr auto kBetweenReadings = 500ms;
constexpr auto kKeepAlive = 1000ms;
constexpr auto kAskAgain = 1000ms;
constexpr double kAskedEachSecond = 100;
constexpr std::uint32_t kLocalTable = 255, kMainTable = FromKernel::kMainTable, kDefaultTable = 253;

/// The network namespace of the ports' interfaces.
Result<std::string> namespace_of(const run::Chain& chain) {
  std::set<std::string> names;
  for (const run::NamedPort& named : chain.ports) {
    if (const auto interface = named.port->interface()) names.insert(interface->netns);
  }
  if (names.size() > 1) {
    return failure(Error{{},
                         "routes: kernel: the ports are in several network namespaces, which have tables of their own",
                         fmt::format("{}", fmt::join(names, ", ")),
                         "one"});
  }
  return names.empty() ? std::string() : *names.begin();
}

bool is_empty(const RouterChange& change) {
  return change.routes.v4.empty() && change.routes.v6.empty() && change.erase4.empty() && change.erase6.empty() &&
         change.neighbours.empty() && change.erase_neighbours.empty() && change.failed.empty() && change.macs.empty();
}

}  // namespace

Result<std::unique_ptr<TableFollower>> TableFollower::open(const run::Chain& chain, Router& router) {
  const FromKernel& from = router.from_kernel();
  if (from.neighbours && !has_capability(Capability::net_admin)) {
    return failure(
        Error{{}, "neighbours: kernel: cannot ask the kernel for neighbours", "", how_to_get(Capability::net_admin)});
  }
  std::unique_ptr<TableFollower> follower(new TableFollower(chain, from));
  const auto netns = namespace_of(chain);
  if (!netns) return failure(netns.error());
  if (auto opened = port::in_network_namespace(*netns, [&] { return follower->open_sockets(chain); }); !opened)
    return failure(std::move(opened.error()));
  follower->use_mapping_of(router);
  if (auto read = follower->read_all(); !read) return failure(std::move(read.error()));
  if (auto joined = follower->join(router); !joined) return failure(std::move(joined.error()));
  router.set_source(follower.get());
  const ThreadOnCpus off_workers(chain.settings.placement.other_cores);
  try {
    follower->thread_ = std::thread([self = follower.get()] { self->run(); });
  } catch (const std::system_error& error) {
    return failure(Error{{}, "cannot start a thread", error.code().message(), "a higher process limit"});
  }
  return follower;
}

TableFollower::TableFollower(const run::Chain& chain, const FromKernel& from)
    : from_(from),
      routes_(from.most_routes),
      neighbours_(from.most_routes, [this](std::uint32_t interface) { return routes_.port_of(interface); }) {
  for (const run::NamedPort& named : chain.ports) {
    const auto interface = named.port->interface();
    interfaces_.push_back(interface ? interface->name : "");
    ports_.push_back(named.name);
  }
}

TableFollower::~TableFollower() {
  stop_.signal();
  if (thread_.joinable()) thread_.join();
  for (Router* const router : routers_) router->set_source(nullptr);
}

Result<void> TableFollower::open_sockets(const run::Chain& /*chain*/) {
  for (RouteSocket* const socket : {&changes_, &dumps_, &requests_}) {
    auto opened = RouteSocket::open();
    if (!opened) return failure(std::move(opened.error()));
    *socket = std::move(*opened);
  }
  std::vector<unsigned> groups{RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR};
  if (from_.routes) groups.insert(groups.end(), {RTNLGRP_IPV4_ROUTE, RTNLGRP_IPV6_ROUTE, RTNLGRP_NEXTHOP});
  if (from_.neighbours) groups.push_back(RTNLGRP_NEIGH);
  return changes_.subscribe(groups, kBufferBytes);
}

// Routers come and go, in the threads that reload.

Result<void> TableFollower::join(Router& router) {
  const std::lock_guard lock(mutex_);
  if (!in_step_) return failure(Error{{}, "the kernel's routing tables cannot be read now", last_error_, ""});
  use_mapping_of(router);
  publish();
  if (auto filled = fill(router); !filled) return filled;
  routers_.push_back(&router);
  sum_up();
  return {};
}

void TableFollower::leave(Router& router) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(routers_, &router);
  if (mapping_ != &router) return;
  mapping_ = nullptr;
  if (!routers_.empty()) use_mapping_of(*routers_.back());
}

/// The user's mapping may differ from the one before.
void TableFollower::use_mapping_of(const Router& router) {
  mapping_ = &router;
  links_changed_ = true;
  routes_.set_ports([this](const std::string& interface) { return port_of(interface); });
  neighbours_.look_again();
}

/// The interfaces that ports are on count first, then those that the user has mapped to ports.
PortIndex TableFollower::port_of(const std::string& interface) const {
  const auto own = std::ranges::find(interfaces_, interface);
  if (own != interfaces_.end() && !interface.empty()) return static_cast<PortIndex>(own - interfaces_.begin());
  const PortIndex port = mapping_->port_of(interface).value_or(kNoPort);
  // It is not the interface of a port that is on another one, even if that port has its name.
  const bool only_named = port != kNoPort && !interfaces_[port].empty() && ports_[port] == interface;
  return only_named ? kNoPort : port;
}

/// If several interfaces lead to a port, that on which it is.
void TableFollower::find_interfaces() {
  interface_of_.assign(ports_.size(), 0);
  for (const auto& item : routes_.links()) {
    const KernelRoutes::Link& link = item.second;
    if (link.port == kNoPort) continue;
    std::uint32_t& interface = interface_of_[link.port];
    if (interface == 0 || link.name == interfaces_[link.port]) interface = item.first;
  }
}

// The thread.

void TableFollower::run() {
  static_cast<void>(keep_only(from_.neighbours ? std::vector{Capability::net_admin} : std::vector<Capability>()));
  static_cast<void>(::pthread_setname_np(::pthread_self(), "kernel-tables"));
  std::array<pollfd, 3> wait{{{changes_.fd(), POLLIN, 0}, {missing_.fd(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}}};
  for (;;) {
    int most = 0;
    {
      const std::lock_guard lock(mutex_);
      most = time_to_wait_ms(Clock::now());
    }
    // While many changes come, they are read several at a time.
    const bool lets_gather = wait[0].revents != 0;
    wait[0].events = lets_gather ? 0 : POLLIN;
    if (::poll(wait.data(), wait.size(), lets_gather ? std::min(most, kGatheringMs) : most) < 0 && errno != EINTR)
      return;
    if (wait[2].revents != 0) return;
    const std::lock_guard lock(mutex_);
    if (wait[0].revents != 0 || lets_gather) read_changes();
    if (from_.neighbours) ask_for_missing();
    const Clock::time_point now = Clock::now();
    if (routes_.wants_dump() && now >= next_reading_) read_all_again(now);
    if (has_changes() && now >= next_publish_) {
      publish();
      const Clock::time_point end = Clock::now();
      // Updates of large tables, or of tables on devices, take their time: no more than half of it.
      next_publish_ = end + std::max<Clock::duration>(kBetweenUpdates, must_fill_ ? 10s : end - now);
    }
    if (from_.neighbours && now >= next_keep_alive_) {
      keep_alive();
      next_keep_alive_ = now + kKeepAlive;
    }
    sum_up();
  }
}

bool TableFollower::has_changes() const {
  return in_step_ && (must_fill_ || links_changed_ || routes_.has_changes() || neighbours_.has_changes());
}

int TableFollower::time_to_wait_ms(Clock::time_point now) const {
  Clock::time_point until = now + 10s;
  if (from_.neighbours) until = std::min(until, next_keep_alive_);
  if (routes_.wants_dump()) until = std::min(until, next_reading_);
  if (has_changes()) until = std::min(until, next_publish_);
  return static_cast<int>(std::max<std::int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(until - now).count()));
}

void TableFollower::read_changes() {
  std::span<const std::uint8_t> messages;
  for (int received = 0; received < kMostMessagesAtOnce; ++received) {
    switch (changes_.receive(messages)) {
      case RouteSocket::Received::messages: apply(messages); break;
      case RouteSocket::Received::nothing: return;
      case RouteSocket::Received::lost:
        ++counts_.losses;
        log_warning("kernel tables: changes came too fast; all are read again");
        routes_.ask_for_dump();
        return;
      case RouteSocket::Received::failed: last_error_ = std::system_category().message(errno); return;
    }
  }
}

void TableFollower::apply(std::span<const std::uint8_t> messages) {
  for (auto message = take_message(messages); !message.empty(); message = take_message(messages)) {
    ++counts_.messages;
    apply(read_message(message));
  }
  counts_.malformed += messages.empty() ? 0 : 1;
}

void TableFollower::apply(const KernelMessage& message) {
  if (const auto* const route = std::get_if<RouteMessage>(&message)) {
    routes_.apply(*route);
  } else if (const auto* const neighbour = std::get_if<NeighbourMessage>(&message)) {
    neighbours_.apply(*neighbour);
  } else if (const auto* const nexthop = std::get_if<NexthopMessage>(&message)) {
    routes_.apply(*nexthop);
  } else if (const auto* const link = std::get_if<LinkMessage>(&message)) {
    const PortIndex before = routes_.port_of(link->interface);
    routes_.apply(*link);
    links_changed_ = true;
    if (routes_.port_of(link->interface) != before) neighbours_.look_again();
    if (link->name == from_.vrf) follow_table();
  } else if (const auto* const address = std::get_if<AddressMessage>(&message)) {
    if (from_.routes) routes_.apply(*address);
  } else if (const auto* const ignored = std::get_if<Ignored>(&message)) {
    counts_.unsupported += ignored->unsupported ? 1 : 0;
  } else {
    ++counts_.malformed;
  }
}

/// The tables in which the kernel looks, in this order. A VRF has its local routes in its own table.
void TableFollower::follow_table() {
  if (from_.vrf.empty()) {
    if (from_.table == kMainTable) return routes_.follow_tables({kLocalTable, kMainTable, kDefaultTable});
    return routes_.follow_tables({kLocalTable, from_.table});
  }
  std::uint32_t table = 0;
  for (const auto& [interface, link] : routes_.links()) {
    if (link.name == from_.vrf) table = link.vrf_table;
  }
  if (std::exchange(vrf_table_, table) == table) return;
  routes_.follow_tables(table == 0 ? std::vector<std::uint32_t>() : std::vector{table});
  routes_.ask_for_dump();
}

// Reading all tables.

Result<void> TableFollower::read_all() {
  constexpr int kMostTries = 5;
  in_step_ = false;
  next_reading_ = Clock::now() + kBetweenReadings;
  for (int tries = 0; tries < kMostTries; ++tries) {
    // What is waiting is older than what will be read.
    std::span<const std::uint8_t> messages;
    while (changes_.receive(messages) != RouteSocket::Received::nothing) continue;
    ++counts_.readings;
    counts_.unsupported = 0;
    routes_.begin_dump();
    neighbours_.begin_dump();
    bool interrupted = false;
    if (auto read = read_all_of(RTM_GETLINK, AF_UNSPEC, interrupted); !read) return read;
    follow_table();
    if (from_.neighbours) {
      if (auto read = read_all_of(RTM_GETNEIGH, AF_UNSPEC, interrupted); !read) return read;
    }
    if (from_.routes) {
      if (auto read = read_all_of(RTM_GETNEXTHOP, AF_UNSPEC, interrupted); !read) return read;
      for (const std::uint8_t family : std::array<std::uint8_t, 2>{AF_INET, AF_INET6}) {
        if (auto read = read_all_of(RTM_GETROUTE, family, interrupted); !read) return read;
      }
    }
    routes_.end_dump();
    neighbours_.end_dump();
    in_step_ = true;
    if (!interrupted) return {};
  }
  routes_.ask_for_dump();  // the tables change too fast, or many at once: messages of changes do the rest
  return {};
}

Result<void> TableFollower::read_all_of(std::uint16_t type, std::uint8_t family, bool& interrupted) {
  const auto failed = [](int error) {
    return failure(Error{{}, "cannot read the kernel's routing tables", std::system_category().message(error), ""});
  };
  if (!dumps_.ask_for_all(type, family)) return failed(errno);
  for (;;) {
    std::span<const std::uint8_t> messages;
    if (dumps_.receive(messages, true) != RouteSocket::Received::messages) return failed(errno);
    for (auto message = take_message(messages); !message.empty(); message = take_message(messages)) {
      const auto* const header = reinterpret_cast<const nlmsghdr*>(message.data());
      if (header->nlmsg_seq != dumps_.sequence()) continue;
      interrupted |= (header->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (header->nlmsg_type == NLMSG_DONE) return {};
      if (header->nlmsg_type == NLMSG_ERROR) {
        int error = 0;
        if (mnl_nlmsg_get_payload_len(header) >= sizeof error)
          error = -*static_cast<const int*>(mnl_nlmsg_get_payload(header));
        if (type == RTM_GETNEXTHOP && error == EOPNOTSUPP) return {};  // Linux before 5.3
        return failed(error);
      }
      apply(read_message(message));
    }
    counts_.malformed += messages.empty() ? 0 : 1;
  }
}

void TableFollower::read_all_again(Clock::time_point now) {
  auto read = read_all();
  last_error_ = read ? "" : read.error().front().message + ": " + read.error().front().found;
  if (!read) {
    log_error("kernel tables: {}", last_error_);
    routes_.ask_for_dump();
  }
  log_debug("kernel tables: read in {}", format_duration(Clock::now() - now));
  // Reading large tables takes its time: a tenth of it at most.
  const Clock::time_point end = Clock::now();
  next_reading_ = end + std::max<Clock::duration>(kBetweenReadings, 9 * (end - now));
}

// Updating the routers.

std::vector<std::pair<PortIndex, MacAddress>> TableFollower::macs() const {
  std::vector<std::pair<PortIndex, MacAddress>> macs;
  for (std::size_t p = 0; p < interfaces_.size(); ++p) {
    const auto port = static_cast<PortIndex>(p);
    if (mapping_ == nullptr || !mapping_->takes_mac(port)) continue;
    const auto link = routes_.links().find(interface_of_[port]);
    if (link != routes_.links().end() && link->second.has_mac) macs.emplace_back(port, link->second.mac);
  }
  return macs;
}

void TableFollower::publish() {
  RouterChange change;
  if (from_.routes) routes_.take_changes(change);
  if (from_.neighbours) neighbours_.take_changes(change);
  if (std::exchange(links_changed_, false)) {
    find_interfaces();
    if (auto now = macs(); now != published_macs_) change.macs = published_macs_ = std::move(now);
  }
  const bool fills = std::exchange(must_fill_, false);
  if (!fills && is_empty(change)) return;
  const Clock::time_point begun = Clock::now();
  for (Router* const router : routers_) {
    const auto updated = fills ? fill(*router) : update(*router, change);
    if (updated) continue;
    must_fill_ = true;
    last_error_ = updated.error().front().message;
    log_error("kernel tables: {}", last_error_);
  }
  ++counts_.updates;
  log_debug("kernel tables: {} in {}: routes +{} -{}, neighbours +{} -{}, {} MAC addresses of ports",
            fills ? "filled anew" : "updated", format_duration(Clock::now() - begun),
            change.routes.v4.size() + change.routes.v6.size(), change.erase4.size() + change.erase6.size(),
            change.neighbours.size(), change.erase_neighbours.size(), change.macs.size());
}

Result<void> TableFollower::fill(Router& router) {
  RouterChange all;
  all.replaces_routes = from_.routes;
  all.replaces_neighbours = from_.neighbours;
  if (from_.routes) routes_.add_all(all);
  if (from_.neighbours) neighbours_.add_all(all);
  all.macs = published_macs_;
  return update(router, all);
}

Result<void> TableFollower::update(Router& router, const RouterChange& change) {
  try {
    return router.update(change);
  } catch (const std::bad_alloc&) {
    return failure(Error{{}, "no memory for the router's tables", "", ""});
  }
}

// Neighbours.

void TableFollower::ask_for_missing() {
  missing_.take([this](const Ipv6Address& address, PortIndex port) {
    if (const std::uint32_t interface = interface_of_[port]; interface != 0) ask(address, interface);
  });
  // Only refusals are answered, and asking again later is all that can be done about them.
  std::span<const std::uint8_t> answers;
  while (requests_.receive(answers) == RouteSocket::Received::messages) continue;
}

/// The gateways in use are resolved before packets need them.
void TableFollower::keep_alive() {
  routes_.for_each_gateway([this](const Ipv6Address& address, PortIndex port) {
    const std::uint32_t interface = interface_of_[port];
    if (interface != 0 && !neighbours_.knows(address, interface)) ask(address, interface);
  });
  neighbours_.for_each_stale([this](const Ipv6Address& address, std::uint32_t interface) { ask(address, interface); });
}

bool TableFollower::may_ask(const Ipv6Address& address, std::uint32_t interface) {
  const Clock::time_point now = Clock::now();
  Asked& last = asked_[mix64(mix64(address.high + interface) + address.low) % asked_.size()];
  if (last.address == address && last.interface == interface && now - last.at < kAskAgain) return false;
  may_ask_ += std::chrono::duration<double>(now - asked_at_).count() * kAskedEachSecond;
  may_ask_ = std::min(may_ask_, kMostAtOnce);
  asked_at_ = now;
  if (may_ask_ < 1) return false;
  may_ask_ -= 1;
  last = {address, interface, now};
  return true;
}

/// Makes the kernel resolve the neighbour, or check it if it is stale, as if it had a packet for it.
void TableFollower::ask(const Ipv6Address& address, std::uint32_t interface) {
  if (!may_ask(address, interface)) return;
  ++counts_.asked;
  std::array<std::uint32_t, 32> request{};
  nlmsghdr* const header = mnl_nlmsg_put_header(request.data());
  header->nlmsg_type = RTM_NEWNEIGH;
  header->nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE;
  auto* const neighbour = static_cast<ndmsg*>(mnl_nlmsg_put_extra_header(header, sizeof(ndmsg)));
  const bool ipv4 = router::is_mapped(address);
  neighbour->ndm_family = ipv4 ? AF_INET : AF_INET6;
  neighbour->ndm_ifindex = static_cast<int>(interface);
  neighbour->ndm_flags = NTF_USE;
  std::array<std::uint8_t, 16> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes[i] = static_cast<std::uint8_t>(address.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<std::uint8_t>(address.low >> (56 - 8 * i));
  }
  mnl_attr_put(header, NDA_DST, ipv4 ? 4 : 16, bytes.data() + (ipv4 ? 12 : 0));
  static_cast<void>(requests_.send({reinterpret_cast<const std::uint8_t*>(request.data()), header->nlmsg_len}));
}

// Reports.

void TableFollower::sum_up() {
  const std::uint64_t left_out = routes_.left_out() + neighbours_.left_out();
  if (left_out > 0 && summary_.left_out == 0) {
    log_warning("kernel tables: more than most_routes ({}): {} left out, and packets take other routes, or none",
                format_count(from_.most_routes), format_count(left_out));
  }
  const bool is_empty =
      in_step_ && from_.routes && !routes_.has_routes_of(from_.vrf.empty() ? from_.table : vrf_table_);
  if (is_empty && !was_empty_)
    log_warning("kernel tables: {} has no routes: packets are dropped (no_route)", table_text());
  was_empty_ = is_empty;
  const std::lock_guard lock(summary_mutex_);
  summary_ = {counts_, routes_.size(), neighbours_.size(), left_out, last_error_};
}

std::string TableFollower::table_text() const {
  return from_.vrf.empty() ? fmt::format("table {}", from_.table) : fmt::format("the table of vrf {}", from_.vrf);
}

void TableFollower::report(nlohmann::json& into) const {
  const std::lock_guard lock(summary_mutex_);
  into = nlohmann::json::object();
  if (from_.routes) {
    into["table"] = from_.vrf.empty() ? std::to_string(from_.table) : "vrf " + from_.vrf;
    into["routes"] = summary_.routes;
    into["unsupported"] = summary_.counts.unsupported;
  }
  if (from_.neighbours) {
    into["neighbours"] = summary_.neighbours;
    into["neighbours_asked_for"] = summary_.counts.asked;
  }
  into["left_out"] = summary_.left_out;
  into["messages"] = summary_.counts.messages;
  into["malformed"] = summary_.counts.malformed;
  into["updates"] = summary_.counts.updates;
  into["readings"] = summary_.counts.readings;
  into["losses"] = summary_.counts.losses;
  if (!summary_.error.empty()) into["error"] = summary_.error;
}

Errors holding_cautions(const run::Chain& chain) {
  Errors cautions;
  for (std::size_t i = 0; i < chain.functions.size(); ++i) {
    const run::NamedFunction& named = chain.functions[i];
    const auto* const router = dynamic_cast<const Router*>(named.function.get());
    if (router == nullptr || !router->from_kernel().neighbours || run::may_hold_packets(chain, i)) continue;
    cautions.push_back({{},
                        named.name +
                            ": neighbours: kernel: packets to unknown neighbours are dropped, not held, because the "
                            "chain uses a GPU and functions follow the router",
                        "",
                        "the router as the last function, or `processor: cpu`"});
  }
  return cautions;
}

Result<std::vector<std::unique_ptr<TableFollower>>> follow_kernel(const run::Chain& chain) {
  std::vector<std::unique_ptr<TableFollower>> followers;
  for (const run::NamedFunction& named : chain.functions) {
    auto* const router = dynamic_cast<Router*>(named.function.get());
    if (router == nullptr || !router->from_kernel().any()) continue;
    auto follower = TableFollower::open(chain, *router);
    if (!follower) {
      for (Error& error : follower.error()) error.message = named.name + ": " + error.message;
      return failure(std::move(follower.error()));
    }
    followers.push_back(std::move(*follower));
  }
  return followers;
}

}  // namespace penstock::control
