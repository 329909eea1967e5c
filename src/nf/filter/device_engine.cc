// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/device_tables.h"

namespace penstock::filter {

DeviceEngine device_engine_of(std::string_view name) {
  if (name == "interpreter") return DeviceEngine::interpreter;
  return name == "generated" ? DeviceEngine::generated : DeviceEngine::automatic;
}

std::string_view name(DeviceEngine engine) noexcept {
  switch (engine) {
    case DeviceEngine::automatic: return "auto";
    case DeviceEngine::interpreter: return "interpreter";
    case DeviceEngine::generated: return "generated";
  }
  return "";
}

}  // namespace penstock::filter
