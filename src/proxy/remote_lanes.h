// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The lanes of a run in the proxy: a run with these is a tenant.

#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "proxy/connection.h"
#include "run/chain.h"
#include "run/lane_factory.h"

namespace penstock::proxy {

/// What becomes of a run whose proxy is not there when it begins.
enum class WithoutProxy : bool { fails, begins_on_cpu };

/// Connects to the proxy at `path`. An error says why it does not take the run as a tenant. `begins_on_cpu`: if nobody
/// listens there, the device is lost until somebody does.
[[nodiscard]] Result<std::shared_ptr<run::RemoteDevice>> remote_lanes(const std::string& path, const TenantWish& wish,
                                                                      WithoutProxy without = WithoutProxy::fails);

}  // namespace penstock::proxy
