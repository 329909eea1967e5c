// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/filter/filter_list.h"

#include <algorithm>
#include <utility>

#include "nf/filter/bpf/read_program.h"

namespace penstock::filter {

int dlt_of(LinkType type) noexcept {
  switch (type) {
    case LinkType::ethernet: return 1;
    case LinkType::raw_ip: return 12;
    case LinkType::null_host: return 0;
    case LinkType::loop: return 108;
    case LinkType::linux_sll: return 113;
    case LinkType::linux_sll2: return 276;
    case LinkType::ppp: return 9;
    case LinkType::cisco_hdlc: return 104;
  }
  return 1;
}

std::size_t NamedFilter::instructions() const noexcept {
  std::size_t most = 0;
  for (const auto& program : programs) most = std::max(most, program ? program->instructions().size() : 0);
  return most;
}

Result<void> compile_for_all(NamedFilter& filter, const Place& place) {
  bool any = false;
  Errors errors;
  for (std::size_t type = 0; type < kLinkTypes; ++type) {
    CompileOptions options;
    options.link_type = dlt_of(static_cast<LinkType>(type));
    Result<Program> program = compile_expression(filter.text, options, place);
    if (program) {
      filter.programs[type] = std::move(*program);
      any = true;
    } else if (errors.empty()) {
      errors = std::move(program.error());  // Ethernet comes first
    }
  }
  if (!any) return failure(std::move(errors));
  return {};
}

bool FilterList::takes(LinkType type) const noexcept {
  return std::ranges::all_of(
      filters, [&](const NamedFilter& f) { return f.programs[static_cast<std::size_t>(type)].has_value(); });
}

std::vector<Program> FilterList::programs(LinkType type) const {
  std::vector<Program> programs;
  if (!takes(type)) return programs;
  for (const NamedFilter& filter : filters) programs.push_back(*filter.programs[static_cast<std::size_t>(type)]);
  return programs;
}

bool same_filter(const NamedFilter& a, const NamedFilter& b) {
  if (a.name != b.name || a.action != b.action) return false;
  for (std::size_t type = 0; type < kLinkTypes; ++type) {
    const auto& one = a.programs[type];
    const auto& other = b.programs[type];
    if (one.has_value() != other.has_value()) return false;
    if (one && !std::ranges::equal(one->instructions(), other->instructions())) return false;
  }
  return true;
}

}  // namespace penstock::filter
