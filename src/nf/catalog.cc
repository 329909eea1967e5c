// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "nf/filter/filter.h"
#include "nf/filter/recipe.h"
#include "nf/firewall/firewall.h"
#include "nf/firewall/recipe.h"
#include "nf/ipsec/ipsec.h"
#include "nf/ipsec/outbound_recipe.h"
#include "nf/ipsec/recipe.h"
#include "nf/kernel/kernel.h"
#include "nf/nids/match/automaton_recipe.h"
#include "nf/nids/match/filter_recipe.h"
#include "nf/nids/nids.h"
#include "nf/router/recipe.h"
#include "nf/router/router.h"

namespace penstock::nf {

namespace {

/// What can stand for a function in a chain file, in `--set` (where keys are joined by dots, and a number is a
/// position) and in reports (where the second of a name is "name#2").
bool good_name(std::string_view name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && is_letter(name.front()) &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
}

/// Null if it has none.
const Parameter* common_parameter_of(const function::NfKind& kind) {
  const auto found =
      std::ranges::find_first_of(kind.parameters, function::kCommonParameters, {}, &Parameter::name, &Parameter::name);
  return found == kind.parameters.end() ? nullptr : &*found;
}

}  // namespace

function::NfKinds catalog() {
  static const std::array kKinds{
      &filter::filter_kind(), &firewall::firewall_kind(), &ipsec::ipsec_kind(),
      &kernel::kernel_kind(), &nids::nids_kind(),         &router::router_kind(),
  };
  return kKinds;
}

Result<std::vector<const function::NfKind*>> catalog_with(function::NfKinds further) {
  std::vector<const function::NfKind*> kinds(catalog().begin(), catalog().end());
  Errors errors;
  for (const function::NfKind* kind : further) {
    if (!good_name(kind->name)) {
      errors.push_back({{},
                        "wrong name of a network function",
                        in_quotes(kind->name),
                        "a lower-case letter, then such letters, digits and '_'"});
    } else if (const Parameter* const common = common_parameter_of(*kind)) {
      errors.push_back(
          {{},
           fmt::format("the network function {} has a parameter of a name that all functions use", kind->name),
           in_quotes(common->name),
           "another name"});
    } else if (find_kind(kind->name, kinds) != nullptr) {
      const bool built_in = find_kind(kind->name) != nullptr;
      errors.push_back(
          {{},
           built_in ? "a network function has the name of a built-in one" : "two network functions have one name",
           in_quotes(kind->name),
           "another name"});
    } else {
      kinds.push_back(kind);
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return kinds;
}

const function::NfKind* find_kind(std::string_view name, function::NfKinds kinds) {
  for (const function::NfKind* kind : kinds) {
    if (kind->name == name) return kind;
  }
  return nullptr;
}

std::span<const function::RemoteKernel> remote_kernels() {
  static const std::array kKernels{
      filter::remote_kernel(),      firewall::remote_kernel(), ipsec::remote_kernel(), ipsec::remote_outbound_kernel(),
      nids::remote_filter_kernel(), nids::remote_kernel(),     router::remote_kernel()};
  return kKernels;
}

}  // namespace penstock::nf
