// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The filters of a function, in their order: names, programs by link type, and what happens to packets that match.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "nf/filter/bpf/program.h"
#include "nf/filter/decide_core.h"
#include "packet/link_type.h"

namespace penstock::filter {

inline constexpr std::size_t kLinkTypes = static_cast<std::size_t>(LinkType::cisco_hdlc) + 1;
/// libpcap's number of a link type.
[[nodiscard]] int dlt_of(LinkType type) noexcept;

/// How many filters a function may have.
inline constexpr std::size_t kMostFilters = 1024;

struct NamedFilter {
  std::string name;
  std::string text;  // the expression, or the name of the program's file
  bool is_expression = true;
  Action action;
  std::string action_text;  // "forward", "drop" or "to: wan"
  /// By link type; empty where the expression cannot be compiled. A program that was read from a file is for one link
  /// type.
  std::array<std::optional<Program>, kLinkTypes> programs{};

  [[nodiscard]] std::size_t instructions() const noexcept;  // of the longest program
};

/// Compiles an expression for all link types. Fails if it cannot be compiled for any; the error is that for Ethernet.
[[nodiscard]] Result<void> compile_for_all(NamedFilter& filter, const Place& place);

struct FilterList {
  std::vector<NamedFilter> filters;
  Action otherwise;           // for packets that no filter matches
  bool headers_only = false;  // the programs see no payload

  /// Whether all filters have a program for frames of this type.
  [[nodiscard]] bool takes(LinkType type) const noexcept;
  /// The programs for this link type, in order; empty if some filter has none.
  [[nodiscard]] std::vector<Program> programs(LinkType type) const;
  /// Of a bitmap with one bit per filter.
  [[nodiscard]] std::uint32_t words() const noexcept { return static_cast<std::uint32_t>((filters.size() + 31) / 32); }
};

/// Whether both have the same name, meaning and action.
[[nodiscard]] bool same_filter(const NamedFilter& a, const NamedFilter& b);

}  // namespace penstock::filter
