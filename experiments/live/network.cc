// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/live/network.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text_file.h"
#include "base/units.h"
#include "experiments/program.h"

namespace penstock::experiments {
namespace {

constexpr const char* kServerAddress = "198.18.0.2";  // of the range for benchmarks, RFC 2544

std::optional<LiveNetwork::Sent> parse(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains("end")) return std::nullopt;
  const nlohmann::json& end = json["end"];
  const auto rate = [&](const char* sum) -> std::optional<double> {
    if (!end.is_object() || !end.contains(sum) || !end[sum].is_object()) return std::nullopt;
    const auto value = end[sum].find("bits_per_second");
    return value != end[sum].end() && value->is_number() ? std::optional(value->get<double>() / 1e6) : std::nullopt;
  };
  const auto sent = rate("sum_sent");
  const auto received = rate("sum_received");
  if (!sent || !received) return std::nullopt;
  return LiveNetwork::Sent{*sent, *received};
}

}  // namespace

LiveNetwork::LiveNetwork(const Workplace& folder, std::unique_ptr<NetworkNamespaces> namespaces)
    : folder_(folder),
      namespaces_(std::move(namespaces)),
      client_(NetworkNamespaces::name("client")),
      server_(NetworkNamespaces::name("server")) {}

Result<std::unique_ptr<LiveNetwork>> LiveNetwork::make(const Workplace& folder) {
  auto namespaces = NetworkNamespaces::make(folder, {"client", "server"}, {"iperf3"});
  if (!namespaces) return tl::unexpected(std::move(namespaces.error()));
  std::unique_ptr<LiveNetwork> network(new LiveNetwork(folder, std::move(*namespaces)));
  if (auto made = network->set_up(); !made) return tl::unexpected(std::move(made.error()));
  return network;
}

Result<void> LiveNetwork::set_up() {
  // With one segment in a frame, TCP sends the frames that a NIC would put on the wire.
  return namespaces_->ip_all(
      {{"-netns", client_, "link", "add", kInterface, "gso_max_segs", "1", "type", "veth", "peer", "name", kInterface,
        "netns", server_},
       {"-netns", server_, "link", "set", kInterface, "gso_max_segs", "1"},
       {"-netns", client_, "address", "add", "198.18.0.1/30", "dev", kInterface},
       {"-netns", server_, "address", "add", std::string(kServerAddress) + "/30", "dev", kInterface},
       {"-netns", client_, "link", "set", kInterface, "addrgenmode", "none", "up"},
       {"-netns", server_, "link", "set", kInterface, "addrgenmode", "none", "up"}});
}

Result<LiveNetwork::Sent> LiveNetwork::send(const std::string& rate, std::chrono::nanoseconds time,
                                            const std::atomic<bool>& stop, const std::function<void()>& look) {
  constexpr std::chrono::milliseconds kLook{50};
  constexpr std::chrono::seconds kLonger{10};
  constexpr unsigned kTries = 40;  // until the server listens
  const auto in = [](const std::string& name, std::vector<std::string> words) {
    words.insert(words.begin(), {"ip", "netns", "exec", name, "iperf3"});
    return words;
  };
  auto server = Program::start(in(server_, {"--server", "--one-off"}), folder_.path("server.txt"));
  if (!server) return tl::unexpected(std::move(server.error()));
  const std::string output = folder_.path("client.json");
  const std::string bits = rate == "unlimited" ? "0" : rate + "M";
  // Small writes, so that low rates are not sent in bursts.
  const std::vector<std::string> client = in(
      client_, {"--client", kServerAddress, "--bitrate", bits, "--length", "16K", "--json", "--time",
                fmt::format("{}", std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(time).count()))});
  for (unsigned i = 0; i < kTries; ++i) {
    auto program = Program::start(client, output);
    if (!program) return tl::unexpected(std::move(program.error()));
    const auto latest = std::chrono::steady_clock::now() + time + kLonger;
    while (!program->ended_within(kLook)) {
      look();
      if (stop.load()) return failure({{}, "stopped", "", ""});
      if (std::chrono::steady_clock::now() > latest) return failure({{}, "iperf3 does not end", "", ""});
    }
    const auto text = read_input(output);
    if (!text) return tl::unexpected(text.error());
    if (const auto sent = parse(*text); sent && program->exit_code() == 0) return *sent;
    if (text->find("unable to connect") == std::string::npos)
      return failure({{}, "iperf3 failed", printable(text->substr(0, 300)), "a result as JSON"});
  }
  return failure({{}, "iperf3 cannot connect to its server", "", ""});
}

}  // namespace penstock::experiments
