// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The memory limit for fuzzers with libFuzzer. Its own memory limit (-rss_limit_mb) prints a heap profile before it
// names the input, which takes hours if millions of blocks have different stacks. Its time limit (-timeout) is used.

#include "fuzz/cost_limits.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // For all inputs together: fuzzers and libFuzzer keep little from one input to the next.
  penstock::fuzz::begin_input("libFuzzer's input", {.seconds = 0});
  return 0;
}
