// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Derives from a function's traits how it uses the chain's stack.

#pragma once

#include "function/network_function.h"
#include "packet/field.h"
#include "stack/shared_stack.h"

namespace penstock::function {

[[nodiscard]] inline stack::StackUse stack_use(const NetworkFunction& function) {
  const NfTraits& traits = function.traits();
  constexpr FieldSet kNotOfThePacket{Field::in_port, Field::verdict, Field::mark, Field::flow_hash};
  stack::StackUse use{.need = traits.stack,
                      .ends_packets = traits.cpu.writes.has(Field::verdict),
                      .changes_packets = !(traits.cpu.writes - kNotOfThePacket).empty()};
  if (use.need > stack::StackNeed::flow) use.options = function.stack_options();
  return use;
}

}  // namespace penstock::function
