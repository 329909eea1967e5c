// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Erases secrets from memory.

#pragma once

#include <string.h>  // NOLINT(modernize-deprecated-headers): explicit_bzero

#include <cstddef>

namespace penstock {

/// Writes zeros that the compiler does not optimise away.
inline void wipe(void* memory, std::size_t bytes) noexcept {
  if (bytes > 0) explicit_bzero(memory, bytes);
}

}  // namespace penstock
