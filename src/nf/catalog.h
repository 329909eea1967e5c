// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The network functions that a chain file can name: the one hand-written list. A new function is one folder beside this
// file, and one line in catalog.cc.

#pragma once

#include <span>
#include <string_view>

#include "chain/network_function.h"

namespace penstock::nf {

[[nodiscard]] std::span<const chain::NfKind* const> catalog();
/// Null for an unknown name.
[[nodiscard]] const chain::NfKind* find_kind(std::string_view name);

}  // namespace penstock::nf
