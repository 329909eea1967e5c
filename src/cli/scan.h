// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock scan CAPTURE... -S RULES`: applies intrusion detection rules to captures, with a chain that contains only
// the network function `nids`.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

void add_scan(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
