// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/sharing/mps.h"

#include <string>

namespace penstock::experiments {

Result<std::unique_ptr<Mps>> Mps::start(const Workplace& folder, const std::atomic<bool>& stop) {
  auto daemon = gpu::Mps::start(folder.path("mps"), stop);
  if (!daemon) return tl::unexpected(std::move(daemon.error()));
  return std::make_unique<Mps>(std::move(*daemon));
}

Words Mps::client(unsigned percent) const {
  constexpr unsigned kAll = 100;
  if (percent >= kAll) return client_;
  return joined(client_, {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=" + std::to_string(percent)});
}

}  // namespace penstock::experiments
