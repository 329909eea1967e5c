// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "function/granted_stage.h"

#include "function/confirming_stage.h"
#include "function/network_function.h"

namespace penstock::function {

std::optional<ClearFindings> confirmed_findings(const NetworkFunction& function) noexcept {
  const auto* const confirming = dynamic_cast<const ConfirmingFunction*>(&function);
  return confirming != nullptr && function.traits().finish ? confirming->clear_findings() : std::nullopt;
}

GrantedStage* granted_stage_of(NetworkFunction& function) noexcept {
  auto* const granted = dynamic_cast<GrantedStage*>(&function);
  return granted != nullptr && granted->stage_needs() != nullptr ? granted : nullptr;
}

}  // namespace penstock::function
