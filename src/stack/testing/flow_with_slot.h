// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A flow that is in no table.

#pragma once

#include <cstdint>

#include "stack/flow.h"

namespace penstock::stack::testing {

struct FlowWithSlot : Flow {
  FlowWithSlot() { slots = &slot; }
  FlowWithSlot(const FlowWithSlot&) = delete;
  FlowWithSlot& operator=(const FlowWithSlot&) = delete;

  std::uint64_t slot = 0;
};

}  // namespace penstock::stack::testing
