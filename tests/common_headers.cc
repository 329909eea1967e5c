// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

// Owns the precompiled tests/common_headers.h. Never built itself.

int main() { return 0; }
