// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock filter -r IN -w OUT EXPRESSION`: writes the packets of a capture that match, byte for byte as tcpdump does.

#pragma once

#include <CLI/App.hpp>

namespace penstock::cli {

void add_filter(CLI::App& app, int& exit_code);

}  // namespace penstock::cli
