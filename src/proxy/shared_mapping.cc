// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/shared_mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "gpu/cuda_error.h"

namespace penstock::proxy {

SharedMapping::SharedMapping(int file, std::size_t bytes, bool writes) {
  void* const memory = ::mmap(nullptr, bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    throw gpu::CudaError(0, "cannot map memory of the proxy: " + std::system_category().message(errno));
  bytes_ = {static_cast<std::uint8_t*>(memory), bytes};
}

SharedMapping::~SharedMapping() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

}  // namespace penstock::proxy
