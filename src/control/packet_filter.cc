// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/packet_filter.h"

#include <cstddef>
#include <utility>

#include "nf/filter/bpf/interpreter_core.h"

namespace penstock::control {

Result<PacketFilter> PacketFilter::compile(const std::string& expression) {
  filter::NamedFilter programs;
  programs.text = expression;
  if (auto compiled = filter::compile_for_all(programs, {}); !compiled) return failure(std::move(compiled.error()));
  return PacketFilter(std::make_shared<const filter::NamedFilter>(std::move(programs)));
}

bool PacketFilter::operator()(PacketView packet) const noexcept {
  const auto& program = programs_->programs[static_cast<std::size_t>(packet.packet->link_type)];
  if (!program) return false;
  return filter::interpret(program->instructions().data(),
                           {packet.frame, packet.length(), packet.packet->wire_length}) != 0;
}

}  // namespace penstock::control
