// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program with one more function, `block`, whose GPU stage runs in a proxy only. As `proxy_program simulate SOCKET
// [OPTION VALUE]...` it is a proxy whose device is simulated: stages of `block`, of the router, of the firewall without
// connections, of the filter, of `nids` and of outbound `ipsec` run on its host. Options are --polls, and --scheduler,
// --multiprocessors and --rate of `penstock proxy serve`; others have no effect. At SIGUSR1, the device is lost.

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "cli/program_main.h"
#include "cli/stop_signals.h"
#include "proxy/restart.h"
#include "proxy/server.h"
#include "proxy/testing/block_kernel.h"
#include "proxy/testing/ipsec_kernel.h"
#include "proxy/testing/nids_kernel.h"
#include "proxy/testing/table_kernels.h"

namespace penstock {
namespace {

using proxy::testing::Ports;

class Block final : public function::NetworkFunction {
 public:
  Block(Ports ports, std::uint8_t step) : ports_(std::move(ports)), step_(step) {}
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(ports_, step_); }
  std::optional<function::StageRecipe> stage_recipe(function::Processor /*processor*/) const override {
    return proxy::testing::block_recipe(ports_, step_);
  }
  std::string description() const override { return "blocks source ports"; }

 private:
  struct Stage final : function::CpuStage {
    Stage(const Ports& of_ports, std::uint8_t of_step) : ports(of_ports), step(of_step) {}
    void process(std::span<PacketView> packets) noexcept override {
      for (const PacketView packet : packets) packet.packet->verdict = proxy::testing::block(packet, ports, step);
    }
    const Ports& ports;
    const std::uint8_t step;
  };
  static constexpr std::string_view kReasons[] = {"blocked"};
  const Ports ports_;
  const std::uint8_t step_;
  const function::NfTraits traits_{.name = "block",
                                   .summary = "blocks source ports",
                                   .cpu = proxy::testing::kBlockAccess,
                                   .devices = {{function::Processor::gpu, proxy::testing::kBlockAccess}},
                                   .drop_reasons = kReasons};
};

constexpr auto kParameters = std::to_array<Parameter>({
    {"ports", ParameterType::integers, "", "0..65535", "source ports to drop"},
    {"step", ParameterType::integer, "1", "0..255", "what is taken from the TTL"},
});

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters& parameters, function::NfContext&) {
  Ports ports;
  if (parameters.has("ports")) {
    for (const std::uint64_t port : parameters.integers("ports")) ports.push_back(static_cast<std::uint16_t>(port));
  }
  return std::make_unique<Block>(std::move(ports), static_cast<std::uint8_t>(parameters.integer("step")));
}

constexpr function::NfKind kBlock{"block", "blocks source ports", kParameters, &make};

proxy::testing::HostDevice device;

int simulate(const char* socket, std::span<char*> options) {
  proxy::Inheritance inherited = proxy::take_inheritance(socket);
  const std::atomic<bool>& stop = cli::stop_on_signals(cli::HangUp::ignored);
  std::signal(SIGUSR1, [](int) { device.lost = true; });
  proxy::ServerSettings settings;
  settings.path = socket;
  device.polls = 64;  // so that no batch takes less than some microseconds, as on a device
  for (std::size_t i = 0; i + 1 < options.size(); i += 2) {
    const std::string_view option = options[i], value = options[i + 1];
    if (option == "--polls") device.polls = static_cast<unsigned>(parse_integer(value).value_or(1));
    if (option == "--scheduler") settings.policy = proxy::policy_named(value).value_or(settings.policy);
    if (option == "--multiprocessors")
      settings.multiprocessors = proxy::multiprocessor_shares_named(value).value_or(settings.multiprocessors);
    if (option == "--rate")
      if (const auto rate = parse_rate(value)) settings.device.bytes_per_second = rate->value / 8;
  }
  const std::array kernels{proxy::testing::kBlockKernels[0],  proxy::testing::router_kernel(),
                           proxy::testing::firewall_kernel(), proxy::testing::filter_kernel(),
                           proxy::testing::nids_kernel(),     proxy::testing::ipsec_kernel()};
  auto server = proxy::Server::start(
      std::move(settings), std::make_unique<proxy::testing::HostBackend>(device, kernels), std::move(inherited));
  if (!server) {
    fmt::print(stderr, "{}\n", to_string(server.error()));
    return 1;
  }
  return proxy::serve(**server, stop) ? 0 : 1;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  using namespace penstock;
  if (argc >= 3 && std::string_view(argv[1]) == "simulate") return simulate(argv[2], std::span(argv + 3, argv + argc));
  return cli::program_main(argc, argv, {&kBlock});
}
