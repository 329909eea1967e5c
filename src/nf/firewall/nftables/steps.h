// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads what rules test and do besides conditions: {"limit": …}, {"mangle": …}, {"set": …}, and matches on keys that
// engines do not know, such as `meta mark`.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "classify/step.h"
#include "nf/firewall/nftables/keys.h"
#include "nf/firewall/nftables/problem.h"
#include "nf/firewall/nftables/values.h"

namespace penstock::firewall::nftables {

/// Values with names.
using Symbols = std::span<const std::pair<std::string_view, std::uint64_t>>;

/// The left side of a match that becomes a step.
struct StepKey {
  classify::Operand operand;
  unsigned shift = 0;                        // of the values in the operand
  std::uint64_t last = 0;                    // largest value, before it is shifted
  bool is_link_address = false;              // values are "00:11:22:33:44:55"
  Symbols names{};                           // of values
  bool is_dscp = false, is_ecn = false;      // values have names
  bool is_hour = false, is_weekday = false;  // ditto, "20:00" in the time zone of this process, and "Monday"
  bool is_header = false;                    // of IPv6, which is there (true) or not
  std::optional<Type> type{};                // values are as those of this type
  std::uint64_t scale = 1;                   // of values
  std::uint64_t offset = 0;                  // that is added to the operand
  std::string_view set_type{};               // of the elements of named sets; empty: there are none
  std::optional<classify::HashObject> hash{};
  std::vector<Condition> implied{};
};

/// Empty: a key of the engines (keys.h), or of none. Generators of numbers (`numgen`) get their counter from the
/// caller.
[[nodiscard]] Checked<std::optional<StepKey>> read_step_key(const Json& expression);

/// The tests for a key that is `op` to `right`: a value, a range, or an anonymous set of them.
[[nodiscard]] Checked<classify::Test> read_test(const StepKey& key, const std::string& op, const Json& right);

/// `ct status` and `ct helper`, which are compared with names; empty: another key, or names that engines know.
[[nodiscard]] Checked<std::optional<classify::Test>> read_connection_test(const Json& left, const std::string& op,
                                                                          const Json& right);

/// What steps compare in sets that change.
[[nodiscard]] Checked<classify::Operand> operand_of(const Key& key);

/// {"rate": 10, "per": "second", "burst": 5, "inv": true, "rate_unit": "kbytes"}
[[nodiscard]] Checked<classify::Rate> read_rate(const Json& limit);
/// {"val": 100, "val_unit": "kbytes", "inv": true}; {"bytes": 26214400, "used": 0}
[[nodiscard]] Checked<classify::Quota> read_quota(const Json& quota);
/// {"val": 4, "inv": true}
[[nodiscard]] Checked<classify::ConnectionCount> read_count(const Json& count);

/// {"key": {"meta": {"key": "mark"}}, "value": {"|": [{"meta": {"key": "mark"}}, 1]}}
struct Mangle {
  classify::Step step;
  std::vector<Condition> implied{};
};
[[nodiscard]] Checked<Mangle> read_mangle(const Json& mangle);

/// A number of seconds, as of timeouts.
[[nodiscard]] Checked<std::uint64_t> read_seconds_ns(const Json& value);

}  // namespace penstock::firewall::nftables
