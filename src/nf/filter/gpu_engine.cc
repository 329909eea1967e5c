// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/device_tables.h"

namespace penstock::filter {

GpuEngine gpu_engine_of(std::string_view name) {
  if (name == "interpreter") return GpuEngine::interpreter;
  return name == "generated" ? GpuEngine::generated : GpuEngine::automatic;
}

std::string_view name(GpuEngine engine) noexcept {
  switch (engine) {
    case GpuEngine::automatic: return "auto";
    case GpuEngine::interpreter: return "interpreter";
    case GpuEngine::generated: return "generated";
  }
  return "";
}

}  // namespace penstock::filter
