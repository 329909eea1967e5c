// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/visitor.h"

#include <chrono>
#include <memory>
#include <vector>

#include "experiments/sharing/tenants.h"

namespace penstock::experiments {

std::optional<double> attach_ms_of(const nlohmann::json& status, const std::string& tenant) {
  return tenant_number(status, tenant, "attach_ms");
}

std::optional<Detached> detached_of(const nlohmann::json& status) {
  const auto tenants = status.find("detached"), seconds = status.find("detach_seconds");
  if (tenants == status.end() || seconds == status.end() || !tenants->is_number() || !seconds->is_number())
    return std::nullopt;
  return Detached{tenants->get<double>(), seconds->get<double>()};
}

Result<Visit> visit(const RunningProxy& proxy, const Words& program, const std::string& chain, const Workplace& folder,
                    const std::atomic<bool>& stop) {
  constexpr double kMs = 1000;
  const auto before = proxy.wait_for(stop, detached_of);
  if (!before) return failure({{}, "the proxy does not say which tenants it had", "", ""});
  Visit visit;
  const auto begun = std::chrono::steady_clock::now();
  auto visitor = Tenants::start(program, {chain}, folder, stop);
  if (!visitor) return tl::unexpected(std::move(visitor.error()));
  visit.start_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
  const std::string name = Tenants::chain_of(folder, 0);
  const auto attached = proxy.wait_for(stop, [&](const nlohmann::json& status) { return attach_ms_of(status, name); });
  if (!attached) return failure({{}, "the proxy does not say when a tenant was attached", "", ""});
  visit.attach_ms = *attached;
  if (auto ended = (*visitor)->end(); !ended) return tl::unexpected(std::move(ended.error()));
  const auto after = proxy.wait_for(stop, [&](const nlohmann::json& status) {
    const auto now = detached_of(status);
    return now && now->tenants > before->tenants ? now : std::nullopt;
  });
  if (!after) return failure({{}, "the proxy does not say when a tenant was detached", "", ""});
  visit.detach_ms = (after->seconds - before->seconds) / (after->tenants - before->tenants) * kMs;
  return visit;
}

}  // namespace penstock::experiments
