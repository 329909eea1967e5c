// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

// The program for which tests/common_headers.h is precompiled, with the flags of tests. Does nothing itself.

int main() { return 0; }
