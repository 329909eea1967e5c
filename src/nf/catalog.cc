// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/catalog.h"

#include <array>

#include "nf/firewall/firewall.h"
#include "nf/router/router.h"

namespace penstock::nf {

std::span<const chain::NfKind* const> catalog() {
  static const std::array kKinds{
      &firewall::firewall_kind(),
      &router::router_kind(),
  };
  return kKinds;
}

const chain::NfKind* find_kind(std::string_view name) {
  for (const chain::NfKind* kind : catalog()) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

}  // namespace penstock::nf
