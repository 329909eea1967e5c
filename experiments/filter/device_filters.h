// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The filters on the current device for one set of rules, made when they are first needed.

#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "classify/rfc_build.h"
#include "experiments/filter/key_filter.h"
#include "experiments/filter/template_rules.h"

namespace penstock::experiments {

/// As code (rule_code.h), compiled for the current device. Fails if this machine cannot compile it.
[[nodiscard]] Result<std::unique_ptr<KeyFilter>> make_code_filter(std::span<const WordRule<kKeyWords>> rules,
                                                                  Deciding deciding);

/// What constant memory has room for.
inline constexpr std::size_t kConstantBytes = std::size_t{64} << 10;

/// RFC for IPv4, with tables in the device's memory. The entries are those of ruleset_of(…, deciding) with `rules`
/// rules. Throws gpu::CudaError.
[[nodiscard]] std::unique_ptr<KeyFilter> make_rfc_filter(const classify::RfcTables& tables, std::uint32_t rules,
                                                         Deciding deciding);
/// The same, with the first kConstantBytes of the tables in constant memory, and the others in the device's memory.
/// There is one copy of the former per device, so a new filter replaces the tables of earlier ones.
[[nodiscard]] std::unique_ptr<KeyFilter> make_constant_rfc_filter(const classify::RfcTables& tables,
                                                                  std::uint32_t rules, Deciding deciding);

class DeviceFilters {
 public:
  struct Wish {
    const std::vector<WordRule<kKeyWords>>& rules;  // the same until forget()
    Reading reading = Reading::table;
    Deciding deciding = Deciding::last;
    std::string method;  // bpf+constant, bpf+code, rfc+constant or rfc+global
    unsigned unroll = 1;
  };

  /// Valid until the next call. Fails if the rules are too many for the method, or cannot be compiled here. Throws
  /// gpu::CudaError.
  [[nodiscard]] Result<const KeyFilter*> get(const Wish& wish);
  /// Of the filter that was returned last: its tables, or 0 if they are code.
  [[nodiscard]] std::size_t table_bytes() const noexcept { return table_bytes_; }
  /// For other rules.
  void forget();

 private:
  [[nodiscard]] Result<const KeyFilter*> rfc(const Wish& wish);

  std::unique_ptr<KeyFilter> constant_;
  std::map<Deciding, std::unique_ptr<KeyFilter>> code_;
  std::map<Deciding, classify::RfcTables> tables_;
  std::map<Deciding, std::unique_ptr<KeyFilter>> rfc_;
  std::size_t table_bytes_ = 0;
};

}  // namespace penstock::experiments
