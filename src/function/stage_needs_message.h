// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// StageNeeds as a part of messages between processes. Pure.

#pragma once

#include <cstdint>
#include <optional>

#include "function/stage_recipe.h"
#include "ipc/message.h"

namespace penstock::function {

struct StageNeedsMessage {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint32_t findings_bytes = 0;
  std::uint32_t state_bytes = 0;
  std::uint32_t head = 0;
  std::uint32_t tail = 0;
  std::uint32_t chooses_port = 0;
  std::uint32_t reserved = 0;
};
static_assert(ipc::kIsMessage<StageNeedsMessage>);

[[nodiscard]] inline StageNeedsMessage to_message(const StageNeeds& needs) noexcept {
  return {needs.access.reads.bits(), needs.access.writes.bits(), needs.findings_bytes,         needs.state_bytes,
          needs.growth.head,         needs.growth.tail,          needs.chooses_port ? 1U : 0U, 0};
}

/// Empty: it has fields that this program does not know.
[[nodiscard]] inline std::optional<StageNeeds> needs_of(const StageNeedsMessage& message) noexcept {
  if (((message.reads | message.writes) >> kFieldCount) != 0) return std::nullopt;
  return StageNeeds{{FieldSet::of_bits(message.reads), FieldSet::of_bits(message.writes)},
                    message.findings_bytes,
                    message.state_bytes,
                    {message.head, message.tail},
                    message.chooses_port != 0};
}

}  // namespace penstock::function
