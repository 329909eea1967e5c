// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that other processes have sent, and connections from them. To close the last descriptor of a socket that
// lingers takes as long as its owner likes. So does closing a socket whose messages nobody has received, if they have
// such a descriptor with them.

#pragma once

#include "port/live/file_descriptor.h"

namespace penstock::ipc {

/// Closes it, and what has been sent to it if it is a unix socket, without waiting for any socket. Nobody can send to
/// it any more.
void close_foreign(port::FileDescriptor descriptor) noexcept;

/// If it is a socket, it does not linger any more. False: it is none.
bool stop_lingering(int descriptor) noexcept;

}  // namespace penstock::ipc
