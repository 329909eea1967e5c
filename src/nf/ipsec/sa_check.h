// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks the SAs of a recipe that somebody else made, of either direction.

#pragma once

#include <span>

#include "base/error.h"
#include "function/stage_recipe.h"
#include "nf/ipsec/crypto/keys.h"
#include "nf/ipsec/sa/sa_layout.h"

namespace penstock::ipsec {

/// Whether no packet that is laid out for these SAs, or opened by them, leaves its frame, and the ciphers stay inside.
[[nodiscard]] Result<void> check_sas(const function::StageRecipe& recipe, std::span<const SaView> sas,
                                     std::span<const SaKeys> keys);

}  // namespace penstock::ipsec
