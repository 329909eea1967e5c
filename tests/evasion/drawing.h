// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A conversation as text: a line for each packet, with sequence numbers from each side's first SYN on.

#pragma once

#include <string>

#include "evasion/script.h"
#include "evasion/transcript.h"

namespace penstock::evasion {

[[nodiscard]] std::string drawing_of(const Transcript& transcript, const Script& script);

}  // namespace penstock::evasion
