// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A kernel of a third party: drops packets to one UDP or TCP port. See README.md.

#include "function/kernel_abi.h"

/// A parameter of the function's file: `parameters: {port: 53}`.
extern "C" __constant__ uint16_t port = 53;

extern "C" __global__ void drop_port(struct penstock_batch batch) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batch.count) return;
  const penstock_packet packet = batch.packets[i];
  const uint8_t* const ports = batch.frames + packet.offset + packet.transport_offset;
  const bool has_ports = (packet.flags & PENSTOCK_PORTS) != 0 && packet.transport_offset + 4u <= packet.available;
  penstock_verdict verdict{};
  verdict.decision = has_ports && (ports[2] << 8 | ports[3]) == port ? PENSTOCK_DROP : PENSTOCK_PASS;
  batch.verdicts[i] = verdict;  // reason 0: the first one of `drops`
}
