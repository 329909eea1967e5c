// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameter `unsupported` of functions that protect something (firewall, ipsec). Without a construct that their
// files hold, packets could pass that the file stops, or leave in the clear: so the files are refused, unless the user
// says that the rest is to be applied.

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

/// Whether files with unsupported constructs are to be refused.
[[nodiscard]] bool refuses_unsupported(const Parameters& parameters);

/// `unsupported`, with a last error at `place` that says that the files are refused because of them, and how not to be.
[[nodiscard]] Errors refusal_of(Errors unsupported, Place place, std::string_view way_out);

/// Refuses what the readers do not support, with a last error at `files`, the parameter that names them; or hands it to
/// the context with `unsupported: skip`. `harmless` constructs change no verdict: they are never refused here.
[[nodiscard]] Result<void> check_unsupported(const Parameters& parameters, std::string_view files, Errors unsupported,
                                             Errors harmless, NfContext& context);

}  // namespace penstock::function
