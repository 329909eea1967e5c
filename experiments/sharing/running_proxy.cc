// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/running_proxy.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace penstock::experiments {

Result<std::unique_ptr<RunningProxy>> RunningProxy::start(const Words& program, const ProxySettings& settings,
                                                          const Workplace& folder, const std::atomic<bool>& stop) {
  constexpr std::chrono::seconds kPatience{30};
  const std::string socket = folder.path("proxy.sock");
  const std::string output = folder.path("proxy.txt");
  Words words = joined(program, {socket, "--gpu", std::to_string(settings.gpu), "--scheduler", settings.scheduler});
  if (settings.bits_per_second > 0)
    words = joined(std::move(words), {"--rate", fmt::format("{:.0f}Mbps", settings.bits_per_second / 1e6)});
  std::error_code none;
  std::filesystem::remove(socket, none);
  auto started = Program::start(words, output);
  if (!started) return tl::unexpected(std::move(started.error()));
  const auto ready = wait_until_ready(*started, {"the proxy", output, folder.path(""), kPatience, &stop},
                                      [&] { return std::filesystem::is_socket(socket, none); });
  if (!ready) return tl::unexpected(ready.error());
  return std::unique_ptr<RunningProxy>(new RunningProxy(std::move(*started), socket, settings));
}

}  // namespace penstock::experiments
