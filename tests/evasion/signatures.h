// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The sensor's rules, and texts that they match. Each kind of signature has its own rule.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "evasion/random.h"
#include "evasion/script.h"

namespace penstock::evasion {

/// All rules, one for each SignatureKind; the sid is the kind's number plus 1.
[[nodiscard]] std::string_view rules_text();
[[nodiscard]] constexpr std::uint32_t sid_of(SignatureKind kind) { return static_cast<std::uint32_t>(kind) + 1; }
[[nodiscard]] std::string_view name_of(SignatureKind kind);

/// A text that the kind's rule matches.
[[nodiscard]] std::string signature_text(SignatureKind kind, Random& random);

}  // namespace penstock::evasion
