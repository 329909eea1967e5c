// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/forwarding/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/parameter.h"
#include "base/text_file.h"
#include "base/units.h"
#include "port/live/namespace_thread.h"

namespace penstock::experiments {
namespace {

constexpr const char* kHostMac = "02:00:00:00:00:01";     // the source of the generator's frames
constexpr const char* kNobodysMac = "02:00:00:00:02:02";  // of the next hop
constexpr const char* kServerMac = "02:00:00:00:02:03";
constexpr const char* kForwarding = "/proc/sys/net/ipv4/ip_forward";
constexpr const char* kDeviceCounters = "/proc/thread-self/net/dev";

struct Sent {
  std::uint64_t packets = 0, dropped = 0;
};

/// From a line of /proc/net/dev: "eth0: " and sixteen numbers, of which the tenth and the twelfth are meant.
std::optional<Sent> sent_by(std::string_view text, std::string_view interface) {
  constexpr std::size_t kPackets = 9, kDropped = 11;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view trimmed_line = trimmed(line);
    if (!trimmed_line.starts_with(interface) || !trimmed_line.substr(interface.size()).starts_with(':')) continue;
    std::array<std::uint64_t, kDropped + 1> numbers{};
    const char* at = trimmed_line.data() + interface.size() + 1;
    const char* const end = trimmed_line.data() + trimmed_line.size();
    for (std::uint64_t& number : numbers) {
      while (at < end && *at == ' ') ++at;
      const auto [next, error] = std::from_chars(at, end, number);
      if (error != std::errc{}) return std::nullopt;
      at = next;
    }
    return Sent{numbers[kPackets], numbers[kDropped]};
  }
  return std::nullopt;
}

Result<Sent> sent_by(const port::FileDescriptor& counters, const char* interface) {
  std::array<char, 4096> text;
  const ssize_t length = ::pread(counters.get(), text.data(), text.size(), 0);
  const auto sent = length > 0 ? sent_by({text.data(), static_cast<std::size_t>(length)}, interface) : std::nullopt;
  if (!sent) return failure({{kDeviceCounters, 0, 0}, "no counters of the interface", interface, ""});
  return *sent;
}

/// As in rps_cpus: hexadecimal words of 32 bits, the highest first.
std::string mask_of(const CpuList& cores) {
  constexpr unsigned kBits = 32;
  std::vector<std::uint32_t> words(*std::ranges::max_element(cores) / kBits + 1);
  for (const unsigned core : cores) words[core / kBits] |= std::uint32_t{1} << core % kBits;
  std::ranges::reverse(words);
  return fmt::format("{:08x}", fmt::join(words, ","));
}

}  // namespace

std::string ForwardingNetwork::routes() {
  return fmt::format(
      "{} dev {} scope link src 10.0.1.1\n10.0.2.0/24 dev {} scope link src 10.0.2.1\n{} via 10.0.2.2 dev {}\n",
      kSources, kLan, kWan, kDestinations, kWan);
}

std::string ForwardingNetwork::neighbours() {
  return fmt::format("10.0.1.2 dev {} lladdr {} PERMANENT\n10.0.2.2 dev {} lladdr {} PERMANENT\n", kLan, kHostMac, kWan,
                     kNobodysMac);
}

Result<std::unique_ptr<ForwardingNetwork>> ForwardingNetwork::make(const Workplace& folder, unsigned queues,
                                                                   const ReceiveCores& cores) {
  auto namespaces = NetworkNamespaces::make(folder, {"client", "gateway", "server"});
  if (!namespaces) return tl::unexpected(std::move(namespaces.error()));
  std::unique_ptr<ForwardingNetwork> network(new ForwardingNetwork(std::move(*namespaces), queues));
  if (auto made = network->set_up(cores); !made) return tl::unexpected(std::move(made.error()));
  return network;
}

Result<void> ForwardingNetwork::set_up(const ReceiveCores& cores) {
  const std::string count = std::to_string(queues_);
  const auto link = [&](const std::string& host, const char* host_mac, const char* port, const char* port_mac) {
    return std::vector<std::string>{"-netns",  gateway(),     "link",        "add",          port,          "address",
                                    port_mac,  "numrxqueues", count,         "numtxqueues",  count,         "type",
                                    "veth",    "peer",        "name",        kHostInterface, "netns",       host,
                                    "address", host_mac,      "numrxqueues", count,          "numtxqueues", count};
  };
  const auto up = [](const std::string& name, const char* interface) {
    return std::vector<std::string>{"-netns", name, "link", "set", interface, "addrgenmode", "none", "up"};
  };
  const auto neighbour = [](const char* address, const char* mac, const char* interface) {
    return std::vector<std::string>{"-netns", gateway(), "neighbour", "add", address,    "lladdr",
                                    mac,      "dev",     interface,   "nud", "permanent"};
  };
  if (auto made = namespaces_->ip_all({link(client(), kHostMac, kLan, kLanMac),
                                       link(server(), kServerMac, kWan, kWanMac),
                                       up(client(), kHostInterface),
                                       up(server(), kHostInterface),
                                       up(gateway(), kLan),
                                       up(gateway(), kWan),
                                       {"-netns", gateway(), "address", "add", "10.0.1.1/24", "dev", kLan},
                                       {"-netns", gateway(), "address", "add", "10.0.2.1/24", "dev", kWan},
                                       {"-netns", gateway(), "route", "add", kDestinations, "via", "10.0.2.2"},
                                       neighbour("10.0.1.2", kHostMac, kLan),
                                       neighbour("10.0.2.2", kNobodysMac, kWan)});
      !made)
    return made;
  if (auto done = receive_on(gateway(), kLan, cores.gateway); !done) return done;
  if (auto done = receive_on(server(), kHostInterface, cores.server); !done) return done;
  for (const auto& [name, counters] :
       {std::pair{client(), &client_counters_}, std::pair{gateway(), &gateway_counters_}}) {
    port::FileDescriptor* const file = counters;
    auto opened = port::in_network_namespace(name, [file]() -> Result<void> {
      *file = port::FileDescriptor(::open(kDeviceCounters, O_RDONLY | O_CLOEXEC));
      if (*file) return {};
      return failure({{kDeviceCounters, 0, 0}, "cannot open the file", std::system_category().message(errno), ""});
    });
    if (!opened) return opened;
  }
  return {};
}

Result<void> ForwardingNetwork::receive_on(const std::string& name, const char* interface, const CpuList& cores) const {
  // In /sys, each process sees the interfaces of the namespace in which it was mounted: `ip netns exec` mounts it.
  return namespaces_->ip(
      {"netns", "exec", name, "sh", "-c",
       fmt::format("for queue in /sys/class/net/{}/queues/rx-*; do echo {} >$queue/rps_cpus || exit 1; "
                   "done",
                   interface, mask_of(cores))});
}

Result<void> ForwardingNetwork::set_forwarding(bool on) const {
  return port::in_network_namespace(gateway(), [on]() -> Result<void> {
    const port::FileDescriptor file(::open(kForwarding, O_WRONLY | O_CLOEXEC));
    if (file && ::write(file.get(), on ? "1\n" : "0\n", 2) == 2) return {};
    return failure({{kForwarding, 0, 0}, "cannot write the file", std::system_category().message(errno), ""});
  });
}

Result<ForwardingNetwork::Counters> ForwardingNetwork::counters() const {
  const auto to_gateway = sent_by(client_counters_, kHostInterface);
  if (!to_gateway) return tl::unexpected(to_gateway.error());
  const auto to_server = sent_by(gateway_counters_, kWan);
  if (!to_server) return tl::unexpected(to_server.error());
  return Counters{to_gateway->packets, to_gateway->dropped, to_server->packets, to_server->dropped};
}

}  // namespace penstock::experiments
