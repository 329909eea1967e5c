// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A conversation as text: one line per packet, with sequence numbers relative to each side's first SYN.

#pragma once

#include <string>

#include "evasion/script.h"
#include "evasion/transcript.h"

namespace penstock::evasion {

[[nodiscard]] std::string drawing_of(const Transcript& transcript, const Script& script);

}  // namespace penstock::evasion
