// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>

#include "base/testing/fuzz_check.h"
#include "nf/ipsec/xfrm/policy_reader.h"

using namespace penstock;
using penstock::testing::check;

/// Policies that are read have consistent families, and those without errors are in order of priority.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policies = ipsec::parse_policies({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!policies) {
    check(!policies.error().empty());
    return 0;
  }
  std::uint32_t priority = 0;
  for (const ipsec::Policy& policy : policies->value) {
    check(ipsec::is_ipv6(policy.selector.source) == ipsec::is_ipv6(policy.selector.destination));
    for (const ipsec::Template& wanted : policy.templates) {
      check(ipsec::is_ipv6(wanted.source) == ipsec::is_ipv6(wanted.destination));
    }
    check(policy.priority >= priority || !policies->unsupported.empty());
    priority = policy.priority;
  }
  return 0;
}
