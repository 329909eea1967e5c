// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/table_spans.h"

namespace penstock::ipsec {

ReceivedSoFar::ReceivedSoFar(const Tables& tables) {
  for (const auto& state : tables.states()) {
    windows.push_back(state->window.packets());
    tops.push_back(state->window.top());
  }
}

TableSpans spans_of(const Tables& tables, const ReceivedSoFar& received) {
  return {tables.selection().spans(), tables.inbound().spans(), received.windows, received.tops,
          tables.keys().keys(),       tables.has_policies()};
}

}  // namespace penstock::ipsec
