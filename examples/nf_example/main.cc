// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Penstock with one more network function.

#include "cli/program_main.h"
#include "dscp.h"

int main(int argc, char** argv) { return penstock::cli::program_main(argc, argv, {&dscp::dscp_kind()}); }
