// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests that an experiment removes its network namespaces.

#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "experiments/namespaces.h"

namespace penstock::experiments {

/// Whether there is a network namespace of this process.
inline bool any_namespace() {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/run/netns", none)) {
    if (entry.path().filename().string().starts_with(NetworkNamespaces::name(""))) return true;
  }
  return false;
}

}  // namespace penstock::experiments
