// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock scan CAPTURE... -S RULES`: what intrusion detection rules find in captures, by the network function `nids`
// alone in a chain.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

void add_scan(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
