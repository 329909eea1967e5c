// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The times that shares of a GPU are chosen by (gpu_shares.h), measured on it before the first packets.

#pragma once

#include "run/chain.h"

namespace penstock::run {

/// Chooses the shares of a chain that is to run on GPUs: each stage that has kernels which fill one rehearses a full
/// batch of large frames with all of its multiprocessors and with parts of them, each in some ten microseconds to a
/// millisecond. Once for all workers, on the first of the GPUs, as which the others are taken to be. Throws CudaError.
void choose_gpu_shares(Chain& chain);

}  // namespace penstock::run
