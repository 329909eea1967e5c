// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Listens for TCP connections.

#pragma once

#include "base/error.h"
#include "base/listen_address.h"
#include "port/live/file_descriptor.h"

namespace penstock::control {

/// Non-blocking. An IPv6 address does not stand for IPv4 too.
[[nodiscard]] Result<port::FileDescriptor> listen_at(const ListenAddress& listen);

/// Whether another socket listens there, as far as that prevents `listen_at`.
[[nodiscard]] bool is_taken(const ListenAddress& listen);

}  // namespace penstock::control
