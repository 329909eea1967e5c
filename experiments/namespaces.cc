// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/namespaces.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "experiments/program.h"

namespace penstock::experiments {
namespace {

Result<void> check_tools(const std::vector<std::string>& programs) {
  Errors errors;
  if (::geteuid() != 0) {
    errors.push_back({{},
                      "no privileges to make network namespaces",
                      fmt::format("user {}", ::geteuid()),
                      "root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"});
  }
  const auto check = [&](const std::string& program, const std::string& package) {
    if (!is_installed(program))
      errors.push_back({{}, fmt::format("{} is not installed", program), "", fmt::format("the package {}", package)});
  };
  check("ip", "iproute2");
  for (const std::string& program : programs) check(program, program);
  if (errors.empty()) return {};
  return failure(std::move(errors));
}

}  // namespace

std::string NetworkNamespaces::name(std::string_view role) { return fmt::format("penstock-{}-{}", ::getpid(), role); }

Result<std::unique_ptr<NetworkNamespaces>> NetworkNamespaces::make(const Workplace& folder,
                                                                   std::vector<std::string> roles,
                                                                   const std::vector<std::string>& programs) {
  if (auto there = check_tools(programs); !there) return tl::unexpected(std::move(there.error()));
  std::unique_ptr<NetworkNamespaces> namespaces(new NetworkNamespaces(folder, std::move(roles)));
  for (const std::string& role : namespaces->roles_) {
    if (auto made = namespaces->ip({"netns", "add", name(role)}); !made) return tl::unexpected(std::move(made.error()));
  }
  return namespaces;
}

NetworkNamespaces::~NetworkNamespaces() {
  // One that could not be made cannot be deleted either.
  for (const std::string& role : roles_) static_cast<void>(ip({"netns", "delete", name(role)}));
}

Result<void> NetworkNamespaces::ip(const std::vector<std::string>& words) const {
  std::vector<std::string> all{"ip"};
  all.insert(all.end(), words.begin(), words.end());
  return run_program(all, folder_.path("ip.txt"));
}

Result<void> NetworkNamespaces::ip_all(const std::vector<std::vector<std::string>>& steps) const {
  for (const auto& step : steps) {
    if (auto done = ip(step); !done) return done;
  }
  return {};
}

}  // namespace penstock::experiments
