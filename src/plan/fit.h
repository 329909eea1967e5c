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
/// no others. `function` is the name for messages, such as "nids#2". `on_device`: whether it runs on a device if it
/// has a stage there; otherwise, traits of device and finish stages may differ, and so they may if only `next` has a
/// device stage, since the function then stays on the CPU. The errors have no place.
[[nodiscard]] Errors check_fit(std::string_view function, const function::NfTraits& planned,
                               const function::NfTraits& next, bool on_device);

}  // namespace penstock::plan
