// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/program_main.h"

int main(int argc, char** argv) { return penstock::cli::program_main(argc, argv); }
