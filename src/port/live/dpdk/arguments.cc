// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/parameter.h"

namespace penstock::port::dpdk {

namespace {

/// The port decides about these itself.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kOwn{{
    {"-l", "the chain's workers and cores (run: {cores: …})"},
    {"-c", "the chain's workers and cores (run: {cores: …})"},
    {"--lcores", "the chain's workers and cores (run: {cores: …})"},
    {"-s", "the chain's workers and cores (run: {cores: …})"},
    {"-S", "the chain's workers and cores (run: {cores: …})"},
    {"--main-lcore", "the chain's workers and cores (run: {cores: …})"},
    {"--vdev", "the device as `device`"},
    {"-a", "the device as `device`"},
    {"--allow", "the device as `device`"},
    {"--proc-type", "no such option: the process is DPDK's primary one"},
    {"-h", "no such option"},
    {"--help", "no such option"},
    {"-v", "no such option"},
    {"--", "no such option"},
}};
/// May be given with several values.
constexpr std::array<std::string_view, 4> kRepeatable{"-d", "-b", "--block", "--log-level"};
/// All others. DPDK answers unknown ones with its whole help text.
constexpr std::array<std::string_view, 34> kKnown{"--mbuf-pool-ops-name",
                                                  "-n",
                                                  "-m",
                                                  "-r",
                                                  "-b",
                                                  "--block",
                                                  "--iova-mode",
                                                  "-d",
                                                  "--vmware-tsc-map",
                                                  "--syslog",
                                                  "--log-level",
                                                  "--trace",
                                                  "--trace-dir",
                                                  "--trace-bufsz",
                                                  "--trace-mode",
                                                  "--in-memory",
                                                  "--base-virtaddr",
                                                  "--telemetry",
                                                  "--no-telemetry",
                                                  "--force-max-simd-bitwidth",
                                                  "--huge-unlink",
                                                  "--no-huge",
                                                  "--no-pci",
                                                  "--no-hpet",
                                                  "--no-shconf",
                                                  "--socket-mem",
                                                  "--socket-limit",
                                                  "--huge-dir",
                                                  "--file-prefix",
                                                  "--create-uio-dev",
                                                  "--vfio-intr",
                                                  "--vfio-vf-token",
                                                  "--legacy-mem",
                                                  "--single-file-segments"};

struct Option {
  std::string name, value;
  std::size_t item = 0;  // where it begins in PortArguments::eal
};

/// `-m 512`, `-m512`, `--file-prefix=a`, `--file-prefix a`
std::vector<Option> options_of(const PortArguments& port) {
  std::vector<Option> options;
  for (std::size_t i = 0; i < port.eal.size(); ++i) {
    const std::string& item = port.eal[i];
    if (!item.starts_with('-') && !options.empty()) {
      options.back().value += (options.back().value.empty() ? "" : " ") + item;
    } else if (item.starts_with("--") || item.size() < 2) {
      const std::size_t equals = item.find('=');
      options.push_back({item.substr(0, equals), equals == std::string::npos ? "" : item.substr(equals + 1), i});
    } else {
      std::size_t value = item.find_first_not_of(' ', 2);
      value = value == std::string::npos ? item.size() : value;
      options.push_back({item.substr(0, 2), item.substr(value), i});
    }
  }
  return options;
}

std::string text_of(const Option& option) {
  return option.value.empty() ? option.name : option.name + " " + option.value;
}

Place place_of(const PortArguments& port, const Option& option) {
  return option.item < port.eal_places.size() ? port.eal_places[option.item] : port.device_place;
}

Errors check_alone(const PortArguments& port) {
  Errors errors;
  for (const Option& option : options_of(port)) {
    const auto* const own = std::ranges::find(kOwn, option.name, [](const auto& entry) { return entry.first; });
    if (own != kOwn.end()) {
      errors.push_back({place_of(port, option), "eal: the port decides about this option", in_quotes(text_of(option)),
                        std::string(own->second)});
    } else if (std::ranges::find(kKnown, option.name) == kKnown.end()) {
      const std::string_view near = nearest_name(option.name, kKnown);
      errors.push_back({place_of(port, option), "eal: not an option of DPDK's environment", in_quotes(option.name),
                        near.empty() ? "options such as --no-huge, each followed by its value" : std::string(near)});
    }
    if (option.name == "--no-pci" && !pci_address(port.device).empty()) {
      errors.push_back({port.device_place, "device: a PCI device, with --no-pci", in_quotes(port.device), ""});
    }
  }
  return errors;
}

bool has_option(std::span<const PortArguments* const> ports, std::string_view name) {
  return std::ranges::any_of(ports, [name](const PortArguments* port) {
    return std::ranges::any_of(options_of(*port), [name](const Option& option) { return option.name == name; });
  });
}

}  // namespace

std::string pci_address(std::string_view device) {
  std::string_view rest = device;
  if (rest.starts_with("pci:")) rest.remove_prefix(4);
  const std::string_view address = rest.substr(0, rest.find(','));
  // [domain:]bus:device.function
  constexpr std::string_view kForm = "hhhh:hh:hh.h";
  const std::string full = (address.size() == 7 ? "0000:" : "") + std::string(address);
  if (full.size() != kForm.size()) return "";
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto c = static_cast<unsigned char>(full[i]);
    if (kForm[i] == 'h' ? std::isxdigit(c) == 0 : full[i] != kForm[i]) return "";
  }
  return full + std::string(rest.substr(address.size()));
}

std::string device_name(std::string_view device) {
  const std::string pci = pci_address(device);
  const std::string_view whole = pci.empty() ? device : std::string_view(pci);
  return std::string(whole.substr(0, whole.find(',')));
}

Errors check_arguments(const PortArguments& port, std::span<const PortArguments* const> before) {
  Errors errors = check_alone(port);
  const std::vector<Option> options = options_of(port);
  for (const PortArguments* const other : before) {
    if (device_name(other->device) == device_name(port.device)) {
      errors.push_back({port.device_place, "device: another port uses it", in_quotes(device_name(port.device)),
                        "a device for each port"});
    }
    if (has_option(std::array{other}, "--no-pci") && !pci_address(port.device).empty()) {
      errors.push_back(
          {port.device_place, "device: a PCI device, but another port has --no-pci", in_quotes(port.device), ""});
    }
    if (has_option(std::array{&port}, "--no-pci") && !pci_address(other->device).empty()) {
      errors.push_back(
          {other->device_place, "device: a PCI device, but another port has --no-pci", in_quotes(other->device), ""});
    }
    for (const Option& option : options) {
      if (std::ranges::find(kRepeatable, option.name) != kRepeatable.end()) continue;
      for (const Option& theirs : options_of(*other)) {
        if (theirs.name != option.name || theirs.value == option.value) continue;
        const Place at = place_of(*other, theirs);
        errors.push_back({place_of(port, option), "eal: all ports share one environment of DPDK's",
                          in_quotes(text_of(option)),
                          fmt::format("{}, as in {}:{}", in_quotes(text_of(theirs)), at.file, at.line)});
      }
    }
  }
  return errors;
}

std::vector<std::string> eal_arguments(std::span<const PortArguments* const> ports, const CpuList& cpus) {
  // Processes do not share DPDK's memory, and nobody asks for telemetry; so there are no files and sockets for that.
  const bool huge = !has_option(ports, "--no-huge");
  std::vector<std::string> arguments{"penstock",
                                     "--lcores",
                                     fmt::format("0@({})", fmt::join(cpus, ",")),
                                     "--no-telemetry",
                                     "--log-level=*:warning",
                                     huge && !has_option(ports, "--legacy-mem") ? "--in-memory" : "--no-shconf"};
  bool any_pci = false;
  for (const PortArguments* const port : ports) {
    if (const std::string address = pci_address(port->device); !address.empty()) {
      any_pci = true;
      arguments.insert(arguments.end(), {"-a", address});
    }
  }
  // Without this, DPDK would take every PCI device that is bound to a driver for user space.
  if (!any_pci) arguments.emplace_back("--no-pci");
  // Its default is 64 MiB. Pages that are not used take no memory.
  if (!huge && !has_option(ports, "-m") && !has_option(ports, "--socket-mem"))
    arguments.insert(arguments.end(), {"-m", "512"});
  std::vector<std::string> seen{"--no-pci", "--no-telemetry", "--in-memory", "--no-shconf"};
  for (const PortArguments* const port : ports) {
    const std::vector<Option> options = options_of(*port);
    for (std::size_t o = 0; o < options.size(); ++o) {
      const std::string text = text_of(options[o]);
      if (std::ranges::find(seen, text) != seen.end()) continue;
      seen.push_back(text);
      const std::size_t end = o + 1 < options.size() ? options[o + 1].item : port->eal.size();
      for (std::size_t i = options[o].item; i < end; ++i) arguments.push_back(port->eal[i]);
    }
  }
  return arguments;
}

Errors check_started(const PortArguments& port, std::span<const std::string> started) {
  PortArguments running;
  running.eal.assign(started.begin(), started.end());
  const std::vector<Option> theirs = options_of(running);
  Errors errors;
  for (const Option& option : options_of(port)) {
    const bool there = std::ranges::any_of(
        theirs, [&](const Option& other) { return other.name == option.name && other.value == option.value; });
    if (there) continue;
    errors.push_back({place_of(port, option), "eal: this process has started DPDK without this option",
                      in_quotes(text_of(option)), "the same options as before"});
  }
  return errors;
}

}  // namespace penstock::port::dpdk
