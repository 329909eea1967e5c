// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Network namespaces. A socket stays in the namespace in which it was opened, and a thread starts in that of the thread
// that starts it.

#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace penstock::port {

/// Calls `use` in a network namespace, as `ip netns` names it; with an empty name, in that of the calling thread.
/// Returns what `use` returns, or why the namespace cannot be entered.
[[nodiscard]] Result<void> in_network_namespace(const std::string& name, const std::function<Result<void>()>& use);

}  // namespace penstock::port
