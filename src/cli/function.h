// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock function`: a process that serves one network function to the chains of others.

#pragma once

#include <CLI/App.hpp>

#include "function/network_function.h"

namespace penstock::cli {

void add_function(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
