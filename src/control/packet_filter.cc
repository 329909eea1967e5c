// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/packet_filter.h"

#include <cstddef>
#include <utility>

#include "control/host_names.h"
#include "nf/filter/bpf/interpreter_core.h"

namespace penstock::control {

Result<PacketFilter> PacketFilter::compile(const std::string& expression) {
  if (const std::string name = host_name_in(expression); !name.empty()) {
    return failure(Error{{},
                         "filter: a run does not look names up, because it would have to wait for name servers",
                         in_quotes(name),
                         "an address or a network, such as the output of `getent ahosts " + printable(name) + "`"});
  }
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
