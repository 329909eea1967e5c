// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules that the sensor has, and texts that they describe. Each kind of signature has a rule of its own.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evasion/random.h"
#include "evasion/script.h"

namespace penstock::evasion {

/// All of them, one for each SignatureKind; its sid is the kind's number and 1.
[[nodiscard]] std::string_view rules_text();
[[nodiscard]] constexpr std::uint32_t sid_of(SignatureKind kind) { return static_cast<std::uint32_t>(kind) + 1; }
[[nodiscard]] std::string_view name_of(SignatureKind kind);

/// A text that the kind's rule describes.
[[nodiscard]] std::string signature_text(SignatureKind kind, Random& random);

}  // namespace penstock::evasion
