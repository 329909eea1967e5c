// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of a third party that do what they must not.

#include "function/kernel_abi.h"

extern "C" __global__ void writes_elsewhere(struct penstock_batch batch) {
  if (threadIdx.x < batch.count) *reinterpret_cast<volatile int*>(uintptr_t{64}) = 1;
}

extern "C" __global__ void never_ends(struct penstock_batch batch) {
  while (*reinterpret_cast<volatile const uint32_t*>(&batch.packets[0].length) != 0) {
  }
}

extern "C" __global__ void decides_nothing(struct penstock_batch) {}

extern "C" __global__ void has_other_parameters(int, int) {}
