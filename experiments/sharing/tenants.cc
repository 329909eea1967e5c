// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/tenants.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace penstock::experiments {

std::string Tenants::control_of(const Workplace& folder, std::size_t index) {
  return folder.path(fmt::format("tenant{}.sock", index));
}

std::string Tenants::chain_of(const Workplace& folder, std::size_t index) {
  return folder.path(fmt::format("tenant{}.yaml", index));
}

Result<std::unique_ptr<Tenants>> Tenants::start(const Words& program, const std::vector<std::string>& chains,
                                                const Workplace& folder, const std::atomic<bool>& stop) {
  constexpr std::chrono::seconds kPatience{90};  // all poll, so that a start takes long with too few cores
  std::unique_ptr<Tenants> tenants(new Tenants(folder.path("")));
  std::error_code none;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    std::filesystem::remove(control_of(folder, i), none);
    const std::string file = folder.put(fmt::format("tenant{}.yaml", i), chains[i]);
    const std::string output = folder.path(fmt::format("tenant{}.txt", i));
    auto started = Program::start(joined(program, {file}), output);
    if (!started) return tl::unexpected(std::move(started.error()));
    tenants->tenants_.push_back({std::move(*started), output, std::nullopt});
  }
  for (std::size_t i = 0; i < chains.size(); ++i) {
    Tenant& tenant = tenants->tenants_[i];
    const auto has_packets = [&] {
      if (!tenant.run) tenant.run = RunSocket::connect(control_of(folder, i));
      if (!tenant.run) return false;
      const auto report = tenant.run->ask("stats");
      if (!report) {  // it has not begun
        tenant.run.reset();
        return false;
      }
      const auto usage = usage_of(*report);
      return usage && usage->left > 0;
    };
    const auto ready =
        wait_until_ready(tenant.program, {"a tenant", tenant.output, tenants->folder_, kPatience, &stop}, has_packets);
    if (!ready) return tl::unexpected(ready.error());
  }
  return tenants;
}

Result<std::vector<Usage>> Tenants::look() {
  std::vector<Usage> all;
  for (Tenant& tenant : tenants_) {
    const auto report = tenant.run->ask("stats");
    if (!report) {
      const std::string why = last_line(tenant.output, folder_);
      return failure({{}, "a tenant has ended while it was measured", why.empty() ? "no message" : why, ""});
    }
    auto usage = usage_of(*report);
    if (!usage) return tl::unexpected(std::move(usage.error()));
    all.push_back(std::move(*usage));
  }
  return all;
}

Result<void> Tenants::end() {
  constexpr std::chrono::seconds kPatience{10};
  for (Tenant& tenant : tenants_) static_cast<void>(tenant.run->ask("stop"));
  for (Tenant& tenant : tenants_) {
    if (!tenant.program.ended_within(kPatience)) return failure({{}, "a tenant does not end", "", ""});
    if (tenant.program.exit_code() == 0) continue;
    const std::string why = last_line(tenant.output, folder_);
    return failure({{}, "a tenant ended with an error", why.empty() ? "no message" : why, ""});
  }
  return {};
}

}  // namespace penstock::experiments
