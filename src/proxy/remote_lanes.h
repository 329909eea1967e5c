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

/// Connects to the proxy at `path`. An error says why it does not take the run as a tenant.
[[nodiscard]] Result<std::shared_ptr<run::RemoteDevice>> remote_lanes(const std::string& path, const TenantWish& wish);

}  // namespace penstock::proxy
