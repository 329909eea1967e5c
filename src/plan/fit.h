// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a function can take the place of another one in a running chain, whose transfer plan, segments, counters and
// memory were made for the traits of the first.

#pragma once

#include <string_view>

#include "base/error.h"
#include "function/network_function.h"

namespace penstock::plan {

/// An error for each trait in `next` that a chain planned for `planned` cannot provide. It may access fewer fields, but
/// no others. `function` is the name for messages, such as "nids#2". `processor`: where the chain runs the function if
/// `planned` has a stage there. If it runs on the CPU, traits of device and finish stages may differ. The errors have
/// no place.
[[nodiscard]] Errors check_fit(std::string_view function, const function::NfTraits& planned,
                               const function::NfTraits& next, function::Processor processor);

}  // namespace penstock::plan
