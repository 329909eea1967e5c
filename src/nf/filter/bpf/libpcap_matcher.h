// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine `libpcap`: bpf_filter(), which interprets too. It is the oracle for the other engines.

#pragma once

#include <memory>
#include <vector>

#include "nf/filter/bpf/matcher.h"

namespace penstock::filter {

[[nodiscard]] std::unique_ptr<Matcher> make_libpcap_matcher(const std::vector<Program>& programs);

}  // namespace penstock::filter
