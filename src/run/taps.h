// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What an operator can look at in running workers.

#pragma once

#include "run/capture.h"
#include "run/trace.h"

namespace penstock::run {

struct Taps {
  Trace trace;
  Capture capture;
};

}  // namespace penstock::run
