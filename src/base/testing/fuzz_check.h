// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <cstdlib>

namespace penstock::testing {

/// What a fuzzer expects of every input. Otherwise it ends, and the input is kept.
inline void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace penstock::testing
