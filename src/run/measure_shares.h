// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures, before the first packets, the times from which shares of a GPU are chosen (plan/gpu_shares.h).

#pragma once

#include "run/chain.h"

namespace penstock::run {

/// Chooses the shares of a chain that runs on GPUs. Each stage whose kernels fill a GPU processes a full batch of large
/// frames, once with all multiprocessors and once with each share to be tried; one pass takes tens of microseconds to a
/// millisecond. Measured once for all workers, on the first GPU; the others are assumed to be equal. Throws CudaError.
void choose_gpu_shares(Chain& chain);

}  // namespace penstock::run
