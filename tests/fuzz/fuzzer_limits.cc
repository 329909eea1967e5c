// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The limit of memory for a fuzzer with libFuzzer, which has a limit of time of its own (-timeout). Its limit of memory
// (-rss_limit_mb) prints a profile of the heap before it names the input, for hours where the stacks of millions of
// blocks differ.

#include "fuzz/cost_limits.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // For all inputs: what fuzzers and libFuzzer keep from one to the next is little.
  penstock::fuzz::begin_input("libFuzzer's input", {.seconds = 0});
  return 0;
}
