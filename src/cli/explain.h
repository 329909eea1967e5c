// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock explain`: what a chain would do with packets, in which function and why, without a run.

#pragma once

#include <CLI/App.hpp>

#include "function/network_function.h"

namespace penstock::cli {

/// `functions` can be named in the chain file.
void add_explain(CLI::App& app, function::NfKinds functions, int& exit_code);

}  // namespace penstock::cli
