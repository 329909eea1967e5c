// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A build without AsmJit, or for another processor than x86-64.

#include "nf/filter/bpf/jit.h"

namespace penstock::filter {

bool has_jit() noexcept { return false; }

Result<std::unique_ptr<Matcher>> make_jit_matcher(const std::vector<Program>& /*programs*/) {
  return failure(Error{{},
                       "this build has no JIT for BPF programs: it needs AsmJit and x86-64",
                       "engine 'jit'",
                       "interpreter or libpcap"});
}

}  // namespace penstock::filter
