// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Replaces device_lane.cu in a build without CUDA, in which there is no device for a lane.

#include "gpu/cuda_error.h"
#include "ring/lane.h"

namespace penstock::ring {

// NOLINTNEXTLINE(performance-unnecessary-value-param): declared for the lane that keeps them
std::unique_ptr<Lane> make_device_lane(LaneShape, LaneStages, SpanLog*, const LaneMemory*) {
  throw gpu::CudaError(0, "this program was built without CUDA");
}

}  // namespace penstock::ring
