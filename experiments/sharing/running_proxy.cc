// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/running_proxy.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

namespace penstock::experiments {

std::optional<double> tenant_number(const nlohmann::json& status, const std::string& tenant, const char* key) {
  const auto tenants = status.find("tenants");
  if (tenants == status.end() || !tenants->is_array()) return std::nullopt;
  for (const nlohmann::json& each : *tenants) {
    if (!each.is_object() || each.value("name", "") != tenant) continue;
    const auto number = each.find(key);
    if (number != each.end() && number->is_number()) return number->get<double>();
  }
  return std::nullopt;
}

Result<std::unique_ptr<RunningProxy>> RunningProxy::start(const Words& program, const ProxySettings& settings,
                                                          const Workplace& folder, const std::atomic<bool>& stop) {
  constexpr std::chrono::seconds kPatience{30};
  const std::string socket = folder.path("proxy.sock");
  const std::string output = folder.path("proxy.txt");
  Words words = joined(program, {socket, "--gpu", std::to_string(settings.gpu), "--scheduler", settings.scheduler});
  if (settings.on_device_mib > 0)
    words = joined(std::move(words), {"--on-device", fmt::format("{}MiB", settings.on_device_mib)});
  if (settings.bits_per_second > 0)
    words = joined(std::move(words), {"--rate", fmt::format("{:.0f}Mbps", settings.bits_per_second / 1e6)});
  if (!settings.multiprocessors.empty())
    words = joined(std::move(words), {"--multiprocessors", settings.multiprocessors});
  std::error_code none;
  std::filesystem::remove(socket, none);
  auto started = Program::start(joined(settings.before, words), output);
  if (!started) return tl::unexpected(std::move(started.error()));
  const auto ready = wait_until_ready(*started, {"the proxy", output, folder.path(""), kPatience, &stop},
                                      [&] { return std::filesystem::is_socket(socket, none); });
  if (!ready) return tl::unexpected(ready.error());
  return std::unique_ptr<RunningProxy>(new RunningProxy(std::move(*started), program.front(), socket, settings));
}

std::optional<nlohmann::json> RunningProxy::status() const {
  const std::string output = socket_ + ".status";
  if (!run_program({program_name_, "proxy", "status", "--json", socket_}, output)) return std::nullopt;
  auto status = nlohmann::json::parse(std::ifstream(output), nullptr, /*allow_exceptions=*/false);
  return status.is_object() ? std::optional(std::move(status)) : std::nullopt;
}

bool RunningProxy::wait_until_empty(const std::atomic<bool>& stop) const {
  const auto is_empty = [](const nlohmann::json& now) {
    return now.contains("tenants") && now["tenants"].empty() ? std::optional(true) : std::nullopt;
  };
  return wait_for(stop, is_empty).has_value();
}

}  // namespace penstock::experiments
