// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What every NF of the chain shares: headers parsed once, flows hashed once (Gaviss §4.4). Nobody pays for what no NF
// asked for.

#pragma once

#include <span>

#include "packet/field.h"
#include "packet/flow_hash.h"
#include "packet/packet.h"
#include "packet/parse_core.h"

namespace penstock::stack {

class SharedStack {
 public:
  /// `reads`: all that the chain's stages read.
  explicit SharedStack(FieldSet reads) noexcept : hash_flows_(reads.has(Field::flow_hash)) {}

  /// Fills in what the stack finds, in each packet's descriptor.
  void prepare(std::span<const PacketView> packets) const noexcept {
    for (const PacketView& packet : packets) {
      parse(packet);
      if (hash_flows_) packet.packet->flow_hash = flow_hash(packet);
    }
  }

 private:
  bool hash_flows_;
};

}  // namespace penstock::stack
