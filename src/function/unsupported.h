// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameter `unsupported` of functions that protect traffic (firewall, ipsec). If an unsupported construct of a
// file were ignored, packets could pass that the file blocks, or leave unencrypted. So such files are refused, unless
// the user chooses to apply the rest.

#pragma once

#include <string_view>

#include "base/error.h"
#include "base/parameter.h"
#include "function/network_function.h"

namespace penstock::function {

inline constexpr Parameter kUnsupportedParameter{
    "unsupported",
    ParameterType::choice,
    "refuse",
    "refuse|skip",
    "files with unsupported constructs: refuse them, or skip these constructs and apply the rest",
    false};

/// Whether files with unsupported constructs are refused.
[[nodiscard]] bool refuses_unsupported(const Parameters& parameters);

/// `unsupported`, followed by an error at `place` that says that the files are refused because of them, and how to
/// avoid that.
[[nodiscard]] Errors refusal_of(Errors unsupported, Place place, std::string_view way_out);

/// Refuses constructs that the readers do not support, with a final error at the parameter `files`, which names the
/// files. With `unsupported: skip`, appends them to the context instead. `harmless` constructs do not affect any
/// verdict and are never refused here.
[[nodiscard]] Result<void> check_unsupported(const Parameters& parameters, std::string_view files, Errors unsupported,
                                             Errors harmless, NfContext& context);

}  // namespace penstock::function
